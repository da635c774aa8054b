"""The ledger in one SQLite file.

A thread keeps its connection between transactions, since opening one takes longer than a commit. It is looked at anew
each time whether the file is still the one that was opened: whoever restores a backup gets no entry that is then lost.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from parco.errors import LedgerFormatError, NotSignedError, StorageError
from parco.stores import journal, left, marks, repeats
from parco.stores.append import forget_appended
from parco.stores.connection import BEGIN_READ, BEGIN_WRITE, COMMIT, create_file, opener, undo, upgrade_file
from parco.stores.faults import DAMAGED, is_unsure, not_a_ledger, translated
from parco.stores.filesystem import warn_of_network
from parco.stores.held import Holder
from parco.stores.statements import Prepared
from parco.stores.store import BUSY_SECONDS, Store

__all__ = ["BUSY_SECONDS", "SqliteStore", "failed_sync_path"]


class SqliteStore(Store):
    """A ledger in a file; see `Store`."""

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> None:
        super().__init__()
        self.path = Path(os.path.realpath(path))
        self.name = str(self.path)
        self.identity = self.path
        self._failed_sync = failed_sync_path(self.path)
        self._holder = Holder(opener(self.path, busy_seconds=busy_seconds))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> SqliteStore:
        """An existing ledger, tidied; NotSignedError if there is none.

        A ledger that cannot be written can still be read: tidying is then left to whoever can write.
        """
        store = cls(path, busy_seconds=busy_seconds)
        with translated(store.name):
            if not _exists(store.path):
                raise NotSignedError(f"there is no ledger at {store.path}: run `parco sign`")
        warn_of_network(store.path)
        store._tidy_what_is_over()
        return store

    @classmethod
    def create_or_open(cls, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> SqliteStore:
        """The ledger at `path`, made empty if there is none; a crash leaves no ledger or a whole one."""
        real = Path(os.path.realpath(path))
        with translated(str(real)):
            if not _exists(real):
                create_file(real, busy_seconds=busy_seconds)
        return cls.open(real, busy_seconds=busy_seconds)

    @classmethod
    def upgrade(cls, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> int:
        """Brings a ledger made by an older parco to this one's tables; returns the version it had."""
        real = Path(os.path.realpath(path))
        with translated(str(real)):
            if not _exists(real):
                raise NotSignedError(f"there is no ledger at {real}: run `parco sign`")
            _check_synced(real)
            try:
                return upgrade_file(real, busy_seconds=busy_seconds)
            except (DBAPIError, sqlite3.Error) as error:
                if is_unsure(error):
                    _note_failed_sync(real)
                    raise _unsynced(real) from None
                raise

    @cached_property
    def marks_path(self) -> Path:
        """The file of heads beside the ledger."""
        return marks.beside(self.path)

    def choose_journal(self, mode: str) -> None:
        """Keeps the ledger with a write-ahead log (`wal`) from now on, or with the `rollback` journal again.

        Raises StorageError where this SQLite library or file system cannot be trusted with a log, or where others are
        using the ledger.
        """
        journal.check_choice(mode, self.path)
        with self._writing() as connection:
            journal.choose(connection, mode)
        # The next connection makes it so, and reads it back.
        self.close()
        with self._reading():
            pass

    def repeated(self, request: int) -> None:
        """Counts one repeat in a file beside the ledger, whose own file is never written unsynced."""
        repeats.record(self.path, request)

    def repeats(self) -> dict[int, int]:
        """Repeats by request, as far as they were counted."""
        return repeats.count(self.path)

    def close(self) -> None:
        """Closes this thread's connection; the next method opens another."""
        self._holder.drop()

    def _check_database(self, connection: Connection) -> None:
        # A journal that was deleted, or is another file's, leaves pages that do not belong together.
        found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
        astray = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if found != "ok" or astray is not None:
            raise LedgerFormatError(f"{self.path} {DAMAGED}")

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._transaction(BEGIN_READ, writes=False)

    def _writing(self) -> AbstractContextManager[Connection]:
        return self._transaction(BEGIN_WRITE, writes=True)

    @contextmanager
    def _transaction(self, begin: Prepared, *, writes: bool) -> Iterator[Connection]:
        with translated(self.name):
            if writes and os.path.exists(self._failed_sync):
                raise _unsynced(self.path)
            try:
                yield from self._attempt(begin, writes=writes)
            except (DBAPIError, sqlite3.Error, OSError) as error:
                self._holder.drop()
                if writes and is_unsure(error):
                    _note_failed_sync(self.path)
                    raise _unsynced(self.path) from None
                raise

    def _attempt(self, begin: Prepared, *, writes: bool) -> Iterator[Connection]:
        """The transaction itself, with the database's own errors."""
        connection = self._holder.at(_identity(self.path))
        if writes:
            forget_appended(connection)
            left.begins(connection)
        over = False
        try:
            try:
                begin.put(connection, {})
                yield connection
            except BaseException:
                undo(connection)
                over = True
                if writes:
                    left.undone(connection)
                raise
            COMMIT.put(connection, {})
            over = True
            if writes:
                left.committed(connection)
        finally:
            # Whatever a commit or an undoing met, the transaction must not stay open: closing undoes it.
            if not over:
                self._holder.drop()


def failed_sync_path(ledger: Path) -> Path:
    """Nothing is written to `purchases.ledger` while there is a `purchases.ledger.failed-sync`."""
    return ledger.with_name(f"{ledger.name}.failed-sync")


def _check_synced(ledger: Path) -> None:
    if failed_sync_path(ledger).exists():
        raise _unsynced(ledger)


def _note_failed_sync(ledger: Path) -> None:
    """After a failed sync the system may show as written what the disk never got: no more writing until somebody looks.

    If not even this file can be made, whoever writes next meets the disk's own errors.
    """
    with suppress(OSError):
        os.close(os.open(failed_sync_path(ledger), os.O_CREAT | os.O_WRONLY, 0o600))


def _unsynced(ledger: Path) -> StorageError:
    return StorageError(
        f"{ledger} is not written any more: a sync failed, and what the disk shows may not be what it holds. Check the"
        f" disk, restart the machine, run `parco ledger verify`, then delete {failed_sync_path(ledger)}"
    )


def _identity(path: Path) -> tuple[int, int]:
    """Which file has the ledger's name now."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _exists(path: Path) -> bool:
    """Whether something is there that may be a ledger; looks at the name only, never opens it (see `connection`)."""
    if not path.exists():
        return False
    if not path.is_file() or path.stat().st_size == 0:
        raise not_a_ledger(path)
    return True
