"""Randomised response is pure with equality: its own divergences and profile are the bounds of pure mechanisms."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import mpmath
import pytest

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import pure, randomised_response
from tests.privacy.exactly import just_above, number

TRUTHS = [Fraction(11, 20), Fraction(3, 4), 1 - Fraction(1, 10**9), Fraction(1, 2) + Fraction(1, 10**20)]
ORDERS = [1 + Fraction(1, 10**9), Fraction(3, 2), Fraction(20)]


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(120):
        yield


@pytest.mark.parametrize("probability", TRUTHS)
def test_epsilon_is_the_log_odds_rounded_up(probability: Fraction) -> None:
    p = number(probability)
    assert just_above(randomised_response.epsilon_upper(probability), mpmath.log(p / (1 - p)))


@pytest.mark.parametrize("probability", TRUTHS)
def test_its_own_divergence_and_profile_are_what_pure_mechanisms_are_charged(probability: Fraction) -> None:
    epsilon, p = randomised_response.epsilon_upper(probability), number(probability)
    q = 1 - p
    for order in ORDERS:
        alpha = number(order)
        truth = mpmath.log(p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)) / (alpha - 1)
        assert just_above(pure.renyi_upper(epsilon, order), truth)
        assert pure.renyi_upper(epsilon, order) <= order * pure.cost_upper(epsilon, Measure.ZCDP)
    assert just_above(pure.cost_upper(epsilon, Measure.ZCDP), (p - q) * mpmath.log(p / q))
    for part in (Fraction(0), Fraction(1, 3), Fraction(99, 100)):
        truth = p - mpmath.exp(number(epsilon * part)) * q
        assert just_above(pure.delta_upper(epsilon, at=epsilon * part), truth, slack=1e-12)
    assert pure.delta_upper(epsilon, at=epsilon) == 0


def test_a_pure_cost_in_zcdp_is_below_the_published_ones() -> None:
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(6)):
        rho = pure.cost_upper(epsilon, Measure.ZCDP)
        assert rho < min(epsilon**2 / 2, epsilon)


@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(1), Fraction(2, 5), Fraction(-1)])
def test_a_coin_that_hides_everything_or_nothing_is_refused(probability: Fraction) -> None:
    with pytest.raises(RequestError):
        randomised_response.epsilon_upper(probability)
