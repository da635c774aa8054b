"""The improved Renyi conversion: valid at the order chosen, and the best order to within rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import pytest

from parco.errors import RequestError
from parco.privacy import classical, exponential, gaussian, laplace, pure, renyi
from tests.privacy.exactly import number


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


@pytest.mark.parametrize("mu_squared", [Fraction(1, 10**6), Fraction(1), Fraction(100)])
@pytest.mark.parametrize("delta", DELTAS)
def test_the_plain_conversion_at_its_best_order_is_the_closed_form(mu_squared: Fraction, delta: Fraction) -> None:
    found = renyi.best_epsilon_upper(lambda order: order * mu_squared / 2, delta, improved=False)
    closed = classical.epsilon_upper(mu_squared, delta)
    assert closed * (1 - Fraction(1, 10**30)) <= found.epsilon <= closed * (1 + Fraction(1, 10**12))
    best_order = 1 + math.sqrt(-2 * (math.log(delta.numerator) - math.log(delta.denominator)) / mu_squared)
    assert math.isclose(found.order, best_order, rel_tol=1e-5)
    assert found.epsilon >= renyi.best_epsilon_upper(lambda order: order * mu_squared / 2, delta).epsilon
    assert not found.limited


Facts = Callable[[Fraction, Fraction], Fraction]


@pytest.mark.parametrize("facts", [laplace.renyi_upper, exponential.renyi_upper])
@pytest.mark.parametrize(("epsilon", "times"), [("0.1", 1000), ("1", 40), ("0.01", 10)])
def test_any_curve_reaches_its_best_continuous_order(facts: Facts, epsilon: str, times: int) -> None:
    delta, step = Fraction(1, 10**6), Fraction(epsilon)
    asked = []

    def curve(order: Fraction) -> Fraction:
        asked.append(order)
        return times * facts(step, order)

    found = renyi.best_epsilon_upper(curve, delta)
    assert len(asked) < 60
    low, high = -20.0, 25.0
    for _ in range(6):
        grid = [low + (high - low) * place / 40 for place in range(41)]
        values = [
            number(renyi.epsilon_at_order_upper(times * facts(step, order), order=order, delta=delta))
            for order in (1 + Fraction(math.exp(point)) for point in grid)
        ]
        place = min(range(41), key=values.__getitem__)
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, 40)]
    assert number(found.epsilon) <= min(values) * (1 + mpmath.mpf(10) ** -9)
    assert found.epsilon == renyi.epsilon_at_order_upper(
        times * facts(step, found.order), order=found.order, delta=delta
    )


def test_a_limit_on_orders_is_kept_and_told() -> None:
    """Ten Gaussians at scale 1.3: the best order is 2.88; up to 2 or up to 63, the answer says which it was."""
    delta, step = Fraction(1, 10**5), 10 / Fraction(13, 10) ** 2 / 2

    def best_up_to(order_max: int) -> renyi.Converted:
        asked: list[Fraction] = []

        def curve(order: Fraction) -> Fraction:
            asked.append(order)
            return order * step

        found = renyi.best_epsilon_upper(curve, delta, order_max=Fraction(order_max))
        assert 1 < min(asked) <= max(asked) <= order_max
        return found

    free, short = best_up_to(63), best_up_to(2)
    assert not free.limited
    assert math.isclose(free.epsilon, 13.655433619627733, rel_tol=1e-12)
    assert math.isclose(free.order, 2.879854, rel_tol=1e-5)
    assert short.limited
    assert short.order == 2
    assert short.epsilon == renyi.epsilon_at_order_upper(2 * step, order=Fraction(2), delta=delta) > free.epsilon
    assert math.isclose(classical.epsilon_upper(2 * step, delta), 14.631096261542546, rel_tol=1e-14)
    assert math.isclose(gaussian.epsilon_upper(2 * step, delta), 12.758362803375556, rel_tol=1e-14)


def test_a_pure_mechanism_by_the_improved_conversion_and_by_the_plain_one() -> None:
    """The improved one nearly reaches the exact profile, at an order near a million; the plain one wants no end."""
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    exact = mpmath.log(mpmath.e - number(delta) * (1 + mpmath.e))
    improved = renyi.best_epsilon_upper(lambda order: pure.renyi_upper(epsilon, order), delta)
    assert exact <= number(improved.epsilon) <= exact * (1 + mpmath.mpf(10) ** -8)
    assert 10**5 < improved.order < 10**7
    assert not improved.limited
    plain = renyi.best_epsilon_upper(lambda order: pure.renyi_upper(epsilon, order), delta, improved=False)
    assert plain.limited
    assert 1 < plain.epsilon < 1 + Fraction(1, 10**9)


def test_order_one_is_the_divergence_of_kullback_and_leibler_and_implies_no_epsilon() -> None:
    """One Gaussian step at scale 2 has 1/(2 4) there, without a division by zero; as a conversion it is refused."""
    one = Fraction(1)
    assert pure.renyi_upper(one, one) < pure.renyi_upper(one, 1 + Fraction(1, 10**6))
    for order in (one, Fraction(1, 2), Fraction(0)):
        with pytest.raises(RequestError, match="greater than 1"):
            renyi.epsilon_at_order_upper(Fraction(1, 8), order=order, delta=Fraction(1, 10**6))
        with pytest.raises(RequestError, match="greater than 1"):
            renyi.best_epsilon_upper(lambda order: order, Fraction(1, 10**6), order_max=order)
    with pytest.raises(RequestError, match="not negative"):
        renyi.best_epsilon_upper(lambda order: -order, Fraction(1, 10**6))
