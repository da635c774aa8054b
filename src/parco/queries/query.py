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
from parco.contract.contract import Contract
from parco.contract.fields import CELLS_MAX
from parco.errors import QuestionError
from parco.measure import exact_text
from parco.queries.filters import Filter

__all__ = ["Query", "Statistic"]

Key = str | int


class Statistic(StrEnum):
    """What is computed in each group."""

    COUNT = "count"
    """Rows, at most `rows` of them for a unit and group; of a column: those whose value is kept."""
    COUNT_UNITS = "count_units"
    """Units that have at least one row there."""
    SUM = "sum"
    """The sum of a numeric column, clamped and on its lattice, over the rows that are kept."""
    COUNT_DISTINCT = "count_distinct"
    """The different values that units hold, at most `rows` of each unit and group."""


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
    where: Filter | None = None
    centre: Fraction = Fraction(0)

    @classmethod
    def of(
        cls,
        contract: Contract,
        statistic: str,
        *,
        column: str | None = None,
        by: str | Sequence[str] = (),
        where: str | None = None,
        centred: bool = False,
    ) -> Query:
        """For every question on declared names, returns it, or raises QuestionError naming what the contract lacks.

        `centred`: a sum of distances from the lattice point nearest the middle of the bounds.
        """
        kinds = [kind.value for kind in Statistic]
        if statistic not in kinds:
            raise QuestionError(f"unknown statistic {statistic!r}: choose one of {', '.join(kinds)}")
        name = None if column is None else _name(column)
        condition = None if where is None else Filter.of(contract, where)
        query = cls(contract, Statistic(statistic), name, _names(by), condition)
        query._check_column()
        query._check_groups()
        return replace(query, centre=query._middle) if centred else query

    @property
    def _middle(self) -> Fraction:
        numeric = self.contract.numeric(self.column or "")
        if numeric is None:
            raise AssertionError("a centred sum of a column without bounds")
        if numeric.lower == numeric.upper:
            raise QuestionError(
                f"{self.column} has one bound only: its mean is that for any data, and needs no release"
            )
        middle = (numeric.lower + numeric.upper) / 2 / numeric.lattice
        return math.floor(middle + Fraction(1, 2)) * numeric.lattice

    @property
    def names(self) -> tuple[str, ...]:
        """All columns and bins that the question looks at."""
        column = () if self.column is None else (self.column,)
        return (*self.by, *column, *(() if self.where is None else self.where.names))

    @property
    def keys(self) -> tuple[tuple[Key, ...], ...]:
        """The declared keys of each grouping in `by`."""
        return tuple(self.contract.keys(name) or () for name in self.by)

    @property
    def cells(self) -> int:
        """The number of groups G that are published; 1 without grouping."""
        return math.prod(len(keys) for keys in self.keys)

    @property
    def groups(self) -> int:
        """In how many of the groups one unit can count: min(K, G)."""
        return min(self.contract.unit.groups, self.cells)

    @property
    def step(self) -> Fraction:
        """The lattice step h of the exact statistic."""
        numeric = self.contract.numeric(self.column or "") if self.statistic is Statistic.SUM else None
        return Fraction(1) if numeric is None else numeric.lattice

    @property
    def values(self) -> int:
        """How many different values one unit can have in a group of a count_distinct: at most `rows`, and all."""
        numeric, keys = self.contract.numeric(self.column or ""), self.contract.keys(self.column or "")
        there = int((numeric.upper - numeric.lower) / numeric.lattice) + 1 if numeric is not None else len(keys or ())
        return min(self.contract.unit.rows, there)

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
        if self.statistic is Statistic.COUNT_DISTINCT:
            limits["values"] = self.values
        elif self.statistic is not Statistic.COUNT_UNITS:
            limits["rows"] = unit.rows
        record: dict[str, object] = {
            "data": contract.data.name,
            "version": version,
            "unit": unit.column,
            "statistic": self.statistic.value,
            "column": self._column_definition(),
            "by": [self._definition(name, drop={"lower", "upper"}) for name in self.by],
            "limits": limits,
            "rules": {"infinity": "clamp", "nan": "drop", "null": "drop", "unparsed": "drop"},
        }
        # Only where there is one, so that the texts of all other questions stay what they were.
        if self.centre:
            record["centre"] = exact_text(self.centre)
        if self.where is not None:
            record["where"] = self.where.record()
        return canonical.encode(record).decode()

    @property
    def limits(self) -> str:
        """How one unit is bounded in this question, in words."""
        unit = self.contract.unit
        words = [f"one {unit.column} counts"]
        if self.statistic is Statistic.COUNT_DISTINCT:
            words.append(f"with at most {self.values} of its values{' in a group,' if self.by else ''}")
        elif self.statistic is not Statistic.COUNT_UNITS:
            words.append(f"with at most {unit.rows} of its rows{' in a group,' if self.by else ''}")
        words.append(f"in at most {self.groups} of {self.cells} groups" if self.by else "in all")
        return " ".join(words)

    def __str__(self) -> str:
        what = self.statistic.value if self.column is None else f"{self.statistic.value} {self.column}"
        if self.centre:
            what = f"{what} - {exact_text(self.centre)}"
        if self.where is not None:
            what = f"{what} where {self.where}"
        return f"{what} by {', '.join(self.by)}" if self.by else what

    def _column_definition(self) -> dict[str, object] | None:
        """What the exact statistic depends on: which values there are, for a count whether one is there."""
        if self.column is None:
            return None
        if self.statistic is Statistic.SUM:
            return self._definition(self.column, drop={"keys"})
        if self.statistic is Statistic.COUNT:
            return self._definition(self.column, drop={"keys", "lattice", "lower", "upper"})
        return self._definition(self.column, drop={"keys"} if self.contract.numeric(self.column) else set())

    def _definition(self, name: str, *, drop: set[str]) -> dict[str, object]:
        """What the contract says of a name in its role here: a grouping has no bounds, a summed column no keys."""
        declared = self.contract.bins.get(name) or self.contract.columns[name]
        return {"name": name, **declared.model_dump(mode="json", exclude=drop, exclude_none=True)}

    def _check_column(self) -> None:
        if self.statistic is Statistic.COUNT_UNITS and self.column is not None:
            raise QuestionError(
                f'count_units takes no column; for units with a value of one, add where="{self.column} is not null"'
            )
        if self.statistic in (Statistic.COUNT_UNITS, Statistic.COUNT) and self.column is None:
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
                else f"{self.column} is not a column with declared bounds, which a sum needs; there are: {names}"
            )
        if self.statistic is Statistic.SUM and numeric.magnitude == 0:
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


def _name(text: str) -> str:
    """A name as contracts hold it: in Unicode form NFC, however it was typed."""
    return unicodedata.normalize("NFC", text)
