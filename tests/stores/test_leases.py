"""Queued requests: reserved now, started later, given back when their lease is over; and no wall clock has a say."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from parco.errors import ForfeitedError, InternalError, KeyReuseError, RequestError
from parco.ledger.entries import Reserve, Start, Void, decode
from parco.stores import lease as leases
from parco.stores.address import open_ledger
from parco.stores.lease import Lease, Watch, granted
from parco.stores.owner import host_name
from parco.stores.records import Pending, Reserved, Started, Stored
from parco.stores.store import Store

from .build import ONE, TENTH, Address, amounts, anything, ask, run_sql, signed_store, started
from .forks import forked
from .scenarios import reserved


class Clock:
    """A monotonic clock that tests can move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.microseconds = 10**9
        monkeypatch.setattr(leases, "_microseconds", lambda: self.microseconds)

    def pass_by(self, seconds: float) -> None:
        self.microseconds += int(seconds * 1_000_000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def store(address: Address) -> Store:
    return signed_store(address)


def test_reserve_and_start_are_two_commits_of_one_entry_each(store: Store) -> None:
    number = reserved(store)
    assert (amounts(store), [row.state for row in store.history()]) == ((0, TENTH), ["open", "reserved"])
    assert store.start(number) == Started(number)
    assert [type(decode(body)) for body in store.entries()][1:] == [Reserve, Start]
    stored = store.settle(number, answer=b"[1]")
    assert amounts(store) == (TENTH, 0)
    assert store.reserve(ask(store), serves=anything, lease_seconds=1) == stored
    store.verify()


def test_the_same_question_waits_for_a_reservation_and_the_same_key_finds_it(store: Store) -> None:
    number = reserved(store, key="k")
    assert store.begin(ask(store), serves=anything) == Pending(number)
    assert store.reserve(ask(store, key="k"), serves=anything, lease_seconds=1) == Pending(number)
    assert amounts(store) == (0, TENTH)


def test_a_lease_that_is_over_is_given_back_by_whoever_comes_next(store: Store, address: Address, clock: Clock) -> None:
    number = reserved(store, lease_seconds=60, key="k")
    clock.pass_by(59.9)
    assert open_ledger(address).history()[-1].state == "reserved"
    clock.pass_by(0.2)
    outcome = store.begin(ask(store), serves=anything)
    assert isinstance(outcome, Started)
    assert [row.state for row in store.history()] == ["open", "void", "started"]
    assert isinstance(decode(list(store.entries())[2]), Void)
    with pytest.raises(RequestError, match="given back before it started, and nothing was charged"):
        store.start(number)
    with pytest.raises(KeyReuseError, match="given back"):
        store.begin(ask(store, key="k"), serves=anything)
    assert amounts(store) == (0, TENTH)
    store.verify()


def test_opening_gives_back_what_is_over(store: Store, address: Address, clock: Clock) -> None:
    reserved(store, lease_seconds=5)
    clock.pass_by(6)
    again = open_ledger(address)
    assert (amounts(again), again.history()[-1].state) == ((0, 0), "void")


def test_a_lease_that_is_over_and_not_noticed_can_still_be_started(store: Store, clock: Clock) -> None:
    number = reserved(store, lease_seconds=5)
    clock.pass_by(6)
    store.start(number)
    assert store.tidy() == []
    store.settle(number, answer=b"[1]")


def test_only_a_reserved_request_starts_and_only_once(store: Store) -> None:
    number = reserved(store)
    store.start(number)
    with pytest.raises(InternalError, match="is started, not reserved"):
        store.start(number)
    with pytest.raises(InternalError, match="is started, not reserved"):
        store.void(number)
    store.forfeit(number)
    with pytest.raises(ForfeitedError):
        store.start(number)


def test_a_second_start_is_refused_and_takes_the_request_from_nobody(store: Store) -> None:
    number = reserved(store)
    store.start(number)
    with pytest.raises(InternalError):
        store.start(number)
    assert store.tidy() == [], "it is still in the hand of whoever started it"
    store.settle(number, answer=b"[1]")


def test_a_worker_that_dies_after_its_start_forfeits_and_one_before_does_not(store: Store, address: Address) -> None:
    number, waiting = reserved(store), reserved(store, question="another")
    os.waitpid(forked(lambda: store.start(number)), 0)
    again = open_ledger(address)
    assert [row.state for row in again.history()] == ["open", "forfeited", "reserved"]
    with pytest.raises(ForfeitedError):
        store.settle(number, answer=b"[1]")
    store.start(waiting)
    assert isinstance(store.settle(waiting, answer=b"[1]"), Stored)
    assert amounts(store) == (2 * TENTH, 0)


@pytest.mark.parametrize("seconds", [0, -1, True, 1.5, 10**12, None])
def test_a_lease_has_a_length(store: Store, seconds: object) -> None:
    with pytest.raises(RequestError, match="whole number of seconds"):
        store.reserve(ask(store), serves=anything, lease_seconds=seconds)  # type: ignore[arg-type]
    assert amounts(store) == (0, 0)


def test_a_lease_ends_with_its_boot_and_on_another_host_only_once_watched_so_long(clock: Clock) -> None:
    watch, lease = Watch(), granted(60)
    assert not watch.is_over(2, lease)
    assert watch.is_over(2, replace(lease, boot="an earlier boot"))
    elsewhere = Lease("elsewhere", "its boot", 5, 60)
    assert not watch.is_over(2, elsewhere), "its clock says nothing here"
    clock.pass_by(59)
    assert not watch.is_over(2, elsewhere)
    assert not watch.is_over(3, elsewhere), "another reservation is seen for the first time"
    clock.pass_by(1)
    assert watch.is_over(2, elsewhere)
    assert not watch.is_over(3, elsewhere)
    assert watch.is_over(2, lease)


def test_another_hosts_requests_are_left_alone_until_it_is_gone(store: Store, address: Address) -> None:
    number, waiting = started(store), reserved(store, question="another")
    run_sql(address, "UPDATE owners SET host = 'laptop'", "UPDATE leases SET host = 'laptop'")
    assert store.tidy() == []
    assert open_ledger(address).tidy(gone=["desk"]) == []
    assert open_ledger(address).tidy(gone=["laptop"]) == [number, waiting]
    assert [row.state for row in store.history()] == ["open", "forfeited", "void"]
    assert amounts(store) == (TENTH, 0)
    assert host_name() != "laptop"


@pytest.mark.parametrize("jump", [-(10**9), 10**9])
def test_a_wall_clock_that_jumps_changes_no_order_and_no_lease(
    store: Store, address: Address, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    number = reserved(store, lease_seconds=3600)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + jump)
    started(store, question="later")
    again = open_ledger(address)
    assert [(row.seq, row.state) for row in again.history()] == [(1, "open"), (number, "reserved"), (3, "started")]
    assert (again.history()[-1].time < again.history()[0].time) == (jump < 0)
    again.verify()


def test_several_accounts_are_reserved_and_given_back_together(address: Address, clock: Clock) -> None:
    from parco.ledger.entries import Charge

    store = signed_store(address, labels=("fit", "test"))
    number = reserved(store, charges=(Charge(1, TENTH), Charge(2, TENTH)), lease_seconds=5)
    assert [row.reserved for row in store.accounts()] == [TENTH, TENTH]
    clock.pass_by(6)
    assert store.tidy() == [number]
    assert [(row.reserved, row.remaining) for row in store.accounts()] == [(0, ONE), (0, ONE)]
    store.verify()


def test_tiny_costs_add_up_exactly(store: Store) -> None:
    """Beside an amount 10^15 times as large, none of them is lost to rounding."""
    store.settle(started(store, cost=ONE - 1000, question="nearly all"), answer=b"[]")
    for number in range(40):
        started(store, cost=1, question=f"q{number}")
    assert amounts(store) == (ONE - 1000, 40)
    assert isinstance(store.begin(ask(store, cost=960), serves=anything), Started)
    assert store.accounts()[0].remaining == 0


def test_what_was_reserved_is_told_from_what_was_started(store: Store) -> None:
    outcome = store.reserve(ask(store), serves=anything, lease_seconds=5)
    assert outcome == Reserved(2)
    assert store.begin(ask(store, question="another"), serves=anything) == Started(3)
