"""Facts of key selection: keys found in the data are published only where a noisy number of units reaches a threshold.

A key that one unit alone holds is there on one of two neighbours only, and no noise can hide a key. The chance that it
is published is small, and is accounted for as a delta of its own, beside the cost of the noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from parco.balls import ball, precision, upper
from parco.errors import RequestError

__all__ = ["delta_upper"]

_BITS = 256


def delta_upper(chances: Iterable[Fraction], *, keys: int) -> Fraction:
    """For every list of chances in [0, 1) and keys >= 1, returns 1 - (product of 1 - chance)^keys, rounded up.

    `chances`: with add-or-remove neighbours the one chance that a key is published behind which one unit stands; under
    replace also the chance that one would be behind which nobody stands. `keys`: how many keys one unit may hold.
    Raises RequestError for arguments out of range. Source: docs/mathematics.md, "Key selection".
    """
    listed = list(chances)
    if keys < 1 or not listed or not all(0 <= chance < 1 for chance in listed):
        raise RequestError("a delta of selection takes at least one key and chances at least 0 and below 1")
    with precision(_BITS):
        logs = sum((ball(-chance).log1p() for chance in listed), ball(0))
        return max(upper(-(keys * logs).expm1()), Fraction(0))
