"""Filters and odometers: exact integers, any order, refusals that say what is left, and an analyst who stops to win."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from parco.errors import BudgetError, RequestError
from parco.measure import COST_UNIT, DELTA_UNIT, Measure, units_ceil
from parco.privacy import conversion, expost, gaussian, renyi
from parco.privacy.filters import Bound, Filter, Odometer

ONE = 10**15
RENYI = Measure.renyi(Fraction(12))
MEASURES = [Measure.PURE, Measure.ZCDP, Measure.GDP, RENYI]
DELTA = Fraction(1, 10**6)
ORDERS = ((Fraction(6), Fraction(1, 2)), (Fraction(24), Fraction(1, 2)))

CHARGES = st.lists(st.tuples(st.integers(0, ONE), st.integers(0, 10**9)), min_size=1, max_size=12)


def odometer(measure: Measure) -> Odometer:
    if measure == Measure.PURE:
        return Odometer(measure, Fraction(0), ())
    return Odometer(measure, DELTA, ((measure.order or Fraction(12), Fraction(1)),))


@given(charges=CHARGES, seed=st.randoms(use_true_random=False))
def test_the_order_of_charges_does_not_matter(charges: list[tuple[int, int]], seed: Random) -> None:
    shuffled = sorted(charges, key=lambda _: seed.random())
    ends = []
    for sequence in (charges, shuffled):
        strict, open_ended = Filter(Measure.GDP, 12 * ONE, delta_cap=10**11), odometer(Measure.GDP)
        for cost, delta in sequence:
            strict, open_ended = strict.admit(cost, delta=delta), open_ended.admit(cost, delta=delta)
        ends.append((strict, open_ended))
    assert ends[0] == ends[1]
    assert ends[0][0].spent == ends[0][1].spent == sum(cost for cost, _ in charges)


def test_ten_tenths_fit_and_not_one_unit_more() -> None:
    state = Filter(Measure.PURE, ONE)
    for _ in range(10):
        before, state = state, state.admit(units_ceil(Fraction(1, 10)))
        assert before.remaining == state.remaining + ONE // 10  # the record before is as it was
    assert state.remaining == 0
    with pytest.raises(
        BudgetError, match=r"0\.000000000000001 pure, and 0 of 1 is left; nothing was charged"
    ) as caught:
        state.admit(1)
    assert caught.value.facts == {"measure": "pure", "asked": "0.000000000000001", "remaining": "0", "cap": "1"}
    assert state.admit(0) == state


@given(costs=st.lists(st.integers(0, 4 * ONE), max_size=20))
def test_what_is_admitted_never_exceeds_the_cap_and_what_is_refused_would(costs: list[int]) -> None:
    state = Filter(Measure.ZCDP, 7 * ONE)
    for cost in costs:
        try:
            following = state.admit(cost)
        except BudgetError:
            assert state.spent + cost > state.cap
        else:
            assert following.spent == state.spent + cost <= state.cap
            state = following


def test_the_mechanisms_delta_has_a_cap_of_its_own() -> None:
    state = Filter(Measure.GDP, ONE, delta_cap=10**9).admit(ONE // 2, delta=6 * 10**8)
    with pytest.raises(BudgetError, match=r"delta, and 0\.0000000004 of 0\.000000001 is left"):
        state.admit(0, delta=5 * 10**8)
    assert state.delta_remaining == 4 * 10**8
    bound = state.bound(DELTA)
    assert bound == Bound(gaussian.epsilon_upper(Fraction(1), DELTA), DELTA + Fraction(1, 10**9))
    assert Filter(Measure.PURE, ONE, delta_cap=10**9).bound(DELTA) == Bound(Fraction(1), Fraction(1, 10**9))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_filter_claims_its_cap_whatever_was_spent(measure: Measure) -> None:
    fresh = Filter(measure, 2 * ONE)
    assert fresh.bound(DELTA).epsilon == conversion.epsilon_upper(measure, Fraction(2), DELTA)
    assert fresh.admit(ONE).bound(DELTA) == fresh.bound(DELTA)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_an_odometer_reads_the_ex_post_conversions_of_what_was_spent(measure: Measure) -> None:
    empty = odometer(measure)
    run = empty.admit(ONE // 3).admit(ONE // 4, delta=10**8)
    total = (ONE // 3 + ONE // 4) * COST_UNIT
    whole = run.delta + 10**8 * DELTA_UNIT
    if measure == Measure.PURE:
        assert run.hockey_stick() == Bound(total, whole)
        assert empty.probabilistic() == Bound(Fraction(0), Fraction(0))
    else:
        order = Fraction(12)
        bound = expost.bound_at_order(measure, total, order=order)
        exact = expost.hockey_stick_epsilon_upper(bound, order=order, delta=DELTA)
        assert run.hockey_stick() == Bound(exact, whole, order)
        assert empty.hockey_stick().epsilon < run.hockey_stick().epsilon
        assert empty.probabilistic().epsilon < empty.admit(1).probabilistic().epsilon
    with pytest.raises(RequestError, match="only the hockey-stick bound holds"):
        run.probabilistic()


def test_weighted_orders_take_the_least_each_at_its_share_of_delta() -> None:
    both = Odometer(Measure.GDP, DELTA, ORDERS)
    singles = [Odometer(Measure.GDP, weight * DELTA, ((order, Fraction(1)),)) for order, weight in ORDERS]
    winners = set()
    for cost in (ONE // 1000, ONE // 10, ONE, 9 * ONE):
        for read in (Odometer.hockey_stick, Odometer.probabilistic):
            each = [read(single.admit(cost)).epsilon for single in singles]
            assert read(both.admit(cost)) == Bound(min(each), DELTA)
            winners.add(each.index(min(each)))
    assert winners == {0, 1}


@pytest.mark.parametrize(
    "made",
    [
        lambda: Filter(Measure.GDP, -1),
        lambda: Filter(Measure.GDP, 2**63),
        lambda: Filter(Measure.GDP, ONE, spent=ONE + 1),
        lambda: Filter(Measure.GDP, ONE, delta_cap=1, delta_spent=2),
        lambda: Filter(Measure.GDP, ONE).admit(-1),
        lambda: Filter(Measure.GDP, ONE).admit(1, delta=-1),
        lambda: odometer(Measure.GDP).admit(-1),
        lambda: Odometer(Measure.PURE, DELTA, ()),
        lambda: Odometer(Measure.PURE, Fraction(0), ORDERS),
        lambda: Odometer(Measure.GDP, Fraction(0), ORDERS),
        lambda: Odometer(Measure.GDP, DELTA, ()),
        lambda: Odometer(Measure.GDP, DELTA, ORDERS + ORDERS),
        lambda: Odometer(Measure.GDP, DELTA, ((Fraction(1), Fraction(1)),)),
        lambda: Odometer(Measure.GDP, DELTA, ((Fraction(2), Fraction(11, 10)),)),
        lambda: Odometer(Measure.GDP, DELTA, ((Fraction(2), Fraction(0)),)),
        lambda: Odometer(RENYI, DELTA, ((Fraction(2), Fraction(1)),)),
    ],
)
def test_what_makes_no_sense_is_refused(made: Callable[[], object]) -> None:
    with pytest.raises(RequestError):
        made()


# An analyst who looks at the loss and stops as soon as the bound shown is broken. The loss of k Gaussian steps of cost
# s is a random walk with steps N(s/2, s); the part of it that still runs is kept as a density on a grid.

Array = NDArray[np.float64]
STEP, STEPS = Fraction(1, 10), 8
GRID, WIDTH = np.linspace(-6, 9, 6001, retstep=True)


def broken(bounds: list[float]) -> tuple[float, float]:
    """What stopping at the first loss above the bound of its step reaches: delta in the hockey-stick sense, and chance.

    The first is the sum over steps of E[(1 - e^(bound - loss))+] over the runs that stop there: no epsilon-delta claim
    with these bounds holds for a smaller delta.
    """
    scale = math.sqrt(STEP)
    kernel = np.exp(-((GRID - GRID[0] - (GRID[-1] - GRID[0]) / 2 - float(STEP) / 2) ** 2) / (2 * float(STEP)))
    kernel *= WIDTH / (scale * math.sqrt(2 * math.pi))
    running = np.exp(-((GRID - float(STEP) / 2) ** 2) / (2 * float(STEP))) / (scale * math.sqrt(2 * math.pi))
    slack = chance = 0.0
    for bound in bounds:
        above = bound < GRID
        slack += float((running[above] * -np.expm1(bound - GRID[above])).sum() * WIDTH)
        chance += float(running[above].sum() * WIDTH)
        running = np.convolve(np.where(above, 0, running), kernel, mode="same")
    return slack, chance


def test_an_analyst_who_stops_breaks_the_profile_of_the_running_total_and_no_odometer() -> None:
    delta = Fraction(1, 1000)
    totals = [STEP * (place + 1) for place in range(STEPS)]
    naive = [float(gaussian.epsilon_upper(total, delta)) for total in totals]
    assert broken(naive)[0] > 2 * delta
    # Shown once, at the end, the same profile holds: it is the stopping that breaks it.
    never = [math.inf] * (STEPS - 1)
    assert math.isclose(broken([*never, naive[-1]])[0], delta, rel_tol=1e-3)
    for weights in (((Fraction(6), Fraction(1)),), ORDERS):
        run, hockey, probable = Odometer(Measure.GDP, delta, weights), [], []
        for _ in totals:
            run = run.admit(units_ceil(STEP))
            hockey.append(float(run.hockey_stick().epsilon))
            probable.append(float(run.probabilistic().epsilon))
        assert 0.01 * delta < broken(hockey)[0] <= delta
        assert 0.01 * delta < broken(probable)[1] <= delta


def test_the_best_order_chosen_at_each_stop_would_be_broken_too() -> None:
    """Why orders and weights are fixed before the run: thirty stops, each at the order that is best there."""
    delta = Fraction(1, 1000)
    totals = [STEP * (place + 1) for place in range(30)]
    assert broken([float(renyi.epsilon_upper(total / 2, delta)) for total in totals])[0] > 1.4 * delta
    run, weighted = Odometer(Measure.GDP, delta, ORDERS), []
    for _ in totals:
        run = run.admit(units_ceil(STEP))
        weighted.append(float(run.hockey_stick().epsilon))
    assert broken(weighted)[0] <= delta
