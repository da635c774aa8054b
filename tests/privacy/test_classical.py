"""The closed form: the published witness, brute force over orders, and what valid means."""

from __future__ import annotations

from fractions import Fraction

import pytest
from mpmath import mp, mpf, sqrt

from parco.errors import RequestError
from parco.privacy import classical, gaussian

DELTA = Fraction(1, 10**6)
# k releases at scale s, sensitivity 1: closed form, and the least that a dense grid of orders finds (published values).
WITNESS = [
    (1, 4, "1.345380442439233", "1.3453804424475089"),
    (10, 8, "2.1559476703363876", "2.1559476710706402"),
    (100, 16, "3.4806386060980823", "3.480638609062736"),
    (1000, 8, "28.590726703363874", "28.5907267107064"),
]


def dense_search(half: Fraction, delta: Fraction) -> Fraction:
    """The least of alpha a + log(1/delta)/(alpha-1) over 4001 orders within one per cent of the best one."""
    with mp.workdps(50):
        a, log_slack = mpf(half.numerator) / half.denominator, mp.log(mpf(delta.denominator) / delta.numerator)
        best = sqrt(log_slack / a)
        excess = (best * (1 + mpf(i - 2000) / 200_000 + mpf(1) / 10**6) for i in range(4001))
        return Fraction(str(mp.nstr(min((1 + e) * a + log_slack / e for e in excess), 40)))


@pytest.mark.parametrize(("releases", "scale", "closed_form", "dense"), WITNESS)
def test_the_witness_table_is_reproduced(releases: int, scale: int, closed_form: str, dense: str) -> None:
    bound = classical.epsilon_upper(Fraction(releases, scale**2), DELTA)
    assert abs(bound - Fraction(closed_form)) < Fraction(5, 10**15) * bound
    assert bound < Fraction(dense) < bound * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(("releases", "scale", "closed_form", "dense"), WITNESS)
def test_no_order_does_better_than_the_closed_form(releases: int, scale: int, closed_form: str, dense: str) -> None:
    half = Fraction(releases, 2 * scale**2)
    bound, searched = classical.epsilon_upper(2 * half, DELTA), dense_search(half, DELTA)
    assert bound <= searched <= bound * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("mu_squared", [Fraction(1, 10**18), Fraction(1, 16), Fraction(1), Fraction(9223)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**300), DELTA, Fraction(3, 10)])
def test_it_is_valid_and_not_tight(mu_squared: Fraction, delta: Fraction) -> None:
    bound = classical.epsilon_upper(mu_squared, delta)
    assert gaussian.delta_upper(mu_squared, bound) < delta
    assert gaussian.epsilon_upper(mu_squared, delta) < bound


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1), Fraction(10**5)])
def test_the_inverse_stays_on_its_side(epsilon: Fraction) -> None:
    mu_squared = classical.mu_squared_lower(epsilon, DELTA)
    assert classical.epsilon_upper(mu_squared, DELTA) <= epsilon * (1 + Fraction(1, 10**60))
    assert classical.epsilon_upper(mu_squared * (1 + Fraction(1, 10**12)), DELTA) > epsilon


def test_arguments_out_of_range_are_refused() -> None:
    for mu_squared, delta in [(Fraction(-1), DELTA), (Fraction(1), Fraction(0)), (Fraction(1), Fraction(1))]:
        with pytest.raises(RequestError):
            classical.epsilon_upper(mu_squared, delta)
