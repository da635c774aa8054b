"""Refinement: a released answer made sharper for the difference in cost, by one more exact draw a cell.

Of the same statistic only: the same data, bounds and lattice. Source: docs/mathematics.md, "Refinement by Gaussian
draws" and "Refinement of geometric noise".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from parco.balls import ball, precision, upper
from parco.errors import RequestError
from parco.measure import Measure, units_ceil
from parco.mechanisms.mechanism import Gaussian, Mechanism, TwoSidedGeometric, root_upper
from parco.noise import refine
from parco.noise.bits import BitSource
from parco.privacy import gaussian
from parco.privacy.sensitivity import Sensitivity

__all__ = ["GaussianPath", "GeometricRefinement", "RefinedGaussian", "reach_steps"]

_BITS, _STEPS_PER_SCALE = 128, 256


@dataclass(frozen=True)
class GaussianPath:
    """For every sequence of Gaussian draws of one statistic, one or more, the estimate that they make together.

    Each draw is exact noise around the exact statistic, on its own lattice; the estimate weighs them by 1/s^2, which is
    what a path read backwards would show. The next draw, and whether there is one, may be chosen by what was released.
    """

    draws: tuple[Gaussian, ...]

    def __post_init__(self) -> None:
        if not self.draws:
            raise RequestError("a path begins with a draw")

    @property
    def variance(self) -> Fraction:
        """t = 1/(sum of 1/s^2), without what rounding to the lattices adds: at most one part in 768 at s = 8 steps."""
        return 1 / sum((1 / draw.scale**2 for draw in self.draws), Fraction(0))

    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """What all draws together are charged, D^2/t in gdp: 10^-15, rounded up; RequestError for the measure pure.

        What one more draw costs is the difference: the account then holds what one draw of variance t would have cost.
        """
        return units_ceil(gaussian.cost_factor(measure) * sensitivity.l2_squared / self.variance)

    def refined(self, draw: Gaussian) -> GaussianPath:
        """The path with one more draw."""
        return GaussianPath((*self.draws, draw))

    def scale_to(self, variance: Fraction) -> Fraction:
        """The square of the scale that the next draw needs for this variance, or RequestError where it is no less."""
        if not 0 < variance < self.variance:
            raise RequestError("an answer is refined to a smaller variance")
        return 1 / (1 / variance - 1 / self.variance)

    def estimates(self, released: Sequence[Sequence[int]]) -> list[Fraction]:
        """Each cell's estimate, in the statistic's units; `released`: the cells of each draw, in its lattice steps."""
        if len(released) != len(self.draws) or len({len(cells) for cells in released}) != 1:
            raise RequestError("a path has the same cells in each of its draws")
        weights = [self.variance / draw.scale**2 * draw.lattice for draw in self.draws]
        return [
            sum((weight * steps for weight, steps in zip(weights, cells, strict=True)), Fraction(0))
            for cells in zip(*released, strict=True)
        ]


@dataclass(frozen=True)
class RefinedGaussian(Mechanism):
    """For every two or more Gaussian laws of falling scales, the answer that comes of the first, refined to each other.

    `before` are the laws of the answers that it refines, the first one first; `scale` is that of one draw that would
    cost what all cost together. The draw behind each step is exact noise of a scale that is rounded up, so that the
    estimate's variance is at least scale^2, by less than one part in 10^14; intervals follow the variance. What is
    published is the exact estimate, rounded to the `lattice`.
    """

    before: tuple[Gaussian, ...]

    kind = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        scales = [law.scale for law in (*self.before, self)]
        if len(scales) == 1 or any(finer >= coarser for coarser, finer in pairwise(scales)):
            raise RequestError("noise is refined to a smaller scale")

    @cached_property
    def path(self) -> GaussianPath:
        """The draws behind it: 1/s^2 of each is what the precision rises by, rounded down.

        Each is on a lattice so fine, a part of the one that is published, that its rounding adds next to nothing.
        """
        laws, draws = [*self.before, Gaussian(self.scale, self.lattice)], [self.before[0]]
        for old, new in pairwise(laws):
            scale, lattice = root_upper(1 / (1 / new.scale**2 - 1 / old.scale**2)), new.lattice
            while _STEPS_PER_SCALE * lattice > scale:
                lattice /= 2
            draws.append(Gaussian(scale, lattice))
        return GaussianPath(tuple(draws))

    @property
    def slack(self) -> Fraction:
        """How far the rounding of all draws to their lattices can move the estimate, in the statistic's units."""
        draws, variance = self.path.draws, self.path.variance
        return sum((variance / draw.scale**2 * draw.lattice / 2 for draw in draws), Fraction(0))

    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """What all draws together are charged: as one draw of this scale. RequestError for the measure pure."""
        return Gaussian(self.scale, self.lattice).cost_units(sensitivity, measure)

    def half_width(self, confidence: Fraction) -> Fraction:
        """A half-width, in the statistic's units, that covers a cell's noise with at least this probability.

        At most a lattice step and the slack above the least one: every draw's rounding is taken at its worst.
        0 < confidence < 1.
        """
        steps = reach_steps(self.path.variance, slack=self.slack, lattice=self.lattice, confidence=confidence)
        return steps * self.lattice

    def cells(self, drawn: Sequence[Sequence[int]]) -> list[int]:
        """Each cell's estimate in lattice steps, halves upwards; `drawn`: the cells of each draw, in its own steps."""
        draws, variance = self.path.draws, self.path.variance
        if len(drawn) != len(draws) or len({len(cells) for cells in drawn}) != 1:
            raise RequestError("a path has the same cells in each of its draws")
        weights = [variance / draw.scale**2 * draw.lattice / self.lattice for draw in draws]
        # One denominator for all cells: integers take a fraction of the time that Fractions do.
        bottom = math.lcm(*(weight.denominator for weight in weights))
        tops = [int(weight * bottom) for weight in weights]
        return [
            (2 * sum(top * steps for top, steps in zip(tops, cells, strict=True)) + bottom) // (2 * bottom)
            for cells in zip(*drawn, strict=True)
        ]


def reach_steps(variance: Fraction, *, slack: Fraction, lattice: Fraction, confidence: Fraction) -> int:
    """The least q for which what is rounded to the lattice lies within q steps of the exact, at this confidence.

    For Gaussian noise of this variance, and roundings that move it by at most `slack`; the exact value is on the
    lattice. Rounded to it, halves upwards, what misses by less than q + 1/2 steps misses by at most q.
    """
    with precision(_BITS):
        reach = upper((2 * ball(variance)).sqrt() * ball(1 - confidence).erfcinv())
    return max(0, math.ceil((reach + slack) / lattice - Fraction(1, 2)))


@dataclass(frozen=True)
class GeometricRefinement:
    """For every two scales coarse > fine on one lattice, draws the finer noise given the coarser that was released.

    Both answers together lose what the finer alone does: epsilon = D/b of the finer, also along a path whose scales are
    chosen on the way. A path does not fork: an answer is refined once, and what comes next refines the finest. Two
    refinements of one answer lose more than both are charged, and who draws has to see to it that there are none.
    """

    coarse: TwoSidedGeometric
    fine: TwoSidedGeometric

    def __post_init__(self) -> None:
        if self.coarse.lattice != self.fine.lattice or not self.fine.scale < self.coarse.scale:
            raise RequestError("noise is refined to a smaller scale on the same lattice")

    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """What is charged beside what the coarser answer was: the difference of both, in pure; else RequestError.

        In other measures costs are no function of the last value: there the finest scale is charged at the beginning.
        """
        if measure != Measure.PURE:
            raise RequestError("geometric noise is refined for the difference on pure accounts only")
        return self.fine.cost_units(sensitivity, measure) - self.coarse.cost_units(sensitivity, measure)

    def draw(self, values: Sequence[int], released: Sequence[int], bits: BitSource) -> list[int]:
        """The finer answers; `values` exact, `released` by the coarser noise, cell by cell, in lattice steps."""
        if len(values) != len(released):
            raise RequestError("a refinement has the cells of what was released")
        law = refine.Refinement(self.coarse.law.scale, self.fine.law.scale)
        return [exact + refine.refine(law, noisy - exact, bits) for exact, noisy in zip(values, released, strict=True)]
