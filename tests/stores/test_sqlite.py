"""The SQLite file under tampering, races and a random life, against the pure state machine."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import BudgetError, ForfeitedError, SharperError, VerificationError
from parco.ledger.accounts import replay
from parco.stores.records import Pending, Started, Stored
from parco.stores.sqlite import SqliteStore

from .build import ONE, TENTH, amounts, anything, ask, run_sql, signed_file, started
from .children import running

THREADS = 64
PROCESSES = 8


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = x'7b7d' WHERE seq = 1",
        "DELETE FROM entries WHERE seq = 4",
        "INSERT OR REPLACE INTO entries VALUES (4, x'7b7d')",
        "INSERT INTO entries VALUES (9, x'7b7d')",
        "UPDATE answers SET body = x'5b5d'",
        "DELETE FROM answers",
        "INSERT OR REPLACE INTO answers VALUES (2, x'00', x'5b5d')",
        "UPDATE accounts SET spent = cap + 1",
        "UPDATE accounts SET reserved = -1",
        "UPDATE accounts SET delta_spent = delta_cap + 1",
        "UPDATE accounts SET spent = 0.5",
        "UPDATE requests SET state = 'lost'",
        "UPDATE requests SET settled = NULL",
        "PRAGMA foreign_keys = ON; DELETE FROM texts",
    ],
)
def test_the_tables_refuse_what_no_store_would_write(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "x.ledger"
    store = signed_file(path)
    store.settle(started(store), answer=b"[1]")
    *first, last = statement.split("; ")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for part in first:
            connection.execute(part)
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(last)
    store.verify()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ("UPDATE accounts SET spent = 0", "accounts"),
        ("UPDATE requests SET state = 'forfeited', settled = NULL", "requests"),
        ("DELETE FROM requests", "requests"),
        ("DELETE FROM contracts", "contracts"),
        ("DROP TRIGGER entries_are_never_removed; DELETE FROM entries WHERE seq = 3", "entry 3"),
        ("DROP TRIGGER entries_are_never_changed; UPDATE entries SET body = x'7b7d' WHERE seq = 3", "entry"),
    ],
)
def test_verify_finds_what_the_tables_cannot_refuse(tmp_path: Path, harm: str, message: str) -> None:
    path = tmp_path / "x.ledger"
    store = signed_file(path)
    store.settle(started(store), answer=b"[1]")
    store.verify()
    run_sql(path, *harm.split("; "))
    with pytest.raises(VerificationError, match=message):
        store.verify()


def race(attempt: Callable[[], bool]) -> int:
    """How many of 64 threads, let go at once, win."""
    gate = threading.Barrier(THREADS)

    def run(_: int) -> bool:
        gate.wait()
        return attempt()

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(run, range(THREADS)))


def almost_spent(path: Path) -> SqliteStore:
    store = signed_file(path)
    store.settle(started(store, cost=ONE - TENTH, question="all but a tenth"), answer=b"[]")
    return store


def test_64_threads_race_for_the_last_tenth(tmp_path: Path) -> None:
    store = almost_spent(tmp_path / "x.ledger")
    request = ask(store, fresh=True)

    def attempt() -> bool:
        try:
            return isinstance(store.begin(request, serves=anything), Started)
        except BudgetError:
            return False

    assert race(attempt) == 1
    assert amounts(store) == (ONE - TENTH, TENTH)
    store.verify()


def test_reading_comparing_and_writing_oversells_in_the_same_race(tmp_path: Path) -> None:
    """The control: without it, a race that is none would pass for safety."""
    path = tmp_path / "naive"
    run_sql(path, "CREATE TABLE account (spent INTEGER)", "INSERT INTO account VALUES (900000000000000)")

    def attempt() -> bool:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
            (spent,) = connection.execute("SELECT spent FROM account").fetchone()
            time.sleep(0.01)
            if spent + TENTH > ONE:
                return False
            connection.execute("UPDATE account SET spent = spent + ?", (TENTH,))
            return True

    assert race(attempt) > 1


RACER = """
import time
from parco.errors import BudgetError
store = SqliteStore.open(path)
request = ask(store, fresh=True)
print("ready", flush=True)
while not path.with_name("go").exists():
    time.sleep(0.001)
try:
    outcome = store.begin(request, serves=anything)
    store.settle(outcome.request, answer=b"[1]")
    print("won")
except BudgetError:
    print("lost")
"""


def test_8_processes_race_for_the_last_tenth(tmp_path: Path) -> None:
    store = almost_spent(tmp_path / "x.ledger")
    with ExitStack() as stack:
        children = [stack.enter_context(running(RACER, store.path)) for _ in range(PROCESSES)]
        (tmp_path / "go").touch()
        said = sorted(child.communicate(timeout=60)[0].strip() for child in children)
    assert said == ["lost"] * (PROCESSES - 1) + ["won"]
    assert amounts(store) == (ONE, 0)
    store.verify()


def test_one_question_from_many_threads_is_one_charge(tmp_path: Path) -> None:
    """Same question, different keys, same moment: one runs, the others wait and get its bytes."""
    store = signed_file(tmp_path / "x.ledger")
    request = ask(store)

    def attempt() -> bool:
        while True:
            outcome = store.begin(request, serves=anything)
            if isinstance(outcome, Started):
                store.settle(outcome.request, answer=b"[7]")
                return True
            if isinstance(outcome, Stored):
                assert outcome.answer == b"[7]"
                return False
            assert isinstance(outcome, Pending)
            time.sleep(0.005)

    assert race(attempt) == 1
    assert amounts(store) == (TENTH, 0)


STEP = st.one_of(
    st.tuples(st.just("begin"), st.integers(0, 6), st.booleans(), st.integers(0, 2), st.integers(0, 4)),
    st.tuples(st.sampled_from(["settle", "forfeit"]), st.integers(0, 20)),
)


def _end(store: SqliteStore, step: tuple[Any, ...], open_requests: dict[int, int]) -> int:
    """Resolves one of the open requests, if any, and returns what that spent."""
    if not open_requests:
        return 0
    request = sorted(open_requests)[step[1] % len(open_requests)]
    if step[0] == "settle":
        store.settle(request, answer=b"[1]")
    else:
        store.forfeit(request)
    return open_requests.pop(request)


@settings(max_examples=20, deadline=None)
@given(st.lists(STEP, max_size=14))
def test_any_life_agrees_with_plain_sums_and_with_the_replay(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = signed_file(Path(folder) / "x.ledger")
        held: dict[int, int] = {}
        spent = 0
        for step in steps:
            if step[0] != "begin":
                spent += _end(store, step, held)
                continue
            cost = step[1] * TENTH
            key = None if step[4] == 4 else f"{step}"
            request = ask(store, cost=cost, fresh=step[2], question=str(step[3]), key=key)
            try:
                outcome = store.begin(request, serves=lambda _: False)
            except BudgetError:
                assert spent + sum(held.values()) + cost > ONE
                continue
            except (SharperError, ForfeitedError):
                continue  # these charge nothing, as the sums at the end check
            if isinstance(outcome, Started):
                held[outcome.request] = cost
            assert spent + sum(held.values()) <= ONE
        assert amounts(store) == (spent, sum(held.values()))
        assert replay(store.entries()) == store.verify()
