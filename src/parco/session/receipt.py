"""The receipt: what one release cost, by which mechanism, and what may be claimed of the account since.

A receipt is a function of what the ledger stores, so the same release has the same receipt whenever it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from parco import canonical
from parco.contract.contract import Contract
from parco.contract.division import WHOLE
from parco.measure import COST_UNIT, DELTA_UNIT, Cost, Measure, decimal_text, exact_text, significant_text
from parco.mechanisms.mechanism import Mechanism, mechanism_of
from parco.privacy import claim
from parco.privacy.claim import Claim
from parco.privacy.expost import ExPost
from parco.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from parco.stores.records import AccountRow, Evidence, Settled, Stored
    from parco.stores.store import Store

_LISTED_MAX = 12

__all__ = ["JointReceipt", "Receipt", "account_claims", "claims_to_date", "mechanism_in", "receipt_of"]


@dataclass(frozen=True)
class Receipt:
    """What a release cost, and what may be claimed at its place in the ledger.

    `cost`, `reserved` and `remaining` are in the account's measure: `cost` is what was realised, `reserved` what had
    been set aside before, where a ladder stopped early (None where it was the cost); `spent` counts what was spent or
    reserved on the account when this release was settled, itself included; `scale` and `lattice` are in the statistic's
    units; `position` is the ledger entry that settled it. `private` is False where the bits came
    from a tape. `limits` says how a unit is bounded in this question. `accounts` are the labels of those that paid,
    each of them `cost`; `cap` and `spent` are of the one that has least left, `fixed_cap` is its cap as signed, None
    once it was raised. `evidence` shows to anybody that the ledger's entry says so, under a head that it signed.
    """

    release: int
    position: int
    question: str
    limits: str
    version: str
    contract: Contract
    mechanism: Mechanism
    sensitivity: Sensitivity
    cost: Cost
    cap: Cost
    spent: Cost
    private: bool
    parco: str
    evidence: Evidence
    fixed_cap: Cost | None = None
    accounts: tuple[str, ...] = (WHOLE,)
    delta: Fraction = Fraction(0)
    """What it took of the account's delta for mechanisms, beside its cost."""
    reserved: Cost | None = None
    """What had been set aside where that is more than the cost."""

    @property
    def releases(self) -> tuple[int, ...]:
        """The numbers of the releases that the answer was made of."""
        return (self.release,)

    @property
    def measure(self) -> Measure:
        """The currency of `cost`, `cap` and `spent`."""
        return self.contract.budget.measure

    @property
    def order(self) -> Fraction:
        """The receipt order alpha, fixed at signing."""
        return self.contract.budget.receipt_order

    @property
    def remaining(self) -> Fraction:
        """What the account held when this release was settled."""
        return self.cap.value - self.spent.value

    @property
    def ex_post(self) -> ExPost:
        """The bound that came with this release, at the receipt order: part of the output, and kept by `Release.map`.

        Source: docs/mathematics.md, "Ex-post bounds".
        """
        return ExPost.of(self.measure, self.cost.value, order=self.order, delta=self.delta)

    @property
    def bound(self) -> Fraction:
        """The realised ex-post bound of this release at the receipt order, in nats."""
        return self.ex_post.bound

    @property
    def cost_in_all(self) -> Cost:
        """What a unit that is in all the periods of this release loses by it: the sum of their costs."""
        return Cost(self.cost.units * len(self.accounts))

    def _bound_in_words(self) -> str:
        if self.measure == Measure.PURE:
            return "the privacy loss of this release is never larger; bounds add up"
        return "it adds up over releases, wherever they stopped, and becomes an epsilon at a delta"

    def _shares(self) -> str:
        unit = self.contract.unit
        if unit.period is None:
            return "each unit is in one part"
        return f"one {unit.column} in all of them loses their sum, {self.cost_in_all}"

    def claims(self) -> tuple[Claim, ...]:
        """What may be claimed of all releases on the account up to `position`.

        Source: docs/mathematics.md, "What may be claimed". First the cap, which holds always; then the realised total
        at the receipt order. All are valid, none is tight.
        """
        fixed = None if self.fixed_cap is None else self.fixed_cap.value
        return account_claims(
            self.contract, cap=self.cap.value, spent=self.spent.value, fixed_cap=fixed, accounts=self.accounts
        )

    def record(self) -> dict[str, object]:
        """The receipt as a tree of text, integers and booleans; numbers as exact decimal or p/q text."""
        contract = self.contract
        divided: dict[str, object] = {} if self.accounts == (WHOLE,) else {"accounts": list(self.accounts)}
        if self.delta:
            divided["delta"] = decimal_text(self.delta)
        if contract.unit.period is not None:
            divided["cost_in_all_periods"] = str(self.cost_in_all)
        return {
            "release": self.release,
            "position": self.position,
            "question": self.question,
            "limits": self.limits,
            "account": contract.data.name,
            **divided,
            "version": self.version,
            "contract": contract.name,
            "contract_digest": contract.digest,
            "measure": str(self.measure),
            "cost": str(self.cost),
            "reserved": str(self.reserved or self.cost),
            "remaining": decimal_text(self.remaining),
            "cap": str(self.cap),
            "mechanism": self.mechanism.kind,
            "scale": exact_text(self.mechanism.scale),
            "lattice": exact_text(self.mechanism.lattice),
            "sensitivity_l1": exact_text(self.sensitivity.l1),
            "sensitivity_l2_squared": exact_text(self.sensitivity.l2_squared),
            "order": exact_text(self.order),
            "bound": exact_text(self.bound),
            "claims": [one.record() for one in self.claims()],
            "unprotected": contract.unprotected if contract.unprotected == "none" else list(contract.unprotected),
            "private": self.private,
            "parco": self.parco,
            "evidence": self.evidence.record(),
        }

    def __str__(self) -> str:
        order = "" if self.measure == Measure.PURE else f" at order {exact_text(self.order)}"
        share = significant_text(100 * self.cost.value / self.cap.value, 3, up=True)
        head = self.evidence.proof.head
        lines = [
            f"release {self.release}: {self.question} (data version {self.version})",
            f"  cost       {self.cost} of {self.measure}, {share} % of the budget; "
            f"{decimal_text(self.remaining)} of {self.cap} remained",
            f"  noise      {self.mechanism.kind}, scale {_short(self.mechanism.scale)}, "
            f"lattice {exact_text(self.mechanism.lattice)}",
            f"  bound      {_short(self.bound)}{order}: {self._bound_in_words()}",
            f"  contract   {self.contract.name}, {self.contract.digest[:16]}…",
            f"  protected  one {self.contract.unit.column}. {self.contract.unprotected_words}",
            f"  ledger     entry {self.position} of head {head.size}, root {head.root[:16]}…, parco {self.parco}",
        ]
        if self.accounts != (WHOLE,):
            lines.insert(2, f"  paid by    {_listed(self.accounts)}, each the whole cost; {self._shares()}")
        if self.delta:
            lines.insert(2, f"  delta      {decimal_text(self.delta)}, of the contract's delta for mechanisms")
        if self.reserved is not None:
            lines.insert(
                2, f"  reserved   {self.reserved} before the data were read; it stopped early, the rest is free"
            )
        if not self.private:
            lines.append("  NOT PRIVATE: the random bits came from a tape")
        return "\n".join(lines)


@dataclass(frozen=True)
class JointReceipt(Receipt):
    """What an answer made of several releases cost: `cost` is that of all `parts`, the rest is the latest part's.

    Mechanism and sensitivity belong to a part: read them in `parts`.
    """

    parts: tuple[Receipt, ...] = ()

    @classmethod
    def of(cls, question: str, *parts: Receipt) -> JointReceipt:
        """The receipt of an answer made of these parts."""
        last = max(parts, key=lambda part: part.position)
        known = {field.name: getattr(last, field.name) for field in fields(Receipt)}
        cost, private = Cost(sum(part.cost.units for part in parts)), all(part.private for part in parts)
        delta = sum((part.delta for part in parts), Fraction(0))
        before = Cost(sum((part.reserved or part.cost).units for part in parts))
        whole = {"cost": cost, "reserved": None if before == cost else before, "delta": delta, "private": private}
        return cls(**{**known, "question": question, **whole}, parts=parts)

    @property
    def releases(self) -> tuple[int, ...]:
        """The numbers of the releases that the answer was made of."""
        return tuple(part.release for part in self.parts)

    @property
    def ex_post(self) -> ExPost:
        """The bounds of the parts, added up."""
        return reduce(add, (part.ex_post for part in self.parts))

    def record(self) -> dict[str, object]:
        """The receipt as a tree; what belongs to a part stands under `parts`."""
        own = ("mechanism", "scale", "lattice", "sensitivity_l1", "sensitivity_l2_squared", "evidence")
        known = {name: value for name, value in super().record().items() if name not in own}
        return {**known, "parts": [part.record() for part in self.parts]}

    def __str__(self) -> str:
        lines = [f"{self.question}: {self.cost} of {self.measure} in {len(self.parts)} parts"]
        return "\n".join([*lines, *(str(part) for part in self.parts)])


def receipt_of(
    store: Store, stored: Stored, *, question: str, limits: str, version: str, labels: Mapping[int, str]
) -> Receipt:
    """The receipt of a stored answer, every figure from the ledger; question, limits and version are told in words.

    `labels` names the accounts. All that a question charges pay alike; what is told is of the one that has least left.
    """
    balance = min(stored.accounts, key=lambda one: (one.cap - one.spent - one.reserved, one.account))
    fixed = store.fixed_cap(balance.account, before=stored.position)
    reserve = stored.reserve
    return Receipt(
        release=stored.request,
        position=stored.position,
        question=question,
        limits=limits,
        version=version,
        contract=Contract.from_text(store.contract_text(reserve.contract)),
        mechanism=mechanism_in(stored),
        sensitivity=Sensitivity(l1=reserve.sensitivity.l1, l2_squared=reserve.sensitivity.l2_squared),
        cost=Cost(max(charge.cost for charge in stored.charges)),
        delta=max(charge.delta for charge in stored.charges) * DELTA_UNIT,
        reserved=None if stored.stopped_at is None else Cost(max(charge.cost for charge in reserve.charges)),
        cap=Cost(balance.cap),
        spent=Cost(balance.spent + balance.reserved),
        private=reserve.private,
        parco=canonical.decode(stored.answer)["parco"],
        evidence=store.evidence(stored.request, stored.position),
        fixed_cap=None if fixed is None else Cost(fixed),
        accounts=tuple(labels[charge.account] for charge in stored.charges),
    )


def mechanism_in(stored: Settled) -> Mechanism:
    """The mechanism that an answered request drew from."""
    facts = stored.mechanism
    pairs = {name: [value.numerator, value.denominator] for name, value in vars(facts).items() if name != "kind"}
    return mechanism_of({"kind": facts.kind, **pairs})


def account_claims(
    contract: Contract,
    *,
    cap: Fraction,
    spent: Fraction,
    fixed_cap: Fraction | None,
    accounts: tuple[str, ...] = (WHOLE,),
    all_periods: bool = False,
    delta_spent: Fraction = Fraction(0),
) -> tuple[Claim, ...]:
    """What may be claimed of an account with this cap on which this much is spent or reserved.

    `fixed_cap`: the cap as signed, None if the account was ever raised above it. `accounts`: the labels for which the
    claim is made, `cap` and `spent` being the largest among them; with `all_periods` the claim is made for a unit in
    all of them, and `cap` and `spent` are sums. The mechanisms' own delta enters with its cap, since what was spent of
    it depends on released values, or with `delta_spent` where that is more.
    """
    budget, unit = contract.budget, contract.unit
    delta = budget.delta_for_conversion
    context = claim.Context(
        unit=unit.column if unit.period is None or all_periods else f"{unit.column} in one {unit.period}",
        neighbours=unit.neighbours,
        bounds=f"each release within its contract's bounds, here {unit.groups} groups and {unit.rows} rows in each"
        + _division_in_words(contract, accounts, all_periods=all_periods),
        measure=budget.measure,
    )
    own = max(delta_spent, budget.delta_mechanisms * (len(accounts) if all_periods else 1))
    deltas = {"delta": delta, "delta_mechanisms": own}
    caps: tuple[Claim, ...] = ()
    if fixed_cap != cap:
        moved = claim.realised_claims(context, total=cap, order=budget.receipt_order, **deltas)
        caps = tuple(replace(one, basis="cap") for one in moved)
    if fixed_cap is not None:
        caps = (*claim.cap_claims(context, cap=fixed_cap, **deltas), *caps)
    return (*caps, *claim.realised_claims(context, total=spent, order=budget.receipt_order, **deltas))


def claims_to_date(contract: Contract, *accounts: AccountRow, all_periods: bool = False) -> tuple[Claim, ...]:
    """What may be claimed of a data set with these accounts as they stand; what is reserved counts as spent.

    Of several parts or periods the largest amounts count, since each protected unit is in one (docs/mathematics.md,
    "Parts", "Periods"). With `all_periods` the sums count: the claim is then for a unit that is in every period.
    An overdrawn account counts with what was spent, whatever its cap.
    """
    together = sum if all_periods else max
    fixed = [account.fixed_cap for account in accounts]
    known = [cap for cap in fixed if cap is not None]
    return account_claims(
        contract,
        cap=together(max(account.cap, account.spent + account.reserved) for account in accounts) * COST_UNIT,
        spent=together(account.spent + account.reserved for account in accounts) * COST_UNIT,
        fixed_cap=together(known) * COST_UNIT if len(known) == len(fixed) else None,
        accounts=tuple(account.label for account in accounts),
        all_periods=all_periods,
        delta_spent=together(account.delta_spent + account.delta_reserved for account in accounts) * DELTA_UNIT,
    )


def _division_in_words(contract: Contract, accounts: tuple[str, ...], *, all_periods: bool) -> str:
    period, shown = contract.unit.period, _listed(accounts)
    if all_periods:
        return f"; present in every {period} of {shown}, so this is the sum over them"
    if period is not None:
        return f"; each {period} has an account of its own, so this is the largest loss among {shown}"
    if contract.parts is None:
        return ""
    return (
        f"; each unit is in one part, by a secret coin, so this is the largest loss in"
        f" {'part' if len(accounts) == 1 else 'parts'} {shown}"
    )


def _listed(labels: tuple[str, ...]) -> str:
    return ", ".join(labels) if len(labels) <= _LISTED_MAX else f"{labels[0]} to {labels[-1]} ({len(labels)})"


def _short(value: Fraction) -> str:
    return significant_text(value, 6, up=True)
