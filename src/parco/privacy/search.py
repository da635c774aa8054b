"""One search for the bottom of a valley. What it finds is a guess: callers prove what they return there."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

__all__ = ["lowest"]

_SMALLER = (3 - math.sqrt(5)) / 2


def lowest(value: Callable[[float], float | Fraction], low: float, high: float, *, width: float) -> float:
    """For every function with one valley between low < high, returns a point within `width` of its bottom.

    `value` is asked once a step, and never at the ends; of what it was asked, the point returned was lowest. Raises
    only what `value` raises. Source: golden sections (Kiefer 1953).
    """
    middle = low + _SMALLER * (high - low)
    least = value(middle)
    while high - low > width:
        right = high - middle > middle - low
        probe = middle + _SMALLER * ((high if right else low) - middle)
        found = value(probe)
        if found <= least:
            low, high = (middle, high) if right else (low, middle)
            middle, least = probe, found
        elif right:
            high = probe
        else:
            low = probe
    return middle
