"""C05: the right noise for every epsilon, from a thousandth to ten thousand, and not by the textbook formula."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.contract.contract import Contract
from parco.errors import ContractError
from parco.measure import Measure, units_floor
from parco.mechanisms.design import for_cost
from parco.privacy import gaussian
from parco.privacy.sensitivity import Sensitivity
from tests.shop import contract_text

DELTA = Fraction(1, 10**6)
# Sensitivity 1, delta 1e-6; by bisection on the logarithm of sigma in mpmath.
SIGMAS = [
    ("0.001", "2436.5524937485809"),
    ("0.01", "306.35037615381769"),
    ("0.1", "36.304690426195785"),
    ("1", "4.2246788893268353"),
    ("10", "0.54108683181836598"),
    ("50", "0.15659287039176195"),
    ("100", "0.097837223974441093"),
    ("500", "0.036692644486518633"),
    ("709", "0.030096587492201253"),
    ("710", "0.030072763840382102"),
    ("1000", "0.02485036668694772"),
    ("10000", "0.0073123607112187302"),
]
DIGITS = Fraction(1, 10**16)  # to which the figures are printed


def sigma_upper(epsilon: Fraction, delta: Fraction) -> Fraction:
    """1/mu, rounded up, from the cap's side of mu^2."""
    square = 1 / gaussian.mu_squared_lower(epsilon, delta)
    return Fraction(math.isqrt(math.ceil(square * 10**60)) + 1, 10**30)


@pytest.mark.parametrize(("epsilon", "sigma"), SIGMAS)
def test_noise_is_never_below_the_right_one_and_at_most_a_billionth_above(epsilon: str, sigma: str) -> None:
    found, right = sigma_upper(Fraction(epsilon), DELTA), Fraction(sigma)
    assert right * (1 - DIGITS) <= found <= right * (1 + Fraction(1, 10**9))
    reached = gaussian.delta_upper(1 / found**2, Fraction(epsilon))
    assert DELTA * (1 - Fraction(1, 10**8)) < reached <= DELTA


@pytest.mark.parametrize(("epsilon", "sigma"), SIGMAS)
def test_a_contract_gets_the_same_noise(epsilon: str, sigma: str) -> None:
    """Through every door: the budget in the contract, its cap in units, and the noise that spends all of it."""
    amount = f'measure = "gdp"\nepsilon = "{epsilon}"\ndelta = "1e-6"'
    if Fraction(epsilon) > 5000:  # mu^2 is then beyond what an account can hold
        with pytest.raises(ContractError):
            Contract.parse(contract_text(budget=amount))
        return
    contract = Contract.parse(contract_text(budget=amount))
    cap = contract.budget.cap_units
    assert cap == units_floor(gaussian.mu_squared_lower(Fraction(epsilon), DELTA))
    one = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1))
    scale = for_cost(Measure.GDP, one, step=Fraction(1), units=cap).scale
    # A cap counts units of 10^-15, which is one part in 10^8 of the smallest mu^2 here.
    assert Fraction(sigma) * (1 - DIGITS) <= scale <= Fraction(sigma) * (1 + Fraction(1, 10**7))


def test_the_textbook_formula_wastes_below_and_fails_above() -> None:
    """sqrt(2 log(1.25/delta))/epsilon at delta = 1e-5: valid up to epsilon 8.41977130153634, whatever its books say."""
    delta = Fraction(1, 10**5)

    def textbook(epsilon: float) -> Fraction:
        return Fraction(math.sqrt(2 * math.log(1.25e5)) / epsilon)

    assert math.isclose(textbook(1), 4.8448052626053894, rel_tol=1e-15)
    assert math.isclose(sigma_upper(Fraction(1), delta), 3.7306316348159418, rel_tol=1e-15)
    assert math.isclose(sigma_upper(Fraction(10), delta), 0.49988861970900851, rel_tol=1e-15)
    assert textbook(10) < sigma_upper(Fraction(10), delta)
    wrong = gaussian.delta_lower(1 / textbook(10) ** 2, Fraction(10))
    assert math.isclose(wrong, 2.2653743647934231e-5, rel_tol=1e-12)
    last = Fraction("8.41977130153634")
    for epsilon, holds in ((last * (1 - Fraction(1, 10**9)), True), (last * (1 + Fraction(1, 10**9)), False)):
        assert (textbook(float(epsilon)) >= sigma_upper(epsilon, delta)) is holds
    # Sensitivity scales the noise, and nothing else.
    assert math.isclose(2000 * sigma_upper(Fraction(10), delta), 999.77723941801702, rel_tol=1e-15)


@settings(max_examples=40, deadline=None)
@given(epsilon=st.floats(-6, 6), delta=st.floats(-250, -0.2))
def test_any_epsilon_and_delta_come_back_from_the_noise(epsilon: float, delta: float) -> None:
    """The class of fault: calibration that is right in the middle of the range, and off or failing at its ends."""
    wanted, slack = Fraction(10**epsilon), Fraction(10**delta)
    found = sigma_upper(wanted, slack)
    reached = gaussian.delta_upper(1 / found**2, wanted)
    assert slack * (1 - Fraction(1, 10**6)) < reached <= slack
    back = gaussian.epsilon_upper(1 / found**2, slack)
    assert abs(back - wanted) <= wanted / 10**9
