"""An exact choice among candidates with probabilities proportional to e^(exponent): the exponential mechanism's draw.

The candidates' weights lie one behind the other on a line; one uniform number U, times their total, is a place on it,
and the candidate there is drawn. Weights are known as integers from below and above, in units of 2^-bits of the
largest; where the bits of U and of the weights leave two candidates possible, more of both are taken. Nothing
overflows, vanishes or is rounded, however far the exponents are spread. Source: docs/mathematics.md, "Coins and
choices".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from parco.balls import ball, lower, precision, upper
from parco.errors import InternalError, RequestError
from parco.noise.bits import BitSource
from parco.noise.uniform import Uniform

__all__ = ["Choices", "Group", "choose"]

_GUARD_BITS = 64
_LOOSE = 2
"""How much larger than its integer a weight may be, unless it is the largest, which is known exactly."""


@dataclass(frozen=True)
class Group:
    """Candidates that stand side by side and have one exponent: `count` >= 1 of them."""

    exponent: Fraction
    count: int = 1


def choose(groups: Sequence[Group], bits: BitSource) -> int:
    """For every sequence of groups, returns the place of one candidate among all, or raises RequestError.

    Places are counted from 0, through the groups in their order; each candidate has a probability of exactly its
    e^(exponent) over the sum of all. For scores u of sensitivity D and a cost of epsilon the exponents are
    epsilon u/(2 D) (McSherry & Talwar 2007). The outcome is a function of one uniform number, non-decreasing.
    """
    return Choices(groups).place(bits)


class Choices:
    """For every sequence of groups, draws without replacement, each candidate that is left as `choose` would.

    Weights are kept between choices, until the last candidate with the largest is gone. RequestError for an empty
    group, or none.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        if not groups or any(group.count < 1 for group in groups):
            raise RequestError("a choice needs at least one candidate, in each of its groups")
        self._exponents = [group.exponent for group in groups]
        self._counts = [group.count for group in groups]
        self._largest = max(self._exponents)
        self._unit, self._low = 0, list[int]()

    def take(self, bits: BitSource) -> tuple[int, int]:
        """One candidate, which is then gone: the place of its group, and its own among those that the group had left.

        RequestError once all are gone.
        """
        if not any(self._counts):
            raise RequestError("all candidates are chosen")
        place = self.place(bits)
        starts = [0, *accumulate(self._counts)]
        group = bisect_right(starts, place) - 1
        self._counts[group] -= 1
        if self._counts[group] == 0 and self._exponents[group] == self._largest:
            self._find_largest()
        return group, place - starts[group]

    def place(self, bits: BitSource) -> int:
        """The place of one candidate among all that are left."""
        uniform = Uniform.begun(bits)
        while (place := self._line(uniform.size).place(uniform)) is None:
            uniform = uniform.longer(bits)
        return place

    def _find_largest(self) -> None:
        """Weights are in units of the largest that is left: where that is another one, they are found anew."""
        there = [exponent for exponent, count in zip(self._exponents, self._counts, strict=True) if count]
        largest = max(there, default=self._largest)
        if largest < self._largest:
            self._largest, self._unit = largest, 0

    def _line(self, size: int) -> _Line:
        unit = size + sum(self._counts).bit_length() + _GUARD_BITS
        if unit > self._unit:
            known: dict[Fraction, int] = {}
            for exponent, count in zip(self._exponents, self._counts, strict=True):
                if count and exponent not in known:
                    known[exponent] = _scaled(exponent - self._largest, unit)
            self._unit, self._low = unit, [known.get(exponent, 0) for exponent in self._exponents]
        return _Line(self._counts, self._low, largest=1 << self._unit)


class _Line:
    """The weights side by side, each known to lie between an integer `low` and low + loose."""

    def __init__(self, counts: Sequence[int], low: Sequence[int], *, largest: int) -> None:
        self._starts = [0, *accumulate(counts)]
        """The first place of each group, and the number of all candidates."""
        self._low = low
        self._loose = [0 if weight == largest else _LOOSE for weight in low]
        self._low_before = [0, *accumulate(low * count for low, count in zip(self._low, counts, strict=True))]
        self._loose_before = [0, *accumulate(loose * count for loose, count in zip(self._loose, counts, strict=True))]

    def place(self, uniform: Uniform) -> int | None:
        """The candidate at U, or None where what is known leaves several."""
        # The last place that U is certain to have reached, found by halves: who is beyond a place is beyond all before.
        first, last = 0, self._starts[-1] - 1
        while first < last:
            middle = (first + last + 1) // 2
            first, last = (middle, last) if self._reached(middle, uniform) else (first, middle - 1)
        return first if self._missed(first + 1, uniform) else None

    def _reached(self, place: int, uniform: Uniform) -> bool:
        """Whether U times the total is at least the weight before the place, for all U that the bits leave."""
        (_, before_high), (after_low, _) = self._split(place)
        return uniform.value * after_low >= ((1 << uniform.size) - uniform.value) * before_high

    def _missed(self, place: int, uniform: Uniform) -> bool:
        """Whether U times the total is below the weight before the place, for all U that the bits leave."""
        (before_low, _), (_, after_high) = self._split(place)
        return (uniform.value + 1) * after_high <= ((1 << uniform.size) - uniform.value - 1) * before_low

    def _split(self, place: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Bounds of the weight before the place, and of the weight from it on."""
        group = min(bisect_right(self._starts, place) - 1, len(self._low) - 1)
        inside = place - self._starts[group]
        low = self._low_before[group] + inside * self._low[group]
        loose = self._loose_before[group] + inside * self._loose[group]
        low_after, loose_after = self._low_before[-1] - low, self._loose_before[-1] - loose
        return (low, low + loose), (low_after, low_after + loose_after)


def _scaled(exponent: Fraction, unit: int) -> int:
    """An integer n with n <= e^exponent 2^unit <= n + 2, exponent <= 0; for 0 it is 2^unit itself."""
    if exponent == 0:
        return 1 << unit
    if exponent < -unit:
        return 0  # e^-unit 2^unit is below 1.
    with precision(unit + _GUARD_BITS):
        scaled = ball(exponent).exp() * 2**unit
        low = lower(scaled) // 1
        if upper(scaled) > low + _LOOSE:
            raise InternalError("a weight could not be computed to the bits that were asked for")
    return low
