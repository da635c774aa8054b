"""A question in canonical form: what is counted or summed, grouped by which declared keys."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from parco import canonical
from parco.contract.columns import IntegerColumn, NumericColumn, TextColumn
from parco.contract.contract import Contract
from parco.contract.division import coin_range
from parco.contract.fields import CELLS_MAX
from parco.errors import QuestionError
from parco.measure import exact_text
from parco.queries.definition import BOUNDS, definition
from parco.queries.filters import Filter
from parco.queries.periods import periods_of

__all__ = ["ANSWER_COLUMNS", "HISTOGRAM", "Query", "Statistic"]

Key = str | int


class Statistic(StrEnum):
    """What is computed in each group."""

    COUNT = "count"
    """Rows, at most `rows` of them for a unit and group; of a column: those whose value is kept."""
    COUNT_UNITS = "count_units"
    """Units that have at least one row there."""
    SUM = "sum"
    """The sum of a numeric column, clamped and on its lattice, over the rows that are kept."""
    SUM_SQUARES = "sum_squares"
    """The sum of the squares of what `sum` would add up: of a centred one, of the distances from the middle."""
    COUNT_DISTINCT = "count_distinct"
    """The different values that units hold, at most `rows` of each unit and group."""
    QUANTILE = "quantile"
    """The value of a numeric column, on its lattice, below which a share `at` of the rows lies."""
    SELECT_KEYS = "select_keys"
    """The keys of a column that declares none, each with the units behind it; a unit keeps at most `groups` of them."""
    TOP = "top"
    """Those `k` of the declared keys that have the most rows, in their order; rows are those of a count."""
    UNIT_ROWS = "unit_rows"
    """The number of rows below which a share `at` of the units lies, of each unit the most that it has in a group."""
    UNIT_GROUPS = "unit_groups"
    """The number of groups below which a share `at` of the units lies, of each unit those in which it has rows."""
    SCORE = "score"
    """By how much a condition holds for more than a share `at` = num/den of the units: den right - num all."""
    CHECKS = "checks"
    """Which of several conditions, asked one after the other, is the first whose score is not below a threshold."""


HISTOGRAM = "histogram"
"""A count of rows by declared bins: another name of that count, with its canonical form and its stored answers."""

ANSWER_COLUMNS = ("value", "lower", "upper")
"""What stands beside the keys of a group in an answer, so that no group can be called so."""

# Sums of squares stay far inside the 38 digits that engines add up exactly.
_SQUARES_MAX = 10**27
# Scores of a quantile are whole numbers once multiplied by it.
_SHARE_DENOMINATOR_MAX = 10**9
_OF_VALUES = (Statistic.SUM, Statistic.SUM_SQUARES, Statistic.QUANTILE)
"""What is computed from the values of a numeric column, in multiples of its lattice."""
_SCORED = (Statistic.SCORE, Statistic.CHECKS)
"""What is asked of a model on a part of the units, by `Query.scored` alone."""
_OF_UNITS = (Statistic.COUNT_UNITS, Statistic.SELECT_KEYS, *_SCORED)
"""What does not depend on how many rows a unit has in a group."""
_CONTRIBUTIONS = (Statistic.UNIT_ROWS, Statistic.UNIT_GROUPS)
"""Where each unit has one number, whatever its rows, so that nothing of it is left out and nothing is bounded."""
_UNIT_ROWS_MAX = 10_000
"""A unit with more rows counts as one with so many."""


@dataclass(frozen=True)
class Query:
    """A question the contract allows: make one with `Query.of`.

    `by` is sorted by name, so that one question has one form whatever the order it is asked in. `where` says which
    rows it is about. `centre` is taken off each value of a sum: the first part of a mean.
    """

    contract: Contract
    statistic: Statistic
    column: str | None
    by: tuple[str, ...]
    part: str | None = None
    """The part of the units it is restricted to, or all of them."""
    periods: tuple[str, ...] = ()
    """The periods it touches, in their order; none where the contract's unit has no period."""
    where: Filter | None = None
    centre: Fraction = Fraction(0)
    at: Fraction | None = None
    """Of a quantile, and of no other: the share of the rows that lies below it."""
    k: int | None = None
    """Of a top, and of no other: how many keys are chosen."""

    @classmethod
    def of(  # noqa: PLR0913 - each option of a question is a parameter
        cls,
        contract: Contract,
        statistic: str,
        *,
        column: str | None = None,
        by: str | Sequence[str] = (),
        part: str | None = None,
        period: str | Sequence[str] | None = None,
        where: str | None = None,
        centred: bool = False,
        at: Fraction | None = None,
        k: int | None = None,
    ) -> Query:
        """For every question on declared names, returns it, or raises QuestionError naming what the contract lacks.

        `centred`: a sum of distances from the lattice point nearest the middle of the bounds, or of their squares.
        `at`: of a quantile, the share of the rows below it. A histogram is the count by its bins, and `k` how many of
        them a top names.
        """
        kinds = [kind.value for kind in Statistic if kind not in _SCORED]
        if statistic not in (*kinds, HISTOGRAM):
            raise QuestionError(
                f"unknown statistic {statistic!r}: choose one of {', '.join((*kinds, HISTOGRAM))}, or of those that are"
                " made of several such: mean, variance, suggest_bounds"
            )
        name = None if column is None else _name(column)
        names = _names(by)
        if statistic == Statistic.TOP and names:
            raise QuestionError("a top is one of all declared keys: leave out by, and name the keys alone")
        if statistic in (HISTOGRAM, Statistic.TOP):
            names = _names([_binning(contract, name, statistic), *names])
            statistic, name = Statistic.TOP if statistic == Statistic.TOP else Statistic.COUNT, None
        periods = periods_of(contract, names, period)
        condition = None if where is None else Filter.of(contract, where)
        query = cls(contract, Statistic(statistic), name, names, _part(contract, part), periods, condition, at=at, k=k)
        if query.of_units:
            query._check_contribution()
        elif query.finds_keys:
            query._check_selection()
        else:
            query._check_column()
        query._check_groups()
        query._check_names()
        return replace(query, centre=query._middle) if centred else query

    @classmethod
    def scored(cls, contract: Contract, *, part: str, target: Fraction, where: str | None = None) -> Query:
        """The score of a condition on a part's units, or without one the checks of an interactive run.

        `target`: the share of the units for which the condition has to hold; QuestionError as of `of`.
        """
        statistic = Statistic.CHECKS if where is None else Statistic.SCORE
        condition = None if where is None else Filter.of(contract, where)
        return cls(contract, statistic, None, (), _part(contract, part), where=condition, at=target)

    @property
    def _middle(self) -> Fraction:
        numeric = self.contract.numeric(self.column or "")
        if numeric is None:
            raise AssertionError("a centred sum of a column without bounds")
        if numeric.clamp == "unit":
            raise QuestionError(f"{self.column} is clamped by the unit's total: no mean of its rows follows from that")
        if numeric.lower == numeric.upper:
            raise QuestionError(
                f"{self.column} has one bound only: its mean is that for any data, and needs no release"
            )
        middle = (numeric.lower + numeric.upper) / 2 / numeric.lattice
        return math.floor(middle + Fraction(1, 2)) * numeric.lattice

    @property
    def names(self) -> tuple[str, ...]:
        """All columns and bins that the question looks at: groupings, period, column, and those of its condition."""
        period, column = self.contract.unit.period, self.column
        single = [name for name in (period, column) if name is not None]
        return tuple(dict.fromkeys([*self.by, *single, *(() if self.where is None else self.where.names)]))

    @property
    def keys(self) -> tuple[tuple[Key, ...], ...]:
        """The declared keys of each grouping in `by`; of the period's, those that are asked."""
        period = self.contract.unit.period
        return tuple(self.periods if name == period else self.contract.keys(name) or () for name in self.by)

    @property
    def cells(self) -> int:
        """The number of groups G that are published; 1 without grouping."""
        return math.prod(len(keys) for keys in self.keys)

    @property
    def of_units(self) -> bool:
        """Whether each unit has one number and all units are one group, whatever it is grouped by."""
        return self.statistic in _CONTRIBUTIONS

    @property
    def published(self) -> int:
        """The number of cells of the answer."""
        return 1 if self.of_units else self.cells

    @property
    def groups(self) -> int:
        """In how many of the groups one unit can count: min(K, G); with periods, in how many of one period's."""
        return self.contract.unit.groups if self.finds_keys else min(self.contract.unit.groups, self._cells_of_one)

    @property
    def finds_keys(self) -> bool:
        """Whether the groups are not declared: how many there are is then private, and nobody knows a bound."""
        return self.statistic is Statistic.SELECT_KEYS

    @property
    def _cells_of_one(self) -> int:
        """How many cells a protected unit can reach at all: all of them, or with periods those of its own."""
        return self.cells // len(self.periods) if self.contract.unit.period in self.by else self.cells

    @property
    def step(self) -> Fraction:
        """The lattice step h of the exact statistic."""
        numeric = self.contract.numeric(self.column or "") if self.statistic in _OF_VALUES else None
        if numeric is None:
            return Fraction(1)
        return numeric.lattice**2 if self.statistic is Statistic.SUM_SQUARES else numeric.lattice

    @property
    def candidates(self) -> range:
        """What is chosen among: of a quantile all values on the lattice within the bounds, in lattice steps; of a top
        the places of all keys; of what units contribute, from 1 to the most that counts.
        """
        if self.of_units:
            return range(1, 1 + (_UNIT_ROWS_MAX if self.statistic is Statistic.UNIT_ROWS else self._cells_of_one))
        if self.statistic is Statistic.TOP:
            return range(self.cells)
        numeric = self.contract.numeric(self.column or "")
        if numeric is None:
            raise AssertionError("a quantile of a column without bounds")
        return range(int(numeric.lower / numeric.lattice), int(numeric.upper / numeric.lattice) + 1)

    @property
    def exact(self) -> Query:
        """The question without what only the draw depends on: equal ones are read once."""
        if self.statistic is Statistic.TOP:
            return replace(self, statistic=Statistic.COUNT, k=None)
        return replace(self, at=None)

    @property
    def counted(self) -> tuple[Query, ...]:
        """The questions whose exact answers make that of this one: of a score the units of the part, and of them those
        that have a row that meets the condition; of any other itself, as `exact`.
        """
        if self.statistic is not Statistic.SCORE:
            return (self.exact,)
        right = replace(self, statistic=Statistic.COUNT_UNITS, at=None)
        return replace(right, where=None), right

    def score_of(self, everybody: int, right: int) -> int:
        """The exact score of so many units."""
        num, den = (self.at or Fraction(0)).as_integer_ratio()
        return den * right - num * everybody

    @property
    def values(self) -> int:
        """How many different values one unit can have in a group of a count_distinct: at most `rows`, and all."""
        numeric, keys = self.contract.numeric(self.column or ""), self.contract.keys(self.column or "")
        there = len(keys or ())
        if numeric is not None:
            low, high = numeric.row_range
            there = int((high - low) / numeric.lattice) + 1
        return min(self.contract.unit.rows, there)

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The names that its answer has beside those of its groups; what units contribute has no groups."""
        if self.of_units:
            return ()
        if self.statistic is Statistic.TOP:
            return ("rank",)
        return ("at", *ANSWER_COLUMNS) if self.statistic is Statistic.QUANTILE else ANSWER_COLUMNS

    def labels(self) -> Iterator[tuple[Key, ...]]:
        """The keys of each cell that is published, in the order of the cells."""
        return iter([()]) if self.of_units else itertools.product(*self.keys)

    def question(self, version: str, *, asker: str | None = None) -> str:
        """The canonical text of the question on one version of the data: its digest is what the ledger remembers.

        It holds whatever the exact statistic depends on; a contract that changes one of these asks another question.
        Where the contract limits to whom answers are served, it holds the contract, or that and the asker: so what is
        stored for others is another question, neither served nor waited for nor hinted at.
        """
        contract, unit = self.contract, self.contract.unit
        limits: dict[str, object] = {"groups": self.groups}
        if self.of_units:
            limits = {"most": self.candidates[-1]}
        elif self.statistic is Statistic.COUNT_DISTINCT:
            limits["values"] = self.values
        elif self.statistic not in _OF_UNITS:
            limits["rows"] = unit.rows
        record: dict[str, object] = {
            "data": contract.data.name,
            "version": version,
            "unit": unit.column,
            "statistic": self.statistic.value,
            "column": self._column_definition(),
            "by": [self._grouping_definition(name) for name in self.by],
            "limits": limits,
            # What a contract declares otherwise stands in the column's own definition.
            "rules": {"infinity": "clamp", "nan": "drop", "null": "drop", "unparsed": "drop"},
        }
        if contract.data.table is not None:
            record["table"] = contract.data.table
        if self.part is not None and contract.parts is not None:
            low, high = coin_range(contract.parts, self.part)
            record["part"] = {"name": self.part, "from": low, "below": high}
        if contract.period is not None:
            record["period"] = {**contract.period, "keys": self.periods}
        if contract.data.csv is not None:
            record["csv"] = contract.data.csv.declared
        if unit.normal is not None:
            record["unit_normal"] = list(unit.normal)
        # Only where there is one, so that the texts of all other questions stay what they were.
        if self.centre:
            record["centre"] = exact_text(self.centre)
        if self.at is not None:
            record["at"] = exact_text(self.at)
        if self.k is not None:
            record["k"] = self.k
        if self.where is not None:
            record["where"] = self.where.record()
        # Nothing where answers are served to everybody, so that the texts of such questions stay what they were.
        served = contract.served_to(asker)
        return canonical.encode(record if served is None else record | {"answers": served}).decode()

    @property
    def accounts(self) -> tuple[str, ...]:
        """The labels of the accounts that pay for it: its part's, its periods', or all of the data set's."""
        if self.periods:
            return self.periods
        return self.contract.accounts if self.part is None else (self.part,)

    @property
    def limits(self) -> str:
        """How one unit is bounded in this question, in words."""
        unit = self.contract.unit
        words = [f"one {unit.column}{'' if unit.period is None else f' in one {unit.period}'} counts"]
        if self.of_units:
            return f"{words[0]} once, with at most {self.candidates[-1]}"
        if self.statistic is Statistic.COUNT_DISTINCT:
            words.append(f"with at most {self.values} of its values{' in a group,' if self.by else ''}")
        elif self.statistic not in _OF_UNITS:
            words.append(f"with at most {unit.rows} of its rows{' in a group,' if self.by else ''}")
        some = self.by and (unit.period is None or self._cells_of_one > 1)
        if self.finds_keys:
            words.append(f"behind at most {self.groups} of its keys")
        else:
            words.append(f"in at most {self.groups} of {self._cells_of_one} groups" if some else "in all")
        numeric = None if self.column is None else self.contract.numeric(self.column)
        if numeric is not None and numeric.clamp == "unit" and self.statistic is Statistic.SUM:
            bounds = f"[{exact_text(numeric.lower)}, {exact_text(numeric.upper)}]"
            words.append(f"and what it adds up to {'in a group ' if self.by else ''}is clamped to {bounds}")
        return " ".join(words)

    def __str__(self) -> str:
        what = self.statistic.value if self.k is None else f"{self.statistic.value} {self.k}"
        what = what if self.column is None else f"{what} {self.column}"
        if self.centre:
            what = f"{what} - {exact_text(self.centre)}"
        if self.at is not None:
            what = f"{what} at {exact_text(self.at)}"
        if self.where is not None:
            what = f"{what} where {self.where}"
        what = f"{what} by {', '.join(self.by)}" if self.by else what
        if self.part is not None:
            return f"{what} in part {self.part}"
        some = self.periods and (len(self.periods) < len(self.contract.accounts) or not self.by)
        return f"{what} in {', '.join(self.periods)}" if some else what

    def _column_definition(self) -> dict[str, object] | None:
        """What the exact statistic depends on: which values there are, for a count whether one is there."""
        if self.column is None:
            return None
        drop = {"keys"} if self.contract.numeric(self.column) else set[str]()
        if self.statistic is Statistic.COUNT:
            drop |= {"lattice"} | BOUNDS
        return definition(self.contract, self.column, drop=drop)

    def _grouping_definition(self, name: str) -> dict[str, object]:
        """A grouping has no bounds; nor is an infinity a key, and by default such a row is in no group either."""
        found = definition(self.contract, name, drop=BOUNDS)
        return {key: value for key, value in found.items() if (key, value) != ("infinity", "drop")}

    def _check_column(self) -> None:
        if self.statistic is Statistic.COUNT_UNITS and self.column is not None:
            raise QuestionError(
                f'count_units takes no column; for units with a value of one, add where="{self.column} is not null"'
            )
        if self.statistic in (Statistic.COUNT_UNITS, Statistic.COUNT, Statistic.TOP) and self.column is None:
            return
        if self.column is None:
            raise QuestionError(f"{self.statistic} needs the name of a column")
        numeric = self.contract.numeric(self.column)
        if self.statistic is Statistic.COUNT_DISTINCT:
            if numeric is None and self.contract.keys(self.column) is None:
                raise QuestionError(f"cannot count the values of {self.column}: it has no declared keys or bounds")
            return
        if numeric is None:
            names = ", ".join(name for name in self.contract.columns if self.contract.numeric(name)) or "none"
            raise QuestionError(
                f"{self.column} is not a column with declared bounds, which a {self.statistic} of it needs; there are: "
                f'{names}. To count rows that have a value, add where="COLUMN is not null" to a plain count'
                if self.statistic is Statistic.COUNT
                else f"{self.column} is not a column with declared bounds, which a {self.statistic} needs; there are: "
                f"{names}"
            )
        if self.statistic in (Statistic.SUM, Statistic.SUM_SQUARES) and numeric.magnitude == 0:
            raise QuestionError(f"{self.column} has bounds 0 and 0: its sum is 0 for any data, and needs no release")
        if self.statistic in (Statistic.SUM_SQUARES, Statistic.QUANTILE) and numeric.clamp == "unit":
            raise QuestionError(
                f"{self.column} is clamped by the unit's total: no {self.statistic} of its rows follows from that"
            )
        if self.statistic is Statistic.SUM_SQUARES:
            self._check_squares(numeric)
        if (self.statistic is Statistic.QUANTILE) != (self.at is not None):
            raise QuestionError("a quantile, and nothing else, is asked at shares of the rows, such as at=0.5")
        if self.at is not None:
            self._check_share(self.at)
            if numeric.lower == numeric.upper:
                raise QuestionError(f"{self.column} has one bound only: each quantile is that for any data")

    def _check_selection(self) -> None:
        column = self.column
        declared = None if column is None else self.contract.columns.get(column)
        if not isinstance(declared, TextColumn | IntegerColumn):
            there = [name for name, one in self.contract.columns.items() if isinstance(one, TextColumn | IntegerColumn)]
            names = ", ".join(name for name in there if self.contract.keys(name) is None) or "none"
            raise QuestionError(
                f"select_keys takes a column of text or whole numbers without declared keys; there are: {names}"
            )
        if declared.keys:
            raise QuestionError(
                f"the keys of {column} are declared, so that none has to be selected: count by {column}"
            )
        if self.by:
            raise QuestionError("keys are selected of one column at a time: leave out by")
        if self.contract.budget.delta_cap_units == 0:
            raise QuestionError(
                "a selection of keys needs a delta of its own, and this contract sets none aside: delta_mechanisms in "
                "[budget] does"
            )

    def _check_squares(self, numeric: NumericColumn) -> None:
        most = max(abs(numeric.lower), abs(numeric.upper), numeric.upper - numeric.lower) / numeric.lattice
        if self.contract.unit.rows * most**2 > _SQUARES_MAX:
            raise QuestionError(
                f"the squares of {self.column} are too large to add up exactly: declare narrower bounds or a coarser "
                "lattice"
            )

    def _check_contribution(self) -> None:
        if self.column is not None:
            raise QuestionError(f"{self.statistic} takes no column: it counts what units have in each group")
        if self.at is None:
            raise QuestionError(f"{self.statistic} is asked at a share of the units, such as at=0.98")
        self._check_share(self.at)
        if len(self.periods) > 1:
            raise QuestionError(f"{self.statistic} puts all units into one group: name one period")
        if len(self.candidates) == 1:
            raise QuestionError(
                "there is one group only, so that a unit is in no more: no data are needed to know that"
            )

    def _check_share(self, share: Fraction) -> None:
        if not 0 <= share <= 1 or share.denominator > _SHARE_DENOMINATOR_MAX:
            raise QuestionError(
                "a quantile is asked at a share of the rows between 0 and 1, such as 0.5, with at most nine decimals"
            )

    def _check_groups(self) -> None:
        for name in self.by:
            if self.contract.keys(name) is None:
                there = ", ".join(self.contract.groupings) or "none"
                raise QuestionError(f"cannot group by {name}: it has no declared keys or bins; there are: {there}")
        if len(set(self.by)) < len(self.by):
            raise QuestionError("a grouping is named twice")
        if self.cells > CELLS_MAX:
            raise QuestionError(f"{self.cells} groups are more than {CELLS_MAX}: group by fewer keys")
        if (self.statistic is Statistic.TOP) != (self.k is not None):
            raise QuestionError("a top, and nothing else, says how many keys it names, such as k=3")
        if self.k is not None and not (type(self.k) is int and 1 <= self.k <= self.cells):
            raise QuestionError(f"a top names 1 to {self.cells} keys, as many as there are: give such a k")

    def _check_names(self) -> None:
        """A group's name that is one of the answer's own would take its place, and the keys would be lost."""
        shown = (*self.by, *([self.column] if self.finds_keys and self.column else []))
        for name in shown:
            if name in self.own_columns:
                what = "these bins" if name in self.contract.bins else "the column, in the data and in the contract,"
                raise QuestionError(
                    f"an answer to {self.statistic} has a column {name} of its own, so that it cannot show the keys of "
                    f"{name}: give {what} another name"
                )


def _names(by: str | Sequence[str]) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise QuestionError('by takes one name or a list of names, such as by="month" or by=["month", "channel"]')
    return tuple(sorted(_name(name) for name in names))


def _binning(contract: Contract, name: str | None, statistic: str) -> str:
    """The grouping that a histogram or top of `name` counts by: its own declared keys, or the only bins over it."""
    if name is None:
        raise QuestionError(f"{statistic} needs the name of declared bins, or of a column that has some or has keys")
    if contract.keys(name) is not None:
        return name
    over = [bins for bins, declared in contract.bins.items() if declared.column == name]
    if len(over) == 1:
        return over[0]
    there = ", ".join(over or contract.groupings) or "none"
    raise QuestionError(f"a {statistic} of {name} needs the name of the bins to count by; there are: {there}")


def _part(contract: Contract, part: object) -> str | None:
    if part is None:
        return None
    if contract.parts is None:
        raise QuestionError("this contract declares no parts: leave out part")
    if not isinstance(part, str) or _name(part) not in contract.parts:
        raise QuestionError(f"there is no such part; there are: {', '.join(contract.accounts)}")
    return _name(part)


def _name(text: str) -> str:
    """A name as contracts hold it: in Unicode form NFC, however it was typed."""
    return unicodedata.normalize("NFC", text)
