"""Bounded range: against exponential mechanisms enumerated exactly, and each step of the gdp proof in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import exponential, gaussian, pure
from tests.privacy.exactly import just_above, number

EPSILONS = [Fraction(1, 10**9), Fraction(1, 2), Fraction(2), Fraction(40)]
ORDERS = [1 + Fraction(1, 10**9), Fraction(3, 2), Fraction(2), Fraction(30)]
TINY = mpf(10) ** -25


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(80):
        yield


def choice(epsilon: Fraction, utilities: Sequence[int]) -> list[Any]:
    """The exponential mechanism itself, utilities in twelfths of the sensitivity."""
    weights = [mpmath.exp(number(epsilon) * utility / 24) for utility in utilities]
    return [weight / sum(weights) for weight in weights]


def divergence(first: Sequence[Any], second: Sequence[Any], order: Any) -> Any:
    moments = sum(p**order * q ** (1 - order) for p, q in zip(first, second, strict=True))
    return mpmath.log(moments) / (order - 1)


def profile(first: Sequence[Any], second: Sequence[Any], at: Any) -> Any:
    return sum(max(p - mpmath.exp(at) * q, mpf(0)) for p, q in zip(first, second, strict=True))


def two_candidates(epsilon: Fraction, factor: Any) -> tuple[list[Any], list[Any]]:
    """The pair with losses log(factor) and log(factor) - epsilon, 1 < factor < e^eps: a choice among two."""
    whole = mpmath.exp(number(epsilon))
    rare = (whole - factor) / (factor * (whole - 1))
    return [factor * rare, factor / whole * (1 - rare)], [rare, 1 - rare]


UTILITIES = st.lists(st.tuples(st.integers(-40, 40), st.integers(-12, 12)), min_size=2, max_size=5)


@settings(max_examples=60, deadline=None)
@given(moves=UTILITIES, epsilon=st.sampled_from(EPSILONS[1:]), order=st.sampled_from(ORDERS), part=st.integers(0, 12))
def test_no_exponential_mechanism_exceeds_any_line(
    moves: list[tuple[int, int]], epsilon: Fraction, order: Fraction, part: int
) -> None:
    with mpmath.workdps(50):
        law = choice(epsilon, [utility for utility, _ in moves])
        other = choice(epsilon, [utility + move for utility, move in moves])
        at = epsilon * Fraction(part, 12)
        losses = [mpmath.log(p / q) for p, q in zip(law, other, strict=True)]
        assert max(losses) - min(losses) <= number(epsilon) + TINY
        exact = divergence(law, other, number(order))
        assert exact <= number(exponential.renyi_upper(epsilon, order)) + TINY
        assert exact <= number(order * exponential.cost_upper(epsilon, Measure.ZCDP)) + TINY
        delta = profile(law, other, number(at))
        assert delta <= number(exponential.delta_upper(epsilon, at=at)) + TINY
        cost = exponential.cost_upper(epsilon, Measure.GDP)
        assert delta <= number(gaussian.delta_upper(cost, at)) + TINY


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("order", ORDERS)
def test_a_choice_among_two_attains_the_renyi_curve(epsilon: Fraction, order: Fraction) -> None:
    whole, alpha = mpmath.exp(number(epsilon)), number(order)
    first, second = whole - whole ** (1 - alpha), 1 - whole ** (1 - alpha)
    best = (alpha - 1) * first / (alpha * second)
    assert 1 < best < whole
    truth = divergence(*two_candidates(epsilon, best), alpha)
    assert just_above(exponential.renyi_upper(epsilon, order), truth)
    for other in (best * mpf("1.001"), best / mpf("1.001")):
        if 1 < other < whole:
            assert divergence(*two_candidates(epsilon, other), alpha) < truth


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("part", [Fraction(0), Fraction(1, 3), Fraction(9, 10)])
def test_a_choice_among_two_attains_the_profile(epsilon: Fraction, part: Fraction) -> None:
    at = epsilon * part
    best = mpmath.exp(number(epsilon + at) / 2)
    truth = profile(*two_candidates(epsilon, best), number(at))
    assert just_above(exponential.delta_upper(epsilon, at=at), truth)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_zcdp_is_the_divergence_at_order_one_and_below_the_published_line(epsilon: Fraction) -> None:
    rho = exponential.cost_upper(epsilon, Measure.ZCDP)
    e, whole = number(epsilon), mpmath.exp(number(epsilon))
    assert just_above(rho, mpmath.log((whole - 1) / e) - 1 + e / (whole - 1))
    assert rho <= min(epsilon**2 / 8, epsilon)
    for order in (*ORDERS, Fraction(101, 100), Fraction(20)):
        assert exponential.renyi_upper(epsilon, order) <= order * rho
    nearly = 1 + Fraction(1, 10**12)
    assert exponential.renyi_upper(epsilon, nearly) > nearly * rho * (1 - Fraction(1, 10**9))


# The proof of the gdp line, docs/mathematics.md, "Bounded range", in numbers.


def quantile(rate: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * rate - 1)


@pytest.mark.parametrize("epsilon", [mpf("0.1"), mpf(2), mpf(9)])
def test_the_trade_off_curve_is_the_logistic_shift_and_its_steepest_point_is_on_the_diagonal(epsilon: Any) -> None:
    whole = mpmath.exp(epsilon)

    def gap(y: Any) -> Any:
        return quantile(1 / (1 + mpmath.exp(-y))) - quantile(1 / (1 + mpmath.exp(epsilon - y)))

    for step in range(1, 20):
        rate = mpf(step) / 20
        curve = (1 - rate) / (1 + (whole - 1) * rate)
        shift = 1 / (1 + mpmath.exp(epsilon - mpmath.log((1 - rate) / rate)))
        assert abs(curve - shift) < TINY
        # The conjugate of the profile: the best straight line below the curve, over a mesh of t = e^(epsilon').
        root = mpmath.sqrt(whole)
        mesh = (mpmath.exp(2 * epsilon * (mpf(place) / 400 - mpf(1) / 2)) for place in range(401))
        lines = max(1 - (root - mpmath.sqrt(t)) ** 2 / (whole - 1) - t * rate for t in mesh)
        assert curve - mpf("1e-3") <= lines <= curve + TINY
    top = gap(epsilon / 2)
    assert abs(top**2 / number(exponential.mu_squared_upper(Fraction(str(epsilon)))) - 1) < mpf(10) ** -15
    for away in (mpf("0.01"), mpf(1), mpf(5)):
        assert gap(epsilon / 2 + away) < top
        assert abs(gap(epsilon / 2 + away) - gap(epsilon / 2 - away)) < TINY


def test_the_signs_on_which_concavity_rests() -> None:
    """On the positive axis h > 0, h' is first positive and then negative, what its own slope has the sign of -+."""

    def signs(function: Any) -> str:
        found = ["+" if function(mpf(step) / 50) > 0 else "-" for step in range(1, 600)]
        return "".join(sign for place, sign in enumerate(found) if place == 0 or found[place - 1] != sign)

    def h(z: Any) -> Any:
        return mpmath.npdf(z) * (1 - 2 * mpmath.ncdf(-z)) - z * mpmath.ncdf(z) * mpmath.ncdf(-z)

    def h_slope(z: Any) -> Any:
        return 2 * mpmath.npdf(z) ** 2 - mpmath.ncdf(z) * mpmath.ncdf(-z)

    assert abs(mpmath.diff(h, mpf("0.7")) - h_slope(mpf("0.7"))) < mpf(10) ** -15
    assert signs(h) == "+"
    assert signs(h_slope) == "+-"
    assert signs(lambda z: 1 - 2 * mpmath.ncdf(-z) - 4 * z * mpmath.npdf(z)) == "-+"


def test_no_smaller_gdp_cost_covers_them_all() -> None:
    epsilon = Fraction(2)
    cost = exponential.mu_squared_upper(epsilon) * Fraction(99, 100)
    points = [epsilon * step / 100 for step in range(100)]
    assert any(gaussian.delta_upper(cost, at) < exponential.delta_upper(epsilon, at=at) for at in points)


def test_costs_and_refusals() -> None:
    assert exponential.cost_upper(Fraction(2), Measure.PURE) == 2
    assert exponential.cost_upper(Fraction(2), Measure.GDP) == pure.mu_squared_upper(Fraction(1))
    order = Fraction(3)
    assert exponential.cost_upper(Fraction(2), Measure.renyi(order)) == exponential.renyi_upper(Fraction(2), order)
    assert exponential.delta_upper(Fraction(2), at=Fraction(2)) == 0
    for measure in (Measure.PURE, Measure.ZCDP, Measure.GDP, Measure.renyi(Fraction(2))):
        assert exponential.cost_upper(Fraction(0), measure) == 0
        with pytest.raises(RequestError):
            exponential.cost_upper(Fraction(-1), measure)
    with pytest.raises(RequestError):
        exponential.renyi_upper(Fraction(1), Fraction(1, 2))
