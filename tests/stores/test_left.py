"""A connection to a file checks again what others may have changed, and nothing else."""

from __future__ import annotations

import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from parco.errors import BudgetError, HaltedError, VerificationError
from parco.stores import heads, keys, left
from parco.stores.address import open_ledger
from parco.stores.halts import note
from parco.stores.heads import Standing
from parco.stores.sqlite import SqliteStore
from parco.stores.store import Store

from .build import ACT, ONE, opening, run_sql, signed_file, started


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return signed_file(tmp_path / "x.ledger")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Standing]:
    """What checks found; and whatever a writer was told without one is what one would have found."""
    found, check, standing = list[Standing](), heads.check, left.standing

    def checked(connection: Connection) -> Standing:
        found.append(check(connection))
        return found[-1]

    def compared(connection: Connection) -> Standing:
        told = standing(connection)
        assert facts(told) == facts(check(connection))
        return told

    monkeypatch.setattr(heads, "check", checked)
    monkeypatch.setattr(left, "standing", compared)
    return found


def release(store: Store, question: str) -> None:
    store.settle(started(store, question=question, cost=1), answer=b"[]")


def facts(told: Standing) -> tuple[object, ...]:
    return told.head, dict(told.nodes), told.key and told.key.public, told.halting


def test_what_a_commit_left_is_what_a_check_finds(store: SqliteStore, checks: list[Standing]) -> None:
    """After each kind of act, on ledgers whose trees have from one to all of their nodes in the root."""
    for number in range(9):
        release(store, f"question {number}")
    store.revise(opening(contract="another"), reason="a comma")
    store.move_cap(opening(contract="another", cap=2 * ONE), reason="more")
    store.forfeit(started(store, question="no answer"))
    store.flag(ACT, entry=2)
    assert len(checks) == 1, "its first transaction on this connection"
    store.verify()


def test_a_refused_request_leaves_the_ledger_as_it_was(store: SqliteStore, checks: list[Standing]) -> None:
    for number in range(3):
        with pytest.raises(BudgetError):
            started(store, question="too much", cost=2 * ONE)
        release(store, f"as before {number}")
    assert len(checks) == 1


def test_what_another_connection_writes_is_checked(store: SqliteStore, checks: list[Standing]) -> None:
    other = open_ledger(store.path)
    for number in range(3):
        release(store, f"mine {number}")
        release(other, f"its {number}")
    assert len(checks) >= 6


def test_another_program_that_writes_is_noticed(store: SqliteStore) -> None:
    """Its change is to a table that this connection has just read, and to nothing that its commit needs."""
    release(store, "one")
    run_sql(store.path, "UPDATE accounts SET spent = 0")
    for _ in range(2):
        with pytest.raises(VerificationError, match="its accounts differ"):
            started(store, question="two")


def test_a_rotated_key_and_a_stray_head_are_looked_at_anew(store: SqliteStore, checks: list[Standing]) -> None:
    release(store, "one")
    store.rotate(actor="ana", reason="yearly")
    release(store, "two")
    assert len(checks) == 2
    assert checks[-1].key is not None
    assert checks[-1].key.public == store.head().key


def test_a_retired_key_is_not_kept(store: SqliteStore) -> None:
    release(store, "one")
    with store._reading() as connection:
        key = keys.current(connection)
    assert key is not None
    retired = weakref.ref(key)
    del key
    assert retired() is not None, "the connection goes on with it"
    store.rotate(actor="ana", reason="yearly")
    assert retired() is None


def test_what_halts_a_ledger_halts_the_connection_that_noted_it(store: SqliteStore) -> None:
    """A head that the ledger signed before an old copy was put back; noted by the very connection that goes on."""
    release(store, "one")
    copy = store.path.read_bytes()
    release(store, "two")
    seen = store.head()
    store.close()
    store.path.write_bytes(copy)
    store.marks_path.unlink()
    release(store, "three")
    with store._writing() as connection:
        assert not note(connection, seen)
    with pytest.raises(HaltedError):
        started(store, question="four")


@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError])
def test_after_a_commit_that_was_interrupted_the_ledger_is_checked(
    store: SqliteStore, checks: list[Standing], fault: type[BaseException]
) -> None:
    """Just before the disk is asked for it."""
    release(store, "one")

    def before(*told: Any) -> None:
        if told[2] == "COMMIT":
            raise fault

    event.listen(Engine, "before_cursor_execute", before)
    try:
        with suppress(fault):
            started(store, question="two")
    finally:
        event.remove(Engine, "before_cursor_execute", before)
    count = len(checks)
    release(store, "two")
    assert len(checks) == count + 1
    store.verify()


def test_an_interrupt_behind_a_commit_relies_on_nothing(
    store: SqliteStore, checks: list[Standing], monkeypatch: pytest.MonkeyPatch
) -> None:
    release(store, "one")
    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):

        def interrupted(_: Connection) -> None:
            raise KeyboardInterrupt

        patched.setattr(left, "committed", interrupted)
        started(store, question="two")
    count = len(checks)
    release(store, "three")
    assert len(checks) == count + 1
    store.verify()


def test_an_act_that_adds_nothing_is_relied_on_by_nobody(store: SqliteStore, checks: list[Standing]) -> None:
    release(store, "one")
    with store._writing():
        pass
    release(store, "two")
    assert len(checks) == 2
