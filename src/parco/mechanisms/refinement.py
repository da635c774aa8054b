"""Refinement: a released answer made sharper for the difference in cost, by one more exact draw a cell.

Of the same statistic only: the same data, bounds and lattice. Source: docs/mathematics.md, "Refinement by Gaussian
draws" and "Refinement of geometric noise".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from parco.errors import RequestError
from parco.measure import Measure, units_ceil
from parco.mechanisms.mechanism import Gaussian, TwoSidedGeometric
from parco.noise import refine
from parco.noise.bits import BitSource
from parco.privacy import gaussian
from parco.privacy.sensitivity import Sensitivity

__all__ = ["GaussianPath", "GeometricRefinement"]


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
