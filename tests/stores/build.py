"""A small signed ledger and requests on it; child processes of the tests import this module by its own name."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from parco.ledger.entries import Charge, MechanismFacts, SensitivityFacts
from parco.measure import Measure
from parco.stores.address import create_or_open_ledger
from parco.stores.records import Allotment, Opening, Request, Settled, Started
from parco.stores.sqlite import SqliteStore
from parco.stores.store import Store

if TYPE_CHECKING:
    from tests.postgres import Server

Address: TypeAlias = Path | str

# The server of the test that runs, if any.
SERVERS: list[Server] = []

ONE = 10**15
TENTH = ONE // 10


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
    store.sign(opening(**changes))
    return store


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


def _database(url: str) -> str:
    return url.split("@/")[1].split("?", maxsplit=1)[0]


def _for_postgres(statement: str) -> str:
    return re.sub(r"x'([0-9a-f]*)'", r"'\\x\1'::bytea", statement)
