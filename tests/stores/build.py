"""A small signed ledger and requests on it; child processes of the tests import this module by its own name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from parco.ledger.entries import Charge, MechanismFacts, SensitivityFacts
from parco.measure import Measure
from parco.stores.records import Opening, Request, Settled, Started
from parco.stores.sqlite import SqliteStore

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
    }
    return Opening(**values | changes)


def signed_store(path: Path, **changes: Any) -> SqliteStore:
    store = SqliteStore.create_or_open(path)
    store.sign(opening(**changes))
    return store


def ask(store: SqliteStore, **changes: Any) -> Request:
    """One count at a cost of 1/10; `cost`, `delta` and `scale` may be given as numbers."""
    charge = Charge(1, changes.pop("cost", TENTH), changes.pop("delta", 0))
    values: dict[str, Any] = {
        "actor": "ana",
        "question": "count by month",
        "contract": store.signed("purchases", changes.pop("name", "sales")).contract,
        "mechanism": MechanismFacts("two-sided-geometric", Fraction(changes.pop("scale", 10)), Fraction(1)),
        "sensitivity": SensitivityFacts(Fraction(1), Fraction(1)),
        "cells": 12,
        "charges": (charge,),
    }
    return Request(**values | changes)


def anything(facts: Settled) -> bool:
    return True


def nothing(facts: Settled) -> bool:
    return False


def started(store: SqliteStore, **changes: Any) -> int:
    outcome = store.begin(ask(store, **changes), serves=anything)
    assert isinstance(outcome, Started)
    return outcome.request


def amounts(store: SqliteStore) -> tuple[int, int]:
    row = store.accounts()[0]
    return row.spent, row.reserved


def run_sql(path: Path, *statements: str) -> list[Any]:
    """Statements past the store, as somebody with any SQLite tool could send them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rows: list[Any] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        return rows
