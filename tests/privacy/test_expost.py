"""Ex-post conversions: against mpmath, and against the divergence they bound."""

from __future__ import annotations

from fractions import Fraction

import pytest
from mpmath import log, mp, mpf

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import expost, gaussian

SLACK = Fraction(1, 10**12)
CASES = [
    (total, order, delta)
    for total in (Fraction(0), Fraction(1, 10), Fraction(3))
    for order in (Fraction(9, 8), Fraction(8), Fraction(64))
    for delta in (Fraction(1, 10**6), Fraction(1, 10**300))
]


def truths(bound: Fraction, order: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Hockey-stick and probabilistic epsilon from the formulas, at 60 digits."""
    with mp.workdps(60):
        b, a, d = (mpf(x.numerator) / x.denominator for x in (bound, order, delta))
        slack = log(1 / d) / (a - 1)
        values = (b + slack + log(1 - 1 / a) - log(a) / (a - 1), b + slack)
        hockey, probabilistic = (Fraction(str(mp.nstr(value, 45))) for value in values)
        return hockey, probabilistic


@pytest.mark.parametrize(("total", "order", "delta"), CASES)
def test_conversions_are_just_above_the_truth(total: Fraction, order: Fraction, delta: Fraction) -> None:
    bound = expost.bound_at_order(Measure.GDP, total, order=order)
    results = (
        expost.hockey_stick_epsilon_upper(bound, order=order, delta=delta),
        expost.probabilistic_epsilon_upper(bound, order=order, delta=delta),
    )
    for exact, result in zip(truths(bound, order, delta), results, strict=True):
        assert exact * (1 - Fraction(1, 10**40)) <= result <= exact * (1 + SLACK)


def test_the_bound_at_an_order_is_exact() -> None:
    assert expost.bound_at_order(Measure.GDP, Fraction(1, 10), order=Fraction(8)) == Fraction(4, 10)
    assert expost.bound_at_order(Measure.PURE, Fraction(1, 10), order=Fraction(8)) == Fraction(1, 10)


@pytest.mark.parametrize(("total", "order", "delta"), CASES)
def test_a_fixed_total_stays_above_the_exact_profile(total: Fraction, order: Fraction, delta: Fraction) -> None:
    # When nothing was adaptive both epsilons must lie above the exact one; the probabilistic one above that again.
    bound = expost.bound_at_order(Measure.GDP, total, order=order)
    exact = gaussian.epsilon_lower(total, delta)
    hockey = expost.hockey_stick_epsilon_upper(bound, order=order, delta=delta)
    assert exact <= hockey <= expost.probabilistic_epsilon_upper(bound, order=order, delta=delta)


def test_identity_with_the_linear_boundary() -> None:
    # Variance t, sensitivity D: (D/t)(D/2 + b) + a D with 2ab = log(1/delta), b = (alpha-1) D/2. Known value 9.0769388.
    delta, order = Fraction(1, 10**6), Fraction(9)
    total = Fraction(7, 10) ** 2 / Fraction(3, 10)
    bound = expost.bound_at_order(Measure.GDP, total, order=order)
    result = expost.probabilistic_epsilon_upper(bound, order=order, delta=delta)
    assert abs(result - Fraction("9.0769388")) < Fraction(1, 10**7)


def test_a_negative_epsilon_becomes_zero() -> None:
    assert expost.hockey_stick_epsilon_upper(Fraction(0), order=Fraction(2), delta=Fraction(1, 2)) == 0


def test_arguments_out_of_range_are_refused() -> None:
    good = {"order": Fraction(8), "delta": Fraction(1, 10)}
    for bad in ({"order": Fraction(1)}, {"delta": Fraction(0)}, {"delta": Fraction(1)}):
        for convert in (expost.hockey_stick_epsilon_upper, expost.probabilistic_epsilon_upper):
            with pytest.raises(RequestError):
                convert(Fraction(1), **(good | bad))
    with pytest.raises(RequestError):
        expost.probabilistic_epsilon_upper(Fraction(-1), **good)
    with pytest.raises(RequestError):
        expost.bound_at_order(Measure.GDP, Fraction(1), order=Fraction(1))
