"""What is known of the noise in an estimate, and half-widths that cover it; rounded up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from parco.balls import ball, precision, upper
from parco.errors import RequestError
from parco.measure import significant_text
from parco.mechanisms.mechanism import Additive, Gaussian, Mechanism, TwoSidedGeometric
from parco.mechanisms.refinement import GaussianPath, RefinedGaussian
from parco.mechanisms.stopping import StoppedGaussian

__all__ = ["GaussianNoise", "LatticeNoise", "noise_of", "rounded_up_at"]

_BITS, _DIGITS = 128, 12


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise of this `variance` > 0 plus something of size at most `rounding` >= 0, whatever the normal noise is.

    A precision-weighted mean of rounded draws is the same mean of the ideal ones plus the same mean of what rounding
    did, each at most half a lattice step. Source: docs/mathematics.md, "Intervals at a stop".
    """

    variance: Fraction
    rounding: Fraction

    @classmethod
    def of(cls, path: GaussianPath) -> GaussianNoise:
        """The noise in a path's estimate."""
        steps = sum((draw.lattice / draw.scale**2 for draw in path.draws), Fraction(0))
        return cls(path.variance, path.variance * steps / 2)

    def half_width(self, confidence: Fraction) -> Fraction:
        """z sqrt(variance) + rounding, z the normal quantile at (1 + confidence)/2; rounded up to twelve digits."""
        if not 0 < confidence < 1:
            raise RequestError("a confidence lies strictly between 0 and 1")
        return _half_width(self.variance, self.rounding, confidence)


@dataclass(frozen=True)
class LatticeNoise:
    """Noise of one mechanism: the whole law is known, and its quantiles are exact."""

    mechanism: Additive

    def half_width(self, confidence: Fraction) -> Fraction:
        """The least half-width that covers it."""
        return _exact_half_width(self.mechanism, confidence)


def noise_of(mechanism: Mechanism) -> GaussianNoise | LatticeNoise:
    """What is known of the noise in an answer that is rounded to its lattice."""
    match mechanism:
        case RefinedGaussian():
            return GaussianNoise(mechanism.path.variance, mechanism.slack + mechanism.lattice / 2)
        case StoppedGaussian():
            return GaussianNoise(mechanism.variance, mechanism.slack + mechanism.lattice / 2)
        case Gaussian():
            return GaussianNoise(mechanism.scale**2, mechanism.lattice / 2)
        case TwoSidedGeometric():
            return LatticeNoise(mechanism)
    raise AssertionError("an answer whose cells carry no noise")


def rounded_up_at(variance: Fraction, half_square: Fraction, rounding: Fraction) -> Fraction:
    """For every variance > 0 and half_square = z^2/2 > 0, z sqrt(variance) + rounding, rounded up to twelve digits."""
    with precision(_BITS):
        width = upper(ball(2 * half_square * variance).sqrt() + ball(rounding))
    return Fraction(significant_text(width, _DIGITS, up=True))


# Cells of one measurement mostly stand at one precision.
@lru_cache(maxsize=4096)
def _half_width(variance: Fraction, rounding: Fraction, confidence: Fraction) -> Fraction:
    return rounded_up_at(variance, _half_square(confidence), rounding)


@lru_cache(maxsize=1024)
def _half_square(confidence: Fraction) -> Fraction:
    """z^2/2, rounded up: P(|Z| <= z) >= confidence for a standard normal Z."""
    with precision(_BITS):
        return upper(ball(1 - confidence).erfcinv() ** 2)


@lru_cache(maxsize=4096)
def _exact_half_width(mechanism: Additive, confidence: Fraction) -> Fraction:
    return mechanism.half_width(confidence)
