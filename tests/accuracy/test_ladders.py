"""Ladders: their costs, their number of steps under a cap, and what they refuse."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.accuracy.ladders import Explicit, Geometric, Ladder, Predictive
from parco.errors import RequestError

UNIT = 10**15
NEEDS = st.one_of(st.none(), st.fractions(Fraction(1, 2), Fraction(10**7), max_denominator=100))
LADDERS = st.sampled_from(
    [
        Geometric("0.001", 2),
        Geometric("0.5", "1.5"),
        Explicit(("0.01", "0.1", "3")),
        Predictive("0.001"),
        Predictive("2", 1),
    ]
)


def climbed(ladder: Ladder, most: int, needs: list[Fraction | None]) -> list[int]:
    costs, at = list[int](), 0
    for step in range(1, ladder.steps(most) + 1):
        at = ladder.cost(step, at=at, need=needs[step % len(needs)], most=most)
        costs.append(at)
        if at >= most:
            break
    return costs


@settings(max_examples=60, deadline=None)
@given(
    ladder=LADDERS, cap=st.fractions(Fraction(1, 1000), Fraction(1000)), needs=st.lists(NEEDS, min_size=1, max_size=5)
)
def test_costs_rise_and_never_pass_the_cap(ladder: Ladder, cap: Fraction, needs: list[Fraction | None]) -> None:
    most = ladder.cap(cap)
    costs = climbed(ladder, most, needs)
    assert costs == sorted(set(costs))
    assert costs[0] > 0
    assert costs[-1] <= most <= cap * UNIT


def test_a_geometric_ladder_multiplies_and_ends_at_the_cap() -> None:
    ladder = Geometric("0.01", 2)
    most = ladder.cap("0.05")
    assert climbed(ladder, most, [None]) == [UNIT // 100, 2 * UNIT // 100, 4 * UNIT // 100, 5 * UNIT // 100]
    counted = Geometric("0.01", 3, count=3)
    assert climbed(counted, counted.cap(None), [None]) == [UNIT // 100, 3 * UNIT // 100, 9 * UNIT // 100]


def test_an_explicit_ladder_is_what_it_lists() -> None:
    ladder = Explicit(("0.01", "0.1", "3"))
    assert climbed(ladder, ladder.cap(None), [None]) == [UNIT // 100, UNIT // 10, 3 * UNIT]
    assert climbed(ladder, ladder.cap("0.1"), [None]) == [UNIT // 100, UNIT // 10]
    assert ladder.steps(UNIT // 10) == 2


def test_a_predictive_ladder_takes_what_is_needed_and_no_more_than_the_even_way() -> None:
    ladder = Predictive("1", 3)
    most = ladder.cap("100")
    assert ladder.cost(2, at=UNIT, need=Fraction(4), most=most) == 4 * UNIT
    assert ladder.cost(2, at=UNIT, need=Fraction(50), most=most) == 10 * UNIT
    assert ladder.cost(2, at=UNIT, need=None, most=most) == 10 * UNIT
    assert ladder.cost(2, at=UNIT, need=Fraction(1), most=most) == UNIT * 21 // 20
    assert ladder.cost(3, at=10 * UNIT, need=None, most=most) == most


def test_a_predictive_ladder_reaches_the_cap_when_nobody_can_tell() -> None:
    for count in (1, 2, 5, 9):
        ladder = Predictive("0.000001", count)
        costs = climbed(ladder, ladder.cap("70"), [None])
        assert len(costs) == count
        assert costs[-1] == 70 * UNIT


def test_what_makes_no_ladder_is_refused() -> None:
    for make in (
        lambda: Explicit(()),
        lambda: Explicit(("0.1", "0.1")),
        lambda: Explicit(("0",)),
        lambda: Geometric("0.1", 1),
        lambda: Geometric("0", 2),
        lambda: Geometric("0.1", 2, count=0),
        lambda: Predictive("-1"),
        lambda: Predictive("0.1", 0),
        lambda: Geometric("0.1", 2).cap(None),
        lambda: Geometric("0.1", 2).cap("0"),
        lambda: Geometric("0.000001", "1.0001").steps(UNIT),
    ):
        with pytest.raises(RequestError):
            make()
