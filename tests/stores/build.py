"""A small signed ledger and requests on it; child processes of the tests import this module by its own name."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Hashable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from parco.ledger.entries import Charge, MechanismFacts, SensitivityFacts, Steps
from parco.measure import Measure
from parco.stores.address import create_or_open_ledger
from parco.stores.records import Act, Allotment, Opening, Request, Scheduling, Settled, Started
from parco.stores.sqlite import SqliteStore
from parco.stores.store import Store

if TYPE_CHECKING:
    from tests.postgres import Server

Address: TypeAlias = Path | str

# The server of the test that runs, if any.
SERVERS: list[Server] = []

# Where the ledgers are that `signed_store` made.
_ADDRESSES: dict[Hashable, Address] = {}

ONE = 10**15
TENTH = ONE // 10

# Whoever corrects something here.
ACT = Act(actor="steward", reason="because")


def opening(**changes: Any) -> Opening:
    values: dict[str, Any] = {
        "actor": "ana",
        "name": "sales",
        "dataset": "purchases",
        "contract": "the contract",
        "terms": "customer, add-or-remove, pure",
        "measure": Measure.PURE,
        "cap": ONE,
        "delta_cap": 10**6,
        # Said of a data set that is signed beside others, and of no weight where it is alone.
        "disjoint": "other persons",
    }
    return Opening(**values | changes)


def quota(**changes: Any) -> Allotment:
    values: dict[str, Any] = {
        "actor": "steward",
        "reason": "fairness",
        "name": "team",
        "members": ("ana",),
        "amount": ONE,
    }
    return Allotment(**values | changes)


def signed_store(address: Address, **changes: Any) -> Store:
    store = create_or_open_ledger(address)
    _ADDRESSES[store.identity] = address
    store.sign(opening(**changes))
    return store


def address_of(store: Store) -> Address:
    """Where a ledger is that `signed_store` made, or any in a file."""
    return store.path if isinstance(store, SqliteStore) else _ADDRESSES[store.identity]


def signed_file(path: Path, **changes: Any) -> SqliteStore:
    store = SqliteStore.create_or_open(path)
    store.sign(opening(**changes))
    return store


def ask(store: Store, **changes: Any) -> Request:
    """One count at a cost of 1/10; `cost`, `delta` and `scale` may be given as numbers."""
    charge = Charge(1, changes.pop("cost", TENTH), changes.pop("delta", 0))
    values: dict[str, Any] = {
        "actor": "ana",
        "question": "count by month",
        "mechanism": MechanismFacts("two-sided-geometric", Fraction(changes.pop("scale", 10)), Fraction(1)),
        "sensitivity": SensitivityFacts(Fraction(1), Fraction(1)),
        "cells": 12,
        "charges": (charge,),
    }
    if "contract" not in changes:
        values["contract"] = store.signed("purchases", changes.pop("name", "sales")).contract
    return Request(**values | changes)


def stream(store: Store, **changes: Any) -> Request:
    """Sparse-vector checks: an interactive request, which has its accounts to itself while it is open."""
    facts: dict[str, Any] = {
        "mechanism": MechanismFacts("sparse-vector", Fraction(80), Fraction(1)),
        "sensitivity": SensitivityFacts(Fraction(4), Fraction(16)),
        "question": "checks",
        "fresh": True,
    }
    return ask(store, **facts | changes)


def scheduling(store: Store, *questions: str, **changes: Any) -> Scheduling:
    """One step for each question, with the facts of `ask`."""
    one = ask(store, **{name: changes.pop(name) for name in ("cost", "scale", "charges") if name in changes})
    values: dict[str, Any] = {
        "actor": "steward",
        "name": "weekly",
        "contract": one.contract,
        "steps": (Steps(questions, one.mechanism, one.sensitivity, one.cells, one.charges),),
    }
    return Scheduling(**values | changes)


def sharper(store: Store, parent: int, *, scale: int | Fraction = 5, cost: int = TENTH, **changes: Any) -> Request:
    """What makes the answer to a request sharper, at another 1/10."""
    return ask(store, parent=parent, scale=scale, cost=cost, **changes)


def anything(facts: Settled) -> bool:
    return True


def nothing(facts: Settled) -> bool:
    return False


def started(store: Store, **changes: Any) -> int:
    outcome = store.begin(ask(store, **changes), serves=anything)
    assert isinstance(outcome, Started)
    return outcome.request


def amounts(store: Store) -> tuple[int, int]:
    row = store.accounts()[0]
    return row.spent, row.reserved


def run_sql(address: Address, *statements: str) -> list[Any]:
    """Statements past the store, as somebody with any tool for the database could send them.

    In PostgreSQL as the administrator. A number of bytes is written as SQLite does, x'00'.
    """
    if isinstance(address, str):
        return SERVERS[-1].run_sql(_database(address), *map(_for_postgres, statements))
    with closing(sqlite3.connect(address, isolation_level=None)) as connection:
        rows: list[Any] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        return rows


def harm(address: Address, *statements: str) -> None:
    """The same past every guard: triggers and foreign keys."""
    if isinstance(address, str):
        SERVERS[-1].run_sql(_database(address), *map(_for_postgres, statements), unguarded=True)
        return
    guards = run_sql(address, "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    run_sql(address, *(f"DROP TRIGGER {name}" for (name,) in guards), *statements)


def stored_bytes(address: Address) -> bytes:
    """All that a ledger holds, as bytes: equal before and after whatever changes nothing."""
    if isinstance(address, str):
        names = run_sql(address, "SELECT tablename FROM pg_tables WHERE schemaname = 'parco' ORDER BY 1")
        kept = [name for (name,) in names if name != "repeats"]
        return repr([run_sql(address, f"SELECT * FROM {name} ORDER BY 1") for name in kept]).encode()
    return address.read_bytes()


def backup(address: Address) -> bytes | dict[str, bytes]:
    """All that a ledger holds, to be put back by `put_back`."""
    if isinstance(address, str):
        return SERVERS[-1].dump(_database(address))
    return address.read_bytes()


def put_back(address: Address, kept: bytes | dict[str, bytes]) -> None:
    """Makes a ledger what it was: an old copy of the file, or of the database as a stale replica has it."""
    if isinstance(address, str):
        assert isinstance(kept, dict)
        SERVERS[-1].load(_database(address), kept)
    else:
        assert isinstance(kept, bytes)
        address.write_bytes(kept)


def _database(url: str) -> str:
    return url.split("@/")[1].split("?", maxsplit=1)[0]


def _for_postgres(statement: str) -> str:
    statement = re.sub(
        r"CAST\(replace\(body, ('[^']*'), ('[^']*')\) AS BLOB\)",
        r"convert_to(replace(convert_from(body, 'UTF8'), \1, \2), 'UTF8')",
        statement,
    )
    statement = re.sub(r"zeroblob\((\d+)\)", lambda found: f"x'{bytes(int(found[1])).hex()}'", statement)
    return re.sub(r"x'([0-9a-f]*)'", r"'\\x\1'::bytea", statement)
