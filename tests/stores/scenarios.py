"""One life for each method that writes: how a ledger is prepared for it, and the act itself.

`ACTS` has every name of `durable.DURABLE`, which a test checks: a new durable method is a new row here, and then meets
every fault of every store.
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
from parco.stores.records import Recovery, Reserved, Stopped
from parco.stores.store import Store

from .build import ONE, TENTH, anything, ask, opening, started
from .forks import forked

__all__ = ["ACTS", "Act", "lost", "reserved"]

Act = Callable[[], Any]


def reserved(store: Store, *, lease_seconds: int = 3600, **changes: Any) -> int:
    outcome = store.reserve(ask(store, **changes), serves=anything, lease_seconds=lease_seconds)
    assert isinstance(outcome, Reserved)
    return outcome.request


def _sign(store: Store) -> Act:
    return lambda: store.sign(opening(name="audit", contract="another"))


def _revise(store: Store) -> Act:
    return lambda: store.revise(opening(contract="second version"), reason="why")


def _move_cap(store: Store) -> Act:
    return lambda: store.move_cap(opening(contract="second version", cap=2 * ONE), reason="why")


def _begin_all(store: Store) -> Act:
    wanted = [ask(store, question=question, key=question) for question in ("a", "b")]
    return lambda: store.begin_all(wanted, serves=[anything, anything])


def _reserve(store: Store) -> Act:
    wanted = ask(store, key="k")
    return lambda: store.reserve(wanted, serves=anything, lease_seconds=3600)


def _start(store: Store) -> Act:
    number = reserved(store)
    return lambda: store.start(number)


def _settle_all(store: Store) -> Act:
    numbers = [started(store, question=question) for question in ("a", "b")]
    return lambda: store.settle_all(dict.fromkeys(numbers, b"[1]"))


def _stop(store: Store) -> Act:
    number = started(store, question="a ladder", scale=10)
    stopped = Stopped(MechanismFacts("two-sided-geometric", Fraction(20), Fraction(1)), (Charge(1, TENTH // 2),))
    return lambda: store.stop(number, answer=b"[1]", stopped=stopped)


def _forfeit_all(store: Store) -> Act:
    numbers = [started(store, question=question) for question in ("a", "b")]
    return lambda: store.forfeit_all(numbers)


def _void(store: Store) -> Act:
    number = reserved(store)
    return lambda: store.void(number)


def _tidy(store: Store) -> Act:
    """Two requests of a process that has ended, so that whoever acts, parent or child, finds them so."""
    child = forked(lambda: [started(store, question=question) for question in ("a", "b")])
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


def _erase(store: Store) -> Act:
    store.settle(started(store, question="Ada Lovelace"), answer=b"[1]")
    return lambda: store.erase("question", "Ada Lovelace")


ACTS: dict[str, Callable[[Store], Act]] = {
    "sign": _sign,
    "revise": _revise,
    "move_cap": _move_cap,
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
    "erase": _erase,
}
