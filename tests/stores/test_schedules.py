"""Schedules in every store: set aside at once, drawn once a step, given back; under crashes and races."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from parco.audit.verify import verify
from parco.errors import (
    BudgetError,
    ContractChangedError,
    KeyReuseError,
    RequestError,
    SharperError,
    VerificationError,
)
from parco.ledger.accounts import replay
from parco.ledger.entries import Charge, Draw, decode
from parco.stores.address import open_ledger
from parco.stores.records import Pending, Recovery, Request, Reserved, Scheduled, Started, Stored
from parco.stores.store import Store

from .build import (
    ACT,
    ONE,
    TENTH,
    Address,
    amounts,
    anything,
    ask,
    harm,
    nothing,
    opening,
    run_sql,
    scheduling,
    signed_store,
    stored_bytes,
)
from .forks import STATEMENTS_MAX, forked, killed_at
from .scenarios import lost
from .test_fault_points import untidied


def scheduled(store: Store, *questions: str, **changes: Any) -> Scheduled:
    return store.sign_schedule(scheduling(store, *questions or ("a", "b", "c"), **changes))


def drawn(store: Store, question: str = "a", **changes: Any) -> Request:
    return ask(store, question=question, schedule=store.schedule("weekly").position, **changes)


def draw(store: Store, question: str = "a", **changes: Any) -> int:
    outcome = store.begin(drawn(store, question, **changes), serves=anything)
    assert isinstance(outcome, Started)
    return outcome.request


def steps(store: Store) -> list[int | None]:
    return [step.request for step in store.schedule("weekly").steps]


def test_a_schedule_sets_its_whole_charge_aside_at_once(address: Address) -> None:
    store = signed_store(address)
    found = scheduled(store)
    assert amounts(store) == (0, 3 * TENTH)
    assert [(step.number, step.question, step.request) for step in found.steps] == [
        (1, "a", None),
        (2, "b", None),
        (3, "c", None),
    ]
    assert (found.position, found.name, found.dataset, found.ended) == (2, "weekly", "purchases", None)
    assert store.schedule("weekly") == found
    assert store.schedules() == [found]
    row = store.history()[-1]
    assert (row.state, row.schedule, row.actor, row.charges) == ("schedule", "weekly", "steward", ())
    assert row.set_aside == (Charge(1, 3 * TENTH),)
    store.verify()


def test_signing_it_again_changes_nothing_and_another_takes_another_name(address: Address) -> None:
    store = signed_store(address)
    first = scheduled(store)
    before = stored_bytes(address)
    assert scheduled(store) == first
    with pytest.raises(RequestError, match="never changes"):
        scheduled(store, "a", "b")
    with pytest.raises(RequestError, match="never changes"):
        scheduled(store, "a", "b", "c", scale=5, cost=2 * TENTH)
    assert stored_bytes(address) == before
    assert scheduled(store, "d", name="other").position == 3


def test_what_does_not_fit_is_not_signed(address: Address) -> None:
    store = signed_store(address)
    before = stored_bytes(address)
    with pytest.raises(BudgetError, match=r"charged as 1\.1 pure, and 1 of 1 is left"):
        scheduled(store, *"abcdefghijk")
    assert stored_bytes(address) == before
    old = store.signed("purchases", "sales").contract
    store.revise(opening(contract="second version"), reason="why")
    with pytest.raises(ContractChangedError):
        scheduled(store, contract=old)
    assert amounts(store) == (0, 0)
    assert store.schedules() == []
    assert scheduled(store, *"abcdefghij").ended is None
    assert amounts(store) == (0, ONE)
    with pytest.raises(BudgetError):
        store.begin(ask(store, question="outside"), serves=anything)


def test_a_step_is_drawn_out_of_what_was_set_aside(address: Address) -> None:
    store = signed_store(address)
    scheduled(store, *"abcdefghij")
    number = draw(store, "b")
    assert amounts(store) == (0, ONE)
    entry = replay(store.entries()).requests[number].reserve
    assert isinstance(entry, Draw)
    assert (entry.schedule, entry.step) == (2, 2)
    store.settle(number, answer=b"[1]")
    assert amounts(store) == (TENTH, 9 * TENTH)
    assert steps(store) == [None, number, *[None] * 8]
    row = store.history()[-1]
    assert (row.state, row.schedule, row.step) == ("settled", "weekly", 2)
    repeat = store.begin(drawn(store, "b"), serves=anything)
    assert isinstance(repeat, Stored)
    outside = store.begin(ask(store, question="b"), serves=anything)
    assert isinstance(outside, Stored)
    store.verify()


def test_each_step_is_drawn_once(address: Address) -> None:
    store = signed_store(address)
    scheduled(store, "a", "a", "b")
    first, second = draw(store, "a"), draw(store, "a", fresh=True)
    assert steps(store) == [first, second, None]
    before = stored_bytes(address)
    with pytest.raises(RequestError, match="drawn once") as caught:
        draw(store, "a", fresh=True)
    assert caught.value.facts["request"] == second
    assert stored_bytes(address) == before
    store.settle(first, answer=b"[1]")
    store.forfeit(second)
    with pytest.raises(RequestError, match="drawn once"):
        draw(store, "a", fresh=True)
    with pytest.raises(SharperError):
        store.begin(drawn(store, "a"), serves=nothing)
    assert amounts(store) == (2 * TENTH, TENTH)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scale": 5}, "fixed with two-sided-geometric noise of scale 10"),
        ({"cost": 2 * TENTH}, "fixed with"),
        ({"cells": 11}, "fixed with"),
        ({"question": "z"}, "no step for this question"),
        ({"schedule": 1}, "no schedule at entry 1"),
    ],
)
def test_what_differs_from_the_step_is_refused(address: Address, changes: dict[str, Any], told: str) -> None:
    store = signed_store(address)
    scheduled(store)
    before = stored_bytes(address)
    with pytest.raises(RequestError, match=told):
        store.begin(replace(drawn(store), **_facts(store, changes)), serves=anything)
    assert stored_bytes(address) == before


def _facts(store: Store, changes: dict[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in changes.items() if name in ("cells", "question", "schedule")}
    if "scale" in changes:
        known["mechanism"] = ask(store, scale=changes["scale"]).mechanism
    if "cost" in changes:
        known["charges"] = (Charge(1, changes["cost"]),)
    return known


def test_a_key_belongs_to_a_draw_or_to_a_release_outside(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    draw(store, "a", key="k")
    assert isinstance(store.begin(drawn(store, "a", key="k"), serves=anything), Pending)
    with pytest.raises(KeyReuseError):
        store.begin(ask(store, question="a", key="k"), serves=anything)
    assert store.keyed("k") == (3, "started")
    assert store.keyed("other") is None


def test_a_queued_draw_that_is_given_back_opens_its_step(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    outcome = store.reserve(drawn(store, "a"), serves=anything, lease_seconds=3600)
    assert isinstance(outcome, Reserved)
    assert steps(store) == [outcome.request, None, None]
    store.void(outcome.request)
    assert steps(store) == [None, None, None]
    assert amounts(store) == (0, 3 * TENTH)
    again = draw(store, "a")
    store.settle(again, answer=b"[1]")
    assert amounts(store) == (TENTH, 2 * TENTH)
    store.verify()


def test_leaving_gives_back_what_was_not_drawn(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    store.settle(draw(store, "a"), answer=b"[1]")
    queued = store.reserve(drawn(store, "b"), serves=anything, lease_seconds=3600)
    assert isinstance(queued, Reserved)
    left = store.leave_schedule("weekly", actor="steward", reason="the panel ends")
    assert amounts(store) == (TENTH, TENTH)
    assert left.ended == store.schedule("weekly").ended == len(list(store.entries()))
    row = store.history()[-1]
    assert (row.state, row.schedule, row.reason) == ("leave", "weekly", "the panel ends")
    with pytest.raises(RequestError, match="was left"):
        draw(store, "c")
    with pytest.raises(RequestError, match="was left before"):
        store.leave_schedule("weekly", actor="steward", reason="again")
    with pytest.raises(RequestError, match="no schedule 'monthly'"):
        store.leave_schedule("monthly", actor="steward", reason="again")
    store.verify()
    # What had been drawn goes on; given back, nothing holds it any longer.
    store.void(queued.request)
    assert amounts(store) == (TENTH, 0)
    with pytest.raises(RequestError, match="never changes"):
        scheduled(store, "a")
    store.verify()


def test_a_cap_does_not_fall_below_what_a_schedule_set_aside(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    with pytest.raises(BudgetError, match="spent or reserved"):
        store.move_cap(opening(contract="less", cap=2 * TENTH), reason="why")
    store.move_cap(opening(contract="less", cap=3 * TENTH), reason="why")
    draw(store, "a")
    store.verify()


def test_nothing_is_drawn_on_an_overdrawn_account(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    store.witness([lost(store)])
    store.recover(Recovery(actor="steward", reason="a disk failed", unshown=ONE))
    assert store.accounts()[0].remaining == -3 * TENTH
    before = stored_bytes(address)
    with pytest.raises(BudgetError, match="overdrawn"):
        draw(store, "a")
    assert stored_bytes(address) == before
    store.leave_schedule("weekly", actor="steward", reason="why")
    assert amounts(store) == (ONE, 0)
    store.verify()


def test_the_contract_may_be_revised_meanwhile(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    store.revise(opening(contract="second version"), reason="why")
    store.settle(draw(store, "a"), answer=b"[1]")
    assert scheduled(store).position == 2
    store.verify()


def test_a_question_that_was_erased_is_drawn_no_longer(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    number = store.settle(draw(store, "a"), answer=b"[1]").request
    store.amend(ACT, entry=number, field="question", text=None)
    with pytest.raises(RequestError, match="no step for this question"):
        draw(store, "a")
    assert store.schedule("weekly").steps[0].question is None
    store.verify()


# What is done with a step, each killed before every statement. Entries added once it was done.
WORKS: dict[str, Callable[[Store], Callable[[], object]]] = {
    "draw": lambda store: _later(store.begin, drawn(store, "a")),
    "queue": lambda store: lambda: store.reserve(drawn(store, "a"), serves=anything, lease_seconds=3600),
    "give back": lambda store: _given_back(store, leave=False),
    "give back once left": lambda store: _given_back(store, leave=True),
}


def _later(act: Callable[..., object], request: Request) -> Callable[[], object]:
    return lambda: act(request, serves=anything)


def _given_back(store: Store, *, leave: bool) -> Callable[[], object]:
    outcome = store.reserve(drawn(store, "a"), serves=anything, lease_seconds=3600)
    assert isinstance(outcome, Reserved)
    if leave:
        store.leave_schedule("weekly", actor="steward", reason="why")
    return lambda: store.void(outcome.request)


@pytest.mark.parametrize("work", WORKS)
def test_killed_before_each_statement(address: Address, work: str) -> None:
    store = signed_store(address)
    scheduled(store)
    act = WORKS[work](store)
    before, kept, told = list(store.entries()), amounts(store), steps(store)
    for statement in range(1, STATEMENTS_MAX):
        if not killed_at(statement, act):
            break
        with closing(untidied(address)) as left:
            assert (list(left.entries()), amounts(left), steps(left)) == (before, kept, told)
            left.verify()
    assert 2 < statement < STATEMENTS_MAX - 1
    with closing(untidied(address)) as left:
        assert len(list(left.entries())) > len(before)
        assert steps(left) != told
        left.verify()


RACERS = 4
DRAWN, REFUSED = 7, 8


def _race(store: Store, gate: int) -> None:
    os.read(gate, 1)
    try:
        store.settle(draw(store, "a", fresh=True), answer=b"[1]")
    except RequestError as error:
        os._exit(REFUSED if "drawn once" in str(error) else 1)
    os._exit(DRAWN)


def test_of_many_processes_each_step_is_drawn_by_one(address: Address) -> None:
    """Fresh, so that none waits for another's answer: two steps ask the question, and two processes draw them."""
    store = signed_store(address)
    scheduled(store, "a", "b", "a")
    gate, opener = os.pipe()
    children = [forked(lambda: _race(store, gate)) for _ in range(RACERS)]
    os.write(opener, b"x" * RACERS)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [DRAWN] * 2 + [REFUSED] * (RACERS - 2)
    assert amounts(store) == (2 * TENTH, TENTH)
    assert [request is None for request in steps(store)] == [False, True, False]
    store.verify()


def test_of_many_threads_one_draws_a_step_and_one_leaves(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    told: list[str] = []
    gate = threading.Barrier(RACERS)

    def work(number: int) -> None:
        gate.wait()
        try:
            if number == 0:
                store.leave_schedule("weekly", actor="steward", reason="why")
                told.append("left")
            else:
                store.settle(draw(store, "a", fresh=True), answer=b"[1]")
                told.append("drawn")
        except RequestError:
            told.append("refused")
        finally:
            store.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told.count("left") == 1
    assert told.count("drawn") <= 1
    assert amounts(store) == (told.count("drawn") * TENTH, 0)
    store.verify()


@pytest.mark.parametrize(
    "harmed",
    [
        "UPDATE steps SET request = NULL WHERE step = 1",
        "UPDATE steps SET question = (SELECT question FROM steps WHERE step = 3) WHERE step = 2",
        "DELETE FROM steps WHERE step = 3",
        "UPDATE schedules SET ended = 1",
    ],
)
def test_what_is_changed_in_the_tables_is_found(address: Address, harmed: str) -> None:
    store = signed_store(address)
    scheduled(store)
    store.settle(draw(store, "a"), answer=b"[1]")
    verify(store)
    harm(address, harmed)
    with pytest.raises(VerificationError, match="schedules"):
        verify(store)
    with pytest.raises(VerificationError, match="schedules"):
        store.verify()


def test_the_tables_let_no_step_be_drawn_by_two(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    number = draw(store, "a")
    with pytest.raises(Exception, match=r"(?i)unique"):
        run_sql(address, f"UPDATE steps SET request = {number} WHERE step = 2")


def test_an_entry_that_is_no_part_of_a_request_is_read(address: Address) -> None:
    store = signed_store(address)
    scheduled(store)
    kinds = [type(decode(body)).__name__ for body in store.entries()]
    assert kinds == ["Open", "Schedule"]
    with closing(open_ledger(address)) as again:
        assert again.schedule("weekly").steps[2].question == "c"
