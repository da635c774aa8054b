"""Cells at different precisions: each refined for itself, charged together.

A unit is in at most K cells and moves each by at most B. Whatever cells were refined, in whatever order, by what was
released: all of it costs the sum of the K largest costs of single cells. Source: docs/mathematics.md, "Vectors of
different precisions".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from parco.accuracy.measurement import Released
from parco.accuracy.noises import GaussianNoise, LatticeNoise
from parco.errors import InternalError, RequestError
from parco.measure import Measure, units_ceil
from parco.mechanisms import design
from parco.mechanisms.mechanism import Gaussian, TwoSidedGeometric
from parco.mechanisms.refinement import GaussianPath, GeometricRefinement
from parco.noise.bits import BitSource
from parco.privacy import gaussian
from parco.privacy.sensitivity import Sensitivity

__all__ = ["Alike", "Cells", "GaussianCells", "GeometricCells", "Reach", "cells_of", "largest_sum"]

_FINER = 8


@dataclass(frozen=True)
class Reach:
    """A unit is in at most `cells` >= 1 cells, and moves each of them by at most `each` > 0, in its units."""

    cells: int
    each: Fraction

    def __post_init__(self) -> None:
        if self.cells < 1 or self.each <= 0:
            raise RequestError("a unit moves one cell or more, each by a positive amount")

    @property
    def sensitivity(self) -> Sensitivity:
        """L1 = K B, L2^2 = K B^2."""
        return Sensitivity(self.cells * self.each, self.cells * self.each**2)

    def squared(self, precisions: Sequence[Fraction]) -> Fraction:
        """The largest sum of d_j^2/t_j; `precisions` are the 1/t_j of all cells."""
        return self.each**2 * largest_sum(precisions, self.cells)

    def absolute(self, rates: Sequence[Fraction]) -> Fraction:
        """The largest sum of d_j/b_j; `rates` are the 1/b_j of all cells."""
        return self.each * largest_sum(rates, self.cells)


@dataclass(frozen=True)
class Alike:
    """A unit moves all cells together within `sensitivity`: of cells that stand apart, the sharpest decides for all."""

    sensitivity: Sensitivity

    @property
    def each(self) -> Fraction:
        """Of each cell no more than this is known."""
        return self.sensitivity.l1

    def squared(self, precisions: Sequence[Fraction]) -> Fraction:
        """At least the sum of d_j^2/t_j."""
        return self.sensitivity.l2_squared * max(precisions)

    def absolute(self, rates: Sequence[Fraction]) -> Fraction:
        """At least the sum of d_j/b_j."""
        return self.sensitivity.l1 * max(rates)


def largest_sum(values: Sequence[Fraction], count: int) -> Fraction:
    """The sum of the `count` largest."""
    return sum(sorted(values, reverse=True)[:count], Fraction(0))


@dataclass(frozen=True)
class Cells(ABC):
    """Cells of one statistic on the lattice `step`, as far as they were released; no exact value is in here.

    `standing`: the cost at which each cell stands, 10^-15 of the measure: what all cells would cost at its precision.
    """

    measure: Measure
    reach: Reach | Alike
    step: Fraction
    standing: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise RequestError("a statistic's lattice step is a positive number")

    @property
    @abstractmethod
    def total(self) -> int:
        """What all that was released costs, 10^-15 of the measure, rounded up once; 0 before the first draw."""

    @property
    @abstractmethod
    def released(self) -> Released:
        """Estimates and noises; InternalError before the first draw of a cell."""

    @abstractmethod
    def planned(self, costs: Sequence[int]) -> Planned:
        """The draws that bring each cell to its cost, and the total then: before any of them is made."""

    def _rises(self, costs: Sequence[int]) -> list[int]:
        """The places of the cells that rise; InternalError for a cost that falls."""
        if len(costs) != len(self.standing) or any(new < old for new, old in zip(costs, self.standing, strict=True)):
            raise InternalError("a cell is refined to a higher cost than it stands at")
        return [place for place, cost in enumerate(costs) if cost > self.standing[place]]


class Planned(ABC):
    """A step whose cost is known and whose draws are not yet made."""

    @property
    @abstractmethod
    def total(self) -> int:
        """What all that will have been released costs, 10^-15 of the measure."""

    @abstractmethod
    def draw(self, values: Sequence[int], bits: BitSource) -> Cells:
        """The cells after it; `values` exact, in lattice steps, as many as there are cells."""


@dataclass(frozen=True)
class GaussianCells(Cells):
    """Gaussian paths: cell j at variance t_j costs the measure's factor times the sum of the K largest B^2/t_j."""

    paths: tuple[GaussianPath | None, ...] = ()
    steps: tuple[tuple[int, ...], ...] = ()
    """What each draw of each cell's path came to, in the draw's own lattice steps."""
    lattice: Fraction | None = None
    """That of all draws; by default each has one as fine as its noise asks for."""

    @property
    def total(self) -> int:
        """From the variances there are, which are those asked for but for the rounding of scales."""
        each = [Fraction(0) if path is None else 1 / path.variance for path in self.paths]
        return units_ceil(gaussian.cost_factor(self.measure) * self.reach.squared(each))

    @property
    def released(self) -> Released:
        """The precision-weighted means."""
        found = [(path, steps) for path, steps in zip(self.paths, self.steps, strict=True) if path is not None]
        if len(found) != len(self.paths):
            raise InternalError("a cell was not drawn yet")
        return Released(
            tuple(path.estimates([[one] for one in steps])[0] for path, steps in found),
            tuple(GaussianNoise.of(path) for path, _ in found),
        )

    def planned(self, costs: Sequence[int]) -> Planned:
        """One more draw for each cell that rises, of exactly the precision that is missing."""
        designed: dict[int, Gaussian] = {}
        paths = list(self.paths)
        rises = self._rises(costs)
        for place in rises:
            missing = costs[place] - self.standing[place]
            draw = designed[missing] = designed.get(missing) or self._draw(missing)
            path = paths[place]
            paths[place] = GaussianPath((draw,)) if path is None else path.refined(draw)
        return _GaussianStep(replace(self, standing=tuple(costs), paths=tuple(paths)), tuple(rises))

    def _draw(self, units: int) -> Gaussian:
        """Noise for this much, on a finer lattice than a release by itself has: rounding then adds next to nothing."""
        found = design.for_cost(self.measure, self.reach.sensitivity, step=self.step, units=units)
        return Gaussian(found.scale, self.lattice or found.lattice / _FINER)


@dataclass(frozen=True)
class _GaussianStep(Planned):
    """`after`, but for the draws of the cells in `rises`."""

    after: GaussianCells
    rises: tuple[int, ...]

    @property
    def total(self) -> int:
        """That of the cells afterwards."""
        return self.after.total

    def draw(self, values: Sequence[int], bits: BitSource) -> GaussianCells:
        """Cells of one mechanism are drawn as one block."""
        alike: dict[Gaussian, list[int]] = defaultdict(list)
        for place in self.rises:
            path = self.after.paths[place]
            if path is None:
                raise InternalError("a cell that rises has a draw")
            alike[path.draws[-1]].append(place)
        steps = list(self.after.steps)
        for mechanism, places in alike.items():
            finer = int(self.after.step / mechanism.lattice)
            noisy = mechanism.draw([values[place] * finer for place in places], bits)
            for place, found in zip(places, noisy, strict=True):
                steps[place] = (*steps[place], found)
        return replace(self.after, steps=tuple(steps))


@dataclass(frozen=True)
class GeometricCells(Cells):
    """Two-sided geometric noise in the measure pure: cell j at scale b_j costs the sum of the K largest B/b_j."""

    noisy: tuple[int | None, ...] = ()

    @property
    def total(self) -> int:
        """From the scales there are, which are exact."""
        each = [Fraction(0) if not cost else 1 / self.mechanism(cost).scale for cost in self.standing]
        return units_ceil(self.reach.absolute(each))

    @property
    def released(self) -> Released:
        """The last values, whose law is that of a single draw."""
        return Released(
            tuple(self.step * _drawn(steps) for steps in self.noisy),
            tuple(LatticeNoise(self.mechanism(cost)) for cost in self.standing),
        )

    def mechanism(self, cost: int) -> TwoSidedGeometric:
        """The noise of a cell that stands at this cost."""
        found = design.for_cost(Measure.PURE, self.reach.sensitivity, step=self.step, units=cost)
        return TwoSidedGeometric(found.scale, self.step)

    def planned(self, costs: Sequence[int]) -> Planned:
        """A finer value for each cell that rises, drawn given the one that was released."""
        self._rises(costs)
        return _GeometricStep(self, replace(self, standing=tuple(costs)))


@dataclass(frozen=True)
class _GeometricStep(Planned):
    before: GeometricCells
    after: GeometricCells

    @property
    def total(self) -> int:
        """That of the cells afterwards."""
        return self.after.total

    def draw(self, values: Sequence[int], bits: BitSource) -> GeometricCells:
        """Cells that rise from one cost to another are drawn as one block."""
        alike: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, (old, new) in enumerate(zip(self.before.standing, self.after.standing, strict=True)):
            if new > old:
                alike[old, new].append(place)
        noisy = list(self.before.noisy)
        for (old, new), places in alike.items():
            exact, fine = [values[place] for place in places], self.after.mechanism(new)
            if old:
                coarse = [_drawn(noisy[place]) for place in places]
                found = GeometricRefinement(self.before.mechanism(old), fine).draw(exact, coarse, bits)
            else:
                found = fine.draw(exact, bits)
            for place, steps in zip(places, found, strict=True):
                noisy[place] = steps
        return replace(self.after, noisy=tuple(noisy))


def cells_of(
    measure: Measure, reach: Reach | Alike, *, step: Fraction, count: int, lattice: Fraction | None = None
) -> Cells:
    """For every measure, `count` >= 1 cells of which nothing was released yet, of the noise that fits the measure.

    `lattice`: that of all Gaussian draws, a part of `step`.
    """
    if count < 1:
        raise RequestError("a statistic has one cell or more")
    standing = (0,) * count
    if measure == Measure.PURE:
        if (reach.each / step).denominator != 1:
            raise RequestError("what a unit adds is a whole number of lattice steps")
        return GeometricCells(measure, reach, step, standing, noisy=(None,) * count)
    return GaussianCells(measure, reach, step, standing, paths=(None,) * count, steps=((),) * count, lattice=lattice)


def _drawn(steps: int | None) -> int:
    if steps is None:
        raise InternalError("a cell was not drawn yet")
    return steps
