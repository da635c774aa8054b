"""Columns and bins: types, bounds, lattice, declared keys."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from parco.contract.fields import Exact, Name, Part, check_keys, plain

__all__ = ["Bins", "Column", "DateColumn", "DecimalColumn", "IntegerColumn", "NumericColumn", "TextColumn"]

# Lattice values must stay far inside 64-bit integers, and a decimal with 12 places inside 38 digits, on every engine.
_STEPS_MAX = 10**18
_PLACES_MAX = 12


class _Numeric(Part):
    lower: Exact
    upper: Exact
    lattice: Exact = Fraction(1)

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.lattice <= 0:
            raise ValueError("lattice must be above 0")
        if Fraction(10**_PLACES_MAX) % self.lattice.denominator != 0:
            raise ValueError(f"lattice must be a decimal with at most {_PLACES_MAX} places, such as 0.01")
        if self.lower > self.upper:
            raise ValueError("lower is above upper")
        for bound in (self.lower, self.upper):
            if (bound / self.lattice).denominator != 1:
                raise ValueError("lower and upper must be multiples of lattice, so that rounding stays within them")
            if abs(bound / self.lattice) > _STEPS_MAX or abs(bound) > _STEPS_MAX:
                raise ValueError("lower and upper lie at most 10^18, and at most 10^18 lattice steps, from 0")
        return self

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value a clamped value can have."""
        return max(abs(self.lower), abs(self.upper))


class IntegerColumn(_Numeric):
    """Whole numbers, clamped to [lower, upper]; optionally a closed list of keys to group by."""

    type: Literal["integer"]
    lattice: Exact = Field(default=Fraction(1), exclude=True)
    keys: tuple[Annotated[int, Field(strict=True)], ...] | None = None

    @model_validator(mode="after")
    def _check_integer(self) -> Self:
        if self.lattice != 1:
            raise ValueError('an integer column has lattice 1; use type = "decimal" for another')
        if self.keys is not None and any(abs(key) > _STEPS_MAX for key in self.keys):
            raise ValueError("keys lie at most 10^18 from 0")
        check_keys(self.keys)
        return self


class DecimalColumn(_Numeric):
    """Numbers put on a lattice, half a step upwards, and clamped to [lower, upper]."""

    type: Literal["decimal"]
    lattice: Exact


class TextColumn(Part):
    """Text with a closed list of keys; any other text is dropped before a unit's groups are chosen."""

    type: Literal["text"]
    keys: tuple[Annotated[str, Field(strict=True), AfterValidator(plain)], ...]

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        check_keys(self.keys)
        return self


class DateColumn(Part):
    """Calendar days written year-month-day; used through bins."""

    type: Literal["date"]


Column = Annotated[IntegerColumn | DecimalColumn | TextColumn | DateColumn, Field(discriminator="type")]
NumericColumn = IntegerColumn | DecimalColumn


def _month(value: object) -> int:
    """Months since the year 0, from "1997-01"."""
    try:
        day = datetime.date.fromisoformat(f"{value}-01")
    except ValueError:
        raise ValueError('give a month as "1997-01"') from None
    return day.year * 12 + day.month - 1


def _month_text(value: int) -> str:
    return f"{value // 12:04d}-{value % 12 + 1:02d}"


_MONTH_SCHEMA = {"type": "string", "pattern": r"^\d{4}-\d{2}$", "description": 'A month, such as "1997-01"'}

Month = Annotated[int, BeforeValidator(_month), PlainSerializer(_month_text), WithJsonSchema(_MONTH_SCHEMA)]


class Bins(Part):
    """Calendar months of a date column, from `first` to `last`, both included; other days are dropped."""

    column: Name
    every: Literal["month"]
    first: Month
    last: Month

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.last < self.first:
            raise ValueError("last is before first")
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The months' names, in order."""
        return tuple(_month_text(month) for month in range(self.first, self.last + 1))
