"""Ex-post conversions: against mpmath, and against the divergence they bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import log, mp, mpf

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import expost, gaussian, renyi
from parco.privacy.expost import ExPost

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


GDP = ExPost(Measure.GDP, Fraction(8), Fraction(1))
PURE = ExPost(Measure.PURE, None, Fraction(1))
DELTA = Fraction(1, 10**6)


def test_bounds_at_one_order_add_up_with_the_deltas_beside_them() -> None:
    first = ExPost.of(Measure.GDP, Fraction(1, 10), order=Fraction(8))
    second = ExPost.of(Measure.GDP, Fraction(2, 10), order=Fraction(8), delta=DELTA)
    both = first + second
    assert both == ExPost.of(Measure.GDP, Fraction(3, 10), order=Fraction(8), delta=DELTA)
    assert both == second + first
    assert (PURE + PURE).bound == 2


def test_bounds_of_another_order_or_measure_do_not_add_up_or_compare() -> None:
    for other in (replace(GDP, order=Fraction(9)), replace(GDP, measure=Measure.ZCDP), PURE):
        for combine in (GDP.__add__, GDP.within, lambda one: expost.over_parts([GDP, one], neighbours="add-or-remove")):
            with pytest.raises(RequestError, match="one order"):
                combine(other)


def test_a_bound_is_raised_and_never_lowered() -> None:
    assert GDP.raised(Fraction(3, 2)) == replace(GDP, bound=Fraction(3, 2))
    assert GDP.raised(Fraction(1)) == GDP
    with pytest.raises(RequestError, match="never lowered"):
        GDP.raised(Fraction(99, 100))


def test_a_run_within_its_cap_has_the_caps_ordinary_guarantee() -> None:
    cap = GDP.raised(Fraction(2))
    assert GDP.within(cap)
    assert not (cap + GDP).within(cap)
    assert not replace(GDP, delta=DELTA).within(cap)
    whole = expost.capped(replace(cap, delta=DELTA), delta=DELTA)
    assert whole.epsilon == renyi.epsilon_at_order_upper(Fraction(2), order=Fraction(8), delta=DELTA)
    assert (whole.delta, whole.order) == (2 * DELTA, Fraction(8))
    assert expost.capped(PURE, delta=DELTA) == expost.Bound(Fraction(1), Fraction(0))


def test_the_bound_over_parts_is_the_largest() -> None:
    parts = [GDP, GDP.raised(Fraction(3)), replace(GDP, delta=DELTA)]
    assert expost.over_parts(parts, neighbours="add-or-remove") == ExPost(Measure.GDP, Fraction(8), Fraction(3), DELTA)
    with pytest.raises(RequestError, match="add-or-remove"):
        expost.over_parts(parts, neighbours="replace")
    with pytest.raises(RequestError):
        expost.over_parts([], neighbours="add-or-remove")


def test_what_a_bound_converts_to() -> None:
    spent = replace(GDP, delta=DELTA)
    epsilon = expost.hockey_stick_epsilon_upper(Fraction(1), order=Fraction(8), delta=DELTA)
    assert spent.hockey_stick(DELTA) == expost.Bound(epsilon, 2 * DELTA, Fraction(8))
    shown = GDP.probabilistic(DELTA)
    assert shown.epsilon == expost.probabilistic_epsilon_upper(Fraction(1), order=Fraction(8), delta=DELTA)
    assert not shown.certified
    assert not isinstance(shown, expost.Bound | ExPost)
    with pytest.raises(RequestError, match="hockey-stick"):
        spent.probabilistic(DELTA)
    assert PURE.hockey_stick(DELTA) == expost.Bound(Fraction(1), Fraction(0))
    assert PURE.probabilistic(DELTA) == expost.Uncertified(Fraction(1), Fraction(0))


def test_a_pure_bound_has_no_order_and_every_other_one_has() -> None:
    assert ExPost.of(Measure.PURE, Fraction(1), order=Fraction(8)) == PURE
    renyi_four = Measure.renyi(Fraction(4))
    assert ExPost.of(renyi_four, Fraction(1), order=Fraction(4)).order == 4
    made: list[Callable[[], object]] = [
        lambda: ExPost(Measure.PURE, Fraction(8), Fraction(1)),
        lambda: ExPost(Measure.GDP, None, Fraction(1)),
        lambda: ExPost(Measure.GDP, Fraction(1), Fraction(1)),
        lambda: ExPost(renyi_four, Fraction(8), Fraction(1)),
        lambda: ExPost.of(renyi_four, Fraction(1), order=Fraction(8)),
        lambda: ExPost(Measure.GDP, Fraction(8), Fraction(-1)),
        lambda: ExPost(Measure.GDP, Fraction(8), Fraction(1), Fraction(-1)),
    ]
    for make in made:
        with pytest.raises(RequestError):
            make()


@given(
    bound=st.fractions(Fraction(0), Fraction(20), max_denominator=1000),
    orders=st.lists(
        st.fractions(Fraction(11, 10), Fraction(100), max_denominator=20), min_size=1, max_size=4, unique=True
    ),
    denominator=st.integers(2, 10**12),
)
def test_several_orders_cost_their_weights(bound: Fraction, orders: list[Fraction], denominator: int) -> None:
    """Each order at its share of delta: no better than the best order alone, no worse than it at the least share."""
    delta, weights = Fraction(1, denominator), tuple((order, Fraction(1, len(orders))) for order in orders)
    for convert in (expost.hockey_stick_epsilon_upper, expost.probabilistic_epsilon_upper):
        found = expost.least_upper(Measure.ZCDP, bound, weights=weights, delta=delta, convert=convert)
        each = [convert(order * bound, order=order, delta=delta) for order in orders]
        paid = [convert(order * bound, order=order, delta=delta / len(orders)) for order in orders]
        assert min(each) <= found.epsilon == min(paid)
        assert (found.delta, found.order is None) == (delta, len(orders) > 1)
