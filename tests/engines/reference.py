"""The bounding rule once more, in plain Python: what an engine has to compute, cell by cell.

A row counts where unit, value and every key are there. A value is clamped to its bounds and put on the lattice, halves
upwards. A unit keeps at most `rows` rows of a cell, the first in the order of a keyed MD5 of unit, cell, value and
occurrence (equal rows are numbered from 1), and then at most `groups` cells, in the order of another keyed MD5 of unit
and cell. Only then is anything added up. Of distinct values a unit keeps at most `rows` of a cell, in the order of a
third keyed MD5, before those of all units are made distinct. Nothing here is taken from the library.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, prod

__all__ = ["Asked", "Row", "answer", "contribution", "exceeded"]

Number = Fraction | float
"""A float only for the two infinities."""


@dataclass(frozen=True)
class Row:
    """One row as it is meant: None for what is missing or cannot be read."""

    unit: str | None
    keys: tuple[str | int | None, ...]
    value: Number | None = Fraction(1)
    met: bool = True
    """Whether the row meets the question's condition."""


@dataclass(frozen=True)
class Asked:
    """A question: `keys` holds the declared keys of each grouping; a bound of zero groups or rows makes no sense."""

    statistic: str
    keys: tuple[Sequence[str | int], ...]
    groups: int
    rows: int
    lower: Fraction = Fraction(1)
    upper: Fraction = Fraction(1)
    lattice: Fraction = Fraction(1)
    centre: Fraction = Fraction(0)

    @property
    def cells(self) -> int:
        """How many groups are published."""
        return prod(len(keys) for keys in self.keys)

    def cell(self, row: Row) -> int | None:
        """The place of a row's keys in the list of all groups, or None where one of them is not declared."""
        place = 0
        for key, declared in zip(row.keys, self.keys, strict=True):
            if key is None or key not in declared:
                return None
            place = place * len(declared) + declared.index(key)
        return place

    def steps(self, value: Number) -> int:
        """A value as a whole number of lattice steps."""
        clamped = min(max(value, self.lower), self.upper)
        return floor(Fraction(clamped) / self.lattice + Fraction(1, 2))


def answer(asked: Asked, rows: Iterable[Row], secret: bytes) -> list[int]:
    """The exact statistic of every cell."""
    if asked.statistic == "count_distinct":
        return _distinct(asked, rows, secret)
    total = [0] * asked.cells
    for unit, own in _by_unit(rows).items():
        for cell, amount in contribution(asked, own, unit, secret).items():
            total[cell] += amount
    return total


def contribution(asked: Asked, own: Iterable[Row], unit: str, secret: bytes) -> dict[int, int]:
    """What one unit adds to each cell that it keeps."""
    held = _by_cell(asked, own)
    cells = sorted(held, key=lambda cell: (_hash(secret, "groups", unit, cell), cell))[: asked.groups]
    return {cell: _amount(asked, held[cell], unit, cell, secret) for cell in cells}


def _distinct(asked: Asked, rows: Iterable[Row], secret: bytes) -> list[int]:
    found: list[set[int]] = [set() for _ in range(asked.cells)]
    for unit, own in _by_unit(rows).items():
        held = _by_cell(asked, own)
        cells = sorted(held, key=lambda cell: (_hash(secret, "groups", unit, cell), cell))[: asked.groups]
        for cell in cells:
            ordered = sorted(set(held[cell]), key=lambda value: (_hash(secret, "values", unit, cell, value), value))
            found[cell] |= set(ordered[: asked.rows])
    return [len(values) for values in found]


def exceeded(asked: Asked, rows: Iterable[Row]) -> tuple[bool, bool]:
    """Whether some unit has rows in more cells than it may, and whether one has more rows in a cell than it may."""
    held = [_by_cell(asked, own) for own in _by_unit(rows).values()]
    return any(len(cells) > asked.groups for cells in held), any(
        len(values) > asked.rows for cells in held for values in cells.values()
    )


def _by_unit(rows: Iterable[Row]) -> dict[str, list[Row]]:
    own: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.unit is not None and row.met:
            own[row.unit].append(row)
    return own


def _by_cell(asked: Asked, own: Iterable[Row]) -> dict[int, list[int]]:
    held: dict[int, list[int]] = defaultdict(list)
    for row in own:
        cell = asked.cell(row)
        # A count of a column counts the rows with a value; one without a column is given rows of value 1.
        if cell is not None and row.value is not None:
            held[cell].append(asked.steps(row.value))
    return held


def _amount(asked: Asked, values: list[int], unit: str, cell: int, secret: bytes) -> int:
    if asked.statistic == "count_units":
        return 1
    if asked.statistic == "count":
        return min(len(values), asked.rows)
    seen: Counter[int] = Counter()
    numbered = []
    for value in values:
        seen[value] += 1
        numbered.append((value, seen[value]))
    numbered.sort(key=lambda row: (_hash(secret, "rows", unit, cell, *row), *row))
    return sum(value - int(asked.centre / asked.lattice) for value, _ in numbered[: asked.rows])


def _hash(secret: bytes, purpose: str, *parts: object) -> str:
    key = hmac.new(secret, f"parco/bounding/{purpose}".encode(), hashlib.sha256).hexdigest()
    return hashlib.md5("|".join([key, *map(str, parts)]).encode(), usedforsecurity=False).hexdigest()
