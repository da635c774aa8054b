"""Small helpers of the tests of this room: between fractions and mpmath."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mpmath import mpf


def number(value: Fraction) -> Any:
    """The fraction as an mpmath number of the current precision."""
    return mpf(value.numerator) / value.denominator


def just_above(bound: Fraction, truth: Any, *, slack: float = 1e-15) -> bool:
    """Whether an upper bound is at least the truth, as far as that is known, and at most `slack` (relative) more."""
    tiny = mpf(10) ** -45
    return bool(truth * (1 - tiny) <= number(bound) <= truth * (1 + slack))
