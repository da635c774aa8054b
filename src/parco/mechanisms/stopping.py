"""Where a ladder stopped that was reserved whole: the law of its answer, and what it costs.

Its draws lie on a lattice far below the one that is published, so that all their roundings together move the estimate
by next to nothing, whatever draws there were. Source: docs/mathematics.md, "Settling less than was reserved" and
"Vectors of different precisions".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from parco.errors import RequestError
from parco.measure import Measure, units_ceil
from parco.mechanisms.mechanism import Gaussian, Mechanism, TwoSidedGeometric
from parco.mechanisms.refinement import reach_steps
from parco.privacy import gaussian
from parco.privacy.sensitivity import Sensitivity

__all__ = ["FINER", "StoppedGaussian", "root_lower", "units_apart"]

FINER = 64
"""Steps of the draws' lattice in one of the lattice that is published."""

_DIGITS = 16


@dataclass(frozen=True)
class StoppedGaussian(Mechanism):
    """For every scale and lattice, a Gaussian estimate of variance at least scale^2, by less than one part in 10^14.

    Of one draw or many on lattice/64, weighed by their precisions; published is the exact estimate, rounded to
    `lattice`, halves upwards.
    """

    kind = "gaussian"

    @property
    def variance(self) -> Fraction:
        """At least that of the estimate: the scale was rounded down."""
        return (self.scale * (1 + Fraction(1, 10**14))) ** 2

    @property
    def slack(self) -> Fraction:
        """How far the rounding of all draws to their lattice can move the estimate, whose weights add up to 1."""
        return self.lattice / (2 * FINER)

    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """What all draws together are charged: as one draw of this scale. RequestError for the measure pure."""
        return Gaussian(self.scale, self.lattice).cost_units(sensitivity, measure)

    def half_width(self, confidence: Fraction) -> Fraction:
        """A half-width, in the statistic's units, that covers a cell's noise with at least this probability.

        0 < confidence < 1.
        """
        steps = reach_steps(self.variance, slack=self.slack, lattice=self.lattice, confidence=confidence)
        return steps * self.lattice


def root_lower(square: Fraction) -> Fraction:
    """The largest decimal of seventeen significant digits or so whose square is at most `square` > 0; integers only.

    One digit more than a scale has that was rounded up: where that one's square is no larger, neither is the root.
    """
    magnitude = math.floor((math.log10(square.numerator) - math.log10(square.denominator)) / 2)
    unit = Fraction(10) ** (magnitude - _DIGITS)
    return unit * math.isqrt(math.floor(square / unit**2))


def units_apart(law: Mechanism, scales: Sequence[Fraction], sensitivity: Sensitivity, measure: Measure) -> int:
    """What cells of these scales are charged, 10^-15 of the measure, rounded up; without scales, all of them at `law`.

    A unit is in at most K = L1^2/L2^2 of them and moves each by at most B = L2^2/L1: the sum of the K largest costs of
    single cells. RequestError where that is no whole number, and where the noise has no cost in the measure.
    """
    if isinstance(law, TwoSidedGeometric) and measure != Measure.PURE:
        raise RequestError("geometric noise is refined on pure accounts alone: elsewhere a ladder gives nothing back")
    if not scales:
        return law.cost_units(sensitivity, measure)
    cells, each = sensitivity.l1**2 / sensitivity.l2_squared, sensitivity.l2_squared / sensitivity.l1
    if cells.denominator != 1:
        raise RequestError("cells stop apart where a unit moves each of them by as much at most: refine them together")
    found = sorted((_loss(law, each / scale, measure) for scale in scales), reverse=True)
    return units_ceil(sum(found[: int(cells)], Fraction(0)))


def _loss(law: Mechanism, ratio: Fraction, measure: Measure) -> Fraction:
    """What one cell costs that moves by so many scales."""
    if isinstance(law, TwoSidedGeometric):
        return ratio
    return gaussian.cost_factor(measure) * ratio**2
