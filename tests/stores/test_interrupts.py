"""Every durable method of a file, interrupted at every statement: the interrupt is raised, and nothing stays held.

The driver itself is interrupted, just before a statement or just behind it, with its rows still to be fetched: so are
BEGIN, COMMIT and ROLLBACK, and what SQLAlchemy sends. Whoever caught the interrupt still holds its traceback.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parco.errors import BudgetError, BusyError
from parco.stores.sqlite import SqliteStore

from .build import ONE, signed_file, started
from .scenarios import ACTS
from .test_fault_points import Watch

# Between them, what a release does and what SQLAlchemy sends.
_ALWAYS = ("begin_all", "set_quota")


@dataclass
class _Interrupt:
    """Raised at a statement, by its number from 1, or at one that begins with a word."""

    at: int | str
    behind: bool
    count: int = 0
    done: bool = False

    def step(self, statement: str, *, behind: bool) -> None:
        self.count += not behind
        here = self.count == self.at if isinstance(self.at, int) else statement.startswith(self.at)
        if here and behind is self.behind and not self.done:
            self.done = True
            raise KeyboardInterrupt


_PLANNED: list[_Interrupt] = []


class _Cursor(sqlite3.Cursor):
    def execute(self, statement: str, *values: Any) -> _Cursor:
        for planned in _PLANNED:
            planned.step(statement, behind=False)
        super().execute(statement, *values)
        for planned in _PLANNED:
            planned.step(statement, behind=True)
        return self


class _Connection(sqlite3.Connection):
    def cursor(self, *_: Any) -> Any:
        return super().cursor(_Cursor)


@pytest.fixture(autouse=True)
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    honest = sqlite3.connect

    def connect(*values: Any, **settings: Any) -> sqlite3.Connection:
        return honest(*values, **settings, factory=_Connection)

    monkeypatch.setattr(sqlite3, "connect", connect)
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


def _interrupted(path: Path, act: str, *, at: int, behind: bool) -> bool:
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
        added = len(list(store.entries())) - len(watch.before)
        watch.is_done(store, added=added)
        # The same connection goes on.
        if not added:
            work()
        store.tidy()
        store.verify()
    return interrupt.done


@pytest.mark.parametrize("act", [act if act in _ALWAYS else pytest.param(act, marks=pytest.mark.long) for act in ACTS])
@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_an_interrupt_at_any_statement_is_raised_and_leaves_nothing_held(
    tmp_path: Path, act: str, behind: bool
) -> None:
    at = 1
    while _interrupted(tmp_path / f"{at}.ledger", act, at=at, behind=behind):
        at += 1
    assert at > 6


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_an_interrupted_rollback_leaves_nothing_held(tmp_path: Path, behind: bool) -> None:
    store = signed_file(tmp_path / "x.ledger")
    _PLANNED[:] = [_Interrupt("ROLLBACK", behind)]
    with pytest.raises(KeyboardInterrupt):
        started(store, question="too much", cost=2 * ONE)
    assert _is_free(store.path)
    with pytest.raises(BudgetError):
        started(store, question="too much", cost=2 * ONE)
    started(store)
    store.verify()


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
