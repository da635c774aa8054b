"""The rules of corrections in the state machine: each that holds, and each that is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce

import pytest

from parco.errors import VerificationError
from parco.ledger.accounts import EMPTY, State, apply, replay
from parco.ledger.entries import Added, Balance, Entry, Settle, Total, Void, encode

from .build import amend, cap, flag, mark, opening, recost, recover, reserve, settle, start, supersede


def after(*entries: Entry) -> State:
    state = reduce(apply, entries, EMPTY)
    assert replay(encode(entry) for entry in entries) == state
    return state


def answered(seq: int, *, spent: int, cost: int = 40) -> list[Entry]:
    """A release from `seq` to `seq + 2`, after which so much is spent in all."""
    row = Balance(1, 100, spent, 0, 0, 10, 0, 0, 0)
    settled: Settle = replace(settle(seq + 2, request=seq, cost=cost, delta=0), accounts=(row,))
    return [reserve(seq, cost=cost, delta=0, key=str(seq)), start(seq + 1, seq), settled]


TWO = [opening(), *answered(2, spent=40), *answered(5, spent=80)]


def refused(state: State, entry: Entry, match: str) -> None:
    with pytest.raises(VerificationError, match=match):
        apply(state, entry)


def amounts(state: State) -> tuple[int, int, int, int]:
    one = state.accounts[1]
    return one.spent, one.excess, one.delta_spent, one.delta_excess


def test_a_recost_adds_the_difference_and_raises_the_excess() -> None:
    state = after(*TWO, recost(8, (2, 160, 0), (5, 160, 3), added=240, delta=3, factor=Fraction(4)))
    assert amounts(state) == (320, 220, 3, 0)
    assert state.totals == {(2, 1): (160, 0, 8), (5, 1): (160, 3, 8)}
    assert state.corrections == {(2, 8): ("recost", None), (5, 8): ("recost", None)}
    assert state.added == {(8, 1): (240, 3)}
    again = apply(state, recost(9, (2, 40, 0), (5, 41, 3), added=-239, corrects=8))
    assert amounts(again) == (81, 0, 3, 0)
    assert amounts(apply(again, recost(10, (5, 41, 20), added=0, delta=17))) == (81, 0, 20, 10)


def test_the_excess_of_a_recost_is_over_what_is_reserved_too() -> None:
    state = after(*TWO, reserve(8, cost=20, delta=0, key="x"), recost(9, (2, 41, 0), added=1))
    assert amounts(state)[:2] == (81, 1)
    assert apply(state, cap(10, 200)).accounts[1].excess == 1


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        (recost(8, (2, 39, 0), added=-1), "below what was charged"),
        (recost(8, (2, 40, 0), added=0), "stands already"),
        (recost(8, (2, 160, 0), added=119), "its sums are off"),
        (recost(8, (2, 160, 0), added=120, delta=1), "its sums are off"),
        (recost(8, (2, 160, 0), added=120, factor=Fraction(3)), "not its factor's"),
        (recost(8, (2, 161, 0), added=121, factor=Fraction(4)), "not its factor's"),
        (recost(8, (3, 160, 0), added=120), "request 3 cost nothing"),
        (recost(8, (2, 160, 0), added=120, corrects=7), "is no recost"),
        (replace(recost(8, (2, 160, 0), added=120), mechanism="gaussian"), "of another kind"),
        (
            replace(recost(8, (2, 160, 0), added=120), totals=(Total(2, 2, 160, 0),), added=(Added(2, 120, 0),)),
            "not charged to account 2",
        ),
        (recost(9, (2, 160, 0), added=120), "entry 8 should stand here"),
        (supersede(8, 2, 2), "in its place already"),
        (supersede(8, 2, 9), "request 9 has no answer"),
        (supersede(8, 3, 2), "request 3 has no answer"),
        (amend(8, entry=8), "yet to come"),
        (flag(8, entry=9), "yet to come"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_correction_that_is_refused(entry: Entry, match: str) -> None:
    refused(after(*TWO), entry, match)


def test_factors_round_up_to_the_unit() -> None:
    state = after(opening(), *answered(2, spent=7, cost=7))
    assert amounts(apply(state, recost(5, (2, 10, 0), added=3, factor=Fraction(4, 3))))[0] == 10
    refused(state, recost(5, (2, 9, 0), added=2, factor=Fraction(4, 3)), "not its factor's")


def test_a_total_falls_only_by_correcting_the_recost_that_stated_it() -> None:
    state = after(*TWO, recost(8, (2, 160, 0), added=120), recost(9, (2, 200, 0), (5, 80, 0), added=80))
    refused(state, recost(10, (2, 160, 0), added=-40), "falls without a correction")
    refused(state, recost(10, (2, 160, 0), added=-40, corrects=8), "falls without a correction")
    refused(state, recost(10, (2, 39, 0), added=-161, corrects=9), "below what was charged")
    refused(state, recost(10, (2, 201, 0), (5, 79, 0), added=0), "falls without a correction")
    assert amounts(apply(state, recost(10, (2, 40, 0), (5, 40, 0), added=-200, corrects=9)))[:2] == (80, 0)


def test_what_was_recosted_before_a_recovery_is_not_taken_back() -> None:
    """The receipts of the lost past may have counted it: charged again was only what they showed beyond it."""
    state = after(*TWO, recost(8, (2, 160, 0), added=120), recover(9, cost=5))
    refused(state, recost(10, (2, 40, 0), added=-120, corrects=8), "came before a recovery")
    state = apply(state, recost(10, (5, 80, 0), added=40))
    assert amounts(apply(state, recost(11, (5, 40, 0), added=-40, corrects=10)))[0] == 205


def test_what_never_started_cost_nothing_and_is_not_recosted() -> None:
    begun: list[Entry] = [opening(), reserve(2)]
    refused(after(*begun), recost(3, (2, 160, 1), added=120), "request 2 cost nothing")
    given_back = after(*begun, Void(seq=3, actor=mark("ana"), request=2))
    refused(given_back, recost(4, (2, 160, 1), added=120), "request 2 cost nothing")
    assert amounts(after(*begun, start(), recost(4, (2, 160, 1), added=120)))[:2] == (120, 60)


def test_answers_supersede_each_other_in_no_circle() -> None:
    three = [*TWO, *answered(8, spent=100, cost=20)]
    state = after(*three, supersede(11, 2, 5), supersede(12, 5, 8))
    assert state.replaced == {2: 5, 5: 8}
    refused(state, supersede(13, 8, 2), "superseded by it")
    refused(state, supersede(13, 5, 2), "superseded by it")
    refused(state, supersede(13, 2, 5), "in its place already")
    state = apply(apply(state, supersede(13, 5, 5)), supersede(14, 5, None))
    assert state.replaced == {2: 5, 5: 0}
    refused(state, supersede(15, 5, None), "in its place already")
    assert apply(state, supersede(15, 8, 2)).corrections[8, 15] == ("supersede", 2)
