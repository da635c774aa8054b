"""The sparse vector technique: its Renyi lines against the laws of its answer, integrated over the noisy threshold."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import laplace, pure, sparse_vector

Array = NDArray[np.float64]
ONE = Fraction(1)


def law(scores: tuple[float, ...], epsilon: float) -> Array:
    """The chance of each first pass, and of none: sensitivity 1, threshold 0, by the trapezoid over threshold noise."""
    threshold, query = 2 / epsilon, 4 / epsilon
    z, step = np.linspace(-60 * threshold, 60 * threshold, 60_001, retstep=True)
    density = np.exp(-np.abs(z) / threshold) / (2 * threshold) * step
    reached, waiting = [], density
    for score in scores:
        tail = np.where(z > score, np.exp(-np.abs(z - score) / query) / 2, 1 - np.exp(-np.abs(z - score) / query) / 2)
        reached.append((waiting * tail).sum())
        waiting = waiting * (1 - tail)
    return np.array([*reached, waiting.sum()])


def divergence(first: Array, second: Array, order: float) -> float:
    return float(np.log((first**order * second ** (1 - order)).sum()) / (order - 1))


@pytest.mark.parametrize("epsilon", ["1", "4", "12"])
@pytest.mark.parametrize("order", ["1.5", "3", "20"])
def test_no_stream_of_scores_exceeds_the_line(epsilon: str, order: str) -> None:
    bound = float(sparse_vector.renyi_upper(Fraction(epsilon), Fraction(order)))
    rho = float(sparse_vector.cost_upper(Fraction(epsilon), Measure.ZCDP))
    largest = 0.0
    for moves in itertools.product((-1.0, 1.0), repeat=3):
        for base in ((0.0, 0.0, 0.0), (-2.0, -1.0, 1.0)):
            moved = tuple(score + move for score, move in zip(base, moves, strict=True))
            largest = max(largest, divergence(law(base, float(epsilon)), law(moved, float(epsilon)), float(order)))
    assert 0.02 * bound < largest <= min(bound, float(order) * rho) * (1 + 1e-6)


def test_the_lines_are_the_lesser_of_two() -> None:
    small, large, order = Fraction(1, 10), Fraction(20), Fraction(3, 2)
    assert sparse_vector.renyi_upper(small, order) == pure.renyi_upper(small, order)
    by_threshold = large / 2 + laplace.renyi_upper(large / 2, order)
    assert sparse_vector.renyi_upper(large, order) == by_threshold < pure.renyi_upper(large, order)
    assert sparse_vector.cost_upper(large, Measure.renyi(order)) == by_threshold


def test_costs_and_refusals() -> None:
    assert sparse_vector.cost_upper(Fraction(1), Measure.PURE) == 1
    assert sparse_vector.cost_upper(Fraction(1), Measure.GDP) == pure.mu_squared_upper(Fraction(1))
    assert sparse_vector.cost_upper(Fraction(20), Measure.ZCDP) < pure.cost_upper(Fraction(20), Measure.ZCDP)
    for measure in (Measure.PURE, Measure.ZCDP, Measure.GDP, Measure.renyi(Fraction(2))):
        assert sparse_vector.cost_upper(Fraction(0), measure) == 0
        with pytest.raises(RequestError):
            sparse_vector.cost_upper(Fraction(-1), measure)


def normal_law(scores: tuple[float, ...], threshold: float, query: float) -> Array:
    """The same with Gaussian noise of these scales."""
    z, step = np.linspace(-12 * threshold, 12 * threshold, 20_001, retstep=True)
    density = np.exp(-((z / threshold) ** 2) / 2) / threshold / np.sqrt(2 * np.pi) * step
    reached, waiting = [], density
    for score in scores:
        tail = ndtr((score - z) / query)
        reached.append((waiting * tail).sum())
        waiting = waiting * ndtr((z - score) / query)
    return np.array([*reached, waiting.sum()])


@pytest.mark.parametrize(("threshold", "query"), [(1.0, 2.0), (3.0, 6.0), (4.0, 1.5)])
@pytest.mark.parametrize("order", ["1.5", "3", "20"])
@pytest.mark.parametrize("scores", [1, 3, 40])
def test_no_stream_with_gaussian_noise_exceeds_the_line(
    threshold: float, query: float, order: str, scores: int
) -> None:
    ratios = {"threshold": 1 / Fraction(threshold) ** 2, "score": 1 / Fraction(query) ** 2}
    bound = float(sparse_vector.gaussian_renyi_upper(Fraction(order), **ratios, scores=scores))
    assert 0.005 * bound < largest_divergence(threshold, query, order=float(order), scores=scores) <= bound * (1 + 1e-6)
    # A sixth of the noise would be noticed.
    assert largest_divergence(threshold / 6, query / 6, order=float(order), scores=scores) > bound


def largest_divergence(threshold: float, query: float, *, order: float, scores: int) -> float:
    """Over some streams of scores at one height and one at another, all moved by 1."""
    largest = 0.0
    for before, last in ((0.0, 0.0), (-2.0, -6.0), (3.0, -3.0), (-6.0, 3.0)):
        base = (*[before] * (scores - 1), last)
        for sign in (-1.0, 1.0):
            moved = (*[before + sign] * (scores - 1), last - sign)
            first, second = normal_law(base, threshold, query), normal_law(moved, threshold, query)
            seen = (first > 0) & (second > 0)
            logs = order * np.log(first[seen]) + (1 - order) * np.log(second[seen])
            largest = max(largest, float(logsumexp(logs)) / (order - 1))
    return largest


def test_gaussian_lines_and_refusals() -> None:
    ratios = {"threshold": Fraction(1, 4), "score": Fraction(1, 16)}
    order = Fraction(8)
    few, many = (sparse_vector.gaussian_renyi_upper(order, **ratios, scores=scores) for scores in (2, 1000))
    assert few == order * 2 * Fraction(1, 16) / 2
    exact = 8 / 8 + (np.log(1000 * np.exp(7 * 2 * 8 / 16) + 1)) / 7
    assert float(many) == pytest.approx(exact, rel=1e-12)
    assert many < order * 1000 * Fraction(1, 16) / 2
    assert sparse_vector.gaussian_cost_upper(Measure.renyi(order), **ratios, scores=1000) == many
    assert sparse_vector.gaussian_cost_upper(Measure.GDP, **ratios, scores=1000) == Fraction(1000, 16)
    with pytest.raises(RequestError):
        sparse_vector.gaussian_cost_upper(Measure.PURE, **ratios, scores=1)
    for wrong in ({"threshold": Fraction(0)}, {"score": Fraction(-1)}, {"scores": 0}):
        with pytest.raises(RequestError):
            sparse_vector.gaussian_cost_upper(Measure.GDP, **{**ratios, "scores": 1, **wrong})  # type: ignore[arg-type]
    with pytest.raises(RequestError):
        sparse_vector.gaussian_renyi_upper(Fraction(1), **ratios, scores=1)
    huge = sparse_vector.gaussian_renyi_upper(Fraction(10**6), threshold=ONE, score=ONE, scores=10**9)
    assert 10**6 / 2 + 2 * 10**6 <= huge <= 10**6 / 2 + 2 * 10**6 + 1
