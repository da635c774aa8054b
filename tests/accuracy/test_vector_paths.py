"""Vectors whose cells are refined apart: the definition by Monte Carlo, and their law beside a direct Brownian path.

Three cells, of which a unit moves two, each by 1. Every path refines the cells on its own: which of them, how far, and
when it stops are functions of what it has released. All paths are drawn at once, cell by cell, in doubles; the oracle
draws whole Brownian paths beforehand and reads them at the variances that the rule chooses on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from parco.accuracy.cells import GaussianCells, Reach, cells_of
from parco.measure import COST_UNIT, Measure
from parco.mechanisms.mechanism import Gaussian
from parco.mechanisms.stopping import units_apart
from parco.privacy.sensitivity import Sensitivity
from tests.noise.tapes import Stream

Array = NDArray[np.float64]
Draw = Callable[[int, Array, NDArray[np.intp]], Array]
"""For a step: estimates of all cells at these precisions, of these paths; shape (cells, paths)."""

CELLS, MOVED, PATHS, ERRORS = 3, 2, 10**6, 4
TRUTH = np.array([1.0, 2.0, 0.5])[:, None]
LEVELS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""The precisions at which a cell may stand: two cells at the last of them cost 1."""


@dataclass(frozen=True)
class Run:
    """Where paths stand: level and estimate of each cell, shape (cells, paths), and the loss added up, (paths,)."""

    levels: NDArray[np.intp]
    estimates: Array
    losses: Array
    stopped: NDArray[np.bool_]


def rises(run: Run) -> NDArray[np.bool_]:
    """Which cells a path refines next, by released values: those that do not look large, and one if all do."""
    scales = 1 / np.sqrt(np.take(LEVELS, run.levels))
    wanted = run.estimates < 1.2 * scales
    wanted[0] |= run.estimates[1] < run.estimates[2]
    return np.asarray(wanted & (run.levels < len(LEVELS) - 1) & ~run.stopped, bool)


def jumps(run: Run) -> NDArray[np.intp]:
    """By how many levels: two where the sum of all estimates is small."""
    return np.where(run.estimates.sum(axis=0) < 3.0, 2, 1)[None, :].repeat(CELLS, axis=0)


def climbed(rng: np.random.Generator, *, moved: Array, paths: int = PATHS) -> Run:
    """All paths to their stops; losses against the neighbour that differs by `moved`, shape (cells, 1)."""

    def drawn(precisions: Array) -> tuple[Array, Array]:
        """What single draws of these precisions show, and their losses; 0 where nothing is drawn."""
        scale = np.where(precisions > 0, 1 / np.sqrt(np.maximum(precisions, 1e-12)), 0.0)
        shown = TRUTH + scale * rng.standard_normal(precisions.shape)
        there = (shown - TRUTH + moved) ** 2 - (shown - TRUTH) ** 2
        return shown, precisions * there / 2

    first = np.full((CELLS, paths), LEVELS[0])
    shown, losses = drawn(first)
    run = Run(np.zeros((CELLS, paths), np.intp), shown, losses.sum(axis=0), np.zeros(paths, bool))
    while (up := rises(run)).any():
        levels = np.where(up, np.minimum(run.levels + jumps(run), len(LEVELS) - 1), run.levels)
        before, after = np.take(LEVELS, run.levels), np.take(LEVELS, levels)
        shown, losses = drawn(after - before)
        estimates = np.where(up, (before * run.estimates + (after - before) * shown) / after, run.estimates)
        # Stopped for good where no cell was refined.
        run = Run(levels, estimates, run.losses + losses.sum(axis=0), run.stopped | ~up.any(axis=0))
    return run


def histories(levels: NDArray[np.intp]) -> NDArray[np.intp]:
    """All levels that paths stand at, each as a row, without their order."""
    return np.array([np.unravel_index(code, (len(LEVELS),) * CELLS) for code in np.unique(_codes(levels))])


def _codes(levels: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.asarray(np.ravel_multi_index(tuple(np.sort(levels, axis=0)), (len(LEVELS),) * CELLS), np.intp)


def realised(levels: NDArray[np.intp], *, count: int = MOVED) -> Array:
    """The sum of the `count` largest precisions: what the package charges in gdp, by its own rule."""
    costs = np.zeros(len(LEVELS) ** CELLS)
    for found in histories(levels):
        scales = tuple(1 / Fraction(math.sqrt(LEVELS[level])) for level in found)
        law = Gaussian(max(scales), Fraction(1, 10))
        units = units_apart(law, scales, Sensitivity(Fraction(count), Fraction(count)), Measure.GDP)
        costs[_codes(found[:, None])] = float(units * COST_UNIT)
    return np.asarray(costs[_codes(levels)], float)


def functional(run: Run, order: float, cost: Array) -> tuple[float, float]:
    """Mean and standard error of e^((alpha-1)(L-bound))."""
    values = np.exp((order - 1) * (run.losses - order / 2 * cost))
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


WORST = np.array([1.0, -1.0, 0.0])[:, None]


@pytest.fixture(scope="module")
def worst() -> Run:
    """Against a unit in the first two cells, one up and one down."""
    return climbed(np.random.default_rng(1), moved=WORST)


@pytest.mark.parametrize("order", [1.5, 2.0, 3.0])
def test_the_sum_of_the_largest_is_a_bound_and_that_of_the_unit_itself_is_met(worst: Run, order: float) -> None:
    """The pair's own cost is the sum over its cells, with equality; the largest sum of any two can only be more."""
    assert len(histories(worst.levels)) > 10
    own = np.take(LEVELS, worst.levels[:MOVED]).sum(axis=0)
    mean, error = functional(worst, order, own)
    assert abs(mean - 1) < ERRORS * error < 0.06
    cost = realised(worst.levels)
    assert (cost >= own - 1e-12).all()
    assert cost.max() <= 1 + 1e-12
    mean, error = functional(worst, order, cost)
    assert mean - ERRORS * error < 1
    assert mean < 1


@pytest.mark.parametrize("order", [1.5, 2.0, 3.0])
def test_the_cost_of_one_cell_alone_is_caught(worst: Run, order: float) -> None:
    mean, error = functional(worst, order, realised(worst.levels, count=1))
    assert mean - ERRORS * error > 1


def test_a_unit_in_one_cell_loses_less() -> None:
    run = climbed(np.random.default_rng(3), moved=np.array([0.0, 0.5, 0.0])[:, None], paths=PATHS // 4)
    for order in (1.5, 2.0, 3.0):
        mean, error = functional(run, order, realised(run.levels))
        assert mean + ERRORS * error < 1


def brownian(rng: np.random.Generator, paths: int) -> Run:
    """Oracle: each cell a Brownian path of its own, drawn whole; the rule reads it at the variances it chooses."""
    variances = [1 / level for level in LEVELS]
    rising = [0.0, *sorted(variances)]
    steps = np.sqrt(np.diff(rising))[:, None, None] * rng.standard_normal((len(LEVELS), CELLS, paths))
    # From variance 0 upwards, read backwards: the finest level is the least variance.
    whole = np.cumsum(steps, axis=0)[::-1] + TRUTH
    run = Run(np.zeros((CELLS, paths), np.intp), whole[0], np.zeros(paths), np.zeros(paths, bool))
    while (up := rises(run)).any():
        levels = np.where(up, np.minimum(run.levels + jumps(run), len(LEVELS) - 1), run.levels)
        estimates = np.take_along_axis(whole, levels[None], axis=0)[0]
        run = replace(run, levels=levels, estimates=estimates, stopped=run.stopped | ~up.any(axis=0))
    return run


def test_where_vectors_stop_is_where_brownian_paths_would() -> None:
    """How many paths end at which levels, and there the sums and each of the cells."""
    count = 200_000
    mine = climbed(np.random.default_rng(5), moved=WORST, paths=count)
    oracle = brownian(np.random.default_rng(6), count)
    compared = 0
    for levels in np.array(list(np.ndindex((len(LEVELS),) * CELLS))):
        ours, theirs = ((one.levels == levels[:, None]).all(axis=0) for one in (mine, oracle))
        # Numbers of two multinomial laws: their difference has at most the variance of their sum.
        assert abs(int(ours.sum()) - int(theirs.sum())) < 5 * math.sqrt(ours.sum() + theirs.sum() + 1)
        if min(ours.sum(), theirs.sum()) > 2000:
            for weights in ((1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -1, 0)):
                pair = (np.array(weights) @ one.estimates[:, which] for one, which in ((mine, ours), (oracle, theirs)))
                assert ks_2samp(*pair).pvalue > 1e-6
            compared += 1
    assert compared >= 5


def test_the_package_draws_such_vectors() -> None:
    """Its own cells along one history, many times: means, variances and covariances of the path of each cell."""
    runs, bits = 3000, Stream("vectors")
    shown: list[list[list[float]]] = []
    for _ in range(runs):
        cells, told = cells_of(Measure.GDP, Reach(MOVED, Fraction(1)), step=Fraction(1), count=CELLS), []
        for costs in ([125, 125, 125], [500, 125, 250], [500, 1000, 250]):
            cells = cells.planned([cost * 10**12 for cost in costs]).draw([7, -2, 100], bits)
            told.append([float(one) for one in cells.released.estimates])
        shown.append(told)
    assert isinstance(cells, GaussianCells)
    variances = np.array([[16, 16, 16], [4, 16, 8], [4, 2, 8]], float)
    found = np.array(shown) - np.array([7, -2, 100])
    for cell in range(CELLS):
        for one in range(3):
            for other in range(one, 3):
                wanted = min(variances[one, cell], variances[other, cell])
                spread = math.sqrt((variances[one, cell] * variances[other, cell] + wanted**2) / runs)
                assert abs(float((found[:, one, cell] * found[:, other, cell]).mean()) - wanted) < 5 * spread
        for another in range(cell):
            spread = math.sqrt(variances[2, cell] * variances[2, another] / runs)
            assert abs(float((found[:, 2, cell] * found[:, 2, another]).mean())) < 5 * spread
