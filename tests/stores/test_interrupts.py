"""Every durable method of a file, interrupted at every statement: the interrupt is raised, and nothing stays held.

The driver itself is interrupted, just before a statement or just behind it, with its rows still to be fetched: so are
BEGIN and COMMIT, and what SQLAlchemy sends. Whoever caught the interrupt still holds its traceback.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parco.errors import BudgetError, BusyError, VerificationError
from parco.stores import connection
from parco.stores.sqlite import SqliteStore

from .build import ONE, anything, ask, harm, signed_file, started
from .scenarios import ACTS
from .test_fault_points import Watch

# Between them, what a release does and what SQLAlchemy sends.
_ALWAYS = ("begin_all", "set_quota")


@dataclass
class _Interrupt:
    """Raised at a statement, by its number from 1."""

    at: int
    behind: bool
    count: int = 0
    done: bool = False

    def step(self, *, behind: bool) -> None:
        self.count += not behind
        if self.count == self.at and behind is self.behind and not self.done:
            self.done = True
            raise KeyboardInterrupt


_PLANNED: list[_Interrupt] = []


class _Cursor(sqlite3.Cursor):
    def execute(self, statement: str, *values: Any) -> _Cursor:
        for planned in _PLANNED:
            planned.step(behind=False)
        super().execute(statement, *values)
        for planned in _PLANNED:
            planned.step(behind=True)
        return self


class _Connection(connection._Driver):
    def cursor(self, *_: Any) -> Any:
        return super().cursor(_Cursor)


@pytest.fixture(autouse=True)
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(connection, "_Driver", _Connection)
    yield
    _PLANNED.clear()


def _is_free(path: Path) -> bool:
    """Whether nobody holds any lock of the file."""
    with closing(sqlite3.Connection(path, isolation_level=None, timeout=0)) as other:
        try:
            other.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return False
        other.execute("ROLLBACK")
        return True


def _whole(path: Path, act: str) -> int:
    """How many entries the act adds that nothing interrupts."""
    with closing(signed_file(path)) as store:
        work = ACTS[act](store)
        before = len(list(store.entries()))
        work()
        return len(list(store.entries())) - before


def _interrupted(path: Path, act: str, *, at: int, behind: bool, added: int) -> bool:
    """Whether the act has so many statements; fails unless all is well behind its interrupt."""
    store = signed_file(path)
    with closing(store):
        work = ACTS[act](store)
        watch, interrupt = Watch(store), _Interrupt(at, behind)
        _PLANNED[:] = [interrupt]
        try:
            work()
        except KeyboardInterrupt:
            assert _is_free(path), f"{act} interrupted at {at} and still holding a lock"
        else:
            assert not interrupt.done, f"{act} swallowed an interrupt at {at}"
        finally:
            _PLANNED.clear()
        # The same connection goes on.
        if not watch.is_done(store, added=added):
            work()
        store.tidy()
        store.verify()
    return interrupt.done


@pytest.mark.parametrize("act", [act if act in _ALWAYS else pytest.param(act, marks=pytest.mark.long) for act in ACTS])
@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_an_interrupt_at_any_statement_is_raised_and_leaves_nothing_held(
    tmp_path: Path, act: str, behind: bool
) -> None:
    at, added = 1, _whole(tmp_path / "whole.ledger", act)
    while _interrupted(tmp_path / f"{at}.ledger", act, at=at, behind=behind, added=added):
        at += 1
    assert at > 6


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_an_interrupt_while_a_refused_request_is_undone_leaves_nothing_held(
    tmp_path: Path, number: int, behind: bool
) -> None:
    """The statements are those that let go of rows, and ROLLBACK is the driver's own."""
    store = signed_file(tmp_path / "x.ledger")
    wanted = ask(store, question="too much", cost=2 * ONE)

    def refused() -> None:
        with store._writing() as made:
            made.exec_driver_sql("UPDATE accounts SET cap = cap + 1")
            kept.append(made.exec_driver_sql("SELECT * FROM accounts"))
            _PLANNED[:] = [_Interrupt(number, behind)]
            raise BusyError("mine")

    kept: list[object] = []
    with pytest.raises((KeyboardInterrupt, BusyError)) as caught:
        refused()
    assert _PLANNED[0].done is (number < 3), "one cursor of ours, and one of SQLAlchemy's"
    assert caught.type is (KeyboardInterrupt if number < 3 else BusyError)
    _PLANNED.clear()
    assert _is_free(store.path)
    with pytest.raises(BudgetError):
        store.begin(wanted, serves=anything)
    started(store)
    store.verify()


def test_an_error_in_the_midst_of_rows_lets_go_of_the_ledger(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")
    for number in range(9):
        started(store, question=f"question {number}", cost=1)
    harm(store.path, "UPDATE entries SET body = x'00' WHERE seq = 5")
    with pytest.raises(VerificationError) as caught:
        store.verify()
    assert _is_free(store.path), caught


def test_a_connection_that_is_closed_holds_nothing_although_its_rows_are_kept(tmp_path: Path) -> None:
    path = signed_file(tmp_path / "x.ledger").path
    made = connection.connect(path, busy_seconds=0)
    made.execute("BEGIN IMMEDIATE")
    rows = made.cursor().execute("SELECT * FROM sqlite_schema")
    assert not _is_free(path)
    made.close()
    assert _is_free(path), rows


def test_a_commit_that_readers_hold_up_lets_go_of_the_ledger(tmp_path: Path) -> None:
    """Whoever catches the error may keep it as long as he likes."""
    store = SqliteStore(signed_file(tmp_path / "x.ledger").path, busy_seconds=0.05)
    with closing(sqlite3.Connection(store.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM entries").fetchall()
        with pytest.raises(BusyError) as caught:
            started(store)
        reader.execute("COMMIT")
        assert _is_free(store.path), caught
    started(store)
    store.verify()
