"""The machine's errors in our words: what happened and what to do, never a statement or its parameters."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from parco.errors import BusyError, InternalError, LedgerFormatError, ParcoError, StorageError

__all__ = ["DAMAGED", "is_unsure", "not_a_ledger", "translated"]

_STANDS = "the ledger is as it was before this step"
_BUSY = (BusyError, "is held by another process longer than the time allowed; try again")
DAMAGED = "is damaged: restore it from a backup, and keep this file as evidence"
_DAMAGED = (LedgerFormatError, DAMAGED)

# Primary result codes of SQLite; extended codes carry them in their lowest byte.
_BY_CODE: dict[int, tuple[type[ParcoError], str]] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: (StorageError, f"could not be written: the disk is full; {_STANDS}; free some space"),
    sqlite3.SQLITE_READONLY: (StorageError, "cannot be written: it, its folder or its disk is read-only"),
    sqlite3.SQLITE_CANTOPEN: (StorageError, "cannot be opened: check the path, and permissions on its folder"),
    sqlite3.SQLITE_PERM: (StorageError, "cannot be opened: check permissions"),
    sqlite3.SQLITE_AUTH: (StorageError, "cannot be opened: check permissions"),
    sqlite3.SQLITE_IOERR: (StorageError, f"could not be read or written: the disk failed or is full; {_STANDS}"),
    sqlite3.SQLITE_PROTOCOL: (StorageError, "could not be locked: is it on a network file system?"),
    sqlite3.SQLITE_NOMEM: (StorageError, f"could not be read or written: memory is exhausted; {_STANDS}"),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: (LedgerFormatError, "is not a parco ledger"),
    sqlite3.SQLITE_CONSTRAINT: (InternalError, f"refused a change that breaks its own rules; {_STANDS}"),
}


def not_a_ledger(path: Path) -> LedgerFormatError:
    """The error for a file that is something else."""
    return LedgerFormatError(f"{path} is not a parco ledger")


# What could not be synced may be on the disk or not, and the system forgets which.
_UNSURE = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)


def is_unsure(error: Exception) -> bool:
    """Whether a sync failed, so that nobody knows what the disk holds."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    return getattr(origin, "sqlite_errorcode", None) in _UNSURE


@contextmanager
def translated(ledger: str | Path) -> Iterator[None]:
    """For every error of SQLite, SQLAlchemy or the operating system inside, raises the ParcoError that says it."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        # From None: the driver's text shows the statement, and the statement may show a question.
        raise _database_fault(error, ledger) from None
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise StorageError(f"{ledger} cannot be used: {reason}") from None


def _database_fault(error: SQLAlchemyError | sqlite3.Error, path: str | Path) -> ParcoError:
    origin = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(origin, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    if primary in _BY_CODE:
        kind, text = _BY_CODE[primary]
        return kind(f"{path} {text}", driver_code=getattr(origin, "sqlite_errorname", None))
    name = type(origin).__name__
    return InternalError(f"the store of {path} failed ({name}); nothing was written", driver_code=code)
