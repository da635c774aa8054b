"""The bounding rule once more, in plain Python: what an engine has to compute, cell by cell.

A row counts where unit, value and every key are there. A value is clamped to its bounds and put on the lattice, halves
upwards. A unit keeps at most `rows` rows of a cell, the first in the order of a keyed MD5 of unit, cell, value and
occurrence (equal rows are numbered from 1), and then at most `groups` cells, in the order of another keyed MD5 of unit
and cell. Only then is anything added up; where the contract clamps by the unit, each row is clamped to a wide range and
what a unit adds up to in a cell to the bounds. Of distinct values a unit keeps at most `rows` of a cell, in the order
of a third keyed MD5, before those of all units are made distinct. Nothing here is taken from the library.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import itertools
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor, prod

__all__ = [
    "Asked",
    "Row",
    "Rules",
    "answer",
    "calendar",
    "contribution",
    "day",
    "edges",
    "exceeded",
    "normal",
    "number",
    "ranges",
    "tallies",
]

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
    row_range: tuple[Fraction, Fraction] | None = None
    """What a row is clamped to where lower and upper bound a unit's sum in a cell."""
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
        low, high = self.row_range or (self.lower, self.upper)
        clamped = min(max(value, low), high)
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
    moved = [value - int(asked.centre / asked.lattice) for value in _kept(asked, values, unit, cell, secret)]
    added = sum(value * value for value in moved) if asked.statistic == "sum_squares" else sum(moved)
    if asked.row_range is None:
        return added
    return min(max(added, int(asked.lower / asked.lattice)), int(asked.upper / asked.lattice))


def _kept(asked: Asked, values: list[int], unit: str, cell: int, secret: bytes) -> list[int]:
    """The values of the rows that a unit keeps in a cell."""
    seen: Counter[int] = Counter()
    numbered = []
    for value in values:
        seen[value] += 1
        numbered.append((value, seen[value]))
    numbered.sort(key=lambda row: (_hash(secret, "rows", unit, cell, *row), *row))
    return [value for value, _ in numbered[: asked.rows]]


def tallies(asked: Asked, rows: Iterable[Row], secret: bytes) -> list[dict[int, int]]:
    """How many kept rows of each cell have each value, in lattice steps: what quantiles are drawn from."""
    found: list[Counter[int]] = [Counter() for _ in range(asked.cells)]
    for unit, own in _by_unit(rows).items():
        held = _by_cell(asked, own)
        for cell in sorted(held, key=lambda cell: (_hash(secret, "groups", unit, cell), cell))[: asked.groups]:
            found[cell].update(_kept(asked, held[cell], unit, cell, secret))
    return [dict(cell) for cell in found]


def _hash(secret: bytes, purpose: str, *parts: object) -> str:
    key = hmac.new(secret, f"parco/bounding/{purpose}".encode(), hashlib.sha256).hexdigest()
    return hashlib.md5("|".join([key, *map(str, parts)]).encode(), usedforsecurity=False).hexdigest()


# How odd values are read, by the rules a contract may declare; all on text, as a CSV file has it.


@dataclass(frozen=True)
class Rules:
    """Each is "drop" or the value that counts instead; an infinity may also be clamped."""

    null: str | Fraction = "drop"
    nan: str | Fraction = "drop"
    infinity: str | Fraction = "clamp"
    unparsed: str | Fraction = "drop"


_NUMBER = re.compile(r"[+-]?(\d+[.]?\d*|[.]\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_INFINITY = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


def number(
    text: str, rules: Rules, *, sign: str = ".", nulls: Sequence[str] = (), whole: bool = False
) -> Number | None:
    """What a field of a numeric column counts as, or None where its row is dropped."""
    read = _number(text, sign=sign, nulls=nulls, whole=whole)
    if isinstance(read, str):
        rule: str | Fraction = getattr(rules, read)
    elif isinstance(read, float) and rules.infinity != "clamp":
        rule = rules.infinity
    else:
        return read
    return rule if isinstance(rule, Fraction) else None


def _number(text: str, *, sign: str, nulls: Sequence[str], whole: bool) -> Number | str:
    """The number of a field, or which of the rules it falls under."""
    if text in ("", *nulls):
        return "null"
    text = text.strip(" ")
    if sign == ",":
        text = text.translate(str.maketrans(",.", ".,"))
    if text.lower() in ("nan", "-nan", "+nan"):
        return "nan"
    if _INFINITY.fullmatch(text):
        return -math.inf if text.startswith("-") else math.inf
    if not _NUMBER.fullmatch(text):
        return "unparsed"
    # Twelve decimal places, halves away from zero.
    read = Fraction(Decimal(text))
    read = Fraction(floor(abs(read) * 10**12 + Fraction(1, 2)), 10**12) * (1 if read >= 0 else -1)
    return "unparsed" if whole and read.denominator != 1 else read


def edges(value: Number | None, at: Sequence[Fraction], *, below: bool = False, above: bool = False) -> str | None:
    """The label of the half-open bin that holds a value."""
    if value is None:
        return None
    if value < at[0]:
        return f"< {_plain(at[0])}" if below else None
    for low, high in itertools.pairwise(at):
        if low <= value < high:
            return f"[{_plain(low)}, {_plain(high)})"
    return f">= {_plain(at[-1])}" if above else None


def ranges(value: Number | None, *, first: int, last: int, width: int) -> str | None:
    """The label of the range that holds a whole number."""
    for low in range(first, last + 1, width):
        if value is not None and low <= value < low + width:
            return f"{low} to {low + width - 1}"
    return None


def calendar(day: datetime.date | None, every: str) -> str | None:
    """The label of the calendar unit that holds a day."""
    if day is None:
        return None
    year, week, _ = day.isocalendar()
    return {
        "day": day.isoformat(),
        "week": f"{year:04d}-W{week:02d}",
        "month": f"{day:%Y-%m}",
        "quarter": f"{day.year}-Q{(day.month + 2) // 3}",
        "year": f"{day.year}",
    }[every]


def day(text: str, formats: Sequence[str]) -> datetime.date | None:
    """The day of a field by the first pattern that fits."""
    for pattern in formats:
        with contextlib.suppress(ValueError):
            return datetime.datetime.strptime(text, pattern).date()
    return None


def normal(text: str, forms: Sequence[str]) -> str:
    """The normal form of a text; NFC is asked for like the others."""
    if "nfc" in forms:
        text = unicodedata.normalize("NFC", text)
    if "accents" in forms:
        text = "".join(one for one in unicodedata.normalize("NFD", text) if unicodedata.category(one)[0] != "M")
        text = unicodedata.normalize("NFC", text)
    if "casefold" in forms:
        text = "".join("i" if one == "\u0130" else one.lower() for one in text)
        text = unicodedata.normalize("NFC", text) if "nfc" in forms else text
    return text.strip(" \t\r\n\u00a0") if "strip" in forms else text


def _plain(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else str(Decimal(value.numerator) / Decimal(value.denominator))
