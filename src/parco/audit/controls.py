"""Negative controls: a claim on a real ledger, worked out again with one fault planted, must change in its direction.

A claim that stays the same when a release is left out, a bound is moved or the neighbours are swapped does not depend
on what it says it depends on. All of it happens in memory: the ledger is read, nothing is written, no data is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeGuard

from parco.contract.columns import Column, DecimalColumn, IntegerColumn
from parco.contract.contract import Contract
from parco.errors import RequestError, VerificationError
from parco.ledger.entries import Recost, SensitivityFacts, decode
from parco.measure import COST_UNIT, Measure, significant_text
from parco.privacy.sensitivity import Sensitivity
from parco.queries.recalled import unconditional
from parco.queries.sensitivity import sensitivity
from parco.session.receipt import account_claims, mechanism_from
from parco.stores.records import AccountRow, HistoryRow
from parco.stores.store import Store

__all__ = ["Control", "controls"]

_DIGITS = 15
_OTHER = {"add-or-remove": "replace", "replace": "add-or-remove"}

Fault = Callable[[Contract], Contract]


@dataclass(frozen=True)
class Control:
    """One fault planted in an account's claim: epsilon `before` and `after` it, and where it must go.

    `expected` is `lower` or `higher`; `after` is None where nothing on the account depends on what was changed, so that
    there is nothing to be seen.
    """

    account: str
    fault: str
    expected: str
    before: Fraction
    after: Fraction | None

    @property
    def bites(self) -> bool | None:
        """Whether the claim went where it must; None where nothing depends on the fault."""
        if self.after is None:
            return None
        return self.after < self.before if self.expected == "lower" else self.after > self.before

    def record(self) -> dict[str, object]:
        """The control as text; epsilons are rounded up to 15 significant digits."""
        return {
            "account": self.account,
            "fault": self.fault,
            "expected": self.expected,
            "epsilon_before": significant_text(self.before, _DIGITS, up=True),
            "epsilon_after": None if self.after is None else significant_text(self.after, _DIGITS, up=True),
            "bites": self.bites,
        }


def controls(store: Store) -> list[Control]:
    """For every ledger of private releases, returns the controls of each account on which something was charged.

    Left out: each request that was charged. Doubled: rows, groups, the bounds of each column. Swapped: the neighbours.
    Dropped: the split into parts or periods. The claim is the one on the realised total (docs/mathematics.md, "What may
    be claimed"). Raises RequestError where noise came from a tape, VerificationError where a recorded sensitivity is
    not the one that contract and question give.
    """
    history = [row for row in store.history() if row.charges]
    if not all(row.private for row in history):
        raise RequestError("releases with noise from a tape are not private: no claim is made of this ledger")
    # What the last recost stated of a release, on each of its accounts, which may have different measures.
    recosts = [entry for body in store.entries() if isinstance(entry := decode(body), Recost)]
    stated = {(one.request, one.account): one.cost for entry in recosts for one in entry.totals}
    books = {row.account: _Book(store, row, history, stated) for row in store.accounts()}
    found = []
    for book in books.values():
        if book.charged:
            found += [*book.left_out(), *book.bounds(), *book.neighbours()]
    for dataset in {book.account.name: None for book in books.values()}:
        found += _split([book for book in books.values() if book.account.name == dataset])
    return found


@dataclass(frozen=True)
class _Use:
    """What one entry charged an account, the contract it was asked under, and the facts of its noise."""

    row: HistoryRow
    units: int
    contract: Contract

    def units_at(self, other: Sensitivity, measure: Measure) -> int:
        """What the same noise would be charged at another sensitivity, rounded up."""
        recorded, facts = self.row.sensitivity, self.row.mechanism
        if recorded is None or facts is None:
            raise AssertionError("a request without the facts of its noise")
        known = Sensitivity(l1=recorded.l1, l2_squared=recorded.l2_squared)
        noise = mechanism_from(facts)
        return -(-self.units * noise.cost_units(other, measure) // noise.cost_units(known, measure))


class _Book:
    """An account with everything that was charged to it."""

    def __init__(
        self, store: Store, account: AccountRow, history: Sequence[HistoryRow], stated: Mapping[tuple[int, int], int]
    ) -> None:
        self.account = account
        self.contract = Contract.from_text(store.contract_texts(account.account)[-1])
        self.charged = tuple(_uses(store, account.account, self.contract, history, stated))
        self.total = account.spent + account.reserved
        self._known = dict[int, Fraction]()

    def epsilon(self, units: int) -> Fraction:
        """What is claimed of so much as a realised total."""
        if units not in self._known:
            claims = account_claims(
                self.contract, cap=Fraction(0), spent=units * COST_UNIT, fixed_cap=None, accounts=(self.account.label,)
            )
            self._known[units] = next(claim.epsilon for claim in claims if claim.basis == "realised")
        return self._known[units]

    def left_out(self) -> Iterator[Control]:
        """Each thing that was charged, as if it had not been."""
        for use in self.charged:
            what = "release" if use.row.mechanism is not None else "recovery"
            yield self._control(f"{what} {use.row.seq} left out", "lower", self.total - use.units)

    def bounds(self) -> Iterator[Control]:
        """Each bound of the contracts doubled: the same noise then hides less."""
        columns = {name: None for use in self.charged for name, one in use.contract.columns.items() if _bounded(one)}
        for name, fault in {
            "rows of a unit doubled": _more_rows,
            "groups of a unit doubled": _more_groups,
            **{f"bounds of {name} doubled": _wider(name) for name in columns},
        }.items():
            yield self._planted(name, "higher", fault)

    def neighbours(self) -> Iterator[Control]:
        """The other neighbouring relation: two units that differ cost more than one that is there or not."""
        other = _OTHER[self.contract.unit.neighbours]
        expected = "higher" if other == "replace" else "lower"
        yield self._planted(
            f"neighbours taken to be {other}", expected, lambda contract: _unit(contract, neighbours=other)
        )

    def _planted(self, name: str, expected: str, fault: Fault) -> Control:
        """The claim where every cost follows from contracts with a fault; questions that were erased keep theirs."""
        planted = {use.row.contract: fault(use.contract) for use in self.charged}
        known: dict[tuple[str | None, str], tuple[Sensitivity, Sensitivity]] = {}
        added, depends = 0, False
        for use in self.charged:
            question, contract = use.row.question, use.row.contract
            if question is None:
                continue
            if (contract, question) not in known:
                known[contract, question] = (
                    _sensitivity(use.contract, question),
                    _sensitivity(planted[contract], question),
                )
            before, after = known[contract, question]
            if before != after:
                depends = True
                added += use.units_at(after, self.account.measure) - use.units
        return self._control(name, expected, self.total + added if depends else None)

    def _control(self, fault: str, expected: str, units: int | None) -> Control:
        after = None if units is None else self.epsilon(units)
        return Control(self.account.title, fault, expected, self.epsilon(self.total), after)


def _uses(
    store: Store,
    account: int,
    latest: Contract,
    history: Sequence[HistoryRow],
    stated: Mapping[tuple[int, int], int],
) -> Iterator[_Use]:
    contracts: dict[str | None, Contract] = {None: latest}
    checked = set[tuple[str | None, str, Fraction]]()
    for row in history:
        units = sum(charge.cost for charge in row.charges if charge.account == account)
        if not units:
            continue
        units = stated.get((row.seq, account), units)
        if row.contract not in contracts:
            contracts[row.contract] = Contract.from_text(store.contract_text(row.contract or ""))
        use = _Use(row, units, contracts[row.contract])
        if row.question is not None and row.sensitivity is not None:
            place = (row.contract, row.question, row.sensitivity.l2_squared)
            if place not in checked:
                _check(use, row.question, row.sensitivity)
                checked.add(place)
        yield use


def _check(use: _Use, question: str, recorded: SensitivityFacts) -> None:
    """The positive control: contract and question give the sensitivity that was recorded."""
    found = _sensitivity(use.contract, question)
    if (found.l1, found.l2_squared) != (recorded.l1, recorded.l2_squared):
        raise VerificationError(
            f"release {use.row.seq}: its recorded sensitivity is not the one that its contract and question give",
            entry=use.row.seq,
        )


def _sensitivity(contract: Contract, question: str) -> Sensitivity:
    return sensitivity(unconditional(contract, question))


def _split(books: Sequence[_Book]) -> Iterator[Control]:
    """One account instead of several, as if a unit could be in all parts or periods."""
    largest = max(books, key=lambda book: book.total)
    if len(books) == 1 or not largest.total:
        return
    together = sum(book.total for book in books)
    name = largest.account.name
    before, after = largest.epsilon(largest.total), largest.epsilon(together)
    yield Control(name, "split into accounts dropped", "higher", before, after if together > largest.total else None)


def _unit(contract: Contract, **changes: object) -> Contract:
    return contract.model_copy(update={"unit": contract.unit.model_copy(update=changes)})


def _more_rows(contract: Contract) -> Contract:
    return _unit(contract, rows=2 * contract.unit.rows)


def _more_groups(contract: Contract) -> Contract:
    return _unit(contract, groups=2 * contract.unit.groups)


def _bounded(column: Column | None) -> TypeGuard[IntegerColumn | DecimalColumn]:
    """Whether bounds are declared as numbers; those of dates are days, of which twice as many means nothing."""
    return isinstance(column, IntegerColumn | DecimalColumn)


def _wider(name: str) -> Fault:
    def fault(contract: Contract) -> Contract:
        column = contract.columns.get(name)
        if not _bounded(column):
            return contract
        twice = {side: 2 * getattr(column, side) for side in ("lower", "upper")}
        columns: Mapping[str, object] = {**contract.columns, name: column.model_copy(update=twice)}
        return contract.model_copy(update={"columns": columns})

    return fault
