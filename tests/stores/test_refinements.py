"""What refines a stored answer, in each store: once, from what was settled, and never after a recovery."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from parco.errors import BudgetError, InternalError, KeyReuseError, RefinedError, RequestError
from parco.ledger.accounts import replay
from parco.ledger.entries import MechanismFacts
from parco.stores.records import Pending, Recovery, Started, Stored

from .build import ONE, TENTH, Address, amounts, anything, ask, harm, nothing, run_sql, sharper, signed_store, started
from .scenarios import begun, lost, settled


def test_a_path_is_settled_and_served_by_its_last_answer(address: Address) -> None:
    store = signed_store(address)
    first = settled(store)
    second = store.settle(begun(store, sharper(store, first)), answer=b"[2]")
    assert list(second.before) == [first]
    third = store.settle(begun(store, sharper(store, second.request, scale=2)), answer=b"[3]")
    assert third.before == {
        first: MechanismFacts("two-sided-geometric", Fraction(10), Fraction(1)),
        second.request: MechanismFacts("two-sided-geometric", Fraction(5), Fraction(1)),
    }
    assert amounts(store) == (3 * TENTH, 0)
    served = store.begin(ask(store), serves=anything)
    assert isinstance(served, Stored)
    assert (served.request, served.answer, served.before) == (third.request, b"[3]", third.before)
    assert store.stored(third.request) == third == store.answer(third.request)
    assert store.answers("count by month")[-1] == third
    assert store.answer(999) is None
    assert [row.parent for row in store.history()] == [None, None, first, second.request]
    assert store.verify() == replay(store.entries())


def test_the_second_comer_waits_then_is_served_or_told_who_was_first(address: Address) -> None:
    store = signed_store(address)
    first = settled(store)
    child = begun(store, sharper(store, first))
    assert store.begin(sharper(store, first, scale=4), serves=nothing) == Pending(child)
    store.settle(child, answer=b"[2]")
    served = store.begin(sharper(store, first), serves=anything)
    assert isinstance(served, Stored)
    assert served.request == child
    before = list(store.entries())
    with pytest.raises(RefinedError) as caught:
        store.begin(sharper(store, first, scale=4), serves=nothing)
    assert caught.value.facts["request"] == child
    two = [sharper(store, child, scale=4, key="a"), sharper(store, child, scale=3, key="b")]
    assert isinstance(store.begin_all(two, serves=[nothing, nothing]), Pending)
    assert list(store.entries()) == before


def test_what_came_to_nothing_makes_way_and_stays_charged(address: Address) -> None:
    store = signed_store(address)
    first = settled(store)
    for _ in range(2):
        store.forfeit(begun(store, sharper(store, first)))
    queued = store.reserve(sharper(store, first), serves=nothing, lease_seconds=3600)
    store.void(queued.request)
    last = begun(store, sharper(store, first))
    assert amounts(store) == (3 * TENTH, TENTH)
    assert run_sql(address, "SELECT parent, request FROM refinements") == [(first, last)]
    store.verify()


def test_an_answer_older_than_a_recovery_is_not_refined_and_a_younger_one_is(address: Address) -> None:
    store = signed_store(address)
    old = settled(store)
    store.witness([lost(store)])
    store.recover(Recovery(actor="steward", reason="why", unshown=TENTH))
    with pytest.raises(RequestError, match="older than the recovery"):
        store.begin(sharper(store, old), serves=nothing)
    young = settled(store, fresh=True)
    assert isinstance(store.begin(sharper(store, young), serves=nothing), Started)


def test_what_may_not_be_refined_so_is_refused_and_nothing_is_charged(address: Address) -> None:
    store = signed_store(address)
    first, other = settled(store), started(store, question="another")
    before = list(store.entries())
    refused: dict[type[Exception], list[dict[str, Any]]] = {
        RequestError: [{"parent": 999}, {"parent": other, "question": "another one"}],
        InternalError: [{"question": "not that"}, {"scale": 10}, {"scale": 11}, {"cells": 13}],
        BudgetError: [{"cost": ONE}],
    }
    for error, changes in refused.items():
        for change in changes:
            with pytest.raises(error):
                store.begin(sharper(store, **{"parent": first} | change), serves=nothing)
    assert list(store.entries()) == before


def test_a_key_belongs_to_one_refinement(address: Address) -> None:
    store = signed_store(address)
    first = settled(store)
    wanted = sharper(store, first, key="k")
    child = store.settle(begun(store, wanted), answer=b"[2]")
    assert store.begin(wanted, serves=nothing) == child
    for other in (ask(store, key="k", scale=5), sharper(store, child.request, key="k", scale=2)):
        with pytest.raises(KeyReuseError):
            store.begin(other, serves=nothing)


def test_the_table_itself_takes_no_second_refinement(address: Address) -> None:
    """The guard behind the guard."""
    store = signed_store(address)
    first = settled(store)
    child = begun(store, sharper(store, first))
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        run_sql(address, f"INSERT INTO refinements (parent, request) VALUES ({first}, {first})")
    harm(address, f"UPDATE refinements SET request = {first} WHERE request = {child}")
    with pytest.raises(Exception, match="refinements"):
        store.verify()
