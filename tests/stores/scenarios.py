"""One life for each method that writes: how a ledger is prepared for it, and the act itself.

`ACTS` has every name of `store.DURABLE`, which a test checks: a new durable method is a new row here, and then meets
every fault of every store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parco.stores.records import Reserved
from parco.stores.store import Store

from .build import ONE, anything, ask, opening, started

__all__ = ["ACTS", "Act", "reserved"]

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


def _forfeit_all(store: Store) -> Act:
    numbers = [started(store, question=question) for question in ("a", "b")]
    return lambda: store.forfeit_all(numbers)


def _void(store: Store) -> Act:
    number = reserved(store)
    return lambda: store.void(number)


def _recover(store: Store) -> Act:
    for question in ("a", "b"):
        store.abandon(started(store, question=question))
    return store.recover


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
    "forfeit_all": _forfeit_all,
    "void": _void,
    "recover": _recover,
    "erase": _erase,
}
