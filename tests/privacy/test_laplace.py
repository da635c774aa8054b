"""Laplace noise: against its densities, against two of them together, and against rounded noise."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from mpmath import mpf

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import gaussian, laplace, pure
from parco.privacy.sensitivity import Sensitivity
from tests.data import make_laplace
from tests.privacy.exactly import just_above, number

TABLE = json.loads((Path(__file__).parents[1] / "data" / "laplace.json").read_text())
EPSILONS = [Fraction(1, 10**12), Fraction(1, 10), Fraction(1), Fraction(4), Fraction(60)]
ORDERS = [1 + Fraction(1, 10**9), Fraction(3, 2), Fraction(8), Fraction(1000)]
PRINTED = Fraction(1, 10**28)  # the table has thirty digits


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(120):
        yield


def divergence(epsilon: Any, order: Any) -> Any:
    """Renyi divergence of two unit Laplace densities at this distance, by quadrature over its three pieces."""
    left = mpmath.quad(lambda x: mpmath.exp(x - epsilon * (1 - order)) / 2, [-200, 0])
    middle = mpmath.quad(
        lambda x: mpmath.exp(-order * x - (1 - order) * (epsilon - x)) / 2, mpmath.linspace(0, epsilon, 5)
    )
    right = mpmath.quad(lambda x: mpmath.exp(-x + (1 - order) * epsilon) / 2, [epsilon, epsilon + 200])
    return mpmath.log(left + middle + right) / (order - 1)


def test_the_profile_is_just_above_the_table() -> None:
    assert len(TABLE["one"]) == 15
    for row in TABLE["one"]:
        truth = Fraction(row["delta"])
        found = laplace.delta_upper(Fraction(row["e0"]), at=Fraction(row["eps"]))
        assert truth * (1 - PRINTED) <= found <= truth * (1 + PRINTED)


def test_two_that_share_a_sensitivity_stay_below_one_that_has_it_all() -> None:
    assert len(TABLE["two"]) == 28
    closer = 0
    for row in TABLE["two"]:
        truth = Fraction(row["delta"])
        bound = laplace.delta_upper(Fraction(row["e0"]) + Fraction(row["e1"]), at=Fraction(row["eps"]))
        assert truth <= bound
        closer += truth > bound / 2
    assert closer > 10  # the bound is no triviality


def test_the_recipe_gives_the_table() -> None:
    with mpmath.workdps(make_laplace.DIGITS):
        for row in TABLE["one"][::4]:
            assert make_laplace.text(make_laplace.profile(mpf(row["e0"]), mpf(row["eps"]))) == row["delta"]
        for row in TABLE["two"][::9]:
            exact = make_laplace.profile_of_two(mpf(row["e0"]), mpf(row["e1"]), mpf(row["eps"]))
            assert make_laplace.text(exact) == row["delta"]
        for e0, epsilon in itertools.product((mpf("0.3"), mpf(2)), (mpf(-3), mpf("-0.2"), mpf(0), mpf(1), mpf(3))):
            assert abs(make_laplace.profile(e0, epsilon) - make_laplace.profile_closed(e0, epsilon)) < mpf(10) ** -40


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("order", ORDERS)
def test_the_renyi_curve_is_just_above_its_formula(epsilon: Fraction, order: Fraction) -> None:
    e, a = number(epsilon), number(order)
    formula = mpmath.log(
        a / (2 * a - 1) * mpmath.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)
    ) / (a - 1)  # fmt: skip
    assert just_above(laplace.renyi_upper(epsilon, order), formula)


@pytest.mark.parametrize(("epsilon", "order"), [("0.1", "1.5"), ("1", "2"), ("4", "8")])
def test_the_formula_is_the_divergence_of_the_densities(epsilon: str, order: str) -> None:
    with mpmath.workdps(30):
        found = number(laplace.renyi_upper(Fraction(epsilon), Fraction(order)))
        assert abs(found / divergence(mpf(epsilon), mpf(order)) - 1) < mpf(10) ** -20


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_zcdp_is_the_divergence_at_order_one_and_bounds_every_order(epsilon: Fraction) -> None:
    rho = laplace.cost_upper(epsilon, Measure.ZCDP)
    e = number(epsilon)
    assert just_above(rho, e + mpmath.exp(-e) - 1)
    for order in (*ORDERS, Fraction(101, 100), Fraction(20)):
        assert laplace.renyi_upper(epsilon, order) <= order * rho
    nearly = 1 + Fraction(1, 10**12)
    assert laplace.renyi_upper(epsilon, nearly) > nearly * rho * (1 - Fraction(1, 10**9))
    assert rho <= pure.cost_upper(epsilon, Measure.ZCDP)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gdp_is_the_diagonal_point_of_the_trade_off_curve(epsilon: Fraction) -> None:
    """The square root is the distance of two normal laws that confuse 1 - F(epsilon/2) of either: mpmath's quantile."""
    tail = mpmath.exp(-number(epsilon) / 2) / 2
    mu = mpmath.sqrt(number(laplace.mu_squared_upper(epsilon)))
    found = mpmath.erfc(mu / 2 / mpmath.sqrt(2)) / 2
    # Rounding mu up makes the tail smaller, by at most its slope times the rounding.
    assert 0 <= tail - found <= tail * mpf(10) ** -14


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_the_gaussian_profile_lies_above_and_one_per_cent_less_does_not(epsilon: Fraction) -> None:
    cost = laplace.mu_squared_upper(epsilon)
    points = [epsilon * step / 200 for step in range(200)]
    profile = [laplace.delta_upper(epsilon, at=point) for point in points]

    def short(mu_squared: Fraction) -> int:
        deltas = [gaussian.delta_upper(mu_squared, point) for point in points]
        return sum(delta < own * (1 - PRINTED) for delta, own in zip(deltas, profile, strict=True))

    assert short(cost) == 0
    assert short(cost * Fraction(99, 100)) > 0


def test_gdp_costs_less_than_any_pure_mechanism_of_the_same_epsilon() -> None:
    for epsilon, part in (("0.1", 0.95), ("0.5", 0.81), ("1", 0.70), ("2", 0.58), ("4", 0.51)):
        exact = Fraction(epsilon)
        assert round(float(laplace.mu_squared_upper(exact) / pure.mu_squared_upper(exact)), 2) == part


def rounded(scale: Any, at: Any, place: int) -> Any:
    """P(round(at + Laplace(scale)) = place)."""

    def below(x: Any) -> Any:
        return mpmath.exp(x / scale) / 2 if x < 0 else 1 - mpmath.exp(-x / scale) / 2

    return below(place + mpf("0.5") - at) - below(place - mpf("0.5") - at)


@pytest.mark.parametrize("distance", ["0.4", "1", "2.5"])
@pytest.mark.parametrize("at", ["0", "0.3", "1"])
def test_rounded_noise_keeps_the_profile_off_the_lattice_too(distance: str, at: str) -> None:
    scale, epsilon = mpf(2), Fraction(distance) / 2
    loud, quiet = zip(
        *((rounded(scale, mpf(distance), k), rounded(scale, mpf(0), k)) for k in range(-80, 80)), strict=True
    )
    factor = mpmath.exp(number(epsilon * Fraction(at)))
    for first, second in ((loud, quiet), (quiet, loud)):
        exact = sum(max(p - factor * q, mpf(0)) for p, q in zip(first, second, strict=True))
        assert exact <= number(laplace.delta_upper(epsilon, at=epsilon * Fraction(at))) + mpf(10) ** -15


def test_two_sided_geometric_noise_has_a_larger_profile() -> None:
    """Why its facts are those of any pure mechanism: one step of it is randomised response."""
    epsilon, at = Fraction(1), Fraction(1, 2)
    ratio = mpmath.exp(-1)
    law = [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-60, 61)]
    factor = mpmath.exp(number(at))
    exact = sum(max(p - factor * q, mpf(0)) for p, q in zip(law[1:], law, strict=False))
    assert (
        number(laplace.delta_upper(epsilon, at=at))
        < exact
        <= number(pure.delta_upper(epsilon, at=at)) * (1 + mpf(10) ** -20)
    )


def test_costs_and_refusals() -> None:
    sensitivity = Sensitivity(l1=Fraction(3), l2_squared=Fraction(9))
    assert laplace.epsilon(sensitivity, Fraction(4)) == Fraction(3, 4)
    assert laplace.cost_upper(Fraction(3, 4), Measure.PURE) == Fraction(3, 4)
    assert laplace.cost_upper(Fraction(1), Measure.GDP) == laplace.mu_squared_upper(Fraction(1))
    assert laplace.cost_upper(Fraction(1), Measure.renyi(Fraction(8))) == laplace.renyi_upper(Fraction(1), Fraction(8))
    for measure in (Measure.PURE, Measure.ZCDP, Measure.GDP, Measure.renyi(Fraction(2))):
        assert laplace.cost_upper(Fraction(0), measure) == 0
        with pytest.raises(RequestError):
            laplace.cost_upper(Fraction(-1), measure)
    with pytest.raises(RequestError):
        laplace.epsilon(sensitivity, Fraction(0))
    with pytest.raises(RequestError):
        laplace.renyi_upper(Fraction(1), Fraction(99, 100))
    with pytest.raises(RequestError):
        laplace.delta_upper(Fraction(1), at=Fraction(-1))
