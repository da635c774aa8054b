"""Roots of profiles between two numbers at which the profile was compared, and balls as text: for the scripts that make
oracles."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from flint import arb

__all__ = ["PRINTED", "root", "text"]

PRINTED = 17
# The ends of a root are this much wider than what is printed is exact.
_SPARE = 3


def root(profile: Callable[[arb], arb], delta: arb, above: arb) -> arb:
    """The least epsilon >= 0 with profile(epsilon) <= delta: a ball at whose two ends the profile's balls decided.

    `profile` falls in epsilon, and `above` is at least the root.
    """
    near = arb(10) ** -(PRINTED + _SPARE)
    high, high_value = above.mid(), _excess(profile, delta, above.mid())
    low, step = high, high / 16
    # Downwards in growing steps, since a profile may be dear to compute near 0.
    while True:
        low = low - step if low > step else arb(0)
        step *= 2
        low_value = _excess(profile, delta, low)
        if low_value > 0:
            break
        if low == 0:
            return arb(0)
        high, high_value = low, low_value
    while high - low > high * near:
        # The chord of the logarithms, or the middle where one of them is not to be had (Illinois: an end that stays
        # counts half).
        share = low_value / (low_value - high_value) if high_value.is_finite() else arb(0.5)
        middle = (low + (high - low) * share).mid()
        value = _excess(profile, delta, middle)
        if value.contains(0):
            low, high = middle, middle
        elif value > 0:
            low, low_value, high_value = middle, value, high_value / 2
        else:
            high, high_value, low_value = middle, value, low_value / 2
    low, high = low * (1 - near), high * (1 + near)
    if not (profile(low) > delta >= profile(high)):
        raise ArithmeticError("the root was not found")
    return low.union(high)


def _excess(profile: Callable[[arb], arb], delta: arb, epsilon: arb) -> arb:
    """log(profile/delta), or minus infinity where the profile is not known to be positive."""
    value = profile(epsilon)
    return (value / delta).log() if value > 0 else arb(-inf)


def text(value: arb) -> str:
    """PRINTED correct digits."""
    if value != 0 and value.rel_accuracy_bits() < 3.33 * PRINTED:
        raise ArithmeticError("the ball is wider than what would be printed")
    return str(value.str(PRINTED, radius=False))
