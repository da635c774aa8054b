"""Laws of integer noise, symmetric about 0, as their tails in ball arithmetic.

Scales are positive rationals in lattice steps. A law knows its tail exactly and guesses its quantile cheaply; a guess
decides nothing, `draw.py` proves it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Protocol

from parco.balls import arb, ball
from parco.errors import InternalError, RequestError
from parco.noise.curves import LOGARITHM, NORMAL, Curve

__all__ = ["Law", "RoundedGaussian", "RoundedLaplace", "TwoSidedGeometric"]

# Below this a guess no longer follows the tail: doubles end near 2^-1074.
_GUESS_TAIL_MIN = 2.0**-1000
_ITERATIONS_MAX = 10_000


class Law(Hashable, Protocol):
    """A symmetric law on the integers: P(N >= m) = P(N <= -m) = tail(m) for every m >= 1."""

    curve: ClassVar[Curve]
    """The m with tail(m+1) < v < tail(m), tail(0) counting as infinite, is floor(scale * curve(v) + offset())."""

    def __init__(self, scale: Fraction) -> None: ...

    @property
    def scale(self) -> Fraction:
        """Scale in lattice steps, positive."""
        ...

    def tail(self, magnitude: int) -> arb:
        """P(N >= magnitude), magnitude >= 1, in a ball of the current precision."""
        ...

    def offset(self) -> arb:
        """The offset of `curve` above, in a ball of the current precision; at least 0."""
        ...

    def guess(self, tail: float) -> int:
        """About the m with tail(m+1) < tail < tail(m); never fails for 0 <= tail <= 1/2."""
        ...

    @classmethod
    def scale_limit(cls, magnitude: int, tail: Fraction) -> arb:
        """The scale at which P(N >= magnitude) = tail, 0 < tail < 1/2; its ball's lower end is at most that scale."""
        ...


@dataclass(frozen=True)
class RoundedGaussian:
    """For every scale s > 0 in lattice steps, the law of round(s Z), Z standard normal, or RequestError.

    tail(m) = P(s Z >= m - 1/2) = erfc((m - 1/2)/(s sqrt(2)))/2. Source: docs/mathematics.md, "Noise on a lattice".
    """

    scale: Fraction

    curve: ClassVar[Curve] = NORMAL

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def tail(self, magnitude: int) -> arb:
        """P(N >= magnitude), magnitude >= 1, in a ball of the current precision."""
        half_steps = 2 * magnitude - 1
        return (ball(half_steps / (2 * self.scale)) / arb(2).sqrt()).erfc() / 2

    def offset(self) -> arb:
        """1/2: v < tail(m) if and only if s z(v) > m - 1/2."""
        return arb(1) / 2

    def guess(self, tail: float) -> int:
        """About the m with tail(m+1) < tail < tail(m); never fails for 0 <= tail <= 1/2."""
        normal = -NormalDist().inv_cdf(min(max(tail, _GUESS_TAIL_MIN), 0.5))
        return max(0, math.floor(_as_float(self.scale) * normal + 0.5))

    @classmethod
    def scale_limit(cls, magnitude: int, tail: Fraction) -> arb:
        """The scale at which P(N >= magnitude) = tail, 0 < tail < 1/2, in a ball."""
        return ball(Fraction(2 * magnitude - 1, 2)) / (arb(2).sqrt() * ball(2 * tail).erfcinv())


@dataclass(frozen=True)
class RoundedLaplace:
    """For every scale b > 0 in lattice steps, the law of round(b L), L standard Laplace, or RequestError.

    tail(m) = P(b L >= m - 1/2) = e^(-(m - 1/2)/b)/2. Source: docs/mathematics.md, "Noise on a lattice".
    """

    scale: Fraction

    curve: ClassVar[Curve] = LOGARITHM

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def tail(self, magnitude: int) -> arb:
        """P(N >= magnitude), magnitude >= 1, in a ball of the current precision."""
        half_steps = 2 * magnitude - 1
        return ball(-half_steps / (2 * self.scale)).exp() / 2

    def offset(self) -> arb:
        """1/2: v < tail(m) if and only if -b log(2 v) > m - 1/2."""
        return arb(1) / 2

    def guess(self, tail: float) -> int:
        """About the m with tail(m+1) < tail < tail(m); never fails for 0 <= tail <= 1/2."""
        return max(0, math.floor(-_as_float(self.scale) * math.log(2 * min(max(tail, _GUESS_TAIL_MIN), 0.5)) + 0.5))

    @classmethod
    def scale_limit(cls, magnitude: int, tail: Fraction) -> arb:
        """The scale at which P(N >= magnitude) = tail, 0 < tail < 1/2, in a ball."""
        return ball(Fraction(2 * magnitude - 1, 2)) / -ball(2 * tail).log()


@dataclass(frozen=True)
class TwoSidedGeometric:
    """For every scale b > 0 in lattice steps, P(k) = (1-a)/(1+a) a^|k| with a = e^(-1/b), or RequestError.

    tail(m) = a^m/(1+a). Source: docs/mathematics.md, "Two-sided geometric".
    """

    scale: Fraction

    curve: ClassVar[Curve] = LOGARITHM

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def tail(self, magnitude: int) -> arb:
        """P(N >= magnitude), magnitude >= 1, in a ball of the current precision."""
        return ball(-magnitude / self.scale).exp() / (1 + ball(-1 / self.scale).exp())

    def offset(self) -> arb:
        """-b log((1 + a)/2): v < tail(m) if and only if -b log(2 v) > m + b log((1 + a)/2)."""
        return -ball(self.scale) * ((1 + ball(-1 / self.scale).exp()) / 2).log()

    def guess(self, tail: float) -> int:
        """About the m with tail(m+1) < tail < tail(m); never fails for 0 <= tail <= 1/2."""
        scale = _as_float(self.scale)
        log_tail = math.log(min(max(tail, _GUESS_TAIL_MIN), 0.5)) + math.log1p(math.exp(-1 / scale))
        return max(0, math.floor(-scale * log_tail))

    @classmethod
    def scale_limit(cls, magnitude: int, tail: Fraction) -> arb:
        """The scale at which P(N >= magnitude) = tail, 0 < tail < 1/2, in a ball; below it by less than 2^-60 of it.

        x = 1/b solves m x = -log(tail) - log(1 + e^-x). The right side grows with x at a rate below 1/2, so that from
        x = -log(tail)/m, which is above the root, the iteration falls towards the root without passing it: every
        iterate is on the safe side, and the last step is longer than what is left.
        """
        constant = -ball(tail).log()
        inverse = constant / magnitude
        for _ in range(_ITERATIONS_MAX):
            following = (constant - (-inverse).exp().log1p()) / magnitude
            if inverse - following < following / 2**60:
                return 1 / following
            inverse = following.mid()
        raise InternalError("the scale of a two-sided geometric law was not found")


def _check_scale(scale: Fraction) -> None:
    if scale <= 0:
        raise RequestError("the scale of noise is a positive number")


def _as_float(scale: Fraction) -> float:
    """The scale for a guess, kept where doubles neither overflow nor vanish."""
    return float(min(max(scale, Fraction(1, 10**300)), Fraction(10**300)))
