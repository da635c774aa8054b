"""The sparse vector technique: its Renyi lines against the laws of its answer, integrated over the noisy threshold."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import laplace, pure, sparse_vector

Array = NDArray[np.float64]


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
