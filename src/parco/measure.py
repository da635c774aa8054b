"""Budgets as exact integers: a measure is an account's currency, a cost an amount of it.

A cost counts 10^-15 of its measure in a signed 64-bit integer, so at most 9,223; a delta counts 10^-18. What was
charged is rounded up, a cap down, and what a user asks for is a ceiling, so it is rounded down as well.
Standard library only.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from parco.errors import RequestError

__all__ = [
    "COST_UNIT",
    "DELTA_UNIT",
    "MEASURE_TAGS",
    "UNITS_MAX",
    "Cost",
    "Exactable",
    "Measure",
    "decimal_text",
    "delta_units_ceil",
    "delta_units_floor",
    "exact",
    "exact_text",
    "significant_text",
    "units_ceil",
    "units_floor",
]

Exactable = str | int | float | Decimal | Fraction
"""What `exact` takes for a number."""

COST_UNIT = Fraction(1, 10**15)
DELTA_UNIT = Fraction(1, 10**18)
UNITS_MAX = 2**63 - 1

MEASURE_TAGS = ("pure", "zcdp", "gdp", "renyi")

# Longer text is refused before it is read: Fraction("1e-1000000000") alone would fill the memory.
_TEXT_LENGTH_MAX = 64
_EXPONENT_MAX = 400
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Measure:
    """The currency of an account, fixed at signing (docs/mathematics.md, "Costs"); its amounts add up.

    `order` is the Renyi order, for `renyi` and no other.
    """

    tag: str
    order: Fraction | None = None

    PURE: ClassVar[Measure]
    """Pure differential privacy; a cost is epsilon."""
    ZCDP: ClassVar[Measure]
    """Zero-concentrated differential privacy; a cost is rho."""
    GDP: ClassVar[Measure]
    """Gaussian differential privacy; a cost is mu squared."""

    def __post_init__(self) -> None:
        if self.tag not in MEASURE_TAGS:
            raise RequestError(f"unknown measure {self.tag!r}: choose one of {', '.join(MEASURE_TAGS)}")
        if (self.tag == "renyi") != (self.order is not None):
            raise RequestError("the measure renyi, and no other, has an order")
        if self.order is not None and self.order <= 1:
            raise RequestError("an order is greater than 1")

    @classmethod
    def renyi(cls, order: Fraction) -> Measure:
        """Renyi differential privacy at one order > 1; a cost is epsilon at that order."""
        return cls("renyi", order)

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure whose text this is: "gdp", "renyi(8)"; raises RequestError for any other text."""
        tag, bracket, order = text.removesuffix(")").partition("(")
        measure = cls(tag, exact(order, "order") if bracket else None)
        if str(measure) != text:
            raise RequestError(f"unknown measure {text!r}")
        return measure

    def __str__(self) -> str:
        return self.tag if self.order is None else f"{self.tag}({exact_text(self.order)})"


Measure.PURE, Measure.ZCDP, Measure.GDP = Measure("pure"), Measure("zcdp"), Measure("gdp")


@dataclass(frozen=True, order=True)
class Cost:
    """An exact amount: `units` counts 10^-15 of the measure, 0 <= units < 2^63."""

    units: int

    def __post_init__(self) -> None:
        if not 0 <= self.units <= UNITS_MAX:
            raise RequestError(f"a cost lies between 0 and {decimal_text(UNITS_MAX * COST_UNIT)}")

    @property
    def value(self) -> Fraction:
        """The amount in its measure."""
        return self.units * COST_UNIT

    def __str__(self) -> str:
        return decimal_text(self.value)


def units_ceil(value: Fraction) -> int:
    """The least number of 10^-15 that is at least `value`: for what is charged."""
    return math.ceil(value / COST_UNIT)


def units_floor(value: Fraction) -> int:
    """The largest number of 10^-15 that is at most `value`: for caps, and for what a user asks to spend at most."""
    return math.floor(value / COST_UNIT)


def delta_units_ceil(value: Fraction) -> int:
    """The least number of 10^-18 that is at least `value`."""
    return math.ceil(value / DELTA_UNIT)


def delta_units_floor(value: Fraction) -> int:
    """The largest number of 10^-18 that is at most `value`."""
    return math.floor(value / DELTA_UNIT)


def exact(value: object, name: str) -> Fraction:
    """For every decimal text, "p/q" text, int, Fraction, Decimal or finite float, returns the number it shows.

    A float is taken by its shortest decimal text: 0.1 is 1/10. Raises RequestError, naming `name`, for anything else,
    bool, NaN and infinities included, and for text over 64 characters or exponents beyond 400.
    """
    if isinstance(value, Fraction) or (isinstance(value, int) and not isinstance(value, bool)):
        return Fraction(value)
    if not isinstance(value, float | str | Decimal):
        raise RequestError(f'{name}: give a number as decimal text such as "0.05" or "1/3"')
    text = str(value).strip()
    if len(text) > _TEXT_LENGTH_MAX:
        raise RequestError(f"{name}: a number has at most {_TEXT_LENGTH_MAX} characters")
    top, slash, bottom = text.partition("/")
    numerator = _decimal(top, name)
    denominator = _decimal(bottom, name) if slash else Fraction(1)
    if denominator == 0:
        raise RequestError(f"{name}: the denominator is zero")
    return numerator / denominator


def decimal_text(value: Fraction) -> str:
    """The exact decimal text of a fraction whose denominator divides a power of ten; raises RequestError otherwise."""
    places = _places(value.denominator)
    if places is None:
        raise RequestError(f"{value} has no finite decimal text")
    scaled = abs(value.numerator) * 10**places // value.denominator
    digits = str(scaled).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}.{part}" if places else f"{sign}{whole}"


def exact_text(value: Fraction) -> str:
    """The exact text of any fraction: a decimal where a finite one exists, otherwise p/q."""
    return str(value) if _places(value.denominator) is None else decimal_text(value)


def significant_text(value: Fraction, digits: int, *, up: bool) -> str:
    """Decimal text with at most `digits` significant digits, rounded towards plus (`up`) or minus infinity."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value.numerator)) - math.log10(value.denominator)) + 1 - digits
    step = Fraction(10) ** exponent
    rounded = (math.ceil if up else math.floor)(value / step) * step
    if exponent < -30 or exponent > 30:
        return f"{Decimal(rounded.numerator) / Decimal(rounded.denominator):.{digits - 1}e}"
    return decimal_text(rounded)


def _decimal(text: str, name: str) -> Fraction:
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise RequestError(f'{name}: {text!r} is no finite number; write it as text such as "0.05" or "1/3"')
    # The exponent as written comes first: Decimal itself raises on one of twenty digits.
    written = int(found[2][1:]) if found[2] else 0
    number = Decimal(text) if abs(written) <= _EXPONENT_MAX + _TEXT_LENGTH_MAX else None
    if number is None or (number and abs(number.adjusted()) > _EXPONENT_MAX):
        raise RequestError(f"{name}: exponents beyond {_EXPONENT_MAX} are refused")
    return Fraction(number)


def _places(denominator: int) -> int | None:
    """The number of decimal places a fraction with this denominator needs, or None when no number suffices."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None
