"""A uniform real number, known to as many bits as a decision needs."""

from __future__ import annotations

from dataclasses import dataclass

from parco.noise.bits import BitSource

__all__ = ["WORD_BITS", "Uniform"]

WORD_BITS = 64


@dataclass(frozen=True)
class Uniform:
    """What is known of a number U, uniform between 0 and 1: value/2^size <= U < (value + 1)/2^size."""

    value: int
    size: int

    @staticmethod
    def begun(bits: BitSource) -> Uniform:
        """A new number, known to its first 64 bits."""
        return Uniform(bits.bits(WORD_BITS), WORD_BITS)

    def longer(self, bits: BitSource) -> Uniform:
        """The same number, known to 64 bits more."""
        return Uniform((self.value << WORD_BITS) | bits.bits(WORD_BITS), self.size + WORD_BITS)

    def mirrored(self) -> Uniform:
        """What is then known of 1 - U, but for the one point at which an interval's closed end is the other one."""
        return Uniform((1 << self.size) - 1 - self.value, self.size)
