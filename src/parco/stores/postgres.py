"""The ledger in a PostgreSQL database, for teams: many hosts, one ledger.

Writers take turns by the lock on one empty table, taken before the transaction sees anything; so each sees all that
came before, and no two of ours ever wait for each other in a circle. Beneath that, every transaction is serializable
and spends by conditional UPDATEs in rising order of accounts: a writer that is not parco is waited for, or makes this
one begin again, and can never be overlooked. A commit whose reply was lost is looked up before anything is repeated.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from parco.errors import ParcoError, StorageError
from parco.stores import marks
from parco.stores.append import appended, forget_appended, stands
from parco.stores.held import Holder
from parco.stores.postgres_connection import (
    BEGIN_READ,
    begin_repeat,
    begin_write,
    identity_of,
    may_read_secrets,
    opener,
    target,
)
from parco.stores.postgres_faults import fault, is_conflict, is_lost, translated, unreachable
from parco.stores.statements import Ahead, foresee
from parco.stores.store import BUSY_SECONDS, Asks, Store

__all__ = ["PostgresStore"]

T = TypeVar("T")

# After a lost connection: 0.05 s, then twice as long each time, in all 1.5 s. After a conflict: at most this long.
_LOST_MAX = 5
_PAUSE_SECONDS = 0.05


class _UnknownError(Exception):
    """The connection was lost in the very commit of these entries."""

    def __init__(self, entries: Sequence[tuple[int, bytes]]) -> None:
        super().__init__()
        self.entries = entries


class PostgresStore(Store):
    """A ledger in a database that an administrator made with what `parco ledger sql` prints; see `Store`."""

    def __init__(self, url: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        super().__init__()
        where = target(url)
        self.name = where.name
        self._busy_seconds = busy_seconds
        self._holder = Holder(opener(where))
        with self._reading() as connection:
            self.identity = identity_of(connection)

    @classmethod
    def open(cls, url: str, *, busy_seconds: float = BUSY_SECONDS) -> PostgresStore:
        """An existing ledger, tidied; NotSignedError if there is none in this database."""
        store = cls(url, busy_seconds=busy_seconds)
        store._tidy_what_is_over()
        return store

    @cached_property
    def marks_path(self) -> Path | None:
        """The file of heads that this user keeps on this host."""
        return marks.on_this_host(self.identity)

    def repeated(self, request: int) -> None:
        """Counts one repeat in a table that is not logged, and does not wait for the disk."""
        # All in one way to the server and back.
        with suppress(ParcoError, _UnknownError), translated(self.name), self._transaction(begin_repeat(request)):
            pass

    def repeats(self) -> dict[int, int]:
        """Repeats by request, as far as they were counted."""
        with self._reading() as connection:
            rows = connection.exec_driver_sql("SELECT request, count(*) AS times FROM repeats GROUP BY request")
            return {row.request: row.times for row in rows}

    def close(self) -> None:
        """Closes this thread's connection; the next method opens another."""
        self._holder.drop()

    def _reads_secrets(self, connection: Connection) -> bool:
        return may_read_secrets(connection)

    def _check_database(self, connection: Connection) -> None:
        """A server checks its own pages: `initdb --data-checksums`, `amcheck`."""

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with translated(self.name), self._transaction(BEGIN_READ) as connection:
                yield connection
        except _UnknownError:
            raise unreachable(self.name) from None

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with translated(self.name), self._transaction(begin_write(self._busy_seconds)) as connection:
                yield connection
        except _UnknownError:
            raise self._unknown() from None

    def _commit(self, work: Callable[[Connection], T], ahead: Asks) -> T:
        """What `work` returns, once it is durable: begun again as a whole where the database says so."""
        until, lost, asked = time.monotonic() + self._busy_seconds, 0, ahead()
        while True:
            try:
                with self._transaction(begin_write(self._busy_seconds), asked) as connection:
                    result = work(connection)
            except _UnknownError as unknown:
                if self._stands(unknown.entries):
                    return result
                lost += 1
                if lost > _LOST_MAX:
                    raise StorageError(
                        f"{self.name} cannot be reached for long enough to commit; nothing was written"
                    ) from None
            except (SQLAlchemyError, psycopg.Error) as error:
                lost += is_lost(error)
                if not ((is_conflict(error) and time.monotonic() < until) or (is_lost(error) and lost <= _LOST_MAX)):
                    raise fault(error, self.name) from None
            else:
                return result
            time.sleep(_PAUSE_SECONDS * (2 ** (lost - 1) if lost else secrets.randbelow(1000) / 1000))

    def _stands(self, entries: Sequence[tuple[int, bytes]]) -> bool:
        """Whether a commit that got no answer went through: asked in the writers' turn, and so after its end."""
        for tried in range(_LOST_MAX):
            with suppress(StorageError), self._writing() as connection:
                if not entries:
                    break
                return stands(connection, entries)
            time.sleep(_PAUSE_SECONDS * 2**tried)
        raise self._unknown()

    def _unknown(self) -> StorageError:
        return StorageError(
            f"the connection to {self.name} was lost while it committed, and it cannot be told whether it did: look"
            " before you do it again; a request is told by its key"
        )

    @contextmanager
    def _transaction(self, begin: str, ahead: Sequence[Ahead] = ()) -> Iterator[Connection]:
        """One attempt, with the database's own errors; _UnknownError where the answer to its commit was lost."""
        connection = self._begun(begin, ahead)
        try:
            yield connection
        except Exception:
            self._undo(connection)
            raise
        except BaseException:
            # An interrupt may come between what the server did and what is known of it: whoever is next begins anew.
            self._holder.drop()
            raise
        entries = appended(connection)
        try:
            connection.commit()
        except BaseException as error:
            # Whatever it was, the transaction must not stay open.
            self._holder.drop()
            if isinstance(error, SQLAlchemyError | psycopg.Error) and is_lost(error):
                raise _UnknownError(entries) from None
            raise

    def _begun(self, begin: str, ahead: Sequence[Ahead]) -> Connection:
        """This thread's connection, its transaction begun; opened anew where the server closed it meanwhile."""
        for is_last in (False, True):
            connection = self._holder.at(self.name)
            if connection.get_execution_options().get("begin") != begin:
                connection.execution_options(begin=begin)
            forget_appended(connection)
            foresee(connection, ahead)
            try:
                connection.begin()
            except BaseException as error:
                self._holder.drop()
                if is_last or not (isinstance(error, SQLAlchemyError | psycopg.Error) and is_lost(error)):
                    raise
            else:
                break
        return connection

    def _undo(self, connection: Connection) -> None:
        """Rolls back; a connection that cannot even do that is closed, which does the same."""
        try:
            connection.rollback()
        except (SQLAlchemyError, psycopg.Error):
            self._holder.drop()
