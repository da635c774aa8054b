"""The receipt: what one release cost, by which mechanism, and what may be claimed of the account since.

A receipt is a function of what the ledger stores, so the same release has the same receipt whenever it is shown; what
corrected it since stands beside it, and in its claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from parco import canonical
from parco.contract.contract import Contract
from parco.contract.division import WHOLE
from parco.ledger.entries import Draw
from parco.measure import COST_UNIT, DELTA_UNIT, Cost, Measure, decimal_text, exact_text, significant_text
from parco.mechanisms.mechanism import Gaussian, Mechanism, mechanism_of
from parco.mechanisms.refinement import RefinedGaussian
from parco.mechanisms.stopping import StoppedGaussian
from parco.privacy import claim
from parco.privacy.claim import Claim
from parco.privacy.expost import ExPost
from parco.privacy.sensitivity import Sensitivity
from parco.queries.plan import Also

if TYPE_CHECKING:
    from parco.ledger.entries import Balance, Charge, MechanismFacts
    from parco.stores.records import AccountRow, Correction, Evidence, Settled, Stored
    from parco.stores.store import Store

_LISTED_MAX = 12

__all__ = [
    "Held",
    "JointReceipt",
    "Receipt",
    "Since",
    "account_claims",
    "claims_to_date",
    "context_of",
    "mechanism_from",
    "mechanism_in",
    "receipt_of",
]


@dataclass(frozen=True)
class Since:
    """What happened to a release, and to its account by recosts, after it was settled, up to ledger entry `until`.

    `added` is what recosts added to the account, with `delta_added` of delta: below 0 where they took something back.
    `cost` is what the release costs now.
    """

    until: int
    corrections: tuple[Correction, ...]
    cost: Cost
    added: Fraction
    delta_added: Fraction

    def record(self) -> dict[str, object]:
        """The same as a tree of text and integers."""
        return {
            "until": self.until,
            "cost": str(self.cost),
            "added": decimal_text(self.added),
            **({"delta_added": decimal_text(self.delta_added)} if self.delta_added else {}),
            "corrections": [one.record() for one in self.corrections],
        }


@dataclass(frozen=True)
class Held:
    """One account that paid, as it stood when a release was settled: its cap, what was spent or reserved of cost and
    delta, and what recosts added to both since.
    """

    cap: Fraction
    spent: Fraction
    delta_spent: Fraction
    added: Fraction = Fraction(0)
    delta_added: Fraction = Fraction(0)


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
    refines: tuple[int, ...] = ()
    """The releases that it makes sharper, the first one first; `cost` is what it took beyond theirs."""
    asked: str = field(default="", repr=False)
    """The digest of the question on this ledger: equal ones are one question, on one version of the data."""
    delta: Fraction = Fraction(0)
    """What it took of the account's delta for mechanisms, beside its cost."""
    drawn: tuple[str, int] | None = None
    """The schedule that it was drawn from, and its step there."""
    since: Since | None = None
    """What corrected it after it was settled; everything else here is as it was then, but for the claims."""
    also: tuple[Also, ...] = ()
    """What the accounts paid that the data are derived from, and what they held when this release was settled."""
    held: tuple[Held, ...] = field(default=(), repr=False)
    """Each of `accounts`: `cap` and `spent` are those of one of them, and another may have had more spent."""
    reserved: Cost | None = None
    """What had been set aside by a ladder that stopped, None where it was the cost."""
    scales: tuple[Fraction, ...] = ()
    """Of each cell, where they stopped at different precisions; `mechanism` is that of the one with most noise."""

    @property
    def releases(self) -> tuple[int, ...]:
        """The numbers of the releases that the answer was made of."""
        return (self.release,)

    @property
    def chosen(self) -> bool:
        """Whether its precision may have been chosen in view of noisy values: a ladder stopped there, or refined it."""
        return self.reserved is not None or bool(self.refines)

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
        return ExPost.of(self.measure, self.path_cost.value, order=self.order, delta=self.delta)

    @property
    def bound(self) -> Fraction:
        """The realised ex-post bound of this release at the receipt order, in nats; with it, of all that it refines."""
        return self.ex_post.bound

    @property
    def path_cost(self) -> Cost:
        """What it cost together with all that it refines: what one release of this scale would have."""
        return Cost(self.mechanism.cost_units(self.sensitivity, self.measure)) if self.refines else self.cost

    @property
    def cost_in_all(self) -> Cost:
        """What a unit that is in all the periods of this release loses by it: the sum of their costs."""
        return Cost(self.cost.units * len(self.accounts))

    def _bound_in_words(self) -> str:
        if self.measure == Measure.PURE:
            return "the privacy loss of this release is never larger; bounds add up"
        return "it adds up over releases, wherever they stopped, and becomes an epsilon at a delta"

    @property
    def _as_reserved(self) -> str:
        return ", all that was reserved" if self.reserved is None else " (realised: what the steps that ran cost)"

    def _shares(self) -> str:
        unit = self.contract.unit
        if unit.period is None:
            return "each unit is in one part"
        return f"one {unit.column} in all of them loses their sum, {self.cost_in_all}"

    @property
    def lifetime_words(self) -> str:
        """What one unit had lost at most when this release was settled, in words."""
        spent = max((one.spent for one in self.held), default=self.spent.value)
        unit, lost = self.contract.unit, f"{decimal_text(spent)} of {self.measure}"
        if unit.period is None:
            return f"one {unit.column} lost at most {lost} by all releases until then"
        return (
            f"one {unit.column} lost at most {lost} in that {unit.period} of these in which most was lost; who is in "
            "several loses their sum, which `parco budget` shows for all"
        )

    def claims(self) -> tuple[Claim, ...]:
        """What may be claimed of all releases on the account up to `position`.

        Source: docs/mathematics.md, "What may be claimed". First the cap, which holds always; then the realised total
        at the receipt order. All are valid, none is tight. What recosts added since counts as spent; where that is more
        than the cap, no cap held it back. Of several accounts the largest amounts count.
        """
        spent = [one.spent + one.added for one in self.held]
        overdrawn = any(one > held.cap for one, held in zip(spent, self.held, strict=True))
        return account_claims(
            self.contract,
            cap=max(*spent, *(one.cap for one in self.held)),
            spent=max(spent),
            fixed_cap=None if self.fixed_cap is None or overdrawn else self.fixed_cap.value,
            accounts=self.accounts,
            delta_spent=max(one.delta_spent + one.delta_added for one in self.held),
        )

    def record(self) -> dict[str, object]:
        """The receipt as a tree of text, integers and booleans; numbers as exact decimal or p/q text."""
        contract = self.contract
        divided: dict[str, object] = {} if self.accounts == (WHOLE,) else {"accounts": list(self.accounts)}
        if self.delta:
            divided["delta"] = decimal_text(self.delta)
        if self.drawn is not None:
            divided |= {"schedule": self.drawn[0], "step": self.drawn[1]}
        if self.scales:
            divided["scales"] = [exact_text(scale) for scale in self.scales]
        if self.refines:
            divided |= {"refines": list(self.refines), "path_cost": str(self.path_cost)}
        if contract.unit.period is not None:
            divided["cost_in_all_periods"] = str(self.cost_in_all)
        if self.also:
            divided["also"] = [one.record() for one in self.also]
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
            "answers": contract.answers or "ledger",
            "private": self.private,
            "parco": self.parco,
            "evidence": self.evidence.record(),
            **({} if self.since is None else {"since": self.since.record()}),
        }

    def __str__(self) -> str:
        order = "" if self.measure == Measure.PURE else f" at order {exact_text(self.order)}"
        share = significant_text(100 * self.cost.value / self.cap.value, 3, up=True)
        scale = _short(self.mechanism.scale)
        if self.scales:
            scale = f"{_short(min(self.scales))} to {scale}, each cell's own"
        head, with_them = self.evidence.proof.head, " and those it refines" if self.refines else ""
        lines = [
            f"release {self.release}: {self.question} (data version {self.version})",
            f"  cost       {self.cost} of {self.measure}, {share} % of the budget{self._as_reserved}; "
            f"{decimal_text(self.remaining)} of {self.cap} remained",
            f"  noise      {self.mechanism.kind}, scale {scale}, lattice {exact_text(self.mechanism.lattice)}",
            f"  bound      {_short(self.bound)}{order}{with_them}: {self._bound_in_words()}",
            f"  contract   {self.contract.name}, {self.contract.digest[:16]}…",
            f"  protected  one {self.contract.unit.column}. {self.contract.unprotected_words}",
            f"  lifetime   {self.lifetime_words}",
            f"  answers    {self.contract.answers_words}",
            f"  ledger     entry {self.position} of head {head.size}, root {head.root[:16]}…, parco {self.parco}",
        ]
        if self.accounts != (WHOLE,):
            lines.insert(2, f"  paid by    {_listed(self.accounts)}, each the whole cost; {self._shares()}")
        if self.refines:
            path = ", ".join(map(str, self.refines))
            lines.insert(
                2, f"  refines    {path}; with them it cost {self.path_cost}, what one such release would have"
            )
        if self.delta:
            lines.insert(2, f"  delta      {decimal_text(self.delta)}, of the contract's delta for mechanisms")
        if self.drawn is not None:
            lines.insert(
                2, f"  drawn      step {self.drawn[1]} of the schedule {self.drawn[0]}, which set its cost aside"
            )
        for one in self.also:
            left = decimal_text(one.remaining)
            also = f"  also       {one.cost} of {one.measure} on {one.account!r}, from which the data are derived"
            lines.insert(2, f"{also}; {left} remained")
        if self.reserved is not None:
            lines.insert(
                2, f"  reserved   {self.reserved} before the data were read; what the steps did not need is free again"
            )
        if not self.private:
            lines.append("  NOT PRIVATE: the random bits came from a tape")
        if self.since is not None:
            lines += [f"  SINCE      {one.in_words()}" for one in self.since.corrections]
            if self.since.added:
                lines.append(
                    f"  SINCE      recosts added {decimal_text(self.since.added)} to what its account has spent"
                )
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
        known = {one.name: getattr(last, one.name) for one in fields(Receipt)}
        cost, private = Cost(sum(part.cost.units for part in parts)), all(part.private for part in parts)
        delta = sum((part.delta for part in parts), Fraction(0))
        before = Cost(sum((part.reserved or part.cost).units for part in parts))
        whole = {"cost": cost, "reserved": None if before == cost else before, "delta": delta, "private": private}
        return cls(**{**known, "question": question, **whole, "also": _together(parts)}, parts=parts)

    @property
    def releases(self) -> tuple[int, ...]:
        """The numbers of the releases that the answer was made of."""
        return tuple(part.release for part in self.parts)

    @property
    def chosen(self) -> bool:
        """Whether that of any part may have been."""
        return any(part.chosen for part in self.parts)

    @property
    def ex_post(self) -> ExPost:
        """The bounds of the parts, added up."""
        return reduce(add, (part.ex_post for part in self.parts))

    def record(self) -> dict[str, object]:
        """The receipt as a tree; what belongs to a part stands under `parts`."""
        own = ("mechanism", "scale", "lattice", "sensitivity_l1", "sensitivity_l2_squared", "evidence", "since")
        known = {name: value for name, value in super().record().items() if name not in own}
        return {**known, "parts": [part.record() for part in self.parts]}

    def __str__(self) -> str:
        lines = [f"{self.question}: {self.cost} of {self.measure} in {len(self.parts)} parts"]
        return "\n".join([*lines, *(str(part) for part in self.parts)])


def receipt_of(
    store: Store,
    stored: Stored,
    *,
    question: str,
    limits: str,
    version: str,
    labels: Mapping[int, str],
    until: int | None = None,
) -> Receipt:
    """The receipt of a stored answer, every figure from the ledger; question, limits and version are told in words.

    `labels` names the data set's accounts. All of them that a question charges pay alike; what is told is of the one
    that has least left. Others are those that the data set descends from. `until`: corrections up to this entry, by
    default all that there are.
    """
    paid = [charge for charge in stored.charges if charge.account in labels]
    balance = min(
        (one for one in stored.accounts if one.account in labels),
        key=lambda one: (one.cap - one.spent - one.reserved, one.account),
    )
    fixed = store.fixed_cap(balance.account, before=stored.position)
    added, reserve = store.added_since(after=stored.position, until=until), stored.reserve
    return Receipt(
        release=stored.request,
        position=stored.position,
        question=question,
        limits=limits,
        version=version,
        contract=Contract.from_text(store.contract_text(reserve.contract)),
        mechanism=mechanism_in(stored),
        sensitivity=Sensitivity(l1=reserve.sensitivity.l1, l2_squared=reserve.sensitivity.l2_squared),
        cost=Cost(max(charge.cost for charge in paid)),
        delta=max(charge.delta for charge in paid) * DELTA_UNIT,
        reserved=_reserved(stored, labels),
        scales=() if stored.stopped is None else stored.stopped.scales,
        cap=Cost(balance.cap),
        spent=Cost(balance.spent + balance.reserved),
        private=reserve.private,
        parco=canonical.decode(stored.answer)["parco"],
        evidence=store.evidence(stored.request, stored.position),
        fixed_cap=None if fixed is None else Cost(fixed),
        refines=tuple(stored.before),
        asked=reserve.question,
        accounts=tuple(labels[charge.account] for charge in paid),
        also=() if len(paid) == len(stored.charges) else _also(store, stored, labels),
        drawn=None if not isinstance(reserve, Draw) else (store.schedule_name(reserve.schedule), reserve.step),
        since=_since(store, stored, balance, paid=paid, added=added, until=until),
        held=tuple(_held(one, added) for one in stored.accounts if one.account in labels),
    )


def _reserved(stored: Stored, labels: Mapping[int, str]) -> Cost | None:
    """What was set aside on each of the data set's own accounts, where a ladder stopped early."""
    if stored.stopped is None:
        return None
    return Cost(max(charge.cost for charge in stored.reserve.charges if charge.account in labels))


def _held(balance: Balance, added: Mapping[int, tuple[int, int]]) -> Held:
    cost, delta = added.get(balance.account, (0, 0))
    return Held(
        cap=balance.cap * COST_UNIT,
        spent=(balance.spent + balance.reserved) * COST_UNIT,
        delta_spent=(balance.delta_spent + balance.delta_reserved) * DELTA_UNIT,
        added=cost * COST_UNIT,
        delta_added=delta * DELTA_UNIT,
    )


def _since(
    store: Store,
    stored: Stored,
    balance: Balance,
    *,
    paid: Sequence[Charge],
    added: Mapping[int, tuple[int, int]],
    until: int | None,
) -> Since | None:
    """What corrects a release, and what was added to the account that is told; None where there is nothing.

    `paid`: what the data set's own accounts were charged.
    """
    corrections = store.corrections(stored.request, until=until)
    own = [added[charge.account] for charge in paid if charge.account in added]
    if not corrections and not any(map(any, own)):
        return None
    cost, delta = added.get(balance.account, (0, 0))
    costs = [one.cost for one in corrections if one.cost is not None]
    return Since(
        until=store.head().size if until is None else until,
        corrections=corrections,
        cost=Cost(costs[-1] if costs else max(charge.cost for charge in paid)),
        added=cost * COST_UNIT,
        delta_added=delta * DELTA_UNIT,
    )


def _also(store: Store, stored: Stored, labels: Mapping[int, str]) -> tuple[Also, ...]:
    """What accounts paid that are none of the data set's own."""
    rows, found = {row.account: row for row in store.accounts()}, []
    for charge, balance in zip(stored.charges, stored.accounts, strict=True):
        if charge.account not in labels:
            left = (balance.cap - balance.spent - balance.reserved) * COST_UNIT
            delta_left = (balance.delta_cap - balance.delta_spent - balance.delta_reserved) * DELTA_UNIT
            row = rows[charge.account]
            found.append(Also(row.title, row.measure, Cost(charge.cost), left, delta_left))
    return tuple(found)


def _together(parts: Sequence[Receipt]) -> tuple[Also, ...]:
    """What each other account paid for all parts, and what it held after the last of them."""
    found: dict[str, Also] = {}
    for part in sorted(parts, key=lambda part: part.position):
        for one in part.also:
            before = found[one.account].cost.units if one.account in found else 0
            found[one.account] = replace(one, cost=Cost(before + one.cost.units))
    return tuple(found.values())


def mechanism_in(stored: Settled) -> Mechanism:
    """The mechanism that an answered request drew from; of one that refines another, the law of the estimate."""
    facts = stored.mechanism
    if stored.stopped is not None and facts.kind == StoppedGaussian.kind:
        return StoppedGaussian(facts.scale, facts.lattice)
    if stored.before and facts.kind == Gaussian.kind:
        laws = (Gaussian(law.scale, law.lattice) for law in stored.before.values())
        return RefinedGaussian(facts.scale, facts.lattice, before=tuple(laws))
    return mechanism_from(facts)


def mechanism_from(facts: MechanismFacts) -> Mechanism:
    """The mechanism that a ledger's entry describes."""
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
    budget, delta = contract.budget, contract.budget.delta_for_conversion
    context = context_of(contract, accounts, all_periods=all_periods)
    own = max(delta_spent, budget.delta_mechanisms * (len(accounts) if all_periods else 1))
    deltas = {"delta": delta, "delta_mechanisms": own}
    caps: tuple[Claim, ...] = ()
    if fixed_cap != cap:
        moved = claim.realised_claims(context, total=cap, order=budget.receipt_order, **deltas)
        caps = tuple(replace(one, basis="cap") for one in moved)
    if fixed_cap is not None:
        caps = (*claim.cap_claims(context, cap=fixed_cap, **deltas), *caps)
    return (*caps, *claim.realised_claims(context, total=spent, order=budget.receipt_order, **deltas))


def context_of(contract: Contract, accounts: tuple[str, ...], *, all_periods: bool = False) -> claim.Context:
    """Whom a claim on accounts with these labels protects, and within which bounds."""
    unit = contract.unit
    return claim.Context(
        unit=unit.column if unit.period is None or all_periods else f"{unit.column} in one {unit.period}",
        neighbours=unit.neighbours,
        bounds=f"each release within its contract's bounds, here {unit.groups} groups and {unit.rows} rows in each"
        + _division_in_words(contract, accounts, all_periods=all_periods),
        measure=contract.budget.measure,
    )


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
