"""The cap of an account, from epsilon and delta: the largest that keeps the promise, in whole 10^-15, rounded down."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from .document import parse

GDP = 'measure = "gdp"\nepsilon = "1"\ndelta = "1e-6"'


def profile(mu_squared: Fraction, epsilon: str) -> mpmath.mpf:
    """The Gaussian profile, again: delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), to sixty digits."""
    mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)
    eps = mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.5", "1", "3", "10", "50"])
@pytest.mark.parametrize("delta", ["0.4", "1e-3", "1e-6", "1e-12", "1e-30", "1e-100"])
def test_the_cap_keeps_the_promise_and_one_unit_more_would_not(epsilon: str, delta: str) -> None:
    contract = parse((GDP, f'measure = "gdp"\nepsilon = "{epsilon}"\ndelta = "{delta}"'))
    cap = Fraction(contract.budget.cap_units, 10**15)
    with mpmath.workdps(160):
        assert profile(cap, epsilon) <= mpmath.mpf(delta) < profile(cap + Fraction(1, 10**15), epsilon)


@pytest.mark.parametrize(
    ("budget", "units"),
    [
        ('measure = "pure"\nepsilon = "1"', 10**15),
        ('measure = "pure"\nepsilon = "1/3"', 333333333333333),
        ('measure = "pure"\nepsilon = "2/3"', 666666666666666),
        ('measure = "pure"\nepsilon = "0.0244999999999999999"', 24499999999999),
        ('measure = "pure"\nepsilon = 0.1', 10**14),
        ('measure = "pure"\ntotal = "1/7"', 142857142857142),
        ('measure = "gdp"\ntotal = "0.25"\ndelta = "1e-6"', 25 * 10**13),
        ('measure = "gdp"\ntotal = "1/3"\ndelta = "1e-6"', 333333333333333),
        ('measure = "gdp"\nmu = "1/3"\ndelta = "1e-6"', 111111111111111),
        ('measure = "zcdp"\nrho = "2/3"\ndelta = "1e-6"', 666666666666666),
    ],
)
def test_a_cap_that_is_written_down_is_rounded_down(budget: str, units: int) -> None:
    assert parse((GDP, budget)).budget.cap_units == units
