"""The Gaussian profile against an oracle of 80 digits: one-sided, two-sided, and able to see one per cent."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from parco.errors import RequestError
from parco.privacy import gaussian
from parco.privacy.sensitivity import Sensitivity
from tests.data import make_gaussian

# A bound may be this much (relative) on its safe side of the truth, and nothing on the other; the oracle is printed to
# thirty digits, so it is itself trusted to 1e-28 only.
SLACK = Fraction(1, 10**12)
ORACLE = Fraction(1, 10**28)
TABLE = json.loads((Path(__file__).parents[1] / "data" / "gaussian.json").read_text())

Bound = Callable[[Fraction, Fraction], Fraction]


def faults(bound: Bound, section: str, *, side: int) -> list[dict[str, str]]:
    """The rows on which a bound is on the wrong side of the truth or too far on the right one (side +1: upper)."""
    return [row for row in TABLE[section] if not _fits(bound, section, row, side)]


def _fits(bound: Bound, section: str, row: dict[str, str], side: int) -> bool:
    numbers = {name: Fraction(text) for name, text in row.items()}
    if "mu" in numbers:
        numbers["mu"] **= 2
    names = {
        "profile": ("mu", "epsilon", "delta"),
        "epsilon": ("mu", "delta", "epsilon"),
        "mu": ("epsilon", "delta", "mu"),
    }
    first, second, result = names[section]
    truth, value = numbers[result], bound(numbers[first], numbers[second])
    if truth == 0:
        return value == 0
    excess = side * (value - truth) / truth
    return -ORACLE <= excess <= SLACK


CASES: list[tuple[str, Bound, Bound]] = [
    ("profile", gaussian.delta_upper, gaussian.delta_lower),
    ("epsilon", gaussian.epsilon_upper, gaussian.epsilon_lower),
    ("mu", gaussian.mu_squared_upper, gaussian.mu_squared_lower),
]


@pytest.mark.parametrize(("section", "upper", "lower"), CASES)
def test_bounds_enclose_the_truth_closely(section: str, upper: Bound, lower: Bound) -> None:
    assert len(TABLE[section]) >= 60
    assert faults(upper, section, side=1) == []
    assert faults(lower, section, side=-1) == []


@pytest.mark.parametrize(("section", "upper", "lower"), CASES)
def test_the_oracle_sees_a_wrong_side_and_one_per_cent(section: str, upper: Bound, lower: Bound) -> None:
    rows = sum(1 for row in TABLE[section] if Fraction(row[section if section != "profile" else "delta"]) > 0)
    one_per_cent = Fraction(101, 100)
    assert len(faults(lambda a, b: upper(a, b) * one_per_cent, section, side=1)) == rows
    assert len(faults(lambda a, b: upper(a, b) / one_per_cent, section, side=1)) == rows
    assert len(faults(lambda a, b: lower(a, b) * one_per_cent, section, side=-1)) == rows


def test_the_recipe_gives_the_table() -> None:
    with mp.workdps(make_gaussian.DIGITS):
        for row in TABLE["profile"][::17]:
            assert make_gaussian.text(make_gaussian.profile(mpf(row["mu"]), mpf(row["epsilon"]))) == row["delta"]
        for row in TABLE["epsilon"][::25]:
            assert make_gaussian.text(make_gaussian.epsilon_of(mpf(row["mu"]), mpf(row["delta"]))) == row["epsilon"]
        for row in TABLE["mu"][::25]:
            assert make_gaussian.text(make_gaussian.mu_of(mpf(row["epsilon"]), mpf(row["delta"]))) == row["mu"]


def test_the_oracle_agrees_with_the_integral_that_has_no_cancellation() -> None:
    with mp.workdps(40):
        for mu, epsilon in [("1e-9", "1e-9"), ("0.1", "0.5"), ("2", "1")]:
            high, point = mpf(mu), mpf(epsilon)
            nodes = mp.linspace(high / 10**6, high, 12)
            integral: Any = mp.quad(lambda m, point=point: mp.npdf(point / m - m / 2), nodes)
            assert abs(integral / make_gaussian.profile(high, point) - 1) < mpf("1e-6")


@settings(max_examples=40, deadline=None)
@given(
    mu_exponent=st.integers(-18, 12),
    delta_exponent=st.integers(-300, -1),
    digits=st.integers(1, 9),
)
def test_each_solution_is_proven_by_the_profile_itself(mu_exponent: int, delta_exponent: int, digits: int) -> None:
    mu_squared = digits * Fraction(10) ** mu_exponent / 1000
    delta = digits * Fraction(10) ** delta_exponent
    epsilon = gaussian.epsilon_upper(mu_squared, delta)
    assert gaussian.delta_upper(mu_squared, epsilon) <= delta
    below = gaussian.epsilon_lower(mu_squared, delta)
    assert epsilon - below <= epsilon / 2**59 + Fraction(1, 2**199)
    assert epsilon == below == 0 or gaussian.delta_lower(mu_squared, below) >= delta * (1 - SLACK)
    if epsilon:
        # Back through the cap's side: the largest mu^2 for (epsilon, delta) is the one we began with, or above it.
        assert gaussian.mu_squared_upper(epsilon, delta) >= mu_squared
        assert gaussian.mu_squared_lower(below, delta) <= mu_squared


@pytest.mark.parametrize("delta", [Fraction(1, 10**300), Fraction(1, 2), 1 - Fraction(1, 10**40)])
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 10**30), Fraction(10**5)])
def test_the_corners_of_the_range_are_solved(epsilon: Fraction, delta: Fraction) -> None:
    low, high = gaussian.mu_squared_lower(epsilon, delta), gaussian.mu_squared_upper(epsilon, delta)
    assert 0 < low < high <= low * (1 + SLACK)
    assert gaussian.delta_lower(low, epsilon) <= delta <= gaussian.delta_upper(high, epsilon)


def test_epsilon_near_zero_is_bounded_backwards() -> None:
    mu_squared = Fraction(1)
    delta = gaussian.delta_lower(mu_squared, Fraction(1, 10**40))
    epsilon = gaussian.epsilon_upper(mu_squared, delta)
    assert 0 < epsilon < Fraction(1, 10**15)
    assert delta * (1 - Fraction(1, 10**15)) <= gaussian.delta_lower(mu_squared, epsilon) <= delta
    assert gaussian.epsilon_upper(mu_squared, gaussian.delta_upper(mu_squared, Fraction(0))) == 0


def test_nothing_released_costs_nothing() -> None:
    assert gaussian.delta_upper(Fraction(0), Fraction(0)) == 0
    assert gaussian.epsilon_upper(Fraction(0), Fraction(1, 10**300)) == 0


def test_a_delta_too_small_to_write_is_bounded_by_the_floor() -> None:
    assert gaussian.delta_upper(Fraction(1, 10**18), Fraction(10**5)) == Fraction(1, 2**4096)
    assert gaussian.delta_lower(Fraction(1, 10**18), Fraction(10**5)) == 0


def test_the_cost_is_exact() -> None:
    sensitivity = Sensitivity(l1=Fraction(3), l2_squared=Fraction(3))
    assert gaussian.mu_squared(sensitivity, Fraction(1, 3)) == 27


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), Fraction(2)])
def test_delta_outside_its_range_is_refused(delta: Fraction) -> None:
    with pytest.raises(RequestError):
        gaussian.epsilon_upper(Fraction(1), delta)
    with pytest.raises(RequestError):
        gaussian.mu_squared_lower(Fraction(1), delta)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(RequestError):
        gaussian.delta_upper(Fraction(-1), Fraction(1))
    with pytest.raises(RequestError):
        gaussian.delta_upper(Fraction(1), Fraction(-1))
    with pytest.raises(RequestError):
        gaussian.mu_squared(Sensitivity(Fraction(1), Fraction(1)), Fraction(0))
