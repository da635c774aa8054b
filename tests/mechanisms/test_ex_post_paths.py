"""The definition of ex-post privacy on refined paths, by Monte Carlo, with what must be caught; and the paths' law.

A million paths are drawn, each with its own adaptive stop and adaptive precision, both functions of released estimates.
The statistic is 1 on the data and 0 on its worst neighbour; a path costs at most mu^2 = 1. Every mean is told apart
from 1 by `ERRORS` standard errors. Draws come from a generator with a seed, so that a run fails always or never.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import log_ndtr
from scipy.stats import ks_2samp

from parco.measure import COST_UNIT, Measure
from parco.mechanisms.mechanism import Gaussian
from parco.mechanisms.refinement import GaussianPath
from parco.privacy.expost import ExPost
from parco.privacy.sensitivity import Sensitivity
from tests.noise.tapes import Stream

Array = NDArray[np.float64]
Draw = Callable[[Gaussian, int], Array]
Stops = Callable[[Array, float, float], Array]

ONE = Fraction(1)
UNIT = Sensitivity(l1=ONE, l2_squared=ONE)
PATHS, ERRORS, STEPS_MAX = 10**6, 4, 4
ORDERS = (Fraction(3, 2), Fraction(2), Fraction(3))
FIRST = GaussianPath((Gaussian(Fraction(3), ONE / 4),))
STOPS_ABOVE = 1.2


@dataclass(frozen=True)
class Run:
    """Paths that ended at one history: the estimates, and the losses of all draws and decisions on the way."""

    path: GaussianPath
    estimates: Array
    losses: Array


def refined(path: GaussianPath, share: Fraction) -> GaussianPath:
    """The path at about this share of its variance, and never below 1, so that it costs at most 1."""
    square = path.scale_to(max(path.variance * share, ONE))
    scale = Fraction(math.ceil(math.sqrt(square) * 10**6), 10**6)
    lattice = ONE / 2 ** math.ceil(math.log2(8 / float(scale)))
    return path.refined(Gaussian(scale, min(lattice, ONE)))


def may_refine(path: GaussianPath) -> bool:
    return len(path.draws) < STEPS_MAX and path.variance > Fraction(101, 100)


def precisions(path: GaussianPath, estimates: Array) -> Iterator[tuple[GaussianPath, NDArray[np.bool_]]]:
    """Which paths are refined how far: a small step for a small estimate, a large one for the others."""
    low = estimates < 0.5
    yield refined(path, Fraction(3, 4)), low
    yield refined(path, Fraction(2, 5)), ~low


def honest(estimates: Array, variance: float, truth: float) -> Array:
    """Stops for certain, by what was released alone."""
    return (estimates > STOPS_ABOVE * math.sqrt(variance)).astype(float)


def peeking(estimates: Array, variance: float, truth: float) -> Array:
    """The chance of stopping when the true value is looked at: nine tenths where the estimate is near it."""
    return np.where(np.abs(estimates - truth) < math.sqrt(variance), 0.9, 0.1)


def ideal(draws: np.random.Generator) -> Draw:
    def draw(noise: Gaussian, count: int) -> Array:
        return 1 + float(noise.scale) * draws.standard_normal(count)

    return draw


def on_the_lattice() -> Draw:
    """The draws of the package, around 1 on each lattice."""
    bits = Stream("ex post")

    def draw(noise: Gaussian, count: int) -> Array:
        value = int(1 / noise.lattice)
        return np.array(noise.draw([value] * count, bits), float) * float(noise.lattice)

    return draw


def density_loss(noise: Gaussian, shown: Array, other: float) -> Array:
    """Log of the density at 1 over that at the neighbour's value."""
    return ((shown - other) ** 2 - (shown - 1) ** 2) / (2 * float(noise.scale) ** 2)


def lattice_loss(noise: Gaussian, shown: Array, other: float) -> Array:
    """The same for the probabilities of the rounded law, by table over the steps that came."""
    step, scale = float(noise.lattice), float(noise.scale)
    steps = np.rint(shown / step).astype(int)
    low, high = int(steps.min()), int(steps.max())
    places = np.arange(low, high + 1) * step

    def log_chance(centre: float) -> Array:
        # On the side of the smaller tail, where the difference of two tails keeps its digits.
        near = (np.abs(places - centre) - step / 2) / scale
        far = near + step / scale
        return np.asarray(log_ndtr(-near) + np.log1p(-np.exp(log_ndtr(-far) - log_ndtr(-near))), float)

    return np.asarray((log_chance(1.0) - log_chance(other))[steps - low], float)


def runs(
    draw: Draw,
    *,
    loss: Callable[[Gaussian, Array, float], Array] = density_loss,
    other: float = 0.0,
    stops: Stops = honest,
    paths: int = PATHS,
) -> list[Run]:
    """All paths, by the history at which each one stopped."""
    coins = np.random.default_rng(2)
    shown = draw(FIRST.draws[0], paths)
    alive = [Run(FIRST, shown, loss(FIRST.draws[0], shown, other))]
    done = []
    while alive:
        run = alive.pop()
        if not may_refine(run.path):
            done.append(run)
            continue
        here, there = (stops(run.estimates, float(run.path.variance), truth) for truth in (1.0, other))
        stopped = coins.random(len(here)) < here
        with np.errstate(divide="ignore", invalid="ignore"):
            decided = np.where(stopped, np.log(here / there), np.log((1 - here) / (1 - there)))
        losses = run.losses + np.where(here == there, 0.0, decided)
        done.append(Run(run.path, run.estimates[stopped], losses[stopped]))
        for path, chosen in precisions(run.path, run.estimates):
            mine = chosen & ~stopped
            noise = path.draws[-1]
            shown = draw(noise, int(mine.sum()))
            share = float(path.variance / run.path.variance)
            estimates = share * run.estimates[mine] + (1 - share) * shown
            alive.append(Run(path, estimates, losses[mine] + loss(noise, shown, other)))
    return [run for run in done if len(run.losses)]


def realised(path: GaussianPath) -> Fraction:
    """What the package charges for the path."""
    return path.cost_units(UNIT, Measure.GDP) * COST_UNIT


def functional(
    found: list[Run], order: Fraction, cost: Callable[[GaussianPath], Fraction] = realised
) -> tuple[float, float]:
    """Mean and standard error of e^((alpha-1)(L-bound))."""
    excess = float(order) - 1
    values = np.concatenate(
        [
            np.exp(excess * (run.losses - float(ExPost.of(Measure.GDP, cost(run.path), order=order).bound)))
            for run in found
        ]
    )
    assert len(values) == PATHS
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


@pytest.fixture(scope="module", params=[0.0, 2.0], ids=["below", "above"])
def worst(request: pytest.FixtureRequest) -> list[Run]:
    """Against the neighbour on either side: with rules that are not symmetric, both orders of the pair."""
    return runs(ideal(np.random.default_rng(1)), other=request.param)


@pytest.mark.parametrize("order", ORDERS)
def test_the_definition_holds_with_equality_at_the_worst_neighbour(worst: list[Run], order: Fraction) -> None:
    assert len(worst) >= 8
    assert len({len(run.path.draws) for run in worst}) == STEPS_MAX
    assert Fraction(9, 10) < max(realised(run.path) for run in worst) <= 1
    mean, error = functional(worst, order)
    assert abs(mean - 1) < ERRORS * error < 0.06


def test_a_nearer_neighbour_loses_less() -> None:
    found = runs(ideal(np.random.default_rng(3)), other=0.5)
    for order in ORDERS:
        mean, error = functional(found, order)
        assert mean + ERRORS * error < 1


def test_values_on_the_lattice_lose_no_more_and_hardly_less() -> None:
    """The package's own draws, their losses those of the rounded law: rounding is post-processing."""
    found = runs(on_the_lattice(), loss=lattice_loss)
    for order in ORDERS:
        mean, error = functional(found, order)
        assert 0.97 < mean < 1 + ERRORS * error


@pytest.mark.parametrize("order", ORDERS)
def test_a_step_that_is_left_out_is_caught(worst: list[Run], order: Fraction) -> None:
    def without_the_second(path: GaussianPath) -> Fraction:
        return realised(GaussianPath((*path.draws[:1], *path.draws[2:])))

    mean, error = functional(worst, order, without_the_second)
    assert mean - ERRORS * error > 1


@pytest.mark.parametrize("order", ORDERS)
def test_a_bound_from_the_first_variance_is_caught(worst: list[Run], order: Fraction) -> None:
    mean, error = functional(worst, order, lambda path: realised(GaussianPath(path.draws[:1])))
    assert mean - ERRORS * error > 1


@pytest.mark.parametrize("order", ORDERS)
def test_a_stop_that_looks_at_the_true_value_is_caught(order: Fraction) -> None:
    found = runs(ideal(np.random.default_rng(4)), stops=peeking)
    mean, error = functional(found, order)
    assert mean - ERRORS * error > 1


def test_a_stop_by_coins_and_released_values_is_not() -> None:
    """The same chances as for the one who peeks, around a number that is no secret: it is the look that costs."""
    found = runs(ideal(np.random.default_rng(5)), stops=lambda shown, variance, _: peeking(shown, variance, 1.0))
    for order in ORDERS:
        mean, error = functional(found, order)
        assert abs(mean - 1) < ERRORS * error


SCALES = st.lists(st.fractions(Fraction(1), Fraction(100), max_denominator=50), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(scales=SCALES, seed=st.integers(0, 10**6), distance=st.fractions(Fraction(1, 10), Fraction(5)))
def test_the_loss_added_up_is_that_of_the_last_estimate(scales: list[Fraction], seed: int, distance: Fraction) -> None:
    """Between f = D and f = 0: the sum over draws of (2 y D - D^2)/(2 s^2) is (2 m D - D^2)/(2 t), and exactly so."""
    path = GaussianPath(tuple(Gaussian(scale, ONE / 2 ** (place % 3)) for place, scale in enumerate(scales)))
    released = [(seed * (place + 3)) % 211 - 105 for place in range(len(scales))]
    (last,) = path.estimates([[steps] for steps in released])
    shown = [steps * draw.lattice for steps, draw in zip(released, path.draws, strict=True)]
    step_by_step = sum(
        (2 * y * distance - distance**2) / (2 * draw.scale**2) for y, draw in zip(shown, path.draws, strict=True)
    )
    assert step_by_step == (2 * last * distance - distance**2) / (2 * path.variance)


def rounded_variance(draw: Gaussian) -> mpmath.mpf:
    """Of the law that is drawn, in the statistic's units: the sum over m >= 1 of 2 (2m - 1) P(N >= m), at 30 digits."""
    with mpmath.workdps(30):
        scale = mpmath.mpf(draw.law.scale.numerator) / draw.law.scale.denominator
        tails = ((2 * m - 1) * mpmath.erfc((m - 0.5) / (scale * mpmath.sqrt(2))) for m in range(1, int(14 * scale)))
        return mpmath.fsum(tails) * mpmath.mpf(float(draw.lattice)) ** 2


def longest() -> list[GaussianPath]:
    """A path of four draws, each as it grew."""
    paths = [FIRST]
    for share in (Fraction(3, 4), Fraction(2, 5), Fraction(3, 4)):
        paths.append(refined(paths[-1], share))
    return paths


def test_two_estimates_of_a_path_vary_together_as_a_brownian_path_does() -> None:
    """Cov(m_i, m_j) is min(t_i, t_j), and at most g^2/12 of the coarsest lattice more, by the variances drawn."""
    paths = longest()
    drawn = [rounded_variance(draw) for draw in paths[-1].draws]
    allowed = max(draw.lattice for draw in paths[-1].draws) ** 2 / Fraction(12)
    for i, early in enumerate(paths):
        for late in paths[i:]:
            weights = [
                float(early.variance * late.variance / draw.scale**4) for draw in early.draws
            ]  # what both have of each draw; those behind `early` are in one of them only
            covariance = mpmath.fsum(weight * one for weight, one in zip(weights, drawn, strict=False))
            excess = covariance - mpmath.mpf(float(late.variance))
            assert -1e-12 < excess < float(allowed) + 1e-12


def brownian(variances: list[float], count: int) -> Array:
    """Oracle: 1 + W(t) at falling t, from independent increments beginning at t = 0; shape (variances, count)."""
    draws = np.random.default_rng(6)
    rising = [0.0, *reversed(variances)]
    increments = [math.sqrt(late - early) * draws.standard_normal(count) for early, late in pairwise(rising)]
    return np.cumsum(increments, axis=0)[::-1] + 1


def projections(values: Array) -> Iterator[Array]:
    """Sums of the rows, their differences, and each row."""
    yield values.sum(axis=0)
    yield from np.diff(values, axis=0)
    yield from values


def unlike(first: Array, second: Array) -> bool:
    """Whether some projection differs at level 10^-5."""
    pairs = zip(projections(first), projections(second), strict=True)
    return bool(min(ks_2samp(one, other).pvalue for one, other in pairs) < 1e-5)


def test_a_path_has_the_joint_law_of_a_brownian_path_read_backwards() -> None:
    paths, count, draw = longest(), 50_000, on_the_lattice()
    # Spread over a step of each lattice: what rounding took, as the ideal law is continuous.
    spread = np.random.default_rng(7)
    shown = [draw(one, count) + float(one.lattice) * (spread.random(count) - 0.5) for one in paths[-1].draws]

    def estimates(weights: Callable[[GaussianPath, Gaussian], float]) -> Array:
        return np.array(
            [sum(weights(path, one) * y for one, y in zip(path.draws, shown, strict=False)) for path in paths]
        )

    oracle = brownian([float(path.variance) for path in paths], count)
    assert not unlike(estimates(lambda path, one: float(path.variance / one.scale**2)), oracle)
    # Planted: draws of different scales weighed alike.
    assert unlike(estimates(lambda path, _: 1 / len(path.draws)), oracle)


def test_where_paths_stop_is_where_a_brownian_path_would() -> None:
    """The oracle walks one whole path, drawn beforehand, down the variances that the rule chooses on it."""
    count = 200_000
    found = runs(ideal(np.random.default_rng(8)), paths=count)
    nodes = {FIRST.variance: FIRST}
    waiting = [FIRST]
    while waiting:
        path = waiting.pop()
        for longer, _ in precisions(path, np.zeros(0)) if may_refine(path) else ():
            if longer not in nodes.values():
                nodes[longer.variance] = longer
                waiting.append(longer)
    variances = sorted(nodes, reverse=True)
    whole = dict(zip(variances, brownian([float(one) for one in variances], count), strict=True))
    stops: dict[Fraction, list[Array]] = {}
    alive = [(FIRST, np.arange(count))]
    while alive:
        path, who = alive.pop()
        estimates = whole[path.variance][who]
        stopped = np.ones(len(who), bool)
        if may_refine(path):
            stopped = honest(estimates, float(path.variance), 1.0) == 1
            alive += [(longer, who[chosen & ~stopped]) for longer, chosen in precisions(path, estimates)]
        stops.setdefault(path.variance, []).append(estimates[stopped])
    mine: dict[Fraction, list[Array]] = {}
    for run in found:
        mine.setdefault(run.path.variance, []).append(run.estimates)
    compared = 0
    for variance, ended in mine.items():
        own, oracle = np.concatenate(ended), np.concatenate(stops[variance])
        # Numbers of two multinomial laws: their difference has at most the variance of their sum.
        assert abs(len(own) - len(oracle)) < 5 * math.sqrt(len(own) + len(oracle))
        if min(len(own), len(oracle)) > 1000:
            assert ks_2samp(own, oracle).pvalue > 1e-5
            compared += 1
    assert compared >= 5
