"""Boundaries of a path: against mpmath, their identity with the ex-post conversion, and what paths do to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from mpmath import log, mp, mpf, sqrt
from numpy.typing import NDArray

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import boundaries, expost

SLACK = Fraction(1, 10**12)
DELTA = Fraction(1, 10**6)
TOTALS = [Fraction(0), Fraction(1, 10**9), Fraction(1, 3), Fraction(50)]
PARAMETERS = [Fraction(1, 100), Fraction(4), Fraction(40)]


def close_above(result: Fraction, truth: mpf) -> bool:
    exact = Fraction(str(mp.nstr(truth, 45)))
    return exact * (1 - Fraction(1, 10**40)) <= result <= exact * (1 + SLACK)


@pytest.mark.parametrize("total", TOTALS)
@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("delta", [DELTA, Fraction(1, 10**300), Fraction(999, 1000)])
def test_boundaries_are_just_above_the_formulas(total: Fraction, parameter: Fraction, delta: Fraction) -> None:
    with mp.workdps(60):
        v, c, d = (mpf(x.numerator) / x.denominator for x in (total, parameter, delta))
        linear = v / 2 + c * v + log(1 / d) / (2 * c)
        mixture = v / 2 + sqrt(2 * (v + c) * log(sqrt((v + c) / c) / d))
    assert close_above(boundaries.linear_loss_upper(total, slope=parameter, delta=delta), linear)
    assert close_above(boundaries.mixture_loss_upper(total, tuned_at=parameter, delta=delta), mixture)


def test_the_linear_boundary_is_the_probabilistic_conversion() -> None:
    """(D/t)(D/2 + b) + a D with 2ab = log(1/delta) and b = (alpha-1) D/2, on both sides."""
    distance, variance, order = Fraction(7, 10), Fraction(3, 10), Fraction(9)
    b = (order - 1) * distance / 2
    total = boundaries.mu_squared_at(variance, l2_squared=distance**2)
    linear = boundaries.linear_loss_upper(total, slope=b / distance, delta=DELTA)
    bound = expost.ExPost.of(Measure.GDP, total, order=order)
    assert abs(linear - bound.probabilistic(DELTA).epsilon) < Fraction(1, 10**60)
    with mp.workdps(60):
        d, t, slope = (mpf(x.numerator) / x.denominator for x in (distance, variance, b))
        direct = d / t * (d / 2 + slope) + log(10**6) / (2 * slope) * d
    assert close_above(linear, direct)
    assert abs(linear - Fraction("9.0769388")) < Fraction(1, 10**7)


def crossed(bounds: Callable[[float], float]) -> float:
    """The share of paths whose loss exceeds the bound at one of 400 totals from 1/10 to 10, as many stops as a path."""
    draws = np.random.default_rng(1)
    totals = np.geomspace(0.1, 10, 400)
    beyond = np.zeros(20_000, bool)
    loss: NDArray[np.float64] = np.zeros(len(beyond))
    before = 0.0
    for total in totals:
        step = total - before
        loss += step / 2 + math.sqrt(step) * draws.standard_normal(len(loss))
        beyond |= loss > bounds(total)
        before = total
    return float(beyond.mean())


def test_a_path_crosses_a_boundary_no_more_often_than_stated() -> None:
    delta = Fraction(1, 10)
    error = 4 * math.sqrt(0.1 * 0.9 / 20_000)
    for parameter in (Fraction(1), Fraction(3)):
        shown = (
            crossed(lambda v, c=parameter: float(boundaries.linear_loss_upper(Fraction(v), slope=c, delta=delta))),  # type: ignore[misc]
            crossed(lambda v, c=parameter: float(boundaries.mixture_loss_upper(Fraction(v), tuned_at=c, delta=delta))),  # type: ignore[misc]
        )
        assert 0.005 < min(shown) <= max(shown) < 0.1 + error
    # Planted: the best slope at each total anew, v/2 + sqrt(2 v log(1/delta)), is no boundary.
    assert crossed(lambda v: v / 2 + math.sqrt(2 * v * math.log(10))) > 0.15


def test_arguments_out_of_range_are_refused() -> None:
    for total, parameter, delta in ((-1, 1, DELTA), (1, 0, DELTA), (1, 1, Fraction(0)), (1, 1, Fraction(1))):
        good = {"delta": delta}
        with pytest.raises(RequestError):
            boundaries.linear_loss_upper(Fraction(total), slope=Fraction(parameter), **good)
        with pytest.raises(RequestError):
            boundaries.mixture_loss_upper(Fraction(total), tuned_at=Fraction(parameter), **good)
    for variance, square in ((0, 1), (1, -1)):
        with pytest.raises(RequestError):
            boundaries.mu_squared_at(Fraction(variance), l2_squared=Fraction(square))
