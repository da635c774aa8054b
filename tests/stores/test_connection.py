"""Connections: only to a ledger of this format, only with every safety setting, never at the price of a lock."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from parco.errors import BusyError, LedgerFormatError, NotSignedError, StorageError
from parco.stores import connection, tables
from parco.stores.sqlite import SqliteStore
from parco.stores.upgrade import VERSION

from .build import amounts, anything, ask, run_sql, signed_file
from .children import run

HOLDS_THE_LOCK = """
from parco.errors import BusyError
store = SqliteStore(path, busy_seconds=0.1)
try:
    store.begin(ask(store, question=str(os.getpid())), serves=anything)
    print("wrote")
except BusyError:
    print("busy")
"""


def test_a_missing_ledger_says_to_sign_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotSignedError, match="parco sign"):
        SqliteStore.open(tmp_path / "x.ledger")
    with pytest.raises(StorageError):
        SqliteStore(tmp_path / "x.ledger").accounts()
    with pytest.raises(StorageError):
        SqliteStore.create_or_open(tmp_path / "no such folder" / "x.ledger")
    assert list(tmp_path.iterdir()) == []


def _other_database(path: Path) -> None:
    run_sql(path, "CREATE TABLE entries (seq INTEGER)", "PRAGMA journal_mode = WAL")


def _spreadsheet(path: Path) -> None:
    path.write_text("customer,amount\n" * 500)


def _header_only(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + bytes(84))


@pytest.mark.parametrize("make", [_other_database, _spreadsheet, _header_only, Path.touch, Path.mkdir])
def test_another_kind_of_file_is_refused_and_left_alone(tmp_path: Path, make: object) -> None:
    assert callable(make)
    path = tmp_path / "x.ledger"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    for opener in (SqliteStore.open, SqliteStore.create_or_open):
        with pytest.raises(LedgerFormatError, match="is not a parco ledger"):
            opener(path)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    signed_file(path)
    run_sql(path, f"PRAGMA user_version = {VERSION + 1}")
    newer = rf"version {VERSION + 1} .*reads up to version {VERSION}: upgrade"
    with pytest.raises(LedgerFormatError, match=newer) as caught:
        SqliteStore.open(path)
    assert caught.value.facts == {"found": VERSION + 1, "supported": VERSION}
    run_sql(path, "PRAGMA user_version = 0")
    with pytest.raises(LedgerFormatError, match="damaged"):
        SqliteStore.open(path)


@pytest.mark.parametrize("keep", [0.9, 0.5, 0.1, 0.01, 0.0001])
def test_a_truncated_ledger_is_refused(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "x.ledger"
    signed_file(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(LedgerFormatError):
        SqliteStore.open(path)


def test_settings_are_as_they_should_be(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    signed_file(path)
    with closing(connection.connect(path, busy_seconds=3)) as raw:
        found = {name: connection._pragma(raw, name) for name in ("journal_mode", "synchronous", "foreign_keys")}
        assert connection._pragma(raw, "busy_timeout") == 3000
    assert found == {"journal_mode": "delete", "synchronous": 3, "foreign_keys": 1}
    found_tables = run_sql(
        path, "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite%'"
    )
    assert {name for name, _ in found_tables} == set(tables.metadata.tables)
    assert all(strict for _, strict in found_tables)


@pytest.mark.parametrize("name", ["synchronous", "foreign_keys", "secure_delete", "fullfsync"])
def test_a_setting_that_does_not_stick_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = tmp_path / "x.ledger"
    signed_file(path)
    honest = connection._pragma

    def deaf(raw: sqlite3.Connection, statement: str) -> object:
        other = {"synchronous": "NORMAL"}.get(name, "OFF")
        return honest(raw, f"{name} = {other}" if statement.startswith(f"{name} =") else statement)

    monkeypatch.setattr(connection, "_pragma", deaf)
    with pytest.raises(StorageError, match=f"did not accept {name}"):
        SqliteStore.open(path)


def test_a_ledger_switched_to_wal_is_switched_back_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    signed_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN")
        other.execute("SELECT * FROM entries").fetchall()
        with pytest.raises(StorageError):
            SqliteStore.open(path, busy_seconds=0.1)
    SqliteStore.open(path)
    assert run_sql(path, "PRAGMA journal_mode") == [("delete",)]


def test_a_held_lock_is_busy_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    signed_file(path)
    store = SqliteStore(path, busy_seconds=0.1)
    request = ask(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError, match="try again"):
            store.begin(request, serves=anything)
        assert amounts(store) == (0, 0)
        other.execute("COMMIT")
    store.begin(request, serves=anything)


def test_opening_the_ledger_elsewhere_in_the_process_drops_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    store = signed_file(path)
    with store._writing():
        SqliteStore.create_or_open(path).history()
        store.repeated(1)
        assert run(HOLDS_THE_LOCK, path).stdout == "busy\n"


def test_the_test_above_can_fail(tmp_path: Path) -> None:
    """A plain reading of the file drops every lock of the process: why no header is read that way."""
    path = tmp_path / "x.ledger"
    store = signed_file(path)
    with store._writing():
        path.read_bytes()
        assert run(HOLDS_THE_LOCK, path).stdout == "wrote\n"
