"""Curves in doubles: always on their side of the truth, as close as stated, of functions as exact as claimed."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.privacy import gaussian, gaussian_curves

TABLE = json.loads((Path(__file__).parents[1] / "data" / "gaussian.json").read_text())
U = mpmath.mpf(2) ** -53


def moved(delta: Fraction, part: Fraction) -> Fraction:
    """A delta made harder to reach by this part of itself, or of 1 - delta where that is smaller."""
    return delta * (1 - part) if delta < Fraction(1, 2) else 1 - (1 - delta) * (1 + part)


def test_epsilons_are_just_above_the_oracle() -> None:
    rows = [row for row in TABLE["epsilon"] if float(row["delta"]) >= 1e-300]
    # Both are taken as doubles: the square is rounded up and delta down, so that the oracle must stay below.
    squares = np.array([np.nextafter(float(row["mu"]) ** 2 * (1 + 2e-16), np.inf) for row in rows])
    deltas = np.array([np.nextafter(float(row["delta"]), 0) for row in rows])
    found = gaussian_curves.epsilons_upper(squares, deltas)
    for row, square, epsilon in zip(rows, squares, found, strict=True):
        truth = float(row["epsilon"])
        assert truth <= epsilon <= truth * (1 + 1e-11) + 1e-11 * square


def test_deltas_are_just_above_the_oracle() -> None:
    rows = [row for row in TABLE["profile"] if float(row["mu"]) <= 1e4]
    squares = np.array([np.nextafter(float(row["mu"]) ** 2 * (1 + 2e-16), np.inf) for row in rows])
    epsilons = np.array([np.nextafter(float(row["epsilon"]), 0) for row in rows])
    found = gaussian_curves.deltas_upper(squares, epsilons)
    for row, delta in zip(rows, found, strict=True):
        truth = Fraction(row["delta"])
        # Moving mu^2 and epsilon by one rounding moves delta by up to 700 of them at delta = 1e-300.
        assert truth <= Fraction(float(delta)) <= truth * (1 + Fraction(1, 10**11))


EXPONENTS = st.floats(min_value=0, max_value=1)


@settings(max_examples=60, deadline=None)
@given(mu=EXPONENTS, delta=EXPONENTS, near_one=st.booleans())
# Where doubles lose most: a difference of Mills ratios far out.
@example(mu=0.6875, delta=0.984375, near_one=False)
@example(mu=0.6957075377622818, delta=0.984375, near_one=False)
@example(mu=0.677, delta=0.9999, near_one=False)
def test_epsilons_and_the_way_back_are_on_their_sides_and_close(mu: float, delta: float, near_one: bool) -> None:
    square, wanted = 10 ** (-18 + 26 * mu), 10 ** (-300 * delta) if not near_one else 1 - 10 ** (-11.9 * delta - 0.1)
    wanted = min(wanted, 0.999)
    exact, aim = Fraction(square), Fraction(wanted)
    epsilon = float(gaussian_curves.epsilons_upper(square, wanted))
    assert epsilon >= gaussian.epsilon_lower(exact, aim)
    top = gaussian.epsilon_upper(exact, moved(aim, Fraction(5, 10**12)))
    assert epsilon <= top + Fraction(1, 2**49) * max(Fraction(epsilon), exact)
    back = float(gaussian_curves.mu_squareds_lower(epsilon, wanted))
    assert back <= gaussian.mu_squared_upper(Fraction(epsilon), aim)
    if back >= 1e-18:
        low = gaussian.mu_squared_lower(Fraction(epsilon), moved(aim, Fraction(2, 10**11)))
        assert back >= min(low, Fraction(10**8)) * (1 - Fraction(1, 2**49))
    reached = Fraction(float(gaussian_curves.deltas_upper(square, epsilon)))
    truth = gaussian.delta_lower(exact, Fraction(epsilon))
    assert reached >= truth
    assert reached <= max(truth * (1 + Fraction(4, 10**12)), Fraction(1, 10**300) * (1 + U_FRACTION))
    assert reached - truth <= Fraction(4, 10**12) * (1 - truth) + Fraction(1, 2**52)


U_FRACTION = Fraction(1, 2**52)


def test_arrays_broadcast_and_odd_corners_go_to_balls() -> None:
    mus, deltas = np.array([[0.0], [1e-12], [1.0], [1e5]]), np.array([1e-305, 1e-6, 0.5, 1 - 1e-15])
    found = gaussian_curves.epsilons_upper(mus**2, deltas)
    assert found.shape == (4, 4)
    for row, mu in zip(found, mus[:, 0], strict=True):
        for epsilon, delta in zip(row, deltas, strict=True):
            exact = gaussian.epsilon_upper(Fraction(float(mu**2)), Fraction(float(delta)))
            assert gaussian.epsilon_lower(Fraction(float(mu**2)), Fraction(float(delta))) <= epsilon
            assert epsilon <= exact * (1 + Fraction(1, 10**10))
    assert (found[0] == 0).all()
    assert gaussian_curves.mu_squareds_lower(1.7e308, 0.5) > 1e308
    assert gaussian_curves.deltas_upper(0.0, 1.0) == 0
    assert gaussian_curves.deltas_upper(1e-6, 40.0) == 1e-300


def test_a_whole_curve_falls_in_delta_and_rises_in_mu() -> None:
    mus = np.geomspace(1e-3, 50, 300)
    by_mu = gaussian_curves.epsilons_upper(mus**2, 1e-6)
    assert (np.diff(by_mu) > 0)[by_mu[:-1] > 0].all()
    by_delta = gaussian_curves.epsilons_upper(1.0, np.geomspace(1e-200, 0.3, 300))
    assert (np.diff(by_delta) < 0).all()


@pytest.mark.parametrize(
    "arguments", [(-1.0, 0.5), (1.0, 0.0), (1.0, 1.0), (np.nan, 0.5), (1.0, np.nan), (np.inf, 0.5)]
)
def test_what_is_out_of_range_is_refused(arguments: tuple[float, float]) -> None:
    for curve in (gaussian_curves.epsilons_upper, gaussian_curves.mu_squareds_lower):
        with pytest.raises(RequestError):
            curve(*arguments)


@pytest.mark.parametrize("arguments", [(-1.0, 0.5), (1.0, -1e-9), (np.nan, 0.5), (1.0, np.nan), (np.inf, 0.5)])
def test_a_profile_out_of_range_is_refused(arguments: tuple[float, float]) -> None:
    with pytest.raises(RequestError):
        gaussian_curves.deltas_upper(*arguments)


# The errors that docs/mathematics.md derives, "Curves in doubles": what is seen must lie below what is claimed.

POINTS = sorted({*np.linspace(-0.5, 8, 120), *np.geomspace(8, 2e4, 60), 6.999999, 7.0, 7.000001})


def errors(found: np.ndarray, truths: list[mpmath.mpf]) -> list[mpmath.mpf]:
    return [abs(mpmath.mpf(float(value)) / truth - 1) / U for value, truth in zip(found, truths, strict=True)]


def test_the_mills_ratio_and_its_slope_are_as_exact_as_claimed() -> None:
    with mpmath.workdps(60):
        exact = [mpmath.mpf(float(t)) for t in POINTS]
        ratios = [mpmath.exp(t**2 / 2) * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(t / mpmath.sqrt(2)) for t in exact]
        slopes = [1 - t * ratio for t, ratio in zip(exact, ratios, strict=True)]
        points = np.array(POINTS)
        limit = gaussian_curves._MILLS_ERROR
        assert max(errors(gaussian_curves._mills(points), ratios)) < limit / 2
        kept = points < 100
        found = gaussian_curves._minus_mills_slope(points[kept])
        assert max(errors(found, [slope for slope, keep in zip(slopes, kept, strict=True) if keep])) < limit / 2


def test_exponential_and_density_are_as_exact_as_claimed() -> None:
    draw = random.Random(3)
    values = np.array([*(draw.uniform(-700, 700) for _ in range(300)), *(draw.uniform(-1, 1) for _ in range(100)), 0.0])
    with mpmath.workdps(40):
        truths = [mpmath.exp(mpmath.mpf(float(value))) for value in values]
        assert max(errors(gaussian_curves._exp(values), truths)) < 4
        points = values[:300] / 20
        densities = [mpmath.npdf(mpmath.mpf(float(point))) for point in points]
        seen = errors(gaussian_curves._phi(points), densities)
        claimed = gaussian_curves._phi_error(points) * 2.0**53
        assert all(error < limit for error, limit in zip(seen, claimed, strict=True))


def test_the_rule_of_lobatto_is_never_below_the_integral_and_close() -> None:
    draw = random.Random(4)
    cases = [(draw.uniform(-0.24, 37), 10 ** draw.uniform(-9, -0.31)) for _ in range(80)] + [(-0.25, 0.5), (37.0, 0.5)]
    cases = [(max(x, -mu / 2), mu) for x, mu in cases]
    x, mu = (np.array(column) for column in zip(*cases, strict=True))
    with mpmath.workdps(60):

        def ratio(t: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(t**2 / 2) * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(t / mpmath.sqrt(2))

        truths = [ratio(mpmath.mpf(a)) - ratio(mpmath.mpf(a) + mpmath.mpf(b)) for a, b in cases]
        assert max(errors(gaussian_curves._drop_by_lobatto(x, mu), truths)) < gaussian_curves._DROP_ERROR / 2


def test_the_points_and_weights_of_lobatto_are_those_of_the_polynomial() -> None:
    """Interior points: zeros of the derivative of the seventh Legendre polynomial; weights 2/(8 7 P7(x)^2)."""
    with mpmath.workdps(40):
        for point, weight in gaussian_curves._LOBATTO:
            exact = mpmath.mpf(1)
            if point < 1:
                exact = mpmath.findroot(lambda x: mpmath.diff(lambda y: mpmath.legendre(7, y), x), mpmath.mpf(point))
            assert float(exact) == point
            assert float(2 / (56 * mpmath.legendre(7, exact) ** 2)) == weight


def test_a_margin_that_is_taken_away_is_noticed() -> None:
    """The comparison on which every solution rests fails where delta is one part in 10^12 too small for x."""
    mu, x = np.array([0.3, 1.0, 40.0]), np.array([4.0, 4.0, -3.0])
    truths = [
        gaussian.delta_upper(Fraction(m) ** 2, Fraction(m) * Fraction(p) + Fraction(m) ** 2 / 2)
        for m, p in zip(mu, x, strict=True)
    ]
    for part, holds in ((Fraction(-1, 10**11), True), (Fraction(1, 10**11), False)):
        deltas = np.array([float(moved(truth, part)) for truth in truths])
        assert (gaussian_curves._at_most(x, mu, deltas) == holds).all()
