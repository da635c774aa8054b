"""The state machine: each transition, each refusal, and the same result by `apply` and by `replay`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parco.errors import VerificationError
from parco.ledger.accounts import EMPTY, State, apply, replay
from parco.ledger.entries import Balance, Capped, Charge, Entry, Forfeit, Opened, Settle, Void, encode

from .build import cap, mark, opening, recover, reserve, revise, rotate, settle, start

VOID = Void(seq=3, actor=mark("ana"), request=2)
FORFEIT = Forfeit(seq=4, actor=mark("ana"), request=2)


def after(*entries: Entry) -> State:
    state = reduce(apply, entries, EMPTY)
    assert replay(encode(entry) for entry in entries) == state
    return state


def balance(state: State, account: int = 1) -> tuple[int, int, int, int]:
    one = state.accounts[account]
    return one.spent, one.reserved, one.delta_spent, one.delta_reserved


def test_a_reservation_is_set_aside_then_spent() -> None:
    assert balance(after(opening(), reserve())) == (0, 40, 0, 1)
    assert balance(after(opening(), reserve(), start())) == (0, 40, 0, 1)
    state = after(opening(), reserve(), start(), settle())
    assert balance(state) == (40, 0, 1, 0)
    assert state.requests[2].state == "settled"
    assert state.requests[2].settled == 4


def test_settling_for_less_gives_the_rest_back() -> None:
    assert balance(after(opening(), reserve(), start(), settle(cost=15, delta=0))) == (15, 0, 0, 0)


def test_void_gives_all_back_and_forfeit_spends_all() -> None:
    assert balance(after(opening(), reserve(), VOID)) == (0, 0, 0, 0)
    assert balance(after(opening(), reserve(), start(), FORFEIT)) == (40, 0, 1, 0)


def test_two_contracts_share_an_account() -> None:
    state = after(opening(), opening(2, contract="other"), replace(reserve(3), contract=mark("other")))
    assert len(state.accounts) == 1
    assert balance(state) == (0, 40, 0, 1)


PART = Opened(1, mark("a part"), 100, 10)
PARTS = (PART, Opened(2, mark("another part"), 100, 10))

REFUSED: list[tuple[str, tuple[Entry, ...]]] = [
    ("entry 1 should stand here", (reserve(),)),
    ("entry 2 should stand here", (opening(), reserve(3))),
    ("never signed", (opening(), replace(reserve(), contract=mark("x")))),
    ("account 2 has no room", (opening(), replace(reserve(), charges=(Charge(1, 1), Charge(2, 1))))),
    ("accounts is charged", (opening(), reserve(account=2))),
    ("no room", (opening(), reserve(cost=101))),
    ("no room", (opening(), reserve(delta=11))),
    ("no room", (opening(), reserve(cost=60), reserve(3, cost=41, key="l"))),
    ("key belongs", (opening(), reserve(), reserve(3))),
    ("no request 9", (opening(), start(2, request=9))),
    ("is started, not reserved", (opening(), reserve(), start(), start(4))),
    ("is reserved, not started", (opening(), reserve(), settle(3))),
    ("is reserved, not started", (opening(), reserve(), replace(FORFEIT, seq=3))),
    ("is started, not reserved", (opening(), reserve(), start(), replace(VOID, seq=4))),
    ("is settled, not started", (opening(), reserve(), start(), settle(), settle(5))),
    ("is settled, not started", (opening(), reserve(), start(), settle(), replace(FORFEIT, seq=5))),
    ("is forfeited, not started", (opening(), reserve(), start(), FORFEIT, settle(5))),
    ("is void, not reserved", (opening(), reserve(), VOID, start(4))),
    ("another actor", (opening(), reserve(), replace(start(), actor=mark("bo")))),
    ("more than was reserved", (opening(), reserve(), start(), settle(cost=41))),
    ("more than was reserved", (opening(), reserve(), start(), settle(delta=2))),
    ("not what the entries add up to", (opening(), reserve(), start(), settle(spent=39))),
    (
        "other accounts",
        (opening(), reserve(), start(), replace(settle(), charges=(Charge(1, 1), Charge(2, 1)))),
    ),
    ("signed already", (opening(), opening(2))),
    ("terms differ", (opening(), opening(2, account=2, contract="o"))),
    ("one label", (replace(opening(), accounts=(PART, replace(PART, account=2))),)),
    ("an order", (replace(opening(), order=Fraction(8)),)),
    ("an order", (replace(opening(), measure="renyi"),)),
    ("terms differ", (replace(opening(), accounts=PARTS), opening(2, contract="o"))),
    ("without gaps", (opening(account=2),)),
    ("terms differ", (opening(), opening(2, contract="o", cap=101))),
    ("terms differ", (opening(), replace(opening(2, contract="o"), measure="pure"))),
    ("terms differ", (opening(), replace(opening(2, contract="o"), secret=mark("new secret")))),
    ("never signed", (opening(), revise(revised="x"))),
    ("signed already", (opening(), revise(contract="c"))),
    ("signed already", (opening(), opening(2, contract="o"), revise(3, contract="o"))),
    ("revised before", (opening(), revise(), revise(3, contract="c3"))),
    ("signed already", (opening(), revise(), revise(3, contract="c", revised="c2"))),
    ("caps or terms differ", (opening(), revise(cap=101))),
    ("caps or terms differ", (opening(), cap(), revise(3))),
    ("caps or terms differ", (opening(), replace(revise(), terms=mark("others")))),
    ("caps or terms differ", (replace(opening(), accounts=PARTS), revise())),
    ("revised before", (opening(), revise(), reserve(3))),
    ("no account 2", (opening(), cap(account=2))),
    ("no cap moves", (opening(), cap(to=100))),
    ("more spent or reserved", (opening(), reserve(), cap(3, 39))),
    ("more spent or reserved", (opening(), reserve(), start(), settle(), cap(5, 39))),
    ("no room", (opening(), cap(to=39), reserve(3))),
    ("terms differ", (opening(), cap(), opening(3, contract="o"))),
    (
        "two data sets",
        (
            opening(),
            opening(2, account=2, contract="o", dataset="e"),
            replace(cap(3), accounts=(Capped(1, 200), Capped(2, 200))),
        ),
    ),
]


@pytest.mark.parametrize(("message", "entries"), REFUSED)
def test_every_other_transition_is_refused_naming_the_entry(message: str, entries: tuple[Entry, ...]) -> None:
    *good, bad = entries
    state = after(*good)
    with pytest.raises(VerificationError, match=message) as caught:
        apply(state, bad)
    assert caught.value.facts["entry"] == bad.seq
    assert f"entry {bad.seq} " in str(caught.value)
    with pytest.raises(VerificationError, match=message):
        replay(encode(entry) for entry in entries)


def test_a_data_set_in_parts_has_an_account_each() -> None:
    state = after(replace(opening(), accounts=PARTS), replace(opening(2, contract="o"), accounts=PARTS))
    assert list(state.accounts) == [1, 2]
    assert state.contracts == {mark("c"): (1, 2), mark("o"): (1, 2)}
    both = replace(reserve(3), charges=(Charge(1, 100), Charge(2, 40)))
    assert [account.reserved for account in apply(state, both).accounts.values()] == [100, 40]


def test_the_last_unit_can_be_spent_and_no_more() -> None:
    full = after(opening(), reserve(cost=100, delta=10))
    assert full.accounts[1].has_room(Charge(1, 0))
    assert not full.accounts[1].has_room(Charge(1, 1))
    assert not full.accounts[1].has_room(Charge(1, 0, 1))


def test_an_overdrawn_account_takes_no_new_spending() -> None:
    account = replace(after(opening()).accounts[1], spent=120, excess=20)
    assert not account.has_room(Charge(1, 0))


def test_what_was_lost_is_charged_beyond_the_cap_and_shown_as_excess() -> None:
    within = after(opening(), recover(cost=40)).accounts[1]
    assert (within.spent, within.excess) == (40, 0)
    over = after(opening(), reserve(), recover(3, cost=80)).accounts[1]
    assert (over.spent, over.reserved, over.excess) == (80, 40, 20)
    assert not over.has_room(Charge(1, 1))
    again = after(opening(), reserve(), recover(3, cost=80), recover(4, cost=5, delta=20, lost="other")).accounts[1]
    assert (again.spent, again.excess, again.delta_excess) == (85, 25, 20 + 1 - 10)


def test_a_higher_cap_makes_room_again_and_the_excess_stays() -> None:
    account = after(opening(), recover(cost=150), cap(3, to=200)).accounts[1]
    assert (account.excess, account.has_room(Charge(1, 50)), account.has_room(Charge(1, 51))) == (50, True, False)


@pytest.mark.parametrize(
    ("message", "entries"),
    [
        ("answered for before", (opening(), recover(), recover(3))),
        ("no account 2", (opening(), recover(account=2))),
        ("not the one that signs", (opening(), rotate(), rotate(3, old="old", new="third"))),
        ("used before", (opening(), rotate(), rotate(3, old="new", new="old"))),
        ("used before", (opening(), rotate(old="same", new="same"))),
    ],
)
def test_false_recoveries_and_rotations_are_refused(message: str, entries: tuple[Entry, ...]) -> None:
    with pytest.raises(VerificationError, match=message):
        after(*entries)


def test_keys_follow_each_other() -> None:
    state = after(opening(), rotate(), rotate(3, old="new", new="third"))
    assert dict(state.rotations) == {2: (mark("old"), mark("new")), 3: (mark("new"), mark("third"))}


def test_a_revision_goes_on_with_the_accounts_and_requests_in_flight() -> None:
    state = after(opening(), reserve(), start(), revise(4), settle(5))
    assert balance(state) == (40, 0, 1, 0)
    assert state.requests[2].reserve.contract == mark("c")
    assert state.current == {mark("c2"): (1,)}
    later = after(opening(), revise(), revise(3, contract="c3", revised="c2"), replace(reserve(4), contract=mark("c3")))
    assert later.current == {mark("c3"): (1,)}
    assert balance(later)[1] == 40


def test_a_cap_moves_between_what_is_used_and_any_number() -> None:
    state = after(opening(), reserve(), cap(3, 40), cap(4, 500), revise(5, cap=500))
    assert state.accounts[1].cap == 500
    assert state.caps == {(3, 1): 40, (4, 1): 500}
    assert state.accounts[1].has_room(Charge(1, 460))
    assert not state.accounts[1].has_room(Charge(1, 461))


def test_a_request_in_flight_settles_under_a_cap_that_fell_to_its_own_charge() -> None:
    row = Balance(1, 40, 40, 0, 0, 10, 1, 0, 0)
    state = after(opening(), reserve(), start(), cap(4, 40), replace(settle(5), accounts=(row,)))
    assert balance(state) == (40, 0, 1, 0)


@given(
    st.lists(st.one_of(st.tuples(st.just("ask"), st.integers(0, 60)), st.tuples(st.just("cap"), st.integers(0, 200))))
)
def test_caps_and_charges_in_any_order_never_overdraw(steps: list[tuple[str, int]]) -> None:
    """A naive account beside the machine: what is held, and the last cap that was let in."""
    entries: list[Entry] = [opening()]
    state, held, top = after(opening()), 0, 100
    for act, amount in steps:
        entry: Entry = cap(state.size + 1, amount)
        fits = held <= amount and amount != top
        if act == "ask":
            entry = reserve(state.size + 1, cost=amount, delta=0, key=str(state.size))
            fits = held + amount <= top
        if not fits:
            with pytest.raises(VerificationError, match=r"no room|no cap moves|more spent or reserved"):
                apply(state, entry)
            continue
        held, top = (held + amount, top) if act == "ask" else (held, amount)
        entries.append(entry)
        state = apply(state, entry)
        assert (state.accounts[1].reserved, state.accounts[1].cap) == (held, top)
        assert held <= top
    after(*entries)


@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["settle", "forfeit", "void", "leave"])), max_size=12))
def test_whatever_is_admitted_stays_within_the_cap(steps: list[tuple[int, str]]) -> None:
    """A second, naive account beside the machine: plain sums of what each request came to."""
    entries: list[Entry] = [opening()]
    state, spent, held = after(opening()), 0, 0
    for cost, ending in steps:
        request = reserve(state.size + 1, cost=cost, delta=0, key=str(state.size))
        if spent + held + cost > 100:
            with pytest.raises(VerificationError, match="no room"):
                apply(state, request)
            continue
        new: list[Entry] = [request]
        seq, name = request.seq, {"actor": request.actor, "request": request.seq}
        if ending == "void":
            new.append(Void(seq=seq + 1, **name))  # type: ignore[arg-type]
        else:
            new.append(start(seq + 1, seq))
        if ending == "forfeit":
            new.append(Forfeit(seq=seq + 2, **name))  # type: ignore[arg-type]
        if ending == "settle":
            row = Balance(1, 100, spent + cost, held, 0, 10, 0, 0, 0)
            new.append(_settled(seq + 2, seq, cost, row))
        spent += cost if ending in ("settle", "forfeit") else 0
        held += cost if ending == "leave" else 0
        entries += new
        state = reduce(apply, new, state)
        assert balance(state)[:2] == (spent, held)
    after(*entries)


def _settled(seq: int, request: int, cost: int, row: Balance) -> Settle:
    return replace(settle(seq, request=request), charges=(Charge(1, cost, 0),), accounts=(row,))
