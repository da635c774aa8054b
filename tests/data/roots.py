"""Roots of profiles, and balls as text: for the scripts that make oracles."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf

from flint import arb, fmpq

__all__ = ["PRINTED", "WideError", "number", "root", "text"]

PRINTED = 17
# The ends of a root are this much wider than what is printed is exact.
_SPARE = 3


class WideError(ArithmeticError):
    """The balls are too wide to tell a profile from delta."""


def root(profile: Callable[[arb], arb], delta: arb, above: arb) -> arb:
    """The least epsilon >= 0 with profile(epsilon) <= delta: a ball at whose two ends the profile's balls decided.

    `profile` falls in epsilon, and `above` is at least the root. Raises WideError where the balls do not decide.
    """
    near = arb(10) ** -(PRINTED + _SPARE)
    (low, low_value), (high, high_value) = _bracket(profile, delta, above.mid())
    if high == 0:
        return arb(0)
    kept = 0
    while high - low > high * near:
        # The chord of the logarithms; an end that is kept twice counts half (Illinois). The middle where there is no
        # chord.
        share = low_value / (low_value - high_value) if high_value.is_finite() else arb(0.5)
        middle = (low + (high - low) * share).mid()
        value = profile(middle)
        if value > delta:
            low, low_value, high_value, kept = middle, (value / delta).log(), high_value / (2 if kept > 0 else 1), 1
        elif value < delta:
            high, high_value, low_value, kept = middle, _log(value / delta), low_value / (2 if kept < 0 else 1), -1
        else:
            low, high = middle, middle
    low, high = low * (1 - near), high * (1 + near)
    if not (profile(low) > delta >= profile(high)):
        raise WideError("the root was not found")
    return low.union(high)


def _bracket(profile: Callable[[arb], arb], delta: arb, above: arb) -> tuple[tuple[arb, arb], tuple[arb, arb]]:
    """Two numbers on either side of the root, and log(profile/delta) there; 0 and 0 for a root at 0.

    Downwards from `above`, carefully: far below its root a profile may be dear to compute, or not known at all.
    """
    high, high_value, step = above, arb(-inf), above / 64
    while step > above * arb(2) ** -40:
        low = (high - step).mid() if high > above / 1000 else arb(0)
        value = profile(low)
        if value > delta:
            return (low, (value / delta).log()), (high, high_value)
        if value <= delta:
            high, high_value, step = low, _log(value / delta), min(2 * step, low / 4)
            if low == 0:
                return (low, high_value), (low, high_value)
        else:
            step /= 4
    raise WideError("the root was not bracketed")


def _log(ratio: arb) -> arb:
    """Minus infinity where the ratio is not known to be positive."""
    return ratio.log() if ratio > 0 else arb(-inf)


def number(written: str) -> arb:
    """A decimal number or a fraction, as a ball."""
    exact = Fraction(written)
    return arb(fmpq(exact.numerator, exact.denominator))


def text(value: arb) -> str:
    """PRINTED correct digits."""
    if value != 0 and value.rel_accuracy_bits() < 3.33 * PRINTED:
        raise ArithmeticError("the ball is wider than what would be printed")
    return str(value.str(PRINTED, radius=False))
