"""Many requests ended at once, by the batch: each as it stood, and none but those."""

from __future__ import annotations

import pytest

from parco.errors import InternalError, RequestError, VerificationError
from parco.ledger.entries import Charge, Forfeit, Void, decode
from parco.stores import ending
from parco.stores.records import Reserved, Started
from parco.stores.store import Store

from .build import TENTH, Address, anything, ask, quota, signed_store

COST = TENTH // 10


def _open_ones(store: Store) -> tuple[list[int], list[int]]:
    """Requests that were started and that are reserved, six of each, turn by turn."""
    started, reserved = [], []
    for number in range(6):
        request = ask(store, question=f"started {number}", cost=COST + number)
        outcome = store.begin(request, serves=anything)
        assert isinstance(outcome, Started)
        started.append(outcome.request)
        request = ask(store, question=f"reserved {number}", cost=COST + 10 * number, actor=f"analyst {number % 2}")
        queued = store.reserve(request, serves=anything, lease_seconds=1000)
        assert isinstance(queued, Reserved)
        reserved.append(queued.request)
    return started, reserved


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 100])
def test_each_ends_as_it_stood_and_no_other(address: Address, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(ending, "_BATCH", batch)
    store = signed_store(address)
    store.set_quota(quota(members=("analyst 0", "analyst 1")))
    started, reserved = _open_ones(store)
    ended = dict.fromkeys([*started[:2], *started[3:]], "started") | dict.fromkeys(reserved[1:5], "reserved")
    before = len(list(store.entries()))
    store._write(lambda connection: ending.end(connection, ended))
    states = {row.seq: row.state for row in store.history()}
    assert [states[number] for number in started] == ["forfeited"] * 2 + ["started"] + ["forfeited"] * 3
    assert [states[number] for number in reserved] == ["reserved", *["void"] * 4, "reserved"]
    written = [decode(body) for body in list(store.entries())[before:]]
    kinds = {"started": Forfeit, "reserved": Void}
    assert [(type(one), getattr(one, "request", 0)) for one in written] == [
        (kinds[ended[number]], number) for number in sorted(ended)
    ]
    (account,) = store.accounts()
    assert account.spent == sum(COST + number for number in (0, 1, 3, 4, 5))
    assert account.reserved == COST + 2 + COST + COST + 50
    assert store.quotas()[0].used == COST + COST + 50
    store.verify()


def test_several_accounts_of_several_requests_add_up(address: Address) -> None:
    store = signed_store(address, labels=("fit", "test"))
    charges = [(Charge(1, 5, 3), Charge(2, 7)), (Charge(2, 11, 2),), (Charge(1, 13),)]
    numbers = []
    for place, charged in enumerate(charges):
        outcome = store.begin(ask(store, question=f"{place}", charges=charged), serves=anything)
        assert isinstance(outcome, Started)
        numbers.append(outcome.request)
    store.forfeit_all(numbers)
    assert [(row.spent, row.delta_spent, row.reserved, row.delta_reserved) for row in store.accounts()] == [
        (18, 3, 0, 0),
        (18, 2, 0, 0),
    ]
    store.verify()


def test_one_that_stands_otherwise_stops_all(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_BATCH", 2)
    store = signed_store(address)
    started, reserved = _open_ones(store)
    store.settle(started[4], answer=b"[1]")
    store.void(reserved[5])
    before = list(store.entries())
    wrong: list[tuple[dict[int, str], type[Exception], str]] = [
        (dict.fromkeys(started, "started"), InternalError, "is settled, not started"),
        (dict.fromkeys(reserved, "reserved"), RequestError, "was given back"),
        ({started[0]: "started", reserved[0]: "started"}, InternalError, "is reserved, not started"),
        ({started[0]: "started", 1: "started"}, InternalError, "is unknown, not started"),
    ]
    for states, kind, told in wrong:
        with pytest.raises(kind, match=told):
            store._write(lambda connection, states=states: ending.end(connection, states))  # type: ignore[misc]
        assert list(store.entries()) == before
    store.verify()


def test_nothing_to_end_writes_nothing(address: Address) -> None:
    store = signed_store(address)
    before = list(store.entries())
    store._write(lambda connection: ending.end(connection, {}))
    assert list(store.entries()) == before


def test_a_charge_that_was_put_under_another_number_is_not_spent(address: Address) -> None:
    store = signed_store(address)
    started, _ = _open_ones(store)
    body = next(body for body in store.entries() if decode(body).seq == started[1])
    with pytest.raises(VerificationError, match=f"entry {started[0]} is not"):
        ending._spent(body, started[0])
