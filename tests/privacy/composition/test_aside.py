"""Outliers set aside: what is told and dropped, and the figures that come of it, against outcomes gone through."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from mpmath import mp, mpf

from parco.balls import precision
from parco.errors import InternalError
from parco.privacy.composition import Interval
from parco.privacy.composition.aside import _OFF as OFF
from parco.privacy.composition.aside import _THRESHOLDS as THRESHOLDS
from parco.privacy.composition.aside import delta_aside, epsilon_aside, set_aside
from parco.privacy.composition.assemble import order_of
from parco.privacy.composition.bare import Bare
from parco.privacy.composition.groups import grouped
from parco.privacy.composition.rounding import ELEMENTARY, UNIT, exp_of, log_interval
from parco.privacy.composition.solve import solve, solve_delta
from parco.privacy.schedule import Schedule
from tests.privacy.composition.build import composed, record
from tests.privacy.composition.exact import BITS, faults, profile_of

mp.dps = 50

Entry = dict[str, Any]

SMALL: dict[str, list[Entry]] = {
    "a response that tells": [
        record("randomised-response", epsilon="200", rate="1e-6", times=20),
        record("pure", epsilon="0.5", times=30),
    ],
    "hardly ever told": [
        record("approximate", epsilon="1e-3", delta="1e-40", rate="0.8", times=6),
        record("pure", epsilon="2e-4", rate="0.1", times=20),
    ],
    "one Laplace release": [
        record("laplace", sensitivity="150", scale="1", rate="1e-6"),
        record("pure", epsilon="0.3", times=12),
    ],
    "one exponential mechanism": [
        record("exponential", epsilon="300", rate="1e-5"),
        record("pure", epsilon="0.3", times=12),
    ],
    "one Gaussian release": [
        record("gaussian", sensitivity="1", scale="1", rate="1e-4"),
        record("pure", epsilon="0.3", times=12),
    ],
    "one Gaussian release with hardly any noise": [
        record("gaussian", sensitivity="60", scale="1", rate="1e-4"),
        record("pure", epsilon="0.3", times=12),
    ],
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("delta", ["3e-5", "1e-9"])
def test_outliers_set_aside_leave_the_truth_in_the_interval(name: str, delta: str) -> None:
    entries, target = SMALL[name], Fraction(delta)
    groups = grouped(Schedule.of(entries).releases)
    found = []
    for removal in (True, False):
        others = partial(order_of, removal=removal)
        found.append(epsilon_aside(groups, (target, target), 1e-3, removal=removal, ceiling=0.0, others=others))
    with precision(BITS):
        truth = profile_of(entries)
    low, high = (max(getattr(one, end) for one in found) for end in ("lower", "upper"))
    assert faults(Interval(Fraction(low), Fraction(high)), truth, delta, "1e-3") == []


def test_what_is_told_is_what_is_at_least_so_large() -> None:
    entry = record("randomised-response", epsilon="200", rate="1e-6", times=20)
    groups = grouped(Schedule.of([entry]).releases)
    aside = set_aside(
        groups, removal=True, threshold=64.0, budget=Fraction(1, 10**20), others=partial(order_of, removal=True)
    )
    q, odds = mpf(1) / 10**6, mp.exp(200)
    mass = (1 - q) / (1 + odds) + q * odds / (1 + odds)
    told = 1 - (1 - mass) ** 20
    low, high = (mpf(end.numerator) / end.denominator for end in aside.told)
    # The oracle's own 50 digits lose some where 1 - told is near 1.
    slack = mpf("1e-40")
    assert low * (1 - slack) <= told <= high * (1 + slack) <= low * (1 + 3 * slack)
    assert aside.dropped == 0
    kept = set_aside(
        groups,
        removal=True,
        threshold=THRESHOLDS[1],
        budget=Fraction(1, 10**20),
        others=partial(order_of, removal=True),
    )
    assert kept.told[1] == 0


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("budget", [Fraction(1, 10**9), Fraction(1, 10**40)])
def test_no_more_is_dropped_than_the_budget_allows(removal: bool, budget: Fraction) -> None:
    entries = [
        record("gaussian", sensitivity="1", scale="2", rate="1e-6", times=1000),
        record("gaussian", sensitivity="3", scale="2", rate="1e-3", times=7),
    ]
    groups = grouped(Schedule.of(entries).releases)
    aside = set_aside(groups, removal=removal, threshold=1e9, budget=budget, others=partial(order_of, removal=removal))
    assert 0 < aside.dropped <= 2 * budget
    assert aside.told[1] == 0


def test_a_composition_that_mostly_tells_is_not_set_aside() -> None:
    groups = grouped(Schedule.of([record("randomised-response", epsilon="200", rate="0.9", times=9)]).releases)
    with pytest.raises(InternalError, match="tells all"):
        set_aside(
            groups, removal=True, threshold=64.0, budget=Fraction(1, 10**9), others=partial(order_of, removal=True)
        )


LONG_RATE = "0.1689923436111171618148853068185294065718692657349648914131821"


@pytest.mark.parametrize("rate", [LONG_RATE, LONG_RATE.replace("0.1", "0.8"), "1e-9", "0.5"])
def test_rates_of_many_digits_are_as_near_as_those_of_few(rate: str) -> None:
    groups = grouped(Schedule.of([record("gaussian", sensitivity="62", scale="1", rate=rate)]).releases)
    aside = set_aside(
        groups, removal=True, threshold=1e9, budget=Fraction(1, 10**9), others=partial(order_of, removal=True)
    )
    [family] = aside.order.moments.families
    assert isinstance(family, Bare)
    truth = mp.log(mpf(rate))
    assert abs(family.log_rate - truth) <= 2 * ELEMENTARY * UNIT * abs(truth)


NOISELESS = [record("gaussian", sensitivity="60", scale="1", rate="1e-3", times=50)]


@pytest.mark.parametrize("removal", [True, False])
def test_losses_that_were_moved_move_the_ends_outward(removal: bool) -> None:
    """Even where the way is shorter than from one double to the next."""
    groups, others = grouped(Schedule.of(NOISELESS).releases), partial(order_of, removal=removal)
    delta = Fraction(1, 10**9)
    found = epsilon_aside(groups, (delta, delta), 1e-6, removal=removal, ceiling=0.0, others=others)
    budget = delta * Fraction(1e-6) / 100
    aside = set_aside(groups, removal=removal, threshold=float("inf"), budget=budget, others=others)
    log_deltas = (log_interval(delta - aside.dropped)[0], log_interval(delta + aside.dropped)[1])
    moved = solve(aside.order, log_deltas, 1e-6)
    off = 50 * Fraction(OFF)
    assert found.upper > moved.upper
    assert Fraction(found.upper) >= Fraction(moved.upper) + off
    assert Fraction(found.lower) <= max(Fraction(moved.lower) - off, Fraction(0))


@pytest.mark.parametrize("ceiling", [0.05, 1e3])
def test_a_ceiling_above_what_is_moved_is_returned_or_undercut(ceiling: float) -> None:
    groups, others = grouped(Schedule.of(NOISELESS).releases), partial(order_of, removal=False)
    found = epsilon_aside(
        groups, (Fraction(1, 100), Fraction(1, 100)), 1e-6, removal=False, ceiling=ceiling, others=others
    )
    assert found.upper <= max(ceiling, 0.0501)


def test_delta_at_zero_counts_the_way_that_losses_were_moved() -> None:
    entries = [record("gaussian", sensitivity="60", scale="1", rate="0.9", times=2)]
    groups, others = grouped(Schedule.of(entries).releases), partial(order_of, removal=True)
    high = delta_aside(groups, (0.0, 0.0), 1e-3, removal=True, others=others)[1]
    aside = set_aside(groups, removal=True, threshold=50.0, budget=Fraction(1, 10**15), others=others)
    least = exp_of(solve_delta(aside.order, (0.0, 0.0), 5e-4)[1], up=True)
    assert high >= least + aside.dropped + 2 * Fraction(OFF)


WIDE: list[Any] = [
    ([record("exponential", epsilon="10", rate="1.49e-05", times=818000)], "6.49e-28"),
    ([record("gaussian", sensitivity="0.324", scale="1", rate="1.03e-8", times=404)], "6.49e-14"),
    ([record("gaussian", sensitivity="100", scale="1", rate="1e-3", times=2400)], "2.8e-8"),
    pytest.param(
        [record("laplace", sensitivity="159", scale="1", rate="1.73e-06", times=12200)],
        "1.31e-29",
        marks=pytest.mark.long,
    ),
    (
        [
            record("sparse-vector", epsilon="0.000524", rate="0.00388", times=10100),
            record("randomised-response", epsilon="1"),
            record("randomised-response", epsilon="1.61e-05", rate="0.764", times=365),
        ],
        "1.3e-27",
    ),
    (
        [record("pure", epsilon="564", rate="2.52e-8", times=36400), record("pure", epsilon="0.06", times=300)],
        "0.00295",
    ),
    # Many faint losses decide beside a bounded one.
    (
        [record("exponential", epsilon="2.24"), record("exponential", epsilon="0.0002", rate="0.0917", times=595)],
        "1e-30",
    ),
    # The largest loss is a thousand times epsilon.
    ([record("laplace", sensitivity="16.7", scale="1", rate="0.00123", times=977000)], "1.19e-15"),
]


@pytest.mark.parametrize(("entries", "delta"), WIDE)
def test_what_was_once_refused_is_enclosed(entries: list[Entry], delta: str) -> None:
    composition = composed(*entries)
    found = composition.epsilon(delta)
    assert found.upper - found.lower <= Fraction(1, 10**6) * max(found.upper, Fraction(1, 1000))
    assert found.lower <= composition.renyi_epsilon(delta)


@pytest.mark.parametrize("rate", ["1e-9", "0.003"])
def test_below_the_chance_that_any_draw_is_made_nothing_is_lost_and_beyond_it_something(rate: str) -> None:
    """Where no release draws the unit both laws are one: so is all but the chance of it."""
    entries = [record("laplace", rate=rate, times=33), record("pure", epsilon="900", rate=rate, times=5)]
    chance = 1 - (1 - Fraction(rate)) ** 38
    found = composed(*entries).epsilon(chance)
    assert found.lower == found.upper == 0
    assert composed(*entries[1:]).epsilon((1 - (1 - Fraction(rate)) ** 5) * Fraction(999, 1000)).lower > 0
