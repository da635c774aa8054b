"""Exact quantiles of the laws of noise, at every scale, and the largest scale that keeps one."""

from __future__ import annotations

from fractions import Fraction

from parco.balls import lower, precision, upper
from parco.errors import InternalError, RequestError
from parco.noise.draw import magnitude_at
from parco.noise.laws import Law

__all__ = ["coverage", "half_width_steps", "largest_scale"]

_BITS = 192
_MANTISSA = 1 << 56


def half_width_steps(law: Law, confidence: Fraction) -> int:
    """For every 0 < confidence < 1, returns the least q >= 0 with P(|N| <= q) >= confidence, or RequestError.

    In lattice steps; proven in balls. P(|N| <= q) = 1 - 2 tail(q+1), so q is the magnitude at tail (1 - confidence)/2.
    """
    return magnitude_at(law, _tail(confidence))


def coverage(law: Law, steps: int) -> tuple[Fraction, Fraction]:
    """For every q >= 0, returns numbers at most and at least P(|N| <= q), or raises RequestError."""
    if steps < 0:
        raise RequestError("a half-width is not negative")
    with precision(_BITS):
        inside = 1 - 2 * law.tail(steps + 1)
        return max(lower(inside), Fraction(0)), min(upper(inside), Fraction(1))


def largest_scale(kind: type[Law], steps: int, *, confidence: Fraction) -> Fraction:
    """For every q >= 0 and 0 < confidence < 1, returns a scale with half_width_steps <= q, or raises RequestError.

    Scale and q in lattice steps. Rounded down: the largest such scale is above it by less than one part in 10^12. Both
    are proven by the law's tail, not by the formula that found the scale.
    """
    if steps < 0:
        raise RequestError("a half-width is not negative")
    tail = _tail(confidence)
    with precision(_BITS):
        scale = _shortened(lower(kind.scale_limit(steps + 1, tail)))
    if magnitude_at(kind(scale), tail) > steps or magnitude_at(kind(scale * (1 + Fraction(1, 10**12))), tail) <= steps:
        raise InternalError("the largest scale for an error was not found")
    return scale


def _tail(confidence: Fraction) -> Fraction:
    if not 0 < confidence < 1:
        raise RequestError("a confidence lies strictly between 0 and 1")
    return (1 - confidence) / 2


def _shortened(value: Fraction) -> Fraction:
    """At most `value` > 0, by less than one part in 2^54."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    unit = Fraction(2) ** exponent / _MANTISSA
    return value // unit * unit
