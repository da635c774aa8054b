"""Schedules in the state machine: what is set aside, drawn, given back and left, and each refusal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce

import pytest

from parco.errors import VerificationError
from parco.ledger.accounts import EMPTY, State, apply, replay
from parco.ledger.entries import Charge, Entry, Forfeit, MechanismFacts, Void, encode

from .build import draw, leave, mark, opening, recover, reserve, schedule, settle, start


def after(*entries: Entry) -> State:
    state = reduce(apply, entries, EMPTY)
    assert replay(encode(entry) for entry in entries) == state
    return state


def reserved(state: State) -> tuple[int, int]:
    return state.accounts[1].reserved, state.accounts[1].delta_reserved


def void(seq: int, request: int) -> Void:
    return Void(seq=seq, actor=mark("ana"), request=request)


def test_the_whole_charge_is_set_aside_and_draws_take_from_it() -> None:
    assert reserved(after(opening(), schedule())) == (40, 2)
    assert reserved(after(opening(), schedule(questions="qrst", more="uv"))) == (82, 6)
    state = after(opening(), schedule(), draw(), draw(4, step=2, question="r", key="other"))
    assert reserved(state) == (40, 2)
    assert state.steps == {(2, 1): (mark("q"), 3), (2, 2): (mark("r"), 4)}


def test_a_draw_is_settled_forfeited_or_void_like_any_request() -> None:
    drawn = (opening(), schedule(), draw())
    begun = (*drawn, start(4, request=3))
    paid = replace(settle(5, request=3, cost=20), accounts=())
    with pytest.raises(VerificationError, match="its accounts"):
        after(*begun, replace(paid, accounts=settle().accounts))
    state = after(*begun, Forfeit(seq=5, actor=mark("ana"), request=3))
    assert (state.accounts[1].spent, reserved(state)) == (20, (20, 1))
    state = after(*drawn, void(4, 3))
    assert reserved(state) == (40, 2)
    assert state.steps[2, 1] == (mark("q"), None)
    assert after(*drawn, void(4, 3), draw(5, key="again")).steps[2, 1] == (mark("q"), 5)


def test_leaving_gives_back_what_is_open_and_a_later_void_the_rest() -> None:
    left = (opening(), schedule(questions="qrs"), draw(), leave(4))
    assert reserved(after(*left)) == (20, 1)
    state = after(*left, void(5, 3))
    assert reserved(state) == (0, 0)
    assert state.schedules[2][1] == 4


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([schedule(questions="qrstuv")], "no room"),
        ([schedule(questions="qrstu"), reserve(3, cost=1)], "no room"),
        ([schedule(), schedule(3)], "has this name"),
        ([replace(schedule(), contract=mark("other"))], "never signed"),
        ([schedule(), draw(step=3)], "no step 3"),
        ([schedule(), draw(of=1)], "no schedule 1"),
        ([schedule(), draw(), draw(4, key="other")], "drawn before"),
        ([schedule(), draw(question="r")], "not what step 1"),
        ([schedule(), draw(cost=21)], "not what step 1"),
        ([schedule(), replace(draw(), cells=11)], "not what step 1"),
        (
            [schedule(), replace(draw(), mechanism=MechanismFacts("two-sided-geometric", Fraction(8, 3), Fraction(1)))],
            "not what step 1",
        ),
        ([schedule(), replace(draw(), charges=(Charge(1, 20, 1), Charge(2, 1)))], "not what step 1"),
        ([schedule(), leave(), draw(4)], "has ended"),
        ([schedule(), leave(), leave(4)], "has ended"),
        ([schedule(), leave(of=1)], "no schedule 1"),
        ([reserve(), schedule(3), replace(draw(4, of=3), key=mark("k"))], "belongs to another request"),
        ([schedule(), recover(3, cost=61), draw(4)], "no room"),
    ],
)
def test_what_does_not_follow_is_refused(entries: list[Entry], why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        after(opening(), *entries)
