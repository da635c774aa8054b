"""The certified draw: a uniform word of bits, inverted through the law's distribution function, proven at every step.

The word is the beginning of one uniform real number U; the draw is the law's quantile at U. The first bit tells the
half and so the sign; v, the distance of U from the nearer end of (0, 1), tells the magnitude m by tail(m+1) < v <
tail(m). While the bits known so far do not decide between two integers, more are taken; while a ball is too wide, its
precision doubles. The result is a function of U alone, non-decreasing, and never approximate. Source:
docs/mathematics.md, "Noise on a lattice".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from parco.balls import arb, ball, precision
from parco.errors import InternalError
from parco.noise.bits import BitSource
from parco.noise.laws import Law

__all__ = ["draw", "magnitude_at"]

_WORD_BITS, _WORD_BITS_LARGE = 64, 128
_LARGE_SCALE = 10**6
_PRECISION_MAX = 1 << 20


@dataclass(frozen=True)
class _Word:
    """The first `size` bits of U, as an integer."""

    value: int
    size: int

    @property
    def upper_half(self) -> bool:
        return bool(self.value >> (self.size - 1))

    def distance(self) -> tuple[Fraction, Fraction]:
        """The two ends between which v lies. Mirroring swaps them: all words ending in ones meet 1, not 1 - 2^-size."""
        steps = (1 << self.size) - 1 - self.value if self.upper_half else self.value
        return Fraction(steps, 1 << self.size), Fraction(steps + 1, 1 << self.size)

    def longer(self, bits: BitSource) -> _Word:
        return _Word((self.value << _WORD_BITS) | bits.bits(_WORD_BITS), self.size + _WORD_BITS)


def draw(law: Law, bits: BitSource) -> int:
    """For every law and source of uniform bits, returns one integer of exactly that law, or raises InternalError.

    In lattice steps. Reads 64 bits (128 above a scale of 10^6), and 64 more each time they leave two integers possible.
    """
    size = _WORD_BITS if law.scale <= _LARGE_SCALE else _WORD_BITS_LARGE
    word = _Word(bits.bits(size), size)
    while True:
        low, high = word.distance()
        magnitude = _magnitude(law, low, high)
        if magnitude is not None:
            return magnitude if word.upper_half else -magnitude
        word = word.longer(bits)


def magnitude_at(law: Law, tail: Fraction) -> int:
    """For every law and 0 < tail < 1/2, returns the m >= 0 with tail(m+1) < tail < tail(m), or raises InternalError.

    tail(0) counts as infinite. A tie would never be decided and end in InternalError. For geometric noise there is none
    (Lindemann: e^(-1/b) is transcendental, and a tie would make it algebraic); for Gaussian noise none is known.
    """
    magnitude = _magnitude(law, tail, tail)
    if magnitude is None:
        raise InternalError("a tail is equal to a rational number")
    return magnitude


def _magnitude(law: Law, low: Fraction, high: Fraction) -> int | None:
    """The one magnitude of every v in [low, high], or None when a cut point lies between them."""
    bits = 64 + high.denominator.bit_length()
    while bits <= _PRECISION_MAX:
        with precision(bits):
            search = _Search(law, ball(low), ball(high), width=ball(high - low))
            magnitude = search.run(law.guess(float(low)))
        if magnitude is not None or search.straddles:
            return magnitude
        bits *= 2
    raise InternalError("a draw could not be decided")


class _Search:
    """One search at one precision: gallops from the guess, then halves. Every step is certain in balls or ends it."""

    def __init__(self, law: Law, low: arb, high: arb, *, width: arb) -> None:
        self._law, self._low, self._high, self._width = law, low, high, width
        self.straddles = False
        """Set when the search ended because a cut point lies between the two ends, or too near to tell."""

    def run(self, guess: int) -> int | None:
        """The magnitude, or None when a comparison was not certain."""
        # Throughout v < tail(floor), and tail(ceiling) < v once there is a ceiling.
        floor, ceiling, candidate, step = 0, None, max(guess, 1), 1
        while ceiling is None or ceiling - floor > 1:
            inside = self._below(candidate)
            if inside is None:
                return None
            if inside:
                floor = candidate
                candidate = floor + step if ceiling is None else min(floor + step, (floor + ceiling + 1) // 2)
            else:
                ceiling = candidate
                candidate = max(ceiling - step, (floor + ceiling) // 2)
            step *= 2
        return floor

    def _below(self, magnitude: int) -> bool | None:
        """Whether v < tail(magnitude), for all v between the ends; None when not certain or not the same for all."""
        tail = self._law.tail(magnitude)
        if self._high < tail:
            return True
        if tail < self._low:
            return False
        # A ball wider than a quarter of the word may be what hides the answer; a smaller one lies on a cut point.
        self.straddles = bool(4 * tail.rad() < self._width)
        return None
