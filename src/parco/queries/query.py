"""A question in canonical form: what is counted or summed, grouped by which declared keys."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Literal

from parco import canonical
from parco.contract.contract import Contract
from parco.contract.division import coin_range
from parco.contract.fields import CELLS_MAX
from parco.errors import QuestionError
from parco.measure import exact_text
from parco.queries.periods import periods_of

__all__ = ["Query", "Statistic"]

Key = str | int

_ONLY_SUMMED = {"lower", "upper", "clamp", "row_lower", "row_upper"}
# How a column is read before its bins are looked at; a contract that names none of these has the text it always had.
_READ = {"null", "nan", "infinity", "unparsed", "formats"}


class Statistic(StrEnum):
    """What is computed in each group."""

    COUNT = "count"
    """Rows, at most `rows` of them for a unit and group."""
    COUNT_UNITS = "count_units"
    """Units that have at least one row there."""
    SUM = "sum"
    """The sum of a numeric column, clamped and on its lattice, over the rows that are kept."""


@dataclass(frozen=True)
class Query:
    """A question the contract allows: make one with `Query.of`.

    `by` is sorted by name, so that one question has one form whatever the order it is asked in.
    """

    contract: Contract
    statistic: Statistic
    column: str | None
    by: tuple[str, ...]
    part: str | None = None
    """The part of the units it is restricted to, or all of them."""
    periods: tuple[str, ...] = ()
    """The periods it touches, in their order; none where the contract's unit has no period."""

    @classmethod
    def of(
        cls,
        contract: Contract,
        statistic: str,
        *,
        column: str | None = None,
        by: str | Sequence[str] = (),
        part: str | None = None,
        period: str | Sequence[str] | None = None,
    ) -> Query:
        """For every question on declared names, returns it, or raises QuestionError naming what the contract lacks."""
        kinds = [kind.value for kind in Statistic]
        if statistic not in kinds:
            raise QuestionError(f"unknown statistic {statistic!r}: choose one of {', '.join(kinds)}")
        name = None if column is None else _name(column)
        names = _names(by)
        periods = periods_of(contract, names, period)
        query = cls(contract, Statistic(statistic), name, names, _part(contract, part), periods)
        query._check_column()
        query._check_groups()
        return query

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
    def groups(self) -> int:
        """In how many of the groups one unit can count: min(K, G); with periods, in how many of one period's."""
        return min(self.contract.unit.groups, self._cells_of_one)

    @property
    def _cells_of_one(self) -> int:
        """How many cells a protected unit can reach at all: all of them, or with periods those of its own."""
        return self.cells // len(self.periods) if self.contract.unit.period in self.by else self.cells

    @property
    def step(self) -> Fraction:
        """The lattice step h of the exact statistic."""
        numeric = self.contract.numeric(self.column) if self.column is not None else None
        return Fraction(1) if numeric is None else numeric.lattice

    def labels(self) -> Iterator[tuple[Key, ...]]:
        """The keys of each cell, in the order of the cells."""
        return itertools.product(*self.keys)

    def question(self, version: str) -> str:
        """The canonical text of the question on one version of the data: its digest is what the ledger remembers.

        It holds whatever the exact statistic depends on, and nothing else; a contract that changes one of these asks
        another question.
        """
        contract, unit = self.contract, self.contract.unit
        limits: dict[str, object] = {"groups": self.groups}
        if self.statistic is not Statistic.COUNT_UNITS:
            limits["rows"] = unit.rows
        record: dict[str, object] = {
            "data": contract.data.name,
            "version": version,
            "unit": unit.column,
            "statistic": self.statistic.value,
            "column": self._definition(self.column, drop="keys") if self.column is not None else None,
            "by": [self._definition(name, drop="bounds") for name in self.by],
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
        return canonical.encode(record).decode()

    @property
    def used(self) -> tuple[str, ...]:
        """The names it needs of the data, beside the unit: groupings, period, column."""
        period = () if self.contract.unit.period is None else (self.contract.unit.period,)
        return tuple(dict.fromkeys([*self.by, *period, *(() if self.column is None else (self.column,))]))

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
        if self.statistic is not Statistic.COUNT_UNITS:
            words.append(f"with at most {unit.rows} of its rows{' in a group,' if self.by else ''}")
        some = self.by and (unit.period is None or self._cells_of_one > 1)
        words.append(f"in at most {self.groups} of {self._cells_of_one} groups" if some else "in all")
        numeric = None if self.column is None else self.contract.numeric(self.column)
        if numeric is not None and numeric.clamp == "unit":
            bounds = f"[{exact_text(numeric.lower)}, {exact_text(numeric.upper)}]"
            words.append(f"and what it adds up to {'in a group ' if self.by else ''}is clamped to {bounds}")
        return " ".join(words)

    def __str__(self) -> str:
        what = self.statistic.value if self.column is None else f"{self.statistic.value} {self.column}"
        what = f"{what} by {', '.join(self.by)}" if self.by else what
        if self.part is not None:
            return f"{what} in part {self.part}"
        some = self.periods and (len(self.periods) < len(self.contract.accounts) or not self.by)
        return f"{what} in {', '.join(self.periods)}" if some else what

    def _definition(self, name: str, *, drop: Literal["keys", "bounds"]) -> dict[str, object]:
        """What the contract says of a name in its role here: a grouping has no bounds, a summed column no keys."""
        contract, excluded = self.contract, {"keys"} if drop == "keys" else _ONLY_SUMMED
        declared = contract.bins.get(name) or contract.columns[name]
        definition = {"name": name, **declared.model_dump(mode="json", exclude=excluded, exclude_none=True)}
        if name in contract.bins:
            column = contract.columns[contract.bins[name].column]
            if read := column.model_dump(mode="json", include=_READ, exclude_none=True):
                definition["read"] = read
        elif drop == "bounds" and definition.get("infinity") == "drop":
            # No infinity is a key: by default such a row is not in any group either.
            del definition["infinity"]
        return definition

    def _check_column(self) -> None:
        if self.statistic is not Statistic.SUM:
            if self.column is not None:
                raise QuestionError(f"{self.statistic} takes no column; ask for `sum {self.column}`, or leave it out")
            return
        if self.column is None:
            raise QuestionError("sum needs the name of a column")
        numeric = self.contract.numeric(self.column)
        if numeric is None:
            names = ", ".join(name for name in self.contract.columns if self.contract.numeric(name)) or "none"
            raise QuestionError(
                f"{self.column} is not a column with declared bounds, which a sum needs; there are: {names}"
            )
        if numeric.magnitude == 0:
            raise QuestionError(f"{self.column} has bounds 0 and 0: its sum is 0 for any data, and needs no release")

    def _check_groups(self) -> None:
        for name in self.by:
            if self.contract.keys(name) is None:
                there = ", ".join(self.contract.groupings) or "none"
                raise QuestionError(f"cannot group by {name}: it has no declared keys or bins; there are: {there}")
        if len(set(self.by)) < len(self.by):
            raise QuestionError("a grouping is named twice")
        if self.cells > CELLS_MAX:
            raise QuestionError(f"{self.cells} groups are more than {CELLS_MAX}: group by fewer keys")


def _names(by: str | Sequence[str]) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise QuestionError('by takes one name or a list of names, such as by="month" or by=["month", "channel"]')
    return tuple(sorted(_name(name) for name in names))


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
