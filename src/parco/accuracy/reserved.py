"""A run that is reserved whole: one request holds the most it may cost, is read once, and settled at what it needed.

The steps are drawn in this process, from the exact cells that were read, each at a cost that is fixed before it; a
ladder stops by what it released, and by nothing else. So what is settled is what the steps that ran cost (docs/
mathematics.md, "Settling less than was reserved"), and the account holds the rest again. Until then nothing else can
spend it, and a crash forfeits all of it: what a run released is on the ledger only once it has stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from types import TracebackType
from typing import Self

from parco.accuracy.cells import Alike, Cells, GaussianCells, GeometricCells, Reach, cells_of
from parco.accuracy.measurement import Key, Released
from parco.accuracy.noises import GaussianNoise, noise_of
from parco.errors import InternalError, RequestError
from parco.measure import Cost, Measure, units_floor
from parco.mechanisms.mechanism import Mechanism, TwoSidedGeometric
from parco.mechanisms.stopping import FINER, StoppedGaussian, root_lower, units_apart
from parco.privacy import gaussian
from parco.queries.plan import Plan
from parco.queries.sensitivity import reach
from parco.session.ask import Ask
from parco.session.release import Answer, Release
from parco.session.reserving import Reservation, Reserving
from parco.session.session import Session

__all__ = ["ReservedMeasurement", "as_stored"]


class ReservedMeasurement:
    """For every question with noise on its cells, that question reserved whole at `most` (10^-15), or RequestError.

    A context manager. Nothing is charged before the first step; a stored answer to the question is what the run begins
    with, for nothing, and the only step it then has. Where the block ends by an error of the caller's, such as one of a
    stopping rule, what was released by then is settled; where a draw fails, the reservation is forfeited. each: cells
    are refined apart, which costs the sum of the K largest.
    """

    def __init__(self, session: Session, ask: Ask, *, most: int, each: bool = False) -> None:
        self._reserving = Reserving(session, ask, units=most)
        plan = self._reserving.plan
        self.measure: Measure = session.contract.budget.measure
        self.labels: tuple[Key, ...] = tuple(plan.query.labels())
        self.accounts: tuple[str, ...] = tuple(plan.query.accounts)
        self.most = _top(plan, self.measure)
        """The largest cost at which no cell is sharper than what is reserved."""
        self.reserved: Cost = plan.cost
        """What is set aside: the most that all of it may be charged."""
        # Draws lie far below the lattice that is published: all their roundings together do next to nothing.
        self._cells: Cells = cells_of(
            self.measure,
            _reach(plan) if each else Alike(plan.sensitivity),
            step=plan.query.step,
            count=plan.query.published,
            lattice=plan.mechanism.lattice / FINER,
        )
        self._drawn: list[list[tuple[Fraction, int]]] = [[] for _ in self.labels]
        self._reservation: Reservation | None = None
        self._release: Release[Answer] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Settles what was released, if nobody did; a reservation that released nothing is forfeited."""
        if self._reservation is not None and not self._reservation.ended:
            if all(self._drawn):
                self.settled()
            else:
                self._reservation.forfeit()

    @property
    def charged(self) -> int:
        """What each account of the question will be charged for what was released."""
        if not all(self._drawn):
            return 0
        law, scales = self._reached
        return units_apart(law, scales, self._reserving.plan.sensitivity, self.measure)

    def refine(self, costs: Sequence[int]) -> Released:
        """Draws what is missing for each cell; the first time it reserves, or finds a stored answer."""
        if self._release is not None:
            raise RequestError(
                f"release {self._release.receipt.release} answers this question already, and is not as sharp as asked:"
                " a run that is reserved whole begins anew. Pay in full for another with fresh=True (--fresh), or leave"
                " out reserve, which sharpens for the difference what can be sharpened"
            )
        if self._reservation is None:
            begun = self._reserving.begin()
            if not isinstance(begun, Reservation):
                self._release = begun
                return as_stored(begun)
            self._reservation = begun
        self._draw(costs, self._reservation)
        return self._released()

    def settled(self) -> Release[Answer]:
        """The answer at the stop, durable, charged what the law costs that was reached."""
        if self._release is None:
            if self._reservation is None:
                raise RequestError("nothing was released yet")
            law, scales = self._reached
            laws = sorted({scale for path in self._drawn for scale, _ in path}, reverse=True)
            place = {scale: number for number, scale in enumerate(laws)}
            body = {
                "cells": self._steps(),
                "draws": [[[place[scale], steps] for scale, steps in path] for path in self._drawn],
                "laws": [[scale.numerator, scale.denominator] for scale in laws],
            }
            self._release = self._reservation.stop(law, scales, body)
        return self._release

    def _draw(self, costs: Sequence[int], reservation: Reservation) -> None:
        planned = self._cells.planned(costs)
        if planned.total > self.most:
            raise InternalError("a step costs more than was reserved")
        rises = [new > old for new, old in zip(costs, self._cells.standing, strict=True)]
        cells = reservation.draw(planned.draw)
        found = zip(self._drawn, _last_draws(cells), rises, strict=True)
        drawn = [[*path, last] if rose else path for path, last, rose in found]
        # Both or, at an interrupt, neither: the answer holds the draws that its cells are made of.
        self._cells, self._drawn = cells, drawn

    def _released(self) -> Released:
        """On the lattice that will be stored, so that what a rule sees is what is published."""
        lattice = self._reserving.plan.mechanism.lattice
        found = self._cells.released
        estimates = tuple(steps * lattice for steps in self._steps())
        if not isinstance(self._cells, GaussianCells):
            return Released(estimates, found.noises)
        rounding = lattice / (2 * FINER) + lattice / 2
        variances = [_variance(self._cells, place) for place in range(len(estimates))]
        return Released(estimates, tuple(GaussianNoise(variance, rounding) for variance in variances))

    def _steps(self) -> list[int]:
        lattice = self._reserving.plan.mechanism.lattice
        return [math.floor(one / lattice + Fraction(1, 2)) for one in self._cells.released.estimates]

    @property
    def _reached(self) -> tuple[Mechanism, tuple[Fraction, ...]]:
        """The law of the cell with most noise, and of each cell its scale where they are not all alike."""
        scales = _scales(self._cells)
        apart = scales if len(set(scales)) > 1 else ()
        family = StoppedGaussian if isinstance(self._cells, GaussianCells) else TwoSidedGeometric
        return family(max(scales), self._reserving.plan.mechanism.lattice), apart


def _top(plan: Plan, measure: Measure) -> int:
    """What is reserved is its law's cost, rounded up: a ladder stays within the law itself."""
    if measure == Measure.PURE:
        return units_floor(plan.sensitivity.l1 / plan.mechanism.scale)
    return units_floor(gaussian.cost_factor(measure) * gaussian.mu_squared(plan.sensitivity, plan.mechanism.scale))


def _reach(plan: Plan) -> Reach:
    found = reach(plan.query)
    if found is None:
        raise RequestError(
            "where one unit replaces another and amounts have both signs, keys are refined together: leave out"
            ' keys="each" (--each)'
        )
    return Reach(*found)


def _scales(cells: Cells) -> tuple[Fraction, ...]:
    """Of each cell, rounded down: what it is charged covers the variance that it has."""
    if isinstance(cells, GeometricCells):
        return tuple(cells.mechanism(cost).scale for cost in cells.standing)
    if not isinstance(cells, GaussianCells):
        raise AssertionError("cells of a kind that no ladder has")
    variances = [_variance(cells, place) for place in range(len(cells.paths))]
    roots = {variance: root_lower(variance) for variance in set(variances)}
    return tuple(roots[variance] for variance in variances)


def _variance(cells: GaussianCells, place: int) -> Fraction:
    path = cells.paths[place]
    if path is None:
        raise InternalError("a cell was not drawn yet")
    return path.variance


def _last_draws(cells: Cells) -> list[tuple[Fraction, int]]:
    """Scale and outcome of the last draw of each cell, in the lattice steps of that draw."""
    if isinstance(cells, GeometricCells):
        pairs = zip(cells.standing, cells.noisy, strict=True)
        return [(cells.mechanism(cost).scale, noisy) for cost, noisy in pairs if noisy is not None]
    if not isinstance(cells, GaussianCells):
        raise AssertionError("cells of a kind that no ladder has")
    paths = zip(cells.paths, cells.steps, strict=True)
    return [(path.draws[-1].scale, steps[-1]) for path, steps in paths if path is not None]


def as_stored(release: Release[Answer]) -> Released:
    """What the ledger holds, with the noise of each cell."""
    receipt, estimates = release.receipt, tuple(row.value for row in release.value)
    law = receipt.mechanism
    scales = receipt.scales or (law.scale,) * len(estimates)
    noises = {scale: noise_of(law if scale == law.scale else type(law)(scale, law.lattice)) for scale in set(scales)}
    return Released(estimates, tuple(noises[scale] for scale in scales))
