"""Revision and caps: acts with actor and reason; accounts, answers and requests in flight go on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from threading import Barrier, Thread
from typing import Any

import pytest

from parco.errors import (
    BudgetError,
    ContractChangedError,
    ContractError,
    NotSignedError,
    RequestError,
    VerificationError,
)
from parco.ledger.entries import Cap, Revise, decode
from parco.measure import Measure
from parco.stores.address import open_ledger
from parco.stores.records import Started
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
    opening,
    signed_store,
    started,
    stored_bytes,
)
from .test_crash import every_statement

NEW: dict[str, Any] = {"contract": "the contract, second version"}


@pytest.fixture
def store(address: Address) -> Store:
    return signed_store(address)


def test_a_revision_keeps_account_secret_and_answers(store: Store) -> None:
    old, secret = store.signed("purchases", "sales"), store.secret(1)
    answer = store.settle(started(store), answer=b"[1]")
    new = store.revise(opening(**NEW, actor="bo"), reason="one more column")
    assert (new.accounts, new.text, new.position) == (old.accounts, NEW["contract"], 5)
    assert store.signed("purchases", "sales") == new
    assert new.contract != old.contract
    assert (store.secret(1), store.begin(ask(store), serves=anything)) == (secret, answer)
    assert store.answers("count by month")[0].reserve.contract == old.contract
    assert store.contract_text(old.contract) == old.text
    assert isinstance(decode(list(store.entries())[-1]), Revise)
    assert b"column" not in list(store.entries())[-1]
    last = store.history()[-1]
    assert (last.state, last.actor, last.name, last.reason) == ("revise", "bo", "sales", "one more column")
    store.verify()


def test_the_same_text_again_changes_nothing(store: Store) -> None:
    new = store.revise(opening(**NEW), reason="why")
    before = list(store.entries())
    assert store.revise(opening(**NEW), reason="why not") == new
    assert store.sign(opening(**NEW)) == new
    assert list(store.entries()) == before


def test_an_old_version_is_neither_signed_nor_asked_under_again(store: Store) -> None:
    request = ask(store)
    store.revise(opening(**NEW), reason="why")
    with pytest.raises(ContractChangedError, match="revised meanwhile"):
        store.begin(request, serves=anything)
    with pytest.raises(ContractChangedError, match="parco revise"):
        store.sign(opening())
    with pytest.raises(ContractError, match="signed before"):
        store.revise(opening(), reason="back to the first")
    with pytest.raises(NotSignedError):
        store.begin(replace(request, contract="0" * 64), serves=anything)
    assert amounts(store) == (0, 0)
    assert isinstance(store.begin(ask(store), serves=anything), Started)
    store.verify()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cap": 2 * ONE}, "the total.*parco cap"),
        ({"delta_cap": 0}, "the delta"),
        ({"terms": "household, add-or-remove, pure"}, "the terms"),
        ({"measure": Measure.GDP}, "the measure"),
        ({"labels": ("fit", "validation")}, "the parts"),
    ],
)
def test_what_no_revision_can_change(store: Store, change: dict[str, Any], named: str) -> None:
    with pytest.raises(ContractError, match=named):
        store.revise(opening(**NEW, **change), reason="why")
    if "cap" not in change:
        with pytest.raises(ContractError, match=named):
            store.move_cap(opening(**{**NEW, "cap": 2 * ONE, **change}), reason="why")
    assert len(list(store.entries())) == 1


def test_what_was_never_signed_is_not_revised(store: Store) -> None:
    for act in (store.revise, store.move_cap):
        with pytest.raises(NotSignedError):
            act(opening(name="audit", contract="another"), reason="why")


def test_a_cap_is_raised_and_lowered_with_its_contract(store: Store) -> None:
    store.settle(started(store, cost=ONE), answer=b"[1]")
    with pytest.raises(BudgetError):
        started(store, question="another")
    store.move_cap(opening(**NEW, cap=2 * ONE, actor="bo"), reason="the board")
    flying = started(store, question="another")
    with pytest.raises(BudgetError, match=r"1\.1 of pure is spent or reserved"):
        store.move_cap(opening(contract="third", cap=ONE + TENTH - 1), reason="sparing")
    store.move_cap(opening(contract="third", cap=ONE + TENTH), reason="sparing")
    assert store.settle(flying, answer=b"[2]").accounts[0].cap == ONE + TENTH
    assert store.accounts()[0].remaining == 0
    acts = [(row.state, row.reason) for row in store.history() if row.state in ("cap", "revise")]
    assert acts == [(state, reason) for reason in ("the board", "sparing") for state in ("cap", "revise")]
    caps = [one for one in map(decode, store.entries()) if isinstance(one, Cap)]
    assert [row.cap for one in caps for row in one.accounts] == [2 * ONE, ONE + TENTH]
    store.verify()


def test_the_cap_it_has_already_is_no_act(store: Store) -> None:
    with pytest.raises(RequestError, match="no cap to raise"):
        store.move_cap(opening(**NEW), reason="why")
    assert len(list(store.entries())) == 1


def test_whether_the_cap_was_ever_above_the_one_signed(store: Store) -> None:
    assert store.accounts()[0].fixed_cap == ONE
    store.move_cap(opening(contract="2", cap=ONE // 2), reason="down")
    assert store.accounts()[0].fixed_cap == ONE
    store.move_cap(opening(contract="3", cap=2 * ONE), reason="up")
    store.move_cap(opening(contract="4", cap=ONE), reason="and back")
    assert store.accounts()[0].fixed_cap is None
    assert store.fixed_cap(1, before=4) == ONE
    assert store.fixed_cap(1, before=5) is None
    store.verify()


def test_another_contract_of_the_data_set_goes_on_and_next_states_the_new_cap(store: Store) -> None:
    store.sign(opening(name="audit", contract="another"))
    store.move_cap(opening(**NEW, cap=2 * ONE), reason="why")
    started(store, name="audit")
    with pytest.raises(ContractError, match="the total"):
        store.revise(opening(name="audit", contract="another, edited"), reason="why")
    store.revise(opening(name="audit", contract="another, edited", cap=2 * ONE), reason="why")
    with pytest.raises(ContractError, match="the total"):
        store.sign(opening(name="third", contract="a third"))
    store.verify()


def test_a_reason_can_be_erased_and_the_entry_stands(store: Store, address: Address) -> None:
    store.revise(opening(**NEW), reason="Ms Rossi asked")
    store.amend(ACT, entry=2, field="reason", text=None)
    assert b"Rossi" not in stored_bytes(address)
    assert store.history()[1].reason is None
    store.verify()


def test_killed_before_each_statement_of_a_cap(store: Store, address: Address) -> None:
    before = list(store.entries())
    for _ in every_statement(lambda: store.move_cap(opening(**NEW, cap=2 * ONE), reason="why")):
        again = open_ledger(address)
        assert list(again.entries()) == before
        assert (again.accounts()[0].cap, again.signed("purchases", "sales").text) == (ONE, "the contract")
        again.verify()
    assert (store.accounts()[0].cap, store.signed("purchases", "sales").text) == (2 * ONE, NEW["contract"])
    store.verify()


def test_killed_before_each_statement_of_a_revision(store: Store, address: Address) -> None:
    before = list(store.entries())
    for _ in every_statement(lambda: store.revise(opening(**NEW), reason="why")):
        assert list(open_ledger(address).entries()) == before
    assert store.signed("purchases", "sales").text == NEW["contract"]
    store.verify()


def test_lowering_races_with_spending(store: Store) -> None:
    """Eight spend a tenth each while another lowers to a half: either may win, nobody is overdrawn."""
    ready = Barrier(9)
    requests = [ask(store, question=f"q{number}") for number in range(8)]

    def spend(place: int) -> None:
        ready.wait()
        with suppress(BudgetError, ContractChangedError):
            store.begin(requests[place], serves=anything)

    def lower() -> None:
        ready.wait()
        with suppress(BudgetError):
            store.move_cap(opening(**NEW, cap=ONE // 2), reason="why")

    threads = [Thread(target=spend, args=(place,)) for place in range(8)] + [Thread(target=lower)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    account = store.accounts()[0]
    assert account.remaining >= 0
    assert (account.cap == ONE // 2) == (account.reserved <= ONE // 2)
    assert account.reserved == sum(row.charges[0].cost for row in store.history() if row.state == "started")
    store.verify()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE caps SET cap = cap - 1",
        "DELETE FROM caps",
        "UPDATE accounts SET cap = cap + 1",
        "UPDATE contracts SET contract = (SELECT digest FROM texts WHERE text = 'the contract')",
    ],
)
def test_verify_finds_a_cap_or_version_that_no_entry_made(store: Store, address: Address, statement: str) -> None:
    store.move_cap(opening(**NEW, cap=2 * ONE), reason="why")
    store.verify()
    harm(address, statement)
    with pytest.raises(VerificationError):
        store.verify()
