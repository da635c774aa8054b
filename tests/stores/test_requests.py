"""Requests: keys, questions, charges, and what becomes of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from parco.errors import (
    BudgetError,
    ForfeitedError,
    InternalError,
    KeyReuseError,
    RequestError,
    SharperError,
    VerificationError,
)
from parco.ledger.entries import Charge, Settle, decode
from parco.stores.address import open_ledger
from parco.stores.records import FORFEITED, Pending, Started, Stored
from parco.stores.store import Store

from .build import ONE, TENTH, Address, amounts, anything, ask, harm, nothing, signed_store, started, stored_bytes
from .children import run, running

START = 'store = open_ledger(address)\nstarted(store, key="k")\nprint("ready", flush=True)\n'
KILLED = START + "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def store(address: Address) -> Store:
    return signed_store(address)


def test_a_release_is_two_commits_of_two_entries_and_one(store: Store) -> None:
    request = started(store)
    assert (request, len(list(store.entries())), amounts(store)) == (2, 3, (0, TENTH))
    stored = store.settle(request, answer=b"[1]")
    assert (stored.position, amounts(store)) == (4, (TENTH, 0))
    assert stored.accounts[0].spent == TENTH
    assert stored.charges == (Charge(1, TENTH, 0),)
    assert (stored.reserve.private, stored.reserve.cells, stored.answer) == (True, 12, b"[1]")
    settle = decode(list(store.entries())[-1])
    assert isinstance(settle, Settle)
    assert settle.accounts == stored.accounts
    store.verify()


def test_a_repeat_is_the_stored_answer_and_writes_nothing(store: Store, address: Address) -> None:
    first = store.settle(started(store), answer='["é"]'.encode())
    before = stored_bytes(address)
    assert store.begin(ask(store, key="new"), serves=anything) == first
    assert store.answers("count by month") == [first]
    assert stored_bytes(address) == before
    assert first.reserve.private


def test_the_last_unit_and_nothing_beyond(store: Store) -> None:
    for _ in range(10):
        store.settle(started(store, fresh=True), answer=b"[]")
    before = list(store.entries())
    with pytest.raises(BudgetError, match=r"charged as 0\.1 pure, and 0 of 1 is left on 'purchases'") as caught:
        started(store, fresh=True)
    expected = {"asked": "0.1", "remaining": "0", "cap": "1", "account": "purchases", "measure": "pure"}
    assert caught.value.facts == expected
    assert list(store.entries()) == before
    assert amounts(store) == (ONE, 0)
    store.verify()


def test_delta_has_a_cap_too(store: Store) -> None:
    started(store, fresh=True, delta=10**6)
    with pytest.raises(BudgetError, match=r"delta 0\.0{17}1, and 0 of 0\.0{11}1 is left"):
        started(store, fresh=True, delta=1)


@pytest.mark.parametrize("cost", [ONE + 1, 2**63 - 1])
def test_one_unit_too_much_or_the_largest_number(store: Store, cost: int) -> None:
    with pytest.raises(BudgetError):
        started(store, cost=cost)
    assert isinstance(store.begin(ask(store, cost=ONE), serves=anything), Started)


def test_a_refused_request_leaves_no_text(store: Store, address: Address) -> None:
    with pytest.raises(BudgetError):
        started(store, cost=2 * ONE, question="a question nobody may see")
    assert b"nobody may see" not in stored_bytes(address)


def test_three_thirds_fit(store: Store) -> None:
    for _ in range(3):
        started(store, cost=ONE // 3, fresh=True)
    assert store.accounts()[0].remaining == 1


def test_same_key_same_body(store: Store) -> None:
    request = started(store, key="k", fresh=True)
    assert store.begin(ask(store, key="k", fresh=True, time=1), serves=nothing) == Pending(request)
    stored = store.settle(request, answer=b"[1]")
    assert store.begin(ask(store, key="k", fresh=True, time=9), serves=nothing) == stored
    assert amounts(store) == (TENTH, 0)


@pytest.mark.parametrize(
    "change",
    [{"cost": 1}, {"question": "other"}, {"fresh": True}, {"scale": 9}, {"cells": 1}, {"actor": "bo"}, {"delta": 1}],
)
def test_same_key_other_body(store: Store, change: dict[str, Any]) -> None:
    store.settle(started(store, key="k"), answer=b"[1]")
    with pytest.raises(KeyReuseError):
        store.begin(ask(store, key="k", **change), serves=anything)
    assert amounts(store) == (TENTH, 0)


def test_the_sharpest_that_serves_and_the_oldest_of_equals(store: Store) -> None:
    requests = {}
    for cost in (TENTH, 3 * TENTH, 3 * TENTH, 2 * TENTH):
        request = started(store, cost=cost, fresh=True)
        requests[request] = store.settle(request, answer=str(cost).encode())
    best = store.begin(ask(store), serves=anything)
    assert isinstance(best, Stored)
    assert best == min((one for one in requests.values() if one.charges[0].cost == 3 * TENTH), key=lambda x: x.request)
    small = store.begin(ask(store), serves=lambda facts: facts.reserve.charges[0].cost <= TENTH)
    assert isinstance(small, Stored)
    assert small.answer == str(TENTH).encode()
    with pytest.raises(SharperError, match="--fresh"):
        store.begin(ask(store), serves=nothing)


def test_forfeit_keeps_the_charge_and_rejects_a_late_settle(store: Store) -> None:
    request = started(store, key="k")
    store.forfeit(request)
    assert amounts(store) == (TENTH, 0)
    for late in (
        lambda: store.settle(request, answer=b"[1]"),
        lambda: store.forfeit(request),
        lambda: store.begin(ask(store, key="k"), serves=anything),
    ):
        with pytest.raises(ForfeitedError) as caught:
            late()
        assert str(caught.value) == FORFEITED
    assert store.answers("count by month") == []
    assert isinstance(store.begin(ask(store), serves=anything), Started)
    assert [row.state for row in store.history()] == ["open", "forfeited", "started"]
    store.verify()


def test_a_request_resolves_once(store: Store) -> None:
    request = started(store)
    with pytest.raises(InternalError, match="not reserved"):
        store.void(request)
    store.settle(request, answer=b"[1]")
    for again in (
        lambda: store.settle(request, answer=b"[2]"),
        lambda: store.forfeit(request),
        lambda: store.void(request),
        lambda: store.forfeit(99),
    ):
        with pytest.raises(InternalError):
            again()
    assert amounts(store) == (TENTH, 0)
    store.verify()


def test_an_answer_that_is_no_text_is_refused_before_anything_changes(store: Store) -> None:
    request = started(store)
    with pytest.raises(InternalError, match="UTF-8"):
        store.settle(request, answer=b"\xff")
    assert amounts(store) == (0, TENTH)
    store.settle(request, answer=b"[1]")


def test_a_question_waits_for_a_living_owner_and_not_for_a_dead_one(store: Store, address: Address) -> None:
    with running(START + "input()", address) as child:
        assert store.begin(ask(store), serves=anything) == Pending(2)
        assert open_ledger(address).history()[-1].state == "started"
        assert isinstance(store.begin(ask(store, question="another"), serves=anything), Started)
        child.kill()
        child.wait()
        outcome = store.begin(ask(store), serves=anything)
    assert isinstance(outcome, Started)
    assert [row.state for row in store.history()] == ["open", "forfeited", "started", "started"]
    assert amounts(store) == (TENTH, 2 * TENTH)
    with pytest.raises(ForfeitedError):
        store.begin(ask(store, key="k"), serves=anything)
    store.verify()


def test_a_dead_owners_key_is_forfeited_even_when_the_request_is_then_refused(store: Store, address: Address) -> None:
    run(KILLED, address)
    with pytest.raises(ForfeitedError):
        store.begin(ask(store, key="k"), serves=anything)
    assert store.history()[-1].state == "forfeited"


def test_opening_forfeits_for_the_dead_and_writes_nothing_otherwise(store: Store, address: Address) -> None:
    run(KILLED, address)
    started(store, question="mine")
    again = open_ledger(address)
    assert [row.state for row in again.history()] == ["open", "forfeited", "started"]
    before = stored_bytes(address)
    open_ledger(address)
    assert stored_bytes(address) == before
    assert again.tidy() == []
    again.verify()


def test_a_changed_or_lost_answer_is_found(store: Store, address: Address) -> None:
    store.settle(started(store), answer=b"[1]")
    harm(address, "UPDATE answers SET body = x'5b325d'")
    for read in (lambda: store.answers("count by month"), lambda: store.begin(ask(store), serves=anything)):
        with pytest.raises(VerificationError, match="differs from the one settled"):
            read()
    harm(address, "DELETE FROM answers")
    with pytest.raises(VerificationError, match="is lost; its charge stands"):
        store.answers("count by month")
    assert amounts(store) == (TENTH, 0)


def test_releases_from_a_tape_and_private_ones_never_share_a_ledger(
    store: Store, new_address: Callable[[], Address]
) -> None:
    started(store)
    with pytest.raises(RequestError, match="a ledger of their own"):
        store.begin(ask(store, private=False, question="another"), serves=anything)
    tape_address = new_address()
    other = signed_store(tape_address)
    tape = started(other, private=False, key="k")
    other.settle(tape, answer=b"[1]")
    changes: tuple[dict[str, Any], ...] = ({}, {"key": "k"}, {"fresh": True}, {"question": "another"})
    for change in changes:
        with pytest.raises(RequestError, match="not private"):
            other.begin(ask(other, **change), serves=anything)
    assert [row.private for row in other.history()] == [True, False]
    other.verify()
    harm(tape_address, "UPDATE requests SET private = 1")
    with pytest.raises(VerificationError, match="requests"):
        other.verify()


def test_what_this_process_let_go_is_forfeited_by_whoever_comes_next(store: Store) -> None:
    request = started(store)
    assert store.begin(ask(store), serves=anything) == Pending(request)
    store.abandon(request)
    outcome = store.begin(ask(store), serves=anything)
    assert isinstance(outcome, Started)
    assert [row.state for row in store.history()] == ["open", "forfeited", "started"]
    assert amounts(store) == (TENTH, TENTH)
