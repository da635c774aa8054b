"""Bins: groups made of a column's values by calendar units, by numeric edges, or by ranges of whole numbers."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from parco.contract.columns import DateColumn, DecimalColumn, IntegerColumn, check_decimal
from parco.contract.fields import CELLS_MAX, Exact, Name, Part
from parco.measure import exact_text

__all__ = ["Bins", "CalendarBins", "EdgeBins", "Every", "RangeBins"]

Every = Literal["day", "week", "month", "quarter", "year"]

# Numbers are compared with one edge after another, so there should not be very many; ranges have no such limit.
_EDGES_MAX = 1000
_LARGEST = 10**18
_EPOCH = datetime.date(1970, 1, 1).toordinal()
# What these are depends on the machine, or is nowhere.
_NO_ZONES = frozenset({"Factory", "localtime", "posixrules"})
# The first of January 1970 was a Thursday: weeks are counted from the Monday before it.
_TO_MONDAY = 3


def _month(text: str) -> int:
    day = datetime.date.fromisoformat(f"{text}-01")
    return day.year * 12 + day.month - 1


def _week(text: str) -> int:
    monday = datetime.date.fromisocalendar(int(text[:4]), int(text[6:]), 1)
    return (monday.toordinal() - _EPOCH + _TO_MONDAY) // 7


def _week_text(week: int) -> str:
    year, number, _ = datetime.date.fromordinal(week * 7 - _TO_MONDAY + _EPOCH).isocalendar()
    return f"{year:04d}-W{number:02d}"


# Of each unit: how it is written, its number, its text again, and an example.
_UNITS: dict[str, tuple[str, Callable[[str], int], Callable[[int], str], str]] = {
    "day": (
        r"\d{4}-\d\d-\d\d",
        lambda text: datetime.date.fromisoformat(text).toordinal() - _EPOCH,
        lambda day: datetime.date.fromordinal(day + _EPOCH).isoformat(),
        'a day as "1997-01-31"',
    ),
    "week": (r"\d{4}-W\d\d", _week, _week_text, 'an ISO week as "1997-W05"'),
    "month": (r"\d{4}-\d\d", _month, lambda month: f"{month // 12:04d}-{month % 12 + 1:02d}", 'a month as "1997-01"'),
    "quarter": (
        r"\d{4}-Q[1-4]",
        lambda text: _month(f"{text[:4]}-01") // 3 + int(text[6]) - 1,
        lambda quarter: f"{quarter // 4:04d}-Q{quarter % 4 + 1}",
        'a quarter as "1997-Q1"',
    ),
    "year": (r"\d{4}", lambda text: _month(f"{text}-01") // 12, lambda year: f"{year:04d}", 'a year as "1997"'),
}


class CalendarBins(Part):
    """Calendar units of a date column, from `first` to `last`, both included; other days are dropped.

    A week begins on Monday and is written as ISO 8601 has it. With `time_zone`, a moment that says its offset from
    UTC belongs to the day it had there; a day or moment without an offset belongs to the day that is written.
    """

    over: ClassVar[tuple[type, ...]] = (DateColumn,)
    over_words: ClassVar[str] = "date"

    column: Name
    every: Every
    first: str
    last: str
    time_zone: str | None = None

    @field_validator("first", "last", mode="before")
    @classmethod
    def _check_end(cls, value: object, info: ValidationInfo) -> str:
        if "every" not in info.data:
            return f"{value}"
        pattern, number, text, example = _UNITS[info.data["every"]]
        try:
            if re.fullmatch(pattern, f"{value}", re.ASCII) and text(number(f"{value}")) == f"{value}":
                return f"{value}"
        except ValueError:
            pass
        raise ValueError(f"give {example}")

    @field_validator("time_zone")
    @classmethod
    def _check_zone(cls, name: str | None) -> str | None:
        if name is not None and name not in zoneinfo.available_timezones() - _NO_ZONES:
            raise ValueError('give a time zone by its name in the IANA list, such as "Europe/Berlin"')
        return name

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.last_number < self.first_number:
            raise ValueError("last is before first")
        _check_number(self.last_number - self.first_number + 1)
        return self

    @property
    def first_number(self) -> int:
        """The place of `first` among all units of its kind: days and weeks since 1970, others since the year 0."""
        return _UNITS[self.every][1](self.first)

    @property
    def last_number(self) -> int:
        """The same of `last`."""
        return _UNITS[self.every][1](self.last)

    @property
    def keys(self) -> tuple[str, ...]:
        """The units' names, in order."""
        text = _UNITS[self.every][2]
        return tuple(text(number) for number in range(self.first_number, self.last_number + 1))


def _flag(value: object) -> object:
    """Leaving it out and writing false are one contract."""
    if value is not None and type(value) is not bool:
        raise ValueError("give true or false")
    return value or None


Flag = Annotated[bool | None, BeforeValidator(_flag)]


class EdgeBins(Part):
    """Half-open bins [a, b) of a numeric column between neighbouring edges; other values are dropped.

    `below` and `above` add an open bin at either end. The value counts as it is stored, with twelve decimal places,
    before it is clamped or put on a lattice; the column's rules say what a missing one counts as.
    """

    over: ClassVar[tuple[type, ...]] = (IntegerColumn, DecimalColumn)
    over_words: ClassVar[str] = "integer or decimal"

    column: Name
    edges: tuple[Exact, ...]
    below: Flag = None
    above: Flag = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.edges) < 2 and not (self.edges and (self.below or self.above)):
            raise ValueError("give at least two edges, or one with below or above")
        if len(self.edges) > _EDGES_MAX:
            raise ValueError(f"give at most {_EDGES_MAX} edges")
        for edge in self.edges:
            check_decimal(edge, "an edge")
        if any(b <= a for a, b in pairwise(self.edges)):
            raise ValueError("edges must rise")
        if len(self.keys) < 2 and self.below and self.above:
            raise ValueError("give at least two bins")
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The bins' names, in order: "< 0", "[0, 10)", ">= 10"."""
        texts = [exact_text(edge) for edge in self.edges]
        between = [f"[{low}, {high})" for low, high in pairwise(texts)]
        return (*([f"< {texts[0]}"] if self.below else []), *between, *([f">= {texts[-1]}"] if self.above else []))

    @property
    def places(self) -> tuple[int, ...]:
        """The place among `keys` of what lies below the first edge, behind each edge in turn; -1 is none."""
        offset = 1 if self.below else 0
        between = len(self.edges) - 1
        first, last = (0 if self.below else -1), (between + offset if self.above else -1)
        return (first, *range(offset, between + offset), last)

    def place(self, value: Fraction) -> int:
        """The place of a value among `keys`, or -1."""
        return self.places[bisect_right(self.edges, value)]


class RangeBins(Part):
    """Ranges of `width` whole numbers, from `first` to `last`, both included; other values are dropped."""

    over: ClassVar[tuple[type, ...]] = (IntegerColumn,)
    over_words: ClassVar[str] = "integer"

    column: Name
    first: Annotated[int, Field(strict=True, ge=-_LARGEST, le=_LARGEST)]
    last: Annotated[int, Field(strict=True, ge=-_LARGEST, le=_LARGEST)]
    width: Annotated[int, Field(strict=True, ge=1, le=_LARGEST)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.last < self.first:
            raise ValueError("last is before first")
        if (self.last - self.first + 1) % self.width:
            raise ValueError("the whole numbers from first to last must be a multiple of width")
        _check_number((self.last - self.first + 1) // self.width)
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The ranges' names, in order: "0 to 9", or "0" where the width is 1."""
        firsts = range(self.first, self.last + 1, self.width)
        return tuple(f"{low} to {low + self.width - 1}" if self.width > 1 else f"{low}" for low in firsts)

    def place(self, value: Fraction) -> int:
        """The place of a value among `keys`, or -1."""
        return int(value - self.first) // self.width if self.first <= value <= self.last else -1


def _check_number(bins: int) -> None:
    if bins > CELLS_MAX:
        raise ValueError(f"{bins} bins are more than {CELLS_MAX}")


def _form(document: Any) -> str:  # noqa: ANN401 - a table of the document, or bins
    """Which bins a table declares, by the key that no other kind has."""
    if isinstance(document, dict):
        return "edges" if "edges" in document else "range" if "width" in document else "calendar"
    return "edges" if isinstance(document, EdgeBins) else "range" if isinstance(document, RangeBins) else "calendar"


Bins = Annotated[
    Annotated[CalendarBins, Tag("calendar")] | Annotated[EdgeBins, Tag("edges")] | Annotated[RangeBins, Tag("range")],
    Discriminator(_form),
]
