"""An interactive request and its accounts in every store: who is refused, and what a death leaves."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

from parco.errors import BusyError, VerificationError
from parco.ledger.entries import Charge
from parco.stores.address import open_ledger
from parco.stores.records import Request, Reserved, Started, Stored
from parco.stores.store import Store

from .build import TENTH, Address, amounts, anything, ask, nothing, run_sql, signed_store, started, stream
from .children import run

ANSWER = b'{"cells":[0,1],"parco":"0.1.0"}'


@pytest.fixture
def store(address: Address) -> Store:
    return signed_store(address)


def begun(store: Store, request: Request) -> int:
    outcome = store.begin(request, serves=nothing)
    assert isinstance(outcome, Started)
    return outcome.request


def test_others_are_refused_until_it_has_ended_and_repeats_are_served(address: Address, store: Store) -> None:
    store.settle(started(store), answer=ANSWER)
    number = begun(store, stream(store))
    for other in (ask(store, question="another"), ask(store, fresh=True), stream(store)):
        with pytest.raises(BusyError) as caught:
            store.begin(other, serves=nothing)
        assert caught.value.facts["request"] == number
        with pytest.raises(BusyError):
            store.reserve(other, serves=nothing, lease_seconds=5)
    assert amounts(store) == (TENTH, TENTH)
    assert isinstance(store.begin(ask(store), serves=anything), Stored)
    store.settle(number, answer=ANSWER)
    assert begun(store, ask(store, question="another")) > number
    assert run_sql(address, "SELECT account, request FROM streams") == [(1, number)]
    store.verify()


def test_it_waits_for_whatever_is_open_on_its_accounts(store: Store) -> None:
    first = started(store, question="open")
    with pytest.raises(BusyError):
        store.begin(stream(store), serves=nothing)
    store.forfeit(first)
    queued = store.reserve(ask(store, question="queued"), serves=nothing, lease_seconds=600)
    assert isinstance(queued, Reserved)
    with pytest.raises(BusyError):
        store.begin(stream(store), serves=nothing)
    store.void(queued.request)
    second = begun(store, stream(store))
    store.forfeit(second)
    third = begun(store, stream(store))
    store.settle(third, answer=ANSWER)
    assert store.verify().streams == {1: third}


def test_another_account_is_free(store: Store) -> None:
    from .build import opening

    store.sign(opening(dataset="elsewhere", name="elsewhere", contract="of another data set"))
    begun(store, stream(store))
    contract = store.signed("elsewhere", "elsewhere").contract
    other = ask(store, question="elsewhere", contract=contract, charges=(Charge(2, TENTH),))
    assert begun(store, other)
    # A stream on both would begin beside an open one on either.
    with pytest.raises(BusyError):
        store.begin(stream(store, charges=(Charge(1, TENTH), Charge(2, TENTH))), serves=nothing)


_DIES = """
from tests.stores.test_streams import begun, stream
store = open_ledger(address)
begun(store, stream(store))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    "next_one",
    [lambda store: ask(store, question="another"), stream],
    ids=["a release", "a stream"],
)
def test_a_dead_one_is_forfeited_by_whoever_comes_next(
    address: Address, store: Store, next_one: Callable[[Store], Request]
) -> None:
    done = run(_DIES, address)
    assert done.returncode == -signal.SIGKILL, done.stderr
    # This store was open before: nothing was tidied meanwhile.
    assert amounts(store) == (0, TENTH)
    begun(store, next_one(store))
    assert amounts(store) == (TENTH, TENTH)
    assert [row.state for row in store.history() if row.mechanism] == ["forfeited", "started"]
    open_ledger(address).verify()


def test_a_table_that_says_otherwise_is_found(address: Address, store: Store) -> None:
    number = begun(store, stream(store))
    store.settle(number, answer=ANSWER)
    run_sql(address, "DELETE FROM streams")
    with pytest.raises(VerificationError, match="interactive"):
        store.verify()


def test_many_that_come_at_once_are_never_beside_one_another(address: Address, store: Store) -> None:
    """Streams and releases of several threads and connections: what the entries say is checked by the state machine."""
    refused, done = list[int](), list[int]()

    def comes(place: int) -> None:
        own = open_ledger(address)
        for turn in range(4):
            wanted = ask(own, question=f"{place} {turn}", cost=TENTH // 100, scale=1000)
            if (place + turn) % 2:
                wanted = stream(own, cost=TENTH // 100)
            try:
                outcome = own.begin(wanted, serves=nothing)
            except BusyError:
                refused.append(place)
                continue
            assert isinstance(outcome, Started)
            own.settle(outcome.request, answer=ANSWER)
            done.append(outcome.request)
        own.close()

    threads = [threading.Thread(target=comes, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) + len(refused) == 16
    assert len(done) >= 1
    store.verify()
