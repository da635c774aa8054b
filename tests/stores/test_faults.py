"""Faults: the machine's errors by their own class, without the statement that met them."""

from __future__ import annotations

import sqlite3
import traceback
from pathlib import Path

import pytest
from sqlalchemy import text

from parco.errors import BusyError, InternalError, LedgerFormatError, ParcoError, StorageError
from parco.stores.faults import translated

from .build import signed_file


def _error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("near 'Ada Lovelace'")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (_error(sqlite3.SQLITE_BUSY), BusyError, "try again"),
        (_error(sqlite3.SQLITE_BUSY_SNAPSHOT), BusyError, "try again"),
        (_error(sqlite3.SQLITE_FULL), StorageError, "disk is full"),
        (_error(sqlite3.SQLITE_IOERR_FSYNC), StorageError, "disk failed"),
        (_error(sqlite3.SQLITE_READONLY_DIRECTORY), StorageError, "read-only"),
        (_error(sqlite3.SQLITE_CANTOPEN), StorageError, "cannot be opened"),
        (_error(sqlite3.SQLITE_CORRUPT_INDEX), LedgerFormatError, "damaged"),
        (_error(sqlite3.SQLITE_NOTADB), LedgerFormatError, "not a parco ledger"),
        (_error(sqlite3.SQLITE_CONSTRAINT_CHECK), InternalError, "rules"),
        (_error(sqlite3.SQLITE_MISUSE), InternalError, "failed"),
        (sqlite3.ProgrammingError("Ada Lovelace"), InternalError, "ProgrammingError"),
        (PermissionError(13, "Permission denied", "Ada Lovelace"), StorageError, "permission denied"),
    ],
)
def test_each_fault_has_its_class_and_says_no_more(error: Exception, expected: type[ParcoError], words: str) -> None:
    with pytest.raises(ParcoError, match=words) as caught, translated(Path("x.ledger")):
        raise error
    assert type(caught.value) is expected
    assert "Ada" not in "".join(traceback.format_exception(caught.value))


def test_a_real_statement_is_not_shown_either(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")
    with pytest.raises(InternalError) as caught, store._writing() as connection:
        connection.execute(text("UPDATE accounts SET spent = :value"), {"value": 10**16})
    shown = "".join(traceback.format_exception(caught.value))
    assert "UPDATE accounts SET spent = ?" not in shown
    assert str(10**16) not in shown.replace("10**16", "")


def test_our_own_errors_pass_and_roll_back(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")

    def refused() -> None:
        with store._writing() as connection:
            connection.execute(text("UPDATE accounts SET spent = 1"))
            raise BusyError("mine")

    with pytest.raises(BusyError, match="mine"):
        refused()
    assert store.accounts()[0].spent == 0
