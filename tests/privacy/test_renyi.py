"""The improved Renyi conversion: valid at the order chosen, and the best order to within rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import pytest

from parco.errors import RequestError
from parco.privacy import gaussian, renyi


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    """Twice the digits of a ball of 256 bits: an oracle that cancels must still be the better one."""
    with mpmath.workdps(160):
        yield


DELTAS = [Fraction(1, 10**6), Fraction(1, 10**30), Fraction(1, 10), Fraction(1, 10**300)]
RHOS = [Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 2), Fraction(30), Fraction(9000)]
SLACK = mpmath.mpf(10) ** -12


def converted(rho: Fraction, delta: Fraction, order: mpmath.mpf) -> mpmath.mpf:
    """Canonne, Kamath & Steinke 2020, proposition 12, at one order, in 50 digits."""
    cost, small = mpmath.mpf(rho.numerator) / rho.denominator, mpmath.mpf(delta.numerator) / delta.denominator
    return (
        order * cost + mpmath.log(1 / small) / (order - 1) + mpmath.log(1 - 1 / order) - mpmath.log(order) / (order - 1)
    )


def best(rho: Fraction, delta: Fraction) -> mpmath.mpf:
    """The least over a dense grid of log(order - 1), refined three times around its best point."""
    low, high = mpmath.mpf(-25), mpmath.mpf(25)
    for _ in range(12):
        grid = [low + (high - low) * step / 60 for step in range(61)]
        values = [converted(rho, delta, 1 + mpmath.exp(point)) for point in grid]
        place = min(range(61), key=values.__getitem__)
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, 60)]
    return min(values)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_reaches_the_best_continuous_order_and_is_never_below_it(rho: Fraction, delta: Fraction) -> None:
    found = renyi.epsilon_upper(rho, delta)
    value, truth = mpmath.mpf(found.numerator) / found.denominator, max(best(rho, delta), mpmath.mpf(0))
    assert truth * (1 - SLACK) <= value <= truth * (1 + SLACK)


def test_a_million_gaussians_at_scale_eight() -> None:
    """A fixed list of orders gives 8728.6 here, the best order 8465.4, and the exact profile 8405.7."""
    rho, delta = Fraction(10**6, 2 * 64), Fraction(1, 10**6)
    assert math.isclose(renyi.epsilon_upper(rho, delta), 8465.374909, rel_tol=1e-9)
    assert renyi.epsilon_upper(rho, delta) > gaussian.epsilon_upper(2 * rho, delta)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(20), Fraction(10**4)])
@pytest.mark.parametrize("delta", DELTAS)
def test_a_cap_implies_what_it_was_derived_from_and_hardly_more(epsilon: Fraction, delta: Fraction) -> None:
    rho = renyi.rho_lower(epsilon, delta)
    # The cap is proven at its own order; the way back may find another, worse by less than a part in 10^12.
    assert renyi.epsilon_upper(rho, delta) <= epsilon * (1 + Fraction(1, 10**12))
    assert renyi.epsilon_upper(rho * (1 + Fraction(1, 10**9)), delta) > epsilon


@pytest.mark.parametrize("order", [Fraction(101, 100), Fraction(2), Fraction(8), Fraction(1000)])
def test_one_order_both_ways(order: Fraction) -> None:
    delta = Fraction(1, 10**6)
    for bound in (Fraction(0), Fraction(1, 3), Fraction(50)):
        epsilon = renyi.epsilon_at_order_upper(bound, order=order, delta=delta)
        truth = converted(bound / order, delta, mpmath.mpf(order.numerator) / order.denominator)
        value = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        assert max(truth, 0) <= value <= max(truth, 0) * (1 + SLACK) + mpmath.mpf(10) ** -30
        if truth > 0:
            back = renyi.order_budget_lower(epsilon, order=order, delta=delta)
            assert abs(back - bound) <= Fraction(1, 10**40)
    assert renyi.order_budget_lower(Fraction(1, 10**9), order=Fraction(101, 100), delta=delta) == 0


def test_an_epsilon_of_nothing_is_nothing_and_bad_arguments_are_refused() -> None:
    delta = Fraction(1, 10**6)
    assert renyi.epsilon_upper(Fraction(0), delta) == 0
    for rho, small in ((Fraction(-1), delta), (Fraction(1), Fraction(0)), (Fraction(1), Fraction(1))):
        with pytest.raises(RequestError):
            renyi.epsilon_upper(rho, small)
    with pytest.raises(RequestError):
        renyi.epsilon_at_order_upper(Fraction(1), order=Fraction(1), delta=delta)
