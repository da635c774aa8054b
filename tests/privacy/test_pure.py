"""Pure into gdp: against mpmath, and against what randomised response really is."""

from __future__ import annotations

from fractions import Fraction

import pytest
from mpmath import mp, mpf

from parco.errors import RequestError
from parco.privacy import gaussian, pure

SLACK = Fraction(1, 10**12)
EPSILONS = [Fraction(1, 10**15), Fraction(1, 1000), Fraction(1, 2), Fraction(1), Fraction(5), Fraction(60)]


def truth(epsilon: Fraction) -> Fraction:
    """(2 Phi^-1(e^eps/(1+e^eps)))^2: the normal quantile by Newton's method on mpmath's erfc, at 60 digits."""
    with mp.workdps(60):
        tail = 1 / (1 + mp.exp(mpf(epsilon.numerator) / epsilon.denominator))
        start = mp.sqrt(2 * mp.log(1 / tail)) if tail < mpf("0.1") else mpf(0)
        quantile = mp.findroot(lambda x: mp.log(mp.erfc(x / mp.sqrt(2)) / 2 / tail), start)
        return Fraction(str(mp.nstr(4 * quantile**2, 40)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_cost_is_just_above_the_truth(epsilon: Fraction) -> None:
    exact, bound = truth(epsilon), pure.mu_squared_upper(epsilon)
    assert exact * (1 - Fraction(1, 10**20)) <= bound <= exact * (1 + SLACK)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(8)])
def test_it_covers_randomised_response_and_nothing_less_does(epsilon: Fraction) -> None:
    # Randomised response has delta(e) = (e^eps - e^e)/(1 + e^eps) for e <= eps; at each e the Gaussian must lie above,
    # and one per cent less must fall below it somewhere.
    cost = pure.mu_squared_upper(epsilon)
    points = [epsilon * i / 200 for i in range(200)]
    with mp.workdps(40):
        total = mp.exp(mpf(epsilon.numerator) / epsilon.denominator)
        response = [
            Fraction(str(mp.nstr((total - mp.exp(mpf(e.numerator) / e.denominator)) / (1 + total), 30))) for e in points
        ]

    def short(mu_squared: Fraction) -> int:
        return sum(
            gaussian.delta_upper(mu_squared, e) < delta * (1 - SLACK) for e, delta in zip(points, response, strict=True)
        )

    assert short(cost) == 0
    assert short(cost * Fraction(99, 100)) > 0


def test_the_largest_account_is_within_range() -> None:
    # The far tail: mu ~ sqrt(8 eps) - ... grows without bound, below 8 eps.
    assert 4 * 9000 < pure.mu_squared_upper(Fraction(9223)) < 8 * 9223


def test_zero_costs_zero_and_negative_is_refused() -> None:
    assert pure.mu_squared_upper(Fraction(0)) == 0
    with pytest.raises(RequestError):
        pure.mu_squared_upper(Fraction(-1))
