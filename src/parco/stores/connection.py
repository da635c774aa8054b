"""SQLite's connections, with every safety setting made and read back.

The file is never opened except through SQLite: on POSIX systems, closing any other handle of it would drop the locks
that SQLite holds for this whole process (sqlite.org/howtocorrupt.html, section 2.2). So its header is read through
SQLite as well, before the first setting is made. Who may use a connection is told by `held`.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, ExceptionContext, NullPool, create_engine, event, text

from parco.errors import LedgerFormatError, StorageError
from parco.stores import tables
from parco.stores.faults import not_a_ledger
from parco.stores.journal import Setting, settings_for
from parco.stores.statements import Prepared
from parco.stores.upgrade import VERSION, run_steps

__all__ = ["BEGIN_READ", "BEGIN_WRITE", "COMMIT", "connect", "create_file", "opener", "undo", "upgrade_file"]

# A writer takes its lock first, so that it never has to upgrade one: two upgrades would deadlock.
BEGIN_WRITE = Prepared(text("BEGIN IMMEDIATE"))
BEGIN_READ = Prepared(text("BEGIN DEFERRED"))
COMMIT = Prepared(text("COMMIT"))

# Beside the journal's. secure_delete makes an erased text gone from the file, not only from the table.
_SETTINGS: tuple[Setting, ...] = (
    ("foreign_keys", "ON", 1),
    ("secure_delete", "ON", 1),
    ("fullfsync", "ON", 1),
    ("ignore_check_constraints", "OFF", 0),
)


def opener(path: Path, *, busy_seconds: float) -> Callable[[], Connection]:
    """A function that opens connections as `connect` does, on which transactions are begun and ended by statements."""

    def open_connection() -> Connection:
        _OPENED.path, _OPENED.busy_seconds = path, busy_seconds
        return _engine().connect()

    return open_connection


# What the one engine of this process is to open next, a thread each.
_OPENED = threading.local()


@cache
def _engine() -> Engine:
    """One for all ledgers: what it has once compiled, it knows for each of them, and for the children of a fork.

    It keeps no connection.
    """
    # The driver begins nothing by itself (isolation_level=None below), nor does SQLAlchemy.
    engine = create_engine(
        "sqlite://",
        creator=lambda: connect(_OPENED.path, busy_seconds=_OPENED.busy_seconds),
        poolclass=NullPool,
        hide_parameters=True,
    )

    # Else SQLAlchemy closes a connection whose statement was interrupted, and refuses to undo what it began.
    @event.listens_for(engine, "handle_error")
    def keep(context: ExceptionContext) -> None:
        if not isinstance(context.original_exception, Exception):
            context.is_disconnect = False

    return engine


class _Driver(sqlite3.Connection):
    """The driver's connection, which knows the cursors that it was asked for by `cursor`.

    One that was left with rows to fetch goes on holding a lock when the transaction is undone, and even when the
    connection is closed; and whoever catches an error holds with its traceback whatever was at work.
    """

    _cursors: tuple[weakref.ref[sqlite3.Cursor], ...] = ()

    def cursor(self, *values: Any) -> Any:  # noqa: ANN401 - as the driver has it
        made = super().cursor(*values)
        # No WeakSet: its callbacks would swallow an interrupt.
        self._cursors = (*(known for known in self._cursors if known() is not None), weakref.ref(made))
        return made

    def close(self) -> None:
        """Closes it for good: what was at work is undone."""
        self.let_go()
        super().close()

    def let_go(self) -> None:
        """Ends the statement of each cursor, which can be used again."""
        for known in self._cursors:
            cursor = known()
            # ProgrammingError: it was closed, or its connection.
            with suppress(sqlite3.ProgrammingError):
                if cursor is not None:
                    cursor.execute("")


def undo(connection: Connection) -> None:
    """Undoes the transaction at hand, if there is one; no cursor then holds any lock."""
    driver: Any = connection.connection.driver_connection
    driver.let_go()
    driver.rollback()


def connect(path: Path, *, busy_seconds: float) -> sqlite3.Connection:
    """For every ledger of this version, returns a connection on which all safety settings hold.

    Raises LedgerFormatError for another kind of file or another version, StorageError if a setting does not stick,
    sqlite3.Error if the machine refuses.
    """
    connection = _raw(path, "rw", busy_seconds)
    try:
        if (written := _version(connection, path)) < VERSION:
            raise LedgerFormatError(
                f"{path} was made by an older parco (version {written} of its tables, this one uses {VERSION}): run"
                " `parco ledger upgrade`, after which older ones can use it no more",
                found=written,
                supported=VERSION,
            )
        _make_safe(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def create_file(path: Path, *, busy_seconds: float) -> None:
    """Makes an empty ledger at `path`, whole or not at all; one that another process made meanwhile is left alone.

    It is built under a name of its own and then linked: a link never replaces a file, and no crash can leave a part.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        # It will hold a secret and everybody's questions. SQLite gives its journal the mode of the file.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(_raw(draft, "rw", busy_seconds)) as connection:
            _make_safe(connection, path)
            _create_tables(connection)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
        draft.with_name(f"{draft.name}-journal").unlink(missing_ok=True)
    _sync_folder(path.parent)


def upgrade_file(path: Path, *, busy_seconds: float) -> int:
    """Brings a ledger to this version, whole or not at all, and returns the version it had.

    Raises LedgerFormatError for another kind of file or a newer version, VerificationError if it does not add up.
    """
    with closing(_raw(path, "rw", busy_seconds)) as connection:
        _version(connection, path)
        _make_safe(connection, path)
        with _written(connection) as made:
            # Read again under the lock: another process may have been faster.
            before = _version(connection, path)
            run_steps(made, before)
            made.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
    return before


def _raw(path: Path, mode: str, busy_seconds: float) -> sqlite3.Connection:
    # The mode never creates a file by accident: only `create_file` asks for "rwc".
    # Whose thread may use it is checked by `held`, which also has to close it from wherever its last user lets it go.
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=busy_seconds,
        check_same_thread=False,
        factory=_Driver,
    )


def _pragma(connection: sqlite3.Connection, statement: str) -> object:
    with closing(connection.execute(f"PRAGMA {statement}")) as cursor:
        row = cursor.fetchone()
    return None if row is None else row[0]


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the tables, 1 to VERSION, of a file that is a ledger."""
    if _pragma(connection, "application_id") != tables.APPLICATION_ID:
        raise not_a_ledger(path)
    written = _pragma(connection, "user_version")
    if not isinstance(written, int) or written > VERSION:
        raise LedgerFormatError(
            f"{path} has version {written} of a ledger's tables, and this parco reads up to version {VERSION}: upgrade"
            " parco",
            found=written,
            supported=VERSION,
        )
    if written < 1:
        raise LedgerFormatError(f"{path} is damaged: it names no version of its tables; restore it from a backup")
    return written


def _make_safe(connection: sqlite3.Connection, path: Path) -> None:
    for name, value, expected in (*settings_for(connection), *_SETTINGS):
        _pragma(connection, f"{name} = {value}")
        if _pragma(connection, name) != expected:
            raise StorageError(f"{path}: the SQLite library did not accept {name} = {value}; it cannot hold a ledger")


def _create_tables(connection: sqlite3.Connection) -> None:
    """All tables, triggers and the header in one transaction."""
    with _written(connection) as made:
        tables.metadata.create_all(made)
        for trigger in tables.TRIGGERS:
            made.exec_driver_sql(trigger)
        made.exec_driver_sql(f"PRAGMA application_id = {tables.APPLICATION_ID}")
        made.exec_driver_sql(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _written(connection: sqlite3.Connection) -> Iterator[Connection]:
    """One writing transaction on a connection of the driver."""
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(made: Connection) -> None:
        BEGIN_WRITE.put(made, {})

    with engine.begin() as made:
        yield made


def _sync_folder(folder: Path) -> None:
    """Makes the new name durable; Windows does so by itself and cannot open a folder."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
