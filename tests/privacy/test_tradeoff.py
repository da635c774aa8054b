"""What an attacker can do: against mpmath, against optimal tests, and both ways."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from parco.errors import RequestError
from parco.privacy import gaussian, laplace, pure, tradeoff
from tests.privacy.exactly import just_above, number

SQUARES = [Fraction(1, 10**12), Fraction(1, 4), Fraction(1), Fraction(40), Fraction(900)]
RATES = [Fraction(1, 10**30), Fraction(1, 20), Fraction(1, 2), Fraction(97, 100)]


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(120):
        yield


def cutoff(rate: Fraction) -> Any:
    """Phi^-1(1 - rate), by Newton's method from mpmath's own guess."""
    exact = number(rate)
    with mpmath.workdps(20):
        start = (
            mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * exact)
            if rate > Fraction(1, 10**9)
            else mpmath.sqrt(-2 * mpmath.log(exact))
        )
    return mpmath.findroot(lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2 / exact), start)


@pytest.mark.parametrize("mu_squared", SQUARES)
@pytest.mark.parametrize("rate", RATES)
def test_rates_of_the_best_test_between_two_normal_laws(mu_squared: Fraction, rate: Fraction) -> None:
    shift = cutoff(rate) - mpmath.sqrt(number(mu_squared))
    found, missed = (mpmath.erfc(side * shift / mpmath.sqrt(2)) / 2 for side in (1, -1))
    assert just_above(tradeoff.true_positive_rate_upper(mu_squared, rate), found)
    low = tradeoff.trade_off_lower(mu_squared, rate)
    assert missed * (1 - mpf(10) ** -15) <= number(low) <= missed * (1 + mpf(10) ** -60)


@pytest.mark.parametrize("mu_squared", SQUARES)
def test_the_advantage_is_the_best_difference_and_turns_round(mu_squared: Fraction) -> None:
    mu = mpmath.sqrt(number(mu_squared))
    advantage = tradeoff.advantage_upper(mu_squared)
    assert just_above(advantage, mpmath.erf(mu / 2 / mpmath.sqrt(2)))
    if advantage < 1 - Fraction(1, 10**6):
        back = tradeoff.mu_squared_for_advantage_lower(advantage)
        assert mu_squared * (1 - Fraction(1, 10**12)) <= back <= mu_squared * (1 + Fraction(1, 10**12))
        assert tradeoff.advantage_upper(back) <= advantage * (1 + Fraction(1, 2**58))


@pytest.mark.parametrize("mu_squared", SQUARES[1:-1])
@pytest.mark.parametrize("rate", RATES[:-1])
def test_mu_for_two_rates_is_the_largest_that_keeps_them(mu_squared: Fraction, rate: Fraction) -> None:
    found = tradeoff.true_positive_rate_upper(mu_squared, rate)
    cap = tradeoff.mu_squared_for_rates_lower(false_positive_rate=rate, true_positive_rate=found)
    assert abs(cap / mu_squared - 1) < Fraction(1, 10**6)
    at_cap = tradeoff.true_positive_rate_upper(cap, rate)
    assert at_cap <= found * (1 + Fraction(1, 2**58))
    assert tradeoff.true_positive_rate_upper(cap * (1 + Fraction(1, 10**9)), rate) > found


def test_two_equal_rates_leave_nothing() -> None:
    half = Fraction(1, 2)
    assert tradeoff.mu_squared_for_rates_lower(false_positive_rate=half, true_positive_rate=half) == 0
    assert tradeoff.true_positive_rate_upper(Fraction(0), half) == half
    assert tradeoff.trade_off_lower(Fraction(0), half) == half
    for rate in (Fraction(0), Fraction(1)):
        assert tradeoff.true_positive_rate_upper(Fraction(9), rate) == rate
        assert tradeoff.trade_off_lower(Fraction(9), rate) == 1 - rate


@pytest.mark.parametrize("mu_squared", SQUARES[:-1])
@pytest.mark.parametrize("rate", RATES[1:])
def test_the_profile_of_a_gaussian_gives_its_rates(mu_squared: Fraction, rate: Fraction) -> None:
    exact = tradeoff.true_positive_rate_upper(mu_squared, rate)
    found = tradeoff.profile_true_positive_rate_upper(lambda at: gaussian.delta_upper(mu_squared, at), rate)
    assert exact * (1 - Fraction(1, 2**58)) <= found <= exact * (1 + Fraction(1, 10**9))
    curve = tradeoff.profile_trade_off_lower(lambda at: gaussian.delta_upper(mu_squared, at), rate)
    assert curve + found == 1
    assert curve <= tradeoff.trade_off_lower(mu_squared, rate) + Fraction(1, 2**58)


@settings(max_examples=25, deadline=None)
@given(epsilon=st.fractions(Fraction(1, 50), 8, max_denominator=50), rate=st.fractions(0, 1, max_denominator=40))
def test_rates_under_pure_privacy_are_the_two_lines_of_randomised_response(epsilon: Fraction, rate: Fraction) -> None:
    with mpmath.workdps(40):
        odds, exact = mpmath.exp(number(epsilon)), number(rate)
        truth = min(odds * exact, 1 - (1 - exact) / odds)
        found = number(tradeoff.profile_true_positive_rate_upper(lambda at: pure.delta_upper(epsilon, at=at), rate))
        assert truth * (1 - mpf(10) ** -30) <= found <= truth * (1 + mpf(10) ** -9) + mpf(10) ** -12


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(3, 10), Fraction(1, 2), Fraction(9, 10)])
def test_rates_under_laplace_noise_are_those_of_the_best_cut(rate: Fraction) -> None:
    """One Laplace law against another at distance 2: every best test is a cut at a point."""

    def below(x: Any) -> Any:
        return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2

    exact = number(rate)
    cut = -mpmath.log(2 * exact) if exact < mpf("0.5") else mpmath.log(2 * (1 - exact))
    truth = 1 - below(cut - 2)
    found = number(tradeoff.profile_true_positive_rate_upper(lambda at: laplace.delta_upper(Fraction(2), at=at), rate))
    assert truth * (1 - mpf(10) ** -30) <= found <= truth * (1 + mpf(10) ** -9)


def test_a_pair_that_is_not_symmetric_uses_each_order_where_it_belongs() -> None:
    """P finds nothing new, Q does: whoever is in is found no more often than whoever is out is suspected."""

    def never(at: Fraction) -> Fraction:
        return Fraction(0)

    def often(at: Fraction) -> Fraction:
        return Fraction(3, 10)

    rate = Fraction(1, 10)
    tiny = Fraction(1, 2**100)
    assert rate <= tradeoff.profile_true_positive_rate_upper(never, rate, reverse=often) <= rate + tiny
    assert rate <= tradeoff.profile_true_positive_rate_upper(often, rate, reverse=never) <= rate + tiny
    assert Fraction(4, 10) <= tradeoff.profile_true_positive_rate_upper(often, rate) <= Fraction(4, 10) + tiny
    assert tradeoff.profile_advantage_upper(often) == Fraction(3, 10)
    assert tradeoff.profile_advantage_upper(lambda at: 5 + at) == 1


def test_what_is_out_of_range_is_refused() -> None:
    one, half = Fraction(1), Fraction(1, 2)
    for rate in (Fraction(-1, 10), Fraction(11, 10)):
        with pytest.raises(RequestError):
            tradeoff.trade_off_lower(one, rate)
        with pytest.raises(RequestError):
            tradeoff.profile_true_positive_rate_upper(lambda at: half + at, rate)
    with pytest.raises(RequestError):
        tradeoff.true_positive_rate_upper(Fraction(-1), half)
    for advantage in (Fraction(0), one):
        with pytest.raises(RequestError):
            tradeoff.mu_squared_for_advantage_lower(advantage)
    for false, true in ((half, Fraction(1, 3)), (Fraction(0), half), (half, one)):
        with pytest.raises(RequestError):
            tradeoff.mu_squared_for_rates_lower(false_positive_rate=false, true_positive_rate=true)
