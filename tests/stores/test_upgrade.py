"""Ledgers of older versions: numbered steps, whole or not at all, and no entry touched."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from parco.errors import LedgerFormatError, NotSignedError, StorageError, VerificationError
from parco.stores import keys, upgrade
from parco.stores.sqlite import SqliteStore, failed_sync_path

from .build import ONE, opening, run_sql, signed_store, started
from .disk import Disk, watched
from .test_crash import every_statement

OLD = Path(__file__).parents[1] / "data" / "ledger_v1.gz"


def _old(path: Path) -> Path:
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    return path


def _older(path: Path) -> Path:
    """The same before caps could move: no such entry, and no table for them."""
    run_sql(
        _old(path), "DROP TABLE caps", "DROP TRIGGER entries_are_never_removed", "DELETE FROM entries WHERE seq > 10"
    )
    run_sql(path, "UPDATE accounts SET cap = 1000000000000000")
    run_sql(
        path, "UPDATE contracts SET contract = (SELECT min(digest) FROM texts WHERE text = 'the contract'), opened = 1"
    )
    run_sql(
        path,
        "CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries"
        " BEGIN SELECT RAISE(ABORT, 'entries are only added'); END",
    )
    return path


def _bodies(path: Path) -> list[bytes]:
    return [body for (body,) in run_sql(path, "SELECT body FROM entries ORDER BY seq")]


def _schema(path: Path) -> set[str]:
    rows = run_sql(path, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'")
    return {re.sub(r"\s+", "", sql) for (sql,) in rows}


def test_steps_are_numbered_without_gaps() -> None:
    assert list(upgrade._STEPS) == list(range(2, upgrade.VERSION + 1))


@pytest.mark.parametrize("make", [_old, _older])
def test_an_older_ledger_is_refused_until_it_is_upgraded_and_then_goes_on(tmp_path: Path, make: object) -> None:
    assert callable(make)
    path = make(tmp_path / "x.ledger")
    before = _bodies(path)
    for opener in (SqliteStore.open, SqliteStore.create_or_open):
        with pytest.raises(LedgerFormatError, match="parco ledger upgrade") as caught:
            opener(path)
        assert caught.value.facts == {"found": 1, "supported": upgrade.VERSION}
    assert SqliteStore.upgrade(path) == 1
    assert _bodies(path) == before
    store = SqliteStore.open(path)
    store.verify()
    assert store.head().size == len(before)
    assert store.head().previous is None
    assert keys.verified(store.head())
    assert all(store.prove(position).holds for position in range(1, len(before) + 1))
    assert store.answers("count by month")[0].answer == b'{"cells":[7],"parco":"0.1.0"}'
    started(store, question="a new one")
    assert store.prove_from(len(before)).holds
    assert SqliteStore.upgrade(path) == upgrade.VERSION


def test_an_upgraded_ledger_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    signed_store(tmp_path / "new.ledger")
    for number, make in enumerate((_old, _older)):
        path = make(tmp_path / f"{number}.ledger")
        assert _schema(path) != _schema(tmp_path / "new.ledger")
        SqliteStore.upgrade(path)
        assert _schema(path) == _schema(tmp_path / "new.ledger")
        assert run_sql(path, "PRAGMA user_version") == [(upgrade.VERSION,)]


def test_claims_know_the_cap_that_moved_before_the_upgrade(tmp_path: Path) -> None:
    path = _old(tmp_path / "x.ledger")
    SqliteStore.upgrade(path)
    assert SqliteStore.open(path).accounts()[0].fixed_cap is None
    older = _older(tmp_path / "y.ledger")
    SqliteStore.upgrade(older)
    store = SqliteStore.open(older)
    assert store.accounts()[0].fixed_cap == ONE
    store.move_cap(opening(contract="another text", cap=2 * ONE), reason="why")
    assert store.accounts()[0].fixed_cap is None


def test_killed_before_each_statement_the_ledger_is_old_or_new(tmp_path: Path) -> None:
    old, path = _old(tmp_path / "old.ledger"), tmp_path / "x.ledger"
    before, schema = _bodies(old), _schema(old)
    shutil.copy(old, path)
    killed = 0
    for _ in every_statement(lambda: SqliteStore.upgrade(path)):
        # Looked at through SQLite, which undoes what the dead process had begun.
        version = run_sql(path, "PRAGMA user_version")[0][0]
        assert version in (1, upgrade.VERSION)
        assert _bodies(path) == before
        if version == 1:
            assert _schema(path) == schema
        else:
            SqliteStore.open(path).verify()
        killed += 1
    assert killed > len(before)
    assert SqliteStore.open(path).head().size == len(before)
    assert SqliteStore.open(path).verify().size == len(before)


FAULTS = {
    "disk-full": dict.fromkeys(("write", "truncate"), sqlite3.SQLITE_FULL),
    "io-error": {
        "write": sqlite3.SQLITE_IOERR_WRITE,
        "truncate": sqlite3.SQLITE_IOERR_TRUNCATE,
        "sync": sqlite3.SQLITE_IOERR_FSYNC,
        "delete": sqlite3.SQLITE_IOERR_DELETE,
    },
}


@pytest.mark.parametrize("faults", FAULTS)
def test_where_the_disk_fails_at_each_step_the_ledger_is_old_or_new(tmp_path: Path, faults: str) -> None:
    """Never done by half, never told as done where it is not; after a failed sync nothing is written for the time."""
    old, path = _old(tmp_path / "old.ledger"), tmp_path / "x.ledger"
    before, schema = _bodies(old), _schema(old)
    try:
        with watched(Disk()):
            pass
    except OSError as error:
        pytest.skip(f"failures of the disk are left out: SQLite's library cannot be reached ({error})")
    number, steps, told = 0, 1, True
    while number < steps:
        shutil.copy(old, path)
        disk, told = Disk(broken=number), True
        with watched(disk, faults=FAULTS[faults]):
            try:
                SqliteStore.upgrade(path)
            except StorageError:
                told = False
        if disk.failed and disk.steps[number].kind == "sync" and not told:
            with pytest.raises(StorageError, match="failed-sync"):
                SqliteStore.upgrade(path)
            failed_sync_path(path).unlink()
        version = run_sql(path, "PRAGMA user_version")[0][0]
        assert version in (1, upgrade.VERSION)
        assert _bodies(path) == before
        if version == 1:
            assert not told, f"step {number} failed, and success was reported"
            assert _schema(path) == schema
            assert SqliteStore.upgrade(path) == 1
        SqliteStore.open(path).verify()
        number, steps = number + 1, max(steps, len(disk.steps))
    assert number > 10
    assert told, "the last step was not reached"


def test_a_ledger_that_does_not_add_up_is_not_signed(tmp_path: Path) -> None:
    path = _old(tmp_path / "x.ledger")
    run_sql(path, "UPDATE accounts SET spent = spent - 1")
    with pytest.raises(VerificationError, match="accounts"):
        SqliteStore.upgrade(path)
    assert run_sql(path, "PRAGMA user_version") == [(1,)]
    assert run_sql(path, "SELECT count(*) FROM sqlite_master WHERE name = 'heads'") == [(0,)]


def test_what_is_no_ledger_is_not_upgraded(tmp_path: Path) -> None:
    with pytest.raises(NotSignedError):
        SqliteStore.upgrade(tmp_path / "x.ledger")
    run_sql(tmp_path / "y.ledger", "CREATE TABLE entries (seq INTEGER)")
    with pytest.raises(LedgerFormatError, match="is not a parco ledger"):
        SqliteStore.upgrade(tmp_path / "y.ledger")
    assert os.listdir(tmp_path) == ["y.ledger"]
