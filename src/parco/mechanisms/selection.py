"""The threshold of key selection: the least for a delta, and the delta of the very rule that is drawn.

A key is published if and only if the number of its units plus its noise is at least the threshold. Facts:
`privacy/selection.py`; source: docs/mathematics.md, "Key selection".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from parco.balls import precision, upper
from parco.errors import InternalError, RequestError
from parco.measure import DELTA_UNIT
from parco.mechanisms.mechanism import Additive
from parco.privacy import selection

__all__ = ["Selection", "for_delta"]

_BITS = 256
_STEPS_MAX = 1 << 80


@dataclass(frozen=True)
class Selection:
    """For every noise on numbers of units and `above` >= 1, publishes a key from 1 + above * lattice on.

    `keys`: how many keys a unit may hold. `replace`: whether neighbours replace a unit instead of adding one.
    """

    noise: Additive
    above: int
    keys: int
    replace: bool

    def __post_init__(self) -> None:
        if self.above < 1 or (1 / self.noise.lattice).denominator != 1:
            raise InternalError("a threshold lies above one unit, on a lattice that holds whole numbers")

    @property
    def threshold(self) -> Fraction:
        """The least noisy number of units with which a key is published."""
        return 1 + self.above * self.noise.lattice

    @property
    def delta_units(self) -> int:
        """What the selection is charged: 10^-18, rounded up."""
        return math.ceil(self.delta_upper / DELTA_UNIT)

    @property
    def delta_upper(self) -> Fraction:
        """The chance that a key which is there on one neighbour only is published, with all keys a unit may hold."""
        chances = [self._chance(1), self._chance(0)] if self.replace else [self._chance(1)]
        return selection.delta_upper(chances, keys=self.keys)

    def kept(self, noisy: int) -> bool:
        """Whether a key with this noisy number of units, in lattice steps, is published."""
        return noisy >= self.threshold / self.noise.lattice

    def _chance(self, units: int) -> Fraction:
        """At least the probability that a key of so many units, none or one, is published."""
        steps = self.above + (1 - units) * int(1 / self.noise.lattice)
        with precision(_BITS):
            return upper(self.noise.law.tail(steps))


def for_delta(noise: Additive, *, units: int, keys: int, replace: bool) -> Selection:
    """For every delta of `units` >= 1 (10^-18), returns the selection with the least threshold within it.

    Raises RequestError where there is none. What it returns is charged a delta for which it is returned again: so a
    ledger that holds noise and delta holds the threshold.
    """
    if units < 1:
        raise RequestError("a selection of keys needs a delta of at least 1e-18")

    def fits(above: int) -> bool:
        return Selection(noise, above, keys, replace).delta_units <= units

    high = 1
    while not fits(high):
        high *= 2
        if high > _STEPS_MAX:
            raise RequestError("no threshold has a delta this small: ask for a larger one, or spend more on the noise")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return Selection(noise, high, keys, replace)
