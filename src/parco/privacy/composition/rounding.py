"""What double precision may add to a bound: one model of rounding, used by every error bound of this room.

Sums, products, quotients and square roots are off by at most one part in 2^53 (IEEE 754). Elementary functions of NumPy
and SciPy are taken to be off by at most `ELEMENTARY` such parts, their documented limit being four units in the last
place; a test compares them with balls over the ranges used. Everything else in an error bound is proven from these two.
"""

from __future__ import annotations

import math
from fractions import Fraction

from parco.balls import ball, lower, precision, upper

__all__ = ["ELEMENTARY", "UNIT", "doubles_around", "exp_of", "log_interval", "log_rest"]

_BITS = 192

UNIT = 2.0**-53
"""The unit roundoff u of double precision."""

ELEMENTARY = 8.0
"""How many units an elementary function may be off by, relatively: four units in the last place are eight of u."""


def log_interval(value: Fraction) -> tuple[float, float]:
    """For every value > 0, returns doubles at most and at least its natural logarithm.

    The integers' logarithms are each off by at most ELEMENTARY units of themselves.
    """
    top, bottom = math.log(value.numerator), math.log(value.denominator)
    margin = 2 * ELEMENTARY * UNIT * (abs(top) + abs(bottom) + 1e-300)
    return top - bottom - margin, top - bottom + margin


def exp_of(log_value: float, *, up: bool) -> Fraction:
    """For every double, or minus infinity, returns e^log_value, rounded to the side asked for."""
    if log_value == -math.inf:
        return Fraction(0)
    with precision(_BITS):
        value = ball(Fraction(log_value)).exp()
        return upper(value) if up else lower(value)


def doubles_around(value: Fraction) -> tuple[float, float]:
    """For every value >= 0 within the range of doubles, returns doubles at most and at least it: next to each other, or
    equal."""
    near = float(value)
    if near == value:
        return near, near
    return (near, math.nextafter(near, math.inf)) if near < value else (max(math.nextafter(near, -math.inf), 0.0), near)


def log_rest(rate: Fraction) -> float:
    """For every rate q with 0 < q < 1, returns log(1 - q), off by at most 2 ELEMENTARY units of itself, also near 0 and
    1."""
    return math.log1p(-float(rate)) if rate < Fraction(1, 2) else math.log(float(1 - rate))
