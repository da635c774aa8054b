"""Tails of the noise laws by mpmath, from their densities and probabilities rather than from the code's formulas."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mpmath import exp, inf, mp, mpf, ncdf, nsum

from parco.noise.laws import Law, RoundedGaussian, RoundedLaplace, TwoSidedGeometric

KINDS: list[type[Law]] = [RoundedGaussian, RoundedLaplace, TwoSidedGeometric]


def number(value: Fraction) -> Any:
    """The fraction at mpmath's current precision."""
    return mpf(value.numerator) / value.denominator


def tail(kind: type[Law], scale: Fraction, magnitude: int) -> Any:
    """P(N >= magnitude): the distribution function at the half-integer, or the sum of probabilities."""
    if kind is RoundedGaussian:
        return ncdf(-(mpf(magnitude) - mpf(1) / 2) / number(scale))
    if kind is RoundedLaplace:
        return exp(-(mpf(magnitude) - mpf(1) / 2) / number(scale)) / 2
    ratio = exp(-1 / number(scale))
    first = (1 - ratio) / (1 + ratio) * ratio**magnitude
    return first / (1 - ratio)


def summed_tail(scale: Fraction, magnitude: int) -> Any:
    """The geometric tail added up term by term; checks the closed sum above."""
    ratio = exp(-1 / number(scale))
    return nsum(lambda k: (1 - ratio) / (1 + ratio) * ratio**k, [magnitude, inf])


def cuts(kind: type[Law], scale: Fraction, *, digits: int = 60) -> list[tuple[int, Fraction]]:
    """(k, P(N <= k)) for all k until less than 2^-80 is left on either side."""
    with mp.workdps(digits):
        tails: list[Fraction] = []
        magnitude = 1
        while not tails or tails[-1] > Fraction(1, 2**80):
            tails.append(exact(tail(kind, scale, magnitude)))
            magnitude += 1
        below = [(-m, t) for m, t in reversed(list(enumerate(tails, start=1)))]
        above = [(m - 1, 1 - t) for m, t in enumerate(tails, start=1)]
    return below + above


def exact(value: Any) -> Fraction:
    """The exact rational of an mpf."""
    sign, mantissa, exponent, _ = value._mpf_
    size = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -size if sign else size
