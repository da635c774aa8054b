"""A desk in memory, for simulations and tests: private numbers and accounts that no ledger keeps.

Draws, costs and refusals are those of a session; nothing is durable, so a crash forgets what was spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from parco.accuracy.cells import Cells, Reach, cells_of
from parco.accuracy.measurement import Key, Released
from parco.accuracy.validation import Check, Validation, Verdict, check_of
from parco.errors import BusyError, RequestError
from parco.measure import Exactable, Measure, exact, units_floor
from parco.noise.bits import BitSource, CipherBits
from parco.privacy.filters import Filter

__all__ = ["Account", "Held", "HeldPart", "charge_all"]


class Account:
    """An account of one `measure` with a `cap`; `label` tells those of several parts apart."""

    def __init__(self, measure: Measure, cap: Exactable, *, label: str = "whole") -> None:
        self.label = label
        self._filter = Filter(measure, units_floor(exact(cap, "cap")))
        self._holder: object = None

    @property
    def measure(self) -> Measure:
        """Its currency."""
        return self._filter.measure

    @property
    def spent(self) -> int:
        """10^-15 of the measure."""
        return self._filter.spent

    def charged(self, units: int, *, holder: object = None) -> Filter:
        """The filter after a charge that is not yet made; BudgetError where it does not fit, BusyError while held."""
        if self._holder is not None and holder is not self._holder:
            raise BusyError("an interactive mechanism runs on this account: nothing else does until it has ended")
        return self._filter.admit(units)

    def charge(self, units: int, *, holder: object = None) -> None:
        """Charges, or raises what `charged` does."""
        self._filter = self.charged(units, holder=holder)

    def hold(self, holder: object) -> None:
        """From now on only `holder` may charge."""
        self._holder = holder

    def free(self, holder: object) -> None:
        """Ends what `hold` began."""
        if self._holder is holder:
            self._holder = None


def charge_all(accounts: Sequence[Account], units: int, *, holder: object = None) -> None:
    """Charges each of them as much, or none where one refuses."""
    for account in accounts:
        account.charged(units, holder=holder)
    for account in accounts:
        account.charge(units, holder=holder)


class Held:
    """For every list of exact cells, in whole steps of the lattice `step`, a measurement in memory, or RequestError.

    `reach`: how far a unit moves them. Each of the accounts is charged all. `bits`: for tests; by default fresh bits
    for each step.
    """

    def __init__(
        self,
        values: Sequence[int],
        *accounts: Account,
        reach: Reach,
        step: Fraction = Fraction(1),
        labels: Sequence[Key] | None = None,
        bits: BitSource | None = None,
    ) -> None:
        if not accounts or len({account.measure for account in accounts}) != 1:
            raise RequestError("a measurement is charged to one account or more, of one measure")
        if not all(type(value) is int for value in values):
            raise RequestError("exact cells are whole numbers of lattice steps, as int")
        self._values, self._accounts, self._bits = tuple(values), accounts, bits
        self._cells: Cells = cells_of(accounts[0].measure, reach, step=step, count=len(values))
        self._drawn = 0
        self.labels = tuple((place,) for place in range(len(values))) if labels is None else tuple(labels)

    @property
    def measure(self) -> Measure:
        """That of the accounts."""
        return self._cells.measure

    @property
    def accounts(self) -> tuple[str, ...]:
        """The labels of those that pay."""
        return tuple(account.label for account in self._accounts)

    @property
    def charged(self) -> int:
        """What each account was charged for it."""
        return self._cells.total

    def refine(self, costs: Sequence[int]) -> Released:
        """Charges the difference of the rounded-up totals, then draws; what an earlier run made sharper stays so."""
        stands = tuple(map(max, costs, self._cells.standing))
        if stands != self._cells.standing:
            planned = self._cells.planned(stands)
            charge_all(self._accounts, planned.total - self._cells.total)
            self._cells = planned.draw(self._values, self._bits or CipherBits())
            self._drawn += 1
        return replace(self._cells.released, standing=stands, earlier=self._drawn - 1)

    def __repr__(self) -> str:
        return f"<{len(self.labels)} cells held in memory>"


Row = Mapping[str, object]


class HeldPart:
    """The units of a validation part in memory, each a list of its rows, and the account that pays for checks.

    `correct` is called with the rows of one unit, as a tuple of read-only mappings, and says whether the model is right
    about it. What it returns counts as true or false, an error as false; neither is told. It has to be a function of
    these rows and the model alone: one that remembers other units breaks the promise, and nothing here can see it.
    """

    def __init__(self, units: Sequence[Sequence[Row]], account: Account, *, bits: BitSource | None = None) -> None:
        self._units = [tuple(MappingProxyType(dict(row)) for row in rows) for rows in units]
        self._account, self._bits = account, bits

    def checker(self, validation: Validation, *, attempts: int) -> _HeldChecker:
        """Checks for at most so many attempts; RequestError for another part than this."""
        if validation.part != self._account.label:
            raise RequestError(f"there is no part {validation.part!r} here")
        check = check_of(validation, self._account.measure, attempts=attempts)
        return _HeldChecker(self._units, self._account, validation, check=check, bits=self._bits or CipherBits())

    def __repr__(self) -> str:
        return "<a part held in memory>"


class _HeldChecker:
    def __init__(
        self,
        units: Sequence[tuple[Row, ...]],
        account: Account,
        validation: Validation,
        *,
        check: Check,
        bits: BitSource,
    ) -> None:
        self._units, self._account, self._validation = units, account, validation
        self._check, self._bits = check, bits
        self._attempts, self._ended = 0, False
        self.charged = 0

    @property
    def accounts(self) -> tuple[str, ...]:
        """The part's own."""
        return (self._account.label,)

    def check(self, correct: Callable[..., object] | str) -> Verdict:
        """Charges, counts the units about which the model is right, draws."""
        if self._ended:
            raise RequestError("this run has passed or ended: nothing is checked any more")
        if not callable(correct):
            raise RequestError("correct is a function of the rows of one unit")
        units = self._check.next_units if self._attempts else self._check.first_units
        self._account.charge(units, holder=self)
        self.charged += units
        self._attempts += 1
        if self._check.interactive:
            self._account.hold(self)
        right = sum(_is_right(correct, rows) for rows in self._units)
        found = self._check.verdict(self._validation.score(right, len(self._units)), self._bits)
        if found.passed:
            self.end()
        return found

    def end(self) -> None:
        """Lets the account go."""
        self._ended = True
        self._account.free(self)


def _is_right(correct: Callable[..., object], rows: tuple[Row, ...]) -> bool:
    """0 or 1 for a unit, whatever the model does with it."""
    try:
        return bool(correct(rows))
    except Exception:  # noqa: BLE001 - why it failed depends on somebody's row: it is told to nobody
        return False
