"""Columns: types, bounds, lattice, declared keys, and rules for what is not an ordinary value."""

from __future__ import annotations

import contextlib
import datetime
import re
import unicodedata
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from parco.contract.fields import CELLS_MAX, Exact, Part, check_distinct, check_keys, plain
from parco.contract.rules import KEY_LENGTH_MAX, Clamp, InfinityRule, Normal, Rule, normal_text

__all__ = [
    "BooleanColumn",
    "Column",
    "DateColumn",
    "DecimalColumn",
    "IntegerColumn",
    "NumericColumn",
    "TextColumn",
    "check_decimal",
]

# Lattice values must stay far inside 64-bit integers, and a decimal with 12 places inside 38 digits, on every engine.
_STEPS_MAX = 10**18
_PLACES_MAX = 12


def check_decimal(value: Fraction, what: str) -> None:
    """Raises ValueError for what an engine's decimals could not hold exactly."""
    if Fraction(10**_PLACES_MAX) % value.denominator != 0 or abs(value) > _STEPS_MAX:
        raise ValueError(f"{what} is a decimal with at most {_PLACES_MAX} places, at most 10^18 from 0")


class _Numeric(Part):
    lower: Exact
    upper: Exact
    lattice: Exact = Fraction(1)
    null: Rule = None
    nan: Rule = None
    infinity: InfinityRule = None
    unparsed: Rule = None
    clamp: Clamp = None
    row_lower: Exact | None = None
    row_upper: Exact | None = None

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.lattice <= 0:
            raise ValueError("lattice must be above 0")
        if Fraction(10**_PLACES_MAX) % self.lattice.denominator != 0:
            raise ValueError(f"lattice must be a decimal with at most {_PLACES_MAX} places, such as 0.01")
        self._check_range(self.lower, self.upper, "lower", "upper")
        if self.clamp is None and (self.row_lower, self.row_upper) != (None, None):
            raise ValueError('row_lower and row_upper need clamp = "unit": otherwise lower and upper bound each row')
        if (self.row_lower is None) != (self.row_upper is None):
            raise ValueError("give both of row_lower and row_upper, or none")
        self._check_range(*self.row_range, "row_lower", "row_upper")
        self._check_rules()
        return self

    def _check_range(self, lower: Fraction, upper: Fraction, *names: str) -> None:
        low, high = names
        if lower > upper:
            raise ValueError(f"{low} is above {high}")
        for bound in (lower, upper):
            if (bound / self.lattice).denominator != 1:
                raise ValueError(f"{low} and {high} must be multiples of lattice, so that rounding stays within them")
            if abs(bound / self.lattice) > _STEPS_MAX or abs(bound) > _STEPS_MAX:
                raise ValueError(f"{low} and {high} lie at most 10^18, and at most 10^18 lattice steps, from 0")

    def _check_rules(self) -> None:
        low, high = self.row_range
        for name, value in self.values.items():
            if not low <= value <= high or (value / self.lattice).denominator != 1:
                raise ValueError(f"{name} must be a multiple of lattice within the bounds of a row's value")

    @property
    def values(self) -> dict[str, Fraction]:
        """The rules that name a value, and the value that counts instead."""
        rules = {name: getattr(self, name) for name in ("null", "nan", "infinity", "unparsed")}
        return {name: value for name, value in rules.items() if isinstance(value, Fraction)}

    @property
    def row_range(self) -> tuple[Fraction, Fraction]:
        """What one row's value is clamped to: the bounds, or what a row may have where its unit's sum is clamped."""
        if self.clamp is None:
            return self.lower, self.upper
        if self.row_lower is not None and self.row_upper is not None:
            return self.row_lower, self.row_upper
        widest = min(_STEPS_MAX, _STEPS_MAX * self.lattice.denominator // self.lattice.numerator) * self.lattice
        return -widest, widest

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value that a row, or with clamp = "unit" a unit in one group, can have once clamped."""
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
        for name, value in self.values.items():
            if self.keys is not None and value not in self.keys:
                raise ValueError(f"{name} must be one of the keys, or such a row would be in sums and in no group")
        return self


class DecimalColumn(_Numeric):
    """Numbers put on a lattice, half a step upwards, and clamped to [lower, upper]."""

    type: Literal["decimal"]
    lattice: Exact


def _drop(value: object) -> object:
    """Leaving the rule out and writing "drop" are one contract."""
    return None if value == "drop" else value


def _text_normal(forms: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Keys are compared in form NFC in any case, so that naming it says nothing."""
    return tuple(form for form in forms or () if form != "nfc") or None


_SELECT = "select"


def _text_keys(value: object, read: ValidatorFunctionWrapHandler) -> tuple[str, ...]:
    """The declared keys, none where they are to be selected: that is said in so many words, not by leaving them out."""
    if value == _SELECT:
        return ()
    keys: tuple[str, ...] = read(value)
    if not keys:
        raise ValueError(f'declare between 1 and {CELLS_MAX} keys, or write keys = "{_SELECT}"')
    return keys


_KEYS_SCHEMA = {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"const": _SELECT, "type": "string"}]}

TextKeys = Annotated[
    tuple[Annotated[str, Field(strict=True), AfterValidator(plain)], ...],
    WrapValidator(_text_keys),
    PlainSerializer(lambda keys: keys or _SELECT),
    WithJsonSchema(_KEYS_SCHEMA),
]
"""Empty where no key is declared."""


class TextColumn(Part):
    """Text with a closed list of keys; any other text is dropped before a unit's groups are chosen.

    Keys and data are compared in the declared normal form; a missing text counts as the key that `null` names. With
    keys = "select" none is declared: nothing can be grouped by them, and they can be selected, at a delta.
    """

    type: Literal["text"]
    keys: TextKeys
    null: Annotated[str | None, BeforeValidator(_drop)] = None
    normal: Annotated[Normal, AfterValidator(_text_normal)] = None

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        null = None if self.null is None else plain(self.null)
        named = "".join([*self.keys, null or ""])
        if "accents" in (self.normal or ()) and any(unicodedata.category(one) == "Cn" for one in named):
            raise ValueError("a key holds a character that this Python does not know: its accents cannot be told")
        if not self.keys:
            if null is not None and len(normal_text(null, self.normal)) > KEY_LENGTH_MAX:
                raise ValueError(f"null names a key of at most {KEY_LENGTH_MAX} characters: longer ones are dropped")
            return self
        check_keys(self.keys)
        check_distinct([normal_text(key, self.normal) for key in self.keys], "keys, in their normal form")
        if null is not None and null not in self.keys:
            raise ValueError('null must be "drop" or one of the keys')
        return self


Words = Annotated[tuple[Annotated[str, Field(strict=True, min_length=1)], ...], Field(min_length=1)]


class BooleanColumn(Part):
    """Truth values, to group by: "false" and "true". `true` and `false` list how a CSV file spells them."""

    type: Literal["boolean"]
    null: Annotated[Literal["false", "true"] | None, BeforeValidator(_drop)] = None
    true: Words | None = None
    false: Words | None = None

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        check_distinct([word for words in self.spelling for word in words], "a spelling")
        return self

    @property
    def keys(self) -> tuple[str, str]:
        """The two groups, in order."""
        return ("false", "true")

    @property
    def spelling(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The spellings of false and of true."""
        return self.false or ("false",), self.true or ("true",)


_DIRECTIVES = frozenset("YymdbBHMS%")


def _formats(value: object) -> object:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) and len(text) <= 100 for text in value):
        raise ValueError('give a list of patterns, such as ["%d.%m.%Y"]')
    for pattern in value:
        used = re.findall("%(.?)", plain(pattern), re.DOTALL)
        if not set(used) <= _DIRECTIVES:
            raise ValueError("a pattern knows %Y %y %m %b %B %d %H %M %S and %%")
        parts = [len([used_one for used_one in used if used_one in part]) for part in ("Yy", "mbB", "d")]
        if parts != [1, 1, 1]:
            raise ValueError("a pattern needs a year, a month and a day, each once")
    return tuple(value) or None


def _day(value: object) -> str:
    with contextlib.suppress(ValueError):
        if datetime.date.fromisoformat(f"{value}").isoformat() == f"{value}":
            return f"{value}"
    raise ValueError('give a day as "1997-01-31"')


def _days_since_1970(day: str) -> int:
    return (datetime.date.fromisoformat(day) - datetime.date(1970, 1, 1)).days


Day = Annotated[str, BeforeValidator(_day)]


class DateColumn(Part):
    """Calendar days, used through bins. Text is year-month-day, or what the first fitting one of `formats` says.

    With `lower` and `upper` they can be summed too, as numbers of days since 1970-01-01, clamped to these two.
    """

    type: Literal["date"]
    formats: Annotated[tuple[str, ...] | None, BeforeValidator(_formats)] = None
    lower: Day | None = None
    upper: Day | None = None

    @model_validator(mode="after")
    def _check_days(self) -> Self:
        if (self.lower is None) != (self.upper is None):
            raise ValueError("give both of lower and upper, or none")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError("lower is above upper")
        return self

    @property
    def days(self) -> IntegerColumn | None:
        """The same as whole numbers of days, or None where no bounds are declared."""
        if self.lower is None or self.upper is None:
            return None
        lower, upper = (Fraction(_days_since_1970(day)) for day in (self.lower, self.upper))
        return IntegerColumn(type="integer", lower=lower, upper=upper)


Column = Annotated[IntegerColumn | DecimalColumn | TextColumn | DateColumn | BooleanColumn, Field(discriminator="type")]
NumericColumn = IntegerColumn | DecimalColumn
