"""One life for each method that writes: how a ledger is prepared for it, and the act itself.

`ACTS` has every name of `durable.DURABLE`, and its acts make every kind of change of every table, which tests check: a
new durable method is a new row here, a new kind of change belongs into an act, and then meets every fault of every
store.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from parco.ledger.entries import Charge, MechanismFacts
from parco.ledger.heads import Head
from parco.stores import keys
from parco.stores.records import Recosting, Recovery, Request, Reserved, Started, Stopped
from parco.stores.store import Store

from .build import ACT, ONE, TENTH, anything, ask, nothing, opening, quota, scheduling, sharper, started, stream
from .forks import forked

__all__ = ["ACTS", "Act", "begun", "lost", "reserved", "settled"]

Act = Callable[[], Any]


def reserved(store: Store, *, lease_seconds: int = 3600, **changes: Any) -> int:
    outcome = store.reserve(ask(store, **changes), serves=anything, lease_seconds=lease_seconds)
    assert isinstance(outcome, Reserved)
    return outcome.request


def settled(store: Store, **changes: Any) -> int:
    return store.settle(started(store, **changes), answer=b"[1]").request


def begun(store: Store, wanted: Request) -> int:
    outcome = store.begin(wanted, serves=nothing)
    assert isinstance(outcome, Started)
    return outcome.request


def _sign(store: Store) -> Act:
    """A derived data set: all that a signing ever writes."""
    return lambda: store.sign(opening(dataset="view", contract="another", parents=("purchases",), disjoint=None))


def _revise(store: Store) -> Act:
    return lambda: store.revise(opening(contract="second version"), reason="why")


def _move_cap(store: Store) -> Act:
    return lambda: store.move_cap(opening(contract="second version", cap=2 * ONE), reason="why")


def _set_quota(store: Store) -> Act:
    store.set_quota(quota(amount=TENTH))
    started(store, question="a")
    return lambda: store.set_quota(quota(members=("ana", "bob")))


def _begin_all(store: Store) -> Act:
    """A question, the refinement of an answer whose first refinement was lost, and checks on an account that had some
    before and on one that had none.
    """
    parent = settled(store, question="b")
    store.forfeit(begun(store, sharper(store, parent, question="b")))
    store.set_quota(quota())
    contract = _elsewhere(store)
    store.forfeit(begun(store, stream(store, contract=contract, charges=_CHECKED[:1])))
    wanted = [
        ask(store, question="a", key="a"),
        sharper(store, parent, question="b", key="b"),
        stream(store, contract=contract, charges=_CHECKED),
    ]
    return lambda: store.begin_all(wanted, serves=[anything, nothing, nothing])


_CHECKED = (Charge(2, TENTH), Charge(3, TENTH))


def _elsewhere(store: Store) -> str:
    """The contract of another data set, whose accounts are 2 and 3."""
    store.sign(opening(dataset="elsewhere", name="elsewhere", contract="another", labels=("fit", "validation")))
    return store.signed("elsewhere", "elsewhere").contract


def _two_started(store: Store) -> list[int]:
    """A release, and checks on accounts of their own."""
    checks = stream(store, contract=_elsewhere(store), charges=_CHECKED)
    return [started(store, question="a"), begun(store, checks)]


def _reserve(store: Store) -> Act:
    """A refinement, queued."""
    wanted = sharper(store, settled(store), key="k")
    return lambda: store.reserve(wanted, serves=nothing, lease_seconds=3600)


def _start(store: Store) -> Act:
    number = reserved(store)
    return lambda: store.start(number)


def _settle_all(store: Store) -> Act:
    numbers = _two_started(store)
    return lambda: store.settle_all(dict.fromkeys(numbers, b"[1]"))


def _stop(store: Store) -> Act:
    """By an actor with a quota, which gets the rest back, too."""
    store.set_quota(quota())
    number = started(store, question="a ladder", scale=10)
    stopped = Stopped(MechanismFacts("two-sided-geometric", Fraction(20), Fraction(1)), (Charge(1, TENTH // 2),))
    return lambda: store.stop(number, answer=b"[1]", stopped=stopped)


def _forfeit_all(store: Store) -> Act:
    numbers = _two_started(store)
    return lambda: store.forfeit_all(numbers)


def _void(store: Store) -> Act:
    """A step, which goes back to its schedule."""
    store.set_quota(quota())
    number = reserved(store, question="a", schedule=store.sign_schedule(scheduling(store, "a")).position)
    return lambda: store.void(number)


def _tidy(store: Store) -> Act:
    """Two requests of a process that has ended, so that whoever acts, parent or child, finds them so."""
    child = forked(lambda: _two_started(store))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return store.tidy


def lost(store: Store) -> Head:
    """A head of a past that the ledger lost: signed by its own key, and not extended."""
    with store._reading() as connection:
        key = keys.current(connection)
    assert key is not None
    head = replace(store.head(), root="0" * 64)
    return head.signed(key.sign(head.statement))


def _witness(store: Store) -> Act:
    head = lost(store)
    return lambda: store.witness([head])


def _recover(store: Store) -> Act:
    store.witness([lost(store)])
    return lambda: store.recover(Recovery(actor="steward", reason="why", unshown=TENTH))


def _rotate(store: Store) -> Act:
    return lambda: store.rotate(actor="steward", reason="why")


def _sign_schedule(store: Store) -> Act:
    wanted = scheduling(store, "a", "b")
    return lambda: store.sign_schedule(wanted)


def _leave_schedule(store: Store) -> Act:
    store.sign_schedule(scheduling(store, "a", "b"))
    return lambda: store.leave_schedule("weekly", actor="steward", reason="why")


def _answered(store: Store, *questions: str) -> list[int]:
    return [store.settle(started(store, question=question), answer=b"[1]").request for question in questions]


def _amend(store: Store) -> Act:
    (number,) = _answered(store, "Ada Lovelace")
    return lambda: store.amend(ACT, entry=number, field="question", text=None)


def _supersede(store: Store) -> Act:
    first, second = _answered(store, "a", "b")
    return lambda: store.supersede(ACT, request=first, by=second)


def _recost(store: Store) -> Act:
    """Of what was answered, what is under way, and what waits; the account is overdrawn by it."""
    _answered(store, "a")
    started(store, question="b")
    reserved(store, question="c")
    wanted = Recosting(mechanism="two-sided-geometric", factor=Fraction(13, 2))
    return lambda: store.recost(ACT, wanted)


def _flag(store: Store) -> Act:
    (number,) = _answered(store, "a")
    return lambda: store.flag(ACT, entry=number)


def _close_account(store: Store) -> Act:
    _answered(store, "a")
    reserved(store, question="b")
    return lambda: store.close_account(ACT)


ACTS: dict[str, Callable[[Store], Act]] = {
    "sign": _sign,
    "revise": _revise,
    "move_cap": _move_cap,
    "set_quota": _set_quota,
    "begin_all": _begin_all,
    "reserve": _reserve,
    "start": _start,
    "settle_all": _settle_all,
    "stop": _stop,
    "forfeit_all": _forfeit_all,
    "void": _void,
    "tidy": _tidy,
    "witness": _witness,
    "recover": _recover,
    "rotate": _rotate,
    "sign_schedule": _sign_schedule,
    "leave_schedule": _leave_schedule,
    "amend": _amend,
    "supersede": _supersede,
    "recost": _recost,
    "flag": _flag,
    "close_account": _close_account,
}
