"""The certified draw: a uniform word of bits, inverted through the law's distribution function, proven at every step.

The word is the beginning of one uniform real number U; the draw is the law's quantile at U. The first bit tells the
half and so the sign; v, the distance of U from the nearer end of (0, 1), tells the magnitude m by tail(m+1) < v <
tail(m). While the bits known so far do not decide between two integers, more are taken; while a ball is too wide, its
precision doubles. The result is a function of U alone, non-decreasing, and never approximate. Source:
docs/mathematics.md, "Noise on a lattice".
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from parco.balls import arb, ball, precision
from parco.errors import InternalError
from parco.noise.bits import BitSource
from parco.noise.laws import Law
from parco.noise.uniform import WORD_BITS, Uniform

__all__ = ["draw", "draw_from", "integer_at", "magnitude_at"]

_PRECISION_MAX = 1 << 20


def draw(law: Law, bits: BitSource) -> int:
    """For every law and source of uniform bits, returns one integer of exactly that law, or raises InternalError.

    In lattice steps. Reads 64 bits, and 64 more each time they leave two integers possible.
    """
    return draw_from(law, bits.bits(WORD_BITS), bits)


def draw_from(law: Law, word: int, bits: BitSource) -> int:
    """The draw whose first 64 bits were taken from `bits` already; see `draw`."""
    uniform = Uniform(word, WORD_BITS)
    while True:
        # Mirroring swaps the ends: all words ending in ones meet 1, not 1 - 2^-size.
        positive = bool(uniform.value >> (uniform.size - 1))
        magnitude = _magnitude(law, *_ends(uniform.mirrored() if positive else uniform))
        if magnitude is not None:
            return magnitude if positive else -magnitude
        uniform = uniform.longer(bits)


def magnitude_at(law: Law, tail: Fraction) -> int:
    """For every law and 0 < tail < 1/2, returns the m >= 0 with tail(m+1) < tail < tail(m), or raises InternalError.

    tail(0) counts as infinite. A tie would never be decided and end in InternalError. For geometric and Laplace noise
    there is none (Lindemann: e^(-1/b) is transcendental, and a tie would make it algebraic); for Gaussian noise none is
    known.
    """
    magnitude = _magnitude(law, tail, tail)
    if magnitude is None:
        raise InternalError("a tail is equal to a rational number")
    return magnitude


def integer_at(tail: Callable[[int], arb], uniform: Uniform, *, guess: int) -> int | None:
    """For every falling `tail`, returns the one n with tail(n+1) < v < tail(n), whatever v `uniform` leaves, or None.

    `tail` falls from 1 to 0 and is called at any precision. None: a cut point lies between the two ends.
    """
    return _searched(tail, *_ends(uniform), guess=guess, floor=None)


def _ends(uniform: Uniform) -> tuple[Fraction, Fraction]:
    return Fraction(uniform.value, 1 << uniform.size), Fraction(uniform.value + 1, 1 << uniform.size)


def _magnitude(law: Law, low: Fraction, high: Fraction) -> int | None:
    """The one magnitude of every v in [low, high], or None when a cut point lies between them."""
    return _searched(law.tail, low, high, guess=max(law.guess(float(low)), 1), floor=0)


def _searched(
    tail: Callable[[int], arb], low: Fraction, high: Fraction, *, guess: int, floor: int | None
) -> int | None:
    bits = 64 + high.denominator.bit_length()
    while bits <= _PRECISION_MAX:
        with precision(bits):
            search = _Search(tail, ball(low), ball(high), width=ball(high - low))
            found = search.run(guess, floor)
        if found is not None or search.straddles:
            return found
        bits *= 2
    raise InternalError("a draw could not be decided")


class _Search:
    """One search at one precision: gallops from the guess, then halves. Every step is certain in balls or ends it."""

    def __init__(self, tail: Callable[[int], arb], low: arb, high: arb, *, width: arb) -> None:
        self._tail, self._low, self._high, self._width = tail, low, high, width
        self.straddles = False
        """Set when the search ended because a cut point lies between the two ends, or too near to tell."""

    def run(self, guess: int, floor: int | None) -> int | None:
        """The n with tail(n+1) < v < tail(n), or None when a comparison was not certain; `floor` is at most that n."""
        # Throughout v < tail(floor) once there is a floor, and tail(ceiling) < v once there is a ceiling.
        ceiling, candidate, step = None, guess, 1
        while floor is None or ceiling is None or ceiling - floor > 1:
            inside = self._below(candidate)
            if inside is None:
                return None
            if inside:
                floor = candidate
            else:
                ceiling = candidate
            candidate = _between(floor, ceiling, step, rising=inside)
            step *= 2
        return floor

    def _below(self, candidate: int) -> bool | None:
        """Whether v < tail(candidate), for all v between the ends; None when not certain or not the same for all."""
        tail = self._tail(candidate)
        if self._high < tail:
            return True
        if tail < self._low:
            return False
        # A ball wider than a quarter of the word may be what hides the answer; a smaller one lies on a cut point.
        self.straddles = bool(4 * tail.rad() < self._width)
        return None


def _between(floor: int | None, ceiling: int | None, step: int, *, rising: bool) -> int:
    """The next candidate: a step on from the end that moved last, but never beyond the middle of the two."""
    if floor is None or ceiling is None:
        return floor + step if floor is not None else (ceiling or 0) - step
    return min(floor + step, (floor + ceiling + 1) // 2) if rising else max(ceiling - step, (floor + ceiling) // 2)
