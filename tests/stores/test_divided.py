"""A data set with an account for each part: opened together, charged together or not at all."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import BudgetError, ContractError, InternalError, RequestError
from parco.ledger.entries import Charge
from parco.stores.address import open_ledger
from parco.stores.records import Request, Started, Stored
from parco.stores.store import Store

from .build import ONE, TENTH, Address, anything, ask, opening, signed_store
from .test_crash import every_statement

PARTS: dict[str, Any] = {"labels": ("fit", "test", "validation")}


@pytest.fixture
def store(address: Address) -> Store:
    return signed_store(address, **PARTS)


def charge(store: Store, *accounts: int, cost: int = TENTH, **changes: Any) -> Request:
    return ask(store, charges=tuple(Charge(account, cost) for account in accounts), **changes)


def begin(store: Store, request: Request) -> int:
    outcome = store.begin(request, serves=anything)
    assert isinstance(outcome, Started)
    return outcome.request


def held(store: Store) -> list[int]:
    return [row.spent + row.reserved for row in store.accounts()]


def test_accounts_are_opened_together_with_one_secret(store: Store) -> None:
    signed = store.signed("purchases", "sales")
    assert signed.accounts == {"fit": 1, "test": 2, "validation": 3}
    assert [(row.title, row.cap, row.fixed_cap) for row in store.accounts()] == [
        (f"purchases / {label}", ONE, ONE) for label in PARTS["labels"]
    ]
    assert store.secret(1) == store.secret(2) == store.secret(3)
    assert len(list(store.entries())) == 1
    assert store.sign(opening(dataset="returns", contract="another")).accounts == {"whole": 4}
    store.verify()


def test_two_contracts_share_the_parts(store: Store) -> None:
    second = store.sign(opening(name="audit", contract="another", **PARTS))
    assert second.accounts == store.signed("purchases", "sales").accounts
    begin(store, charge(store, 1))
    begin(store, charge(store, 1, name="audit", question="another"))
    assert held(store) == [2 * TENTH, 0, 0]
    assert store.contract_texts(3) == ["the contract", "another"]
    store.verify()


@pytest.mark.parametrize(
    "labels", [("whole",), ("fit", "test"), ("fit", "validation", "test"), ("fit", "test", "rest")]
)
def test_parts_that_differ_are_refused(store: Store, labels: tuple[str, ...]) -> None:
    with pytest.raises(ContractError, match="the parts"):
        store.sign(opening(name="audit", contract="another", labels=labels))
    with pytest.raises(ContractError, match="the parts"):
        store.revise(opening(contract="another", labels=labels), reason="why")
    assert len(list(store.entries())) == 1


@pytest.mark.parametrize("labels", [(), ("a", "a")])
def test_labels_that_name_no_accounts_are_refused(address: Address, labels: tuple[str, ...]) -> None:
    with pytest.raises(ContractError, match="must have names"):
        signed_store(address, labels=labels)


@pytest.mark.parametrize("short", [1, 2, 3])
def test_all_or_nothing_whichever_account_is_short(store: Store, short: int) -> None:
    begin(store, charge(store, short, cost=ONE, question="all of one"))
    before, entries = held(store), list(store.entries())
    with pytest.raises(BudgetError, match=f"purchases / {PARTS['labels'][short - 1]}"):
        store.begin(charge(store, 1, 2, 3, cost=1), serves=anything)
    assert (held(store), list(store.entries())) == (before, entries)
    store.verify()


def test_all_are_settled_forfeited_or_given_back_together(store: Store) -> None:
    answered = store.settle(begin(store, charge(store, 1, 2, 3)), answer=b"[1]")
    assert [(row.account, row.spent, row.reserved) for row in answered.accounts] == [(n, TENTH, 0) for n in (1, 2, 3)]
    store.forfeit(begin(store, charge(store, 2, 3, question="b")))
    assert held(store) == [TENTH, 2 * TENTH, 2 * TENTH]
    assert isinstance(store.begin(charge(store, 1, 2, 3), serves=anything), Stored)
    store.verify()


@pytest.mark.parametrize("accounts", [(2, 1), (1, 1), (4,)])
def test_charges_rise_and_are_the_contracts_own(store: Store, accounts: tuple[int, ...]) -> None:
    store.sign(opening(dataset="returns", contract="another"))
    with pytest.raises(InternalError):
        store.begin(charge(store, *accounts), serves=anything)
    assert held(store) == [0, 0, 0, 0]


def test_a_cap_moves_on_all_parts_or_on_none(store: Store) -> None:
    begin(store, charge(store, 3, cost=ONE // 2))
    with pytest.raises(BudgetError):
        store.move_cap(opening(contract="2", cap=ONE // 4, **PARTS), reason="why")
    assert [row.cap for row in store.accounts()] == [ONE] * 3
    store.move_cap(opening(contract="2", cap=ONE // 2, **PARTS), reason="why")
    assert [row.cap for row in store.accounts()] == [ONE // 2] * 3
    assert store.history()[-2].caps[2].account == 3
    store.verify()


def test_killed_before_each_statement_of_a_charge_on_three(store: Store, address: Address) -> None:
    request = charge(store, 1, 2, 3, key="k")
    before = list(store.entries())
    for _ in every_statement(lambda: store.begin(request, serves=anything)):
        again = open_ledger(address)
        assert (list(again.entries()), held(again)) == (before, [0, 0, 0])
    assert open_ledger(address).history()[-1].state == "forfeited"
    assert held(store) == [TENTH] * 3
    store.verify()


def test_killed_before_each_statement_of_a_settlement_on_three(store: Store, address: Address) -> None:
    request = begin(store, charge(store, 1, 2, 3))
    before = list(store.entries())
    for _ in every_statement(lambda: store.settle(request, answer=b"[1]")):
        assert list(open_ledger(address).entries()) == before
        assert [(row.spent, row.reserved) for row in store.accounts()] == [(0, TENTH)] * 3
    assert [(row.spent, row.reserved) for row in store.accounts()] == [(TENTH, 0)] * 3
    store.verify()


ACTS = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from([(1,), (2,), (1, 2), (1, 2, 3)]), st.integers(1, 6)),
    st.tuples(st.sampled_from(["settle", "forfeit"]), st.just(()), st.integers(0, 9)),
    st.tuples(st.sampled_from(["cap", "revise"]), st.just(()), st.integers(1, 14)),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(ACTS, max_size=12))
def test_a_random_life_of_three_accounts_is_what_its_entries_add_up_to(
    acts: list[tuple[str, tuple[int, ...], int]],
) -> None:
    """A second, naive ledger beside the store: tenths held on each account, one cap, what is open."""
    with tempfile.TemporaryDirectory() as folder:
        store = signed_store(Path(folder) / "x.ledger", **PARTS)
        tenths, cap, open_requests = {1: 0, 2: 0, 3: 0}, 10, list[int]()
        for place, (act, accounts, amount) in enumerate(acts):
            changed = opening(contract=f"version {place}", cap=amount * TENTH, **PARTS)
            if act == "ask":
                request = charge(store, *accounts, cost=amount * TENTH, question=f"q{place}")
                if all(tenths[number] + amount <= cap for number in accounts):
                    open_requests.append(begin(store, request))
                    tenths |= {number: tenths[number] + amount for number in accounts}
                else:
                    with pytest.raises(BudgetError):
                        store.begin(request, serves=anything)
            elif act == "cap":
                if amount == cap or amount < max(tenths.values()):
                    with pytest.raises(BudgetError if amount < cap else RequestError):
                        store.move_cap(changed, reason="why")
                else:
                    store.move_cap(changed, reason="why")
                    cap = amount
            elif act == "revise":
                store.revise(replace(changed, cap=cap * TENTH), reason="why")
            elif open_requests:
                number = open_requests.pop(amount % len(open_requests))
                store.settle(number, answer=b"[1]") if act == "settle" else store.forfeit(number)
            assert held(store) == [tenths[number] * TENTH for number in (1, 2, 3)]
            assert {row.cap for row in store.accounts()} == {cap * TENTH}
        store.verify()


def test_races_on_several_accounts_neither_oversell_nor_wait_for_each_other(store: Store) -> None:
    """More threads on every choice of accounts than these hold: every account ends full, none above."""
    choices = [(1, 2), (2, 3), (1, 3), (1, 2, 3)] * 6 + [(1,), (2,), (3,)] * 10
    requests = [charge(store, *which, question=f"q{place}") for place, which in enumerate(choices)]
    gate = Barrier(len(requests))

    def attempt(request: Request) -> tuple[Charge, ...]:
        gate.wait()
        try:
            store.begin(request, serves=anything)
        except BudgetError:
            return ()
        return request.charges

    with ThreadPoolExecutor(len(requests)) as pool:
        won = [one for charges in pool.map(attempt, requests) for one in charges]
    spent = [sum(one.cost for one in won if one.account == number) for number in (1, 2, 3)]
    assert held(store) == spent == [ONE] * 3
    store.verify()
