"""An open connection, bound to the process and the thread that opened it.

Neither SQLite's nor PostgreSQL's connections survive a fork: the child would write into the parent's file locks or its
conversation with the server. A child therefore neither uses nor closes what it inherited; it lets it lie.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress

from sqlalchemy import Connection

from parco.errors import InternalError

__all__ = ["Held", "Holder"]

# Inherited over a fork: kept until the process ends, since even forgetting a connection would close it.
_LEFT_LYING: list[Connection] = []


class Held:
    """One connection with its process and thread; `place` says what it was opened on."""

    def __init__(self, connection: Connection, place: Hashable) -> None:
        self._connection = connection
        self._bound = (os.getpid(), threading.get_ident())
        self.place = place

    @property
    def is_here(self) -> bool:
        """Whether this process and this thread opened it."""
        return self._bound == (os.getpid(), threading.get_ident())

    @property
    def connection(self) -> Connection:
        """The connection, for the thread that opened it; InternalError for any other, or after a fork."""
        if not self.is_here:
            raise InternalError("a ledger's connection belongs to the process and the thread that opened it")
        return self._connection

    def close(self) -> None:
        """Closes it, in the process that opened it; elsewhere it is left lying."""
        if self._bound[0] != os.getpid():
            _LEFT_LYING.append(self._connection)
            return
        # Whatever it was doing is undone by the database, which is all that closing has to promise.
        with suppress(Exception):
            self._connection.invalidate()
            self._connection.close()

    def __del__(self) -> None:
        self.close()


class Holder:
    """One held connection a thread: opened when first asked for, opened anew after a fork, a fault or a move."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._local = threading.local()

    def at(self, place: Hashable) -> Connection:
        """This thread's connection on `place`."""
        held: Held | None = getattr(self._local, "held", None)
        if held is None or not held.is_here or held.place != place:
            self.drop()
            held = self._local.held = Held(self._connect(), place)
        return held.connection

    def drop(self) -> None:
        """Closes this thread's connection, if there is one."""
        held: Held | None = self._local.__dict__.pop("held", None)
        if held is not None:
            held.close()
