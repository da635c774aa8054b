"""Quotas: a fair share of accounts, enforced as accounts are, and counted by what the entries say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from parco.errors import BudgetError, QuotaError, RequestError, VerificationError
from parco.ledger.entries import Charge
from parco.stores.address import open_ledger
from parco.stores.records import Reserved, Started
from parco.stores.store import Store

from .build import ONE, TENTH, Address, anything, ask, harm, opening, quota, run_sql, signed_store, started
from .scenarios import reserved
from .test_contention import PROCESSES, THREADS, all_at_once

ATTEMPTS = 60


def shown(store: Store) -> list[tuple[str, int, int]]:
    return [(row.name, row.amount // TENTH, row.used // TENTH) for row in store.quotas()]


def test_a_group_shares_what_its_quota_leaves(address: Address) -> None:
    store = signed_store(address)
    store.set_quota(quota(members=("ana", "bob"), amount=3 * TENTH))
    started(store, question="a", actor="ana", cost=2 * TENTH, scale=5)
    started(store, question="b", actor="bob")
    before, size = store.accounts(), len(list(store.entries()))
    with pytest.raises(QuotaError) as caught:
        started(store, question="c", actor="bob")
    assert isinstance(caught.value, BudgetError)
    assert caught.value.exit_code == 3
    assert caught.value.facts["remaining"] == "0"
    assert "0 of 0.3 is left of the quota 'team' on 'purchases'; nothing was charged" in str(caught.value)
    assert "protects nobody" in str(caught.value)
    assert (store.accounts(), len(list(store.entries()))) == (before, size)
    started(store, question="c", actor="eve")
    assert shown(store) == [("team", 3, 3)]
    store.verify()


def test_of_several_quotas_all_must_have_room(address: Address) -> None:
    store = signed_store(address)
    store.set_quota(quota(name="ana", amount=5 * TENTH))
    store.set_quota(quota(name="both", members=("ana", "bob"), amount=2 * TENTH))
    started(store, question="a", actor="bob")
    started(store, question="b", actor="ana")
    with pytest.raises(QuotaError, match="'both'"):
        started(store, question="c", actor="ana")
    # What the first of them had counted is undone with the rest.
    assert shown(store) == [("ana", 5, 1), ("both", 2, 2)]
    store.set_quota(quota(name="ana", amount=TENTH))
    store.set_quota(quota(name="both", members=("ana", "bob"), amount=9 * TENTH))
    with pytest.raises(QuotaError, match="'ana'"):
        started(store, question="c", actor="ana")
    store.verify()


def test_the_account_refuses_first(address: Address) -> None:
    store = signed_store(address)
    store.set_quota(quota(amount=0))
    with pytest.raises(BudgetError) as caught:
        started(store, cost=11 * TENTH, scale=1)
    assert type(caught.value) is BudgetError


def test_what_was_given_back_is_not_used_and_what_was_lost_is(address: Address) -> None:
    store = signed_store(address)
    store.set_quota(quota(amount=4 * TENTH))
    store.void(reserved(store, question="a"))
    assert shown(store) == [("team", 4, 0)]
    store.forfeit(started(store, question="b"))
    store.settle(started(store, question="c"), answer=b"[1]")
    reserved(store, question="d")
    assert shown(store) == [("team", 4, 3)]
    store.verify()


def test_a_lease_that_is_over_gives_back(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    store = signed_store(address)
    store.set_quota(quota(amount=TENTH))
    assert isinstance(store.reserve(ask(store), serves=anything, lease_seconds=1), Reserved)
    monkeypatch.setattr(store._watch, "is_over", lambda *_: True)
    assert len(store.tidy()) == 1
    started(store, question="another")
    assert shown(store) == [("team", 1, 1)]
    store.verify()


def test_a_new_quota_counts_what_its_members_asked_before(address: Address) -> None:
    store = signed_store(address)
    store.settle(started(store, question="a", actor="ana"), answer=b"[1]")
    started(store, question="b", actor="bob", cost=2 * TENTH, scale=5)
    store.void(reserved(store, question="c", actor="bob"))
    (row,) = store.set_quota(quota(members=("ana", "bob"), amount=TENTH))
    assert (row.used, row.remaining) == (3 * TENTH, -2 * TENTH)
    with pytest.raises(QuotaError, match=r"-0\.2 of 0\.1 is left"):
        started(store, question="d", actor="ana")
    store.set_quota(quota(members=("bob",), amount=5 * TENTH))
    assert shown(store) == [("team", 5, 2)]
    started(store, question="d", actor="ana")
    store.set_quota(quota(amount=None))
    assert store.quotas() == []
    started(store, question="e", actor="bob", cost=5 * TENTH, scale=2)
    store.verify()
    acts = [row for row in store.history() if row.state == "quota"]
    assert [set(row.members) for row in acts] == [{"ana", "bob"}, {"bob"}, {"bob"}]
    assert {(row.name, row.actor, row.reason) for row in acts} == {("team", "steward", "fairness")}


def test_what_cannot_be_shared_is_refused(address: Address) -> None:
    store = signed_store(address)
    with pytest.raises(RequestError, match="no quota 'team' to lift"):
        store.set_quota(quota(amount=None))
    with pytest.raises(RequestError, match="no such data set"):
        store.set_quota(quota(dataset="nothing"))
    store.sign(opening(dataset="visits", contract="another"))
    with pytest.raises(RequestError, match="purchases, visits"):
        store.set_quota(quota())
    (row,) = store.set_quota(quota(dataset="visits"))
    assert row.account == "visits"
    store.set_quota(quota(amount=None))
    with pytest.raises(RequestError, match="no quota 'team' to lift"):
        store.set_quota(quota(amount=None))
    assert store.quotas() == []
    store.verify()


def test_every_account_of_a_divided_data_set_has_the_amount(address: Address) -> None:
    store = signed_store(address, labels=("fit", "test"))
    assert [row.account for row in store.set_quota(quota(amount=TENTH))] == ["purchases / fit", "purchases / test"]
    started(store, question="a", charges=(Charge(1, TENTH),))
    with pytest.raises(QuotaError, match="fit"):
        started(store, question="b", charges=(Charge(1, TENTH), Charge(2, TENTH)))
    started(store, question="b", charges=(Charge(2, TENTH),))


HARM = {
    "what is used": "UPDATE quota_amounts SET used = used - 1",
    "an amount": "UPDATE quota_amounts SET amount = amount + 1",
    "a member": "DELETE FROM quota_members",
    "what replaced it": "UPDATE quotas SET replaced = quota",
}


@pytest.mark.parametrize("what", HARM)
def test_verify_compares_the_tables_with_the_entries(address: Address, what: str) -> None:
    from parco.audit.verify import verify

    store = signed_store(address)
    store.set_quota(quota())
    store.settle(started(store), answer=b'{"cells":[1]}')
    store.verify()
    verify(store)
    harm(address, HARM[what])
    with pytest.raises(VerificationError, match="quotas"):
        store.verify()
    with pytest.raises(VerificationError, match=r"tables: .*quotas"):
        verify(store)


def test_a_quota_is_not_oversold(address: Address, tmp_path: Path) -> None:
    """Threads of processes, two names in one quota: sold to the last unit, not beyond, while the account has room."""
    units = 10
    signed_store(address, cap=ONE).set_quota(quota(members=("ana", "bob"), amount=units))
    won = all_at_once(tmp_path, lambda: _ask_at_once(address))
    store = open_ledger(address)
    assert 5 * units < PROCESSES * THREADS * ATTEMPTS
    assert len(won) == units
    assert [(row.amount, row.used) for row in store.quotas()] == [(units, units)]
    assert store.accounts()[0].reserved + store.accounts()[0].spent == units
    store.verify()


def _ask_at_once(address: Address) -> list[int]:
    store, won = open_ledger(address), list[int]()
    for attempt in range(ATTEMPTS):
        request = ask(store, actor=("ana", "bob")[attempt % 2], charges=(Charge(1, 1),), fresh=True)
        try:
            outcome = store.begin(request, serves=anything)
        except QuotaError:
            continue
        assert isinstance(outcome, Started)
        won.append(outcome.request)
    store.close()
    return won


def test_reading_the_quota_first_and_counting_afterwards_oversells(address: Address, tmp_path: Path) -> None:
    """The control, under the very same load: what is left is read, compared, and the request made outside of it."""
    units = 10
    signed_store(address, cap=ONE).set_quota(quota(members=("cleo",), amount=units))
    assert len(all_at_once(tmp_path, lambda: _careless(address, units))) > units


def _careless(address: Address, units: int) -> list[int]:
    store, won = open_ledger(address), list[int]()
    for _ in range(ATTEMPTS):
        used = store.accounts()[0]
        if used.reserved + used.spent < units:
            outcome = store.begin(ask(store, charges=(Charge(1, 1),), fresh=True), serves=anything)
            assert isinstance(outcome, Started)
            won.append(outcome.request)
    store.close()
    return won


def test_a_ledger_without_quotas_asks_nothing_more_of_its_database(tmp_path: Path) -> None:
    from sqlalchemy import Engine, event

    def statements(act: Callable[[], object]) -> int:
        sent: list[str] = []

        def note(_c: object, _u: object, statement: str, *_: object) -> None:
            sent.append(statement)

        event.listen(Engine, "before_cursor_execute", note)
        try:
            act()
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        return sum("quota_" in statement for statement in sent)

    store = signed_store(tmp_path / "x.ledger")
    assert statements(lambda: started(store, question="a")) == 0
    store.set_quota(quota())
    assert statements(lambda: started(store, question="b")) > 0
    assert run_sql(tmp_path / "x.ledger", "SELECT used FROM quota_amounts") == [(2 * TENTH,)]
