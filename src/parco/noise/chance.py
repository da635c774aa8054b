"""Exact coins: true with a rational probability, or with e^-x, and masks for Poisson sampling.

A coin compares one uniform number U with its probability, bit by bit as far as needed: true if and only if U lies
below. The mask of Poisson sampling is a coin for each unit; whoever accounts for it needs the rate to be exactly this.
Source: docs/mathematics.md, "Coins and choices".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from parco.balls import ball, lower, precision, upper
from parco.errors import InternalError, RequestError
from parco.noise.bits import BitSource
from parco.noise.uniform import WORD_BITS, Uniform

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Chance", "Exponential", "Rational", "bernoulli", "bernoulli_mask"]

_BLOCK = 1 << 14
_PRECISION_MAX = 1 << 20


class Chance(Protocol):
    """A probability p, known to as many bits as are asked for."""

    def floor(self, size: int) -> int:
        """The greatest integer that is at most p 2^size."""
        ...


@dataclass(frozen=True)
class Rational:
    """For every rational 0 <= value <= 1, that probability, or RequestError."""

    value: Fraction

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1:
            raise RequestError("a probability lies between 0 and 1")

    def floor(self, size: int) -> int:
        """The greatest integer that is at most p 2^size."""
        return (self.value.numerator << size) // self.value.denominator


@dataclass(frozen=True)
class Exponential:
    """For every rational x >= 0, the probability e^-x, or RequestError."""

    x: Fraction

    def __post_init__(self) -> None:
        if self.x < 0:
            raise RequestError("e^-x is a probability only where x is not negative")

    def floor(self, size: int) -> int:
        """The greatest integer that is at most p 2^size.

        For x > 0 the number e^-x is transcendental (Lindemann), so that a ball small enough lies between two integers.
        """
        if self.x == 0:
            return 1 << size
        if self.x > size:
            return 0
        extra = 64
        while extra <= _PRECISION_MAX:
            with precision(size + extra):
                scaled = ball(-self.x).exp() * 2**size
                low, high = lower(scaled) // 1, upper(scaled) // 1
            if low == high:
                return low
            extra *= 2
        raise InternalError("a probability could not be computed to the bits that were asked for")


def bernoulli(chance: Chance, bits: BitSource) -> bool:
    """For every probability, returns True with exactly that probability: where the next uniform number lies below it.

    Reads 64 bits, and 64 more each time they are the first bits of the probability itself.
    """
    return _below(Uniform.begun(bits), chance, bits)


def bernoulli_mask(chance: Chance, count: int, bits: BitSource) -> NDArray[np.bool_]:
    """For every probability and count, returns so many independent coins as `bernoulli`, shape (count,).

    With a rational chance this is the mask of Poisson sampling at that rate. The mask is secret: it says who is in.
    """
    import numpy as np

    threshold, mask = chance.floor(WORD_BITS), np.ones(count, np.bool_)
    if threshold >> WORD_BITS:
        return mask  # A certain event needs no bits.
    for start in range(0, count, _BLOCK):
        words = bits.words(min(_BLOCK, count - start)).view(np.uint64)
        block = mask[start : start + len(words)]
        np.less(words, np.uint64(threshold), out=block)
        for place in np.flatnonzero(words == threshold):
            block[place] = _below(Uniform(threshold, WORD_BITS), chance, bits)
    return mask


def _below(uniform: Uniform, chance: Chance, bits: BitSource) -> bool:
    while uniform.value == (threshold := chance.floor(uniform.size)):
        uniform = uniform.longer(bits)
    return uniform.value < threshold
