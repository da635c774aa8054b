"""Statements that come again, given to PostgreSQL's own library: psycopg's cursors take longer than the server does.

A statement is parsed by the server when it comes a second time on a connection, and from then on called by its name.
Values go as text, lists of numbers too, or as bytes where they are bytes; rows come in the server's binary form, and a
ledger has three kinds of it: whole numbers, text and bytes. While the server works, other threads do too.

Each way to the server and back costs more than most statements. So what changes rows waits for the next statement, or
the commit, and goes with it (libpq's pipeline mode), and what a transaction will ask first goes with its beginning. The
order stays, the first fault is raised and ends all behind it, a commit among them.
"""

from __future__ import annotations

import re
import select
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import Copy
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import RowFactory, tuple_row

from parco.errors import InternalError

__all__ = ["LedgerConnection", "ServerCursor"]

_BYTEA = 17
_NAMED = re.compile(r"%\((\w+)\)s")
_DONE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
_COMMIT = b"COMMIT"

Values = Mapping[str, object]


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


# By the numbers that PostgreSQL gives its types: int8, int2, int4, bytea, text, varchar.
_READERS: dict[int, Callable[[bytes], Any]] = {
    20: _number,
    21: _number,
    23: _number,
    _BYTEA: bytes,
    25: bytes.decode,
    1043: bytes.decode,
}


class LedgerConnection(psycopg.Connection[Any]):
    """psycopg's connection, with a `server` cursor beside its own: whatever comes next, what waits there goes first."""

    def __init__(self, pgconn: PGconn, row_factory: RowFactory[Any] = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        self.server = ServerCursor(self)

    def cursor(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - psycopg's, of several kinds
        """As psycopg's."""
        self.server.flush()
        return super().cursor(*args, **options)

    def commit(self) -> None:
        """As psycopg's; what waits goes with it."""
        if not self.server.commit():
            super().commit()

    def rollback(self) -> None:
        """As psycopg's; what waits is forgotten."""
        self.server.forget()
        super().rollback()


@dataclass
class _Known:
    """A statement in the server's form, the names of its values in their order, and its own name."""

    text: bytes
    names: tuple[str, ...]
    name: bytes
    is_new: bool = True
    is_parsed: bool = False


@dataclass
class _Call:
    """A statement with its values; `check` is told how many rows it changed."""

    known: _Known
    values: Values
    check: Callable[[int], None] | None = None


class ServerCursor:
    """What `statements` needs of a cursor, on a connection of psycopg that begins nothing by itself.

    Errors are psycopg's, and what a check raises.
    """

    def __init__(self, driver: LedgerConnection) -> None:
        self._driver = driver
        self._known: dict[str, _Known] = {}
        self._result: PGresult | None = None
        self._waiting: list[_Call] = []
        self._ahead: deque[tuple[_Call, PGresult]] = deque()

    def begin(self, text: str, ahead: Sequence[tuple[str, Values]] = ()) -> tuple[str | None, ...]:
        """Runs the statements that begin a transaction; returns the first row of the last one as text, if it has one.

        `ahead`: what will be asked first, and is then known, unless something else comes before it.
        """
        self.forget()
        if not ahead:
            return _row(_checked(self._driver.pgconn.exec_(text.encode())))
        plain = [part.encode() for part in text.split(";")]
        calls = [self._call(asked, values) for asked, values in ahead]
        results = self._pipelined(plain, calls)
        self._ahead.extend(zip(calls, results[len(plain) :], strict=True))
        return _row(results[len(plain) - 1])

    def execute(self, text: str, values: Values) -> None:
        """Runs a statement whose values are named as psycopg has it, `%(name)s`."""
        call = self._call(text, values)
        if self._ahead:
            known, result = self._ahead.popleft()
            if known.known is call.known and known.values == values:
                self._result = result
                return
            # Something else comes first, and may change what they would find.
            self._ahead.clear()
        self._result = self._run([call])

    def put(self, text: str, values: Values, *, check: Callable[[int], None] | None = None) -> None:
        """Has a statement run with the next one, before a commit in any case."""
        self._ahead.clear()
        self._waiting.append(self._call(text, values, check))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows of the last statement."""
        result = self._result
        if result is None:
            return []
        value, columns = result.get_value, range(result.nfields)
        readers = [(column, _reader(result.ftype(column))) for column in columns]
        return [
            tuple([None if (data := value(row, column)) is None else read(data) for column, read in readers])
            for row in range(result.ntuples)
        ]

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""
        return 0 if self._result is None else self._result.command_tuples or 0

    def copy(self, text: str) -> AbstractContextManager[Copy]:
        """psycopg's way to add many rows."""
        copying: AbstractContextManager[Copy] = self._driver.cursor().copy(text)
        return copying

    def flush(self) -> None:
        """Runs what waits."""
        self._ahead.clear()
        if self._waiting:
            self._run([])

    def commit(self) -> bool:
        """Commits together with what waits; False where nothing did, and nothing was done."""
        self._ahead.clear()
        if any(call.check for call in self._waiting):
            self._run([])
        if not self._waiting:
            return False
        calls, self._waiting = self._waiting, []
        *_, ended = self._pipelined([], calls, _COMMIT)
        if ended.command_status != _COMMIT:
            raise InternalError("the server undid what it was to commit")
        return True

    def forget(self) -> None:
        """Drops what waits."""
        self._ahead.clear()
        self._waiting.clear()

    def _call(self, text: str, values: Values, check: Callable[[int], None] | None = None) -> _Call:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = _Known(*_numbered(text), name=f"parco_{len(self._known)}".encode())
        return _Call(known, values, check)

    def _run(self, calls: list[_Call]) -> PGresult:
        """What waits, then these; returns the last result."""
        calls, self._waiting = self._waiting + calls, []
        results = [self._alone(calls[0])] if len(calls) == 1 else self._pipelined([], calls)
        for call, result in zip(calls, results, strict=True):
            if call.check is not None:
                call.check(result.command_tuples or 0)
        return results[-1]

    def _alone(self, call: _Call) -> PGresult:
        server, known = self._driver.pgconn, call.known
        given, types, formats = _sent(call.values, known.names)
        # What is asked once is asked in one way to the server and back.
        if known.is_new:
            known.is_new = False
            return _checked(server.exec_params(known.text, given, types, formats, Format.BINARY))
        if not known.is_parsed:
            _checked(server.prepare(known.name, known.text, types))
            known.is_parsed = True
        return _checked(server.exec_prepared(known.name, given, formats, Format.BINARY))

    def _pipelined(self, plain: Sequence[bytes], calls: Sequence[_Call], end: bytes | None = None) -> list[PGresult]:
        """Statements without values, then others, then one more without: their results, or the first fault."""
        server = self._driver.pgconn
        # What each result is of: a statement that was parsed, or one that was run.
        sent: list[_Known | None] = []
        server.enter_pipeline_mode()
        try:
            for text in plain:
                server.send_query_params(text, None)
                sent.append(None)
            for call in calls:
                self._send(call, sent)
            if end is not None:
                server.send_query_params(end, None)
                sent.append(None)
            server.pipeline_sync()
            results = self._collected()
        except BaseException:
            # Whatever it was, an interrupt too: what is still to come must never be taken for the answer to another.
            server.finish()
            raise
        server.exit_pipeline_mode()
        for known, result in zip(sent, results, strict=False):
            if known is not None and result.status in _DONE:
                known.is_parsed = True
        _checked(results[-1])
        return [result for result, known in zip(results, sent, strict=True) if known is None]

    def _send(self, call: _Call, sent: list[_Known | None]) -> None:
        server, known = self._driver.pgconn, call.known
        given, types, formats = _sent(call.values, known.names)
        if known.is_new:
            known.is_new = False
            server.send_query_params(known.text, given, types, formats, Format.BINARY)
        else:
            if not (known.is_parsed or any(one is known for one in sent)):
                server.send_prepare(known.name, known.text, types)
                sent.append(known)
            server.send_query_prepared(known.name, given, formats, Format.BINARY)
        sent.append(None)

    def _collected(self) -> list[PGresult]:
        """The results up to the first fault, which is the last of them."""
        server, results = self._driver.pgconn, list[PGresult]()
        while True:
            self._await()
            result = server.get_result()
            if result is None:
                # One lies behind each statement's results; of a lost connection there is nothing else.
                if server.status != ConnStatus.OK:
                    raise psycopg.OperationalError("the connection to the server was lost")
            elif result.status == ExecStatus.PIPELINE_SYNC:
                return results
            elif result.status != ExecStatus.PIPELINE_ABORTED and (not results or results[-1].status in _DONE):
                results.append(result)

    def _await(self) -> None:
        """Sends what is to be sent, and waits until there is a result to be had; other threads run meanwhile."""
        server = self._driver.pgconn
        unsent = server.flush()
        while server.is_busy() or unsent:
            if _is_readable(server.socket, or_writable=bool(unsent)):
                server.consume_input()
            unsent = server.flush()


def _is_readable(socket: int, *, or_writable: bool) -> bool:
    """Waits for a socket; whether there is something to be read."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(socket, select.POLLIN | (select.POLLOUT if or_writable else 0))
        return any(event & ~select.POLLOUT for _, event in poll.poll())
    return bool(select.select([socket], [socket] if or_writable else [], [])[0])


@lru_cache(maxsize=256)
def _numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """A statement with numbers in the place of names, and the names in their order."""
    names = tuple(dict.fromkeys(_NAMED.findall(text)))
    places = {name: f"${place}" for place, name in enumerate(names, start=1)}
    return _NAMED.sub(lambda found: places[found[1]], text).replace("%%", "%").encode(), names


def _sent(values: Values, names: tuple[str, ...]) -> tuple[list[Any], list[int], list[int]]:
    """Values as they go to the server, and of each its type (0 where the statement says it) and its form."""
    # psycopg takes None for null, though it does not say so of this one.
    given: list[Any] = []
    types, formats = [0] * len(names), [0] * len(names)
    for place, name in enumerate(names):
        value = values[name]
        if isinstance(value, bytes):
            types[place], formats[place] = _BYTEA, 1
            given.append(value)
        else:
            given.append(_as_text(value))
    return given, types, formats


def _as_text(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, list):
        return f"{{{','.join(map(str, value))}}}".encode()
    return str(value).encode()


def _checked(result: PGresult) -> PGresult:
    if result.status not in _DONE:
        if result.error_field(DiagnosticField.SQLSTATE) is None:
            raise psycopg.OperationalError("the connection to the server was lost")
        raise error_from_result(result)
    return result


def _row(result: PGresult) -> tuple[str | None, ...]:
    """Its first row, of text; nothing where there is none."""
    row = [result.get_value(0, column) for column in range(result.nfields if result.ntuples else 0)]
    return tuple(None if value is None else value.decode() for value in row)


def _reader(kind: int) -> Callable[[bytes], Any]:
    read = _READERS.get(kind)
    if read is None:
        raise InternalError(f"a column of a ledger has a type that is neither number, text nor bytes: {kind}")
    return read
