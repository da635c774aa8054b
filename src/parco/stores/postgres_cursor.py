"""Statements that come again, given to PostgreSQL's own library: psycopg's cursors take longer than the server does.

A statement is parsed by the server when it comes a second time on a connection, and from then on called by its name.
Values go as text, lists of numbers too, or as bytes where they are bytes; rows come in the server's binary form, and a
ledger has three kinds of it: whole numbers, text and bytes. While the server works, other threads do too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import Copy
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus, Format
from psycopg.pq.abc import PGresult

from parco.errors import InternalError

__all__ = ["ServerCursor", "run_plain"]

_BYTEA = 17
_NAMED = re.compile(r"%\((\w+)\)s")
_DONE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


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


@dataclass
class _Known:
    """A statement in the server's form, the names of its values in their order, and its own name."""

    text: bytes
    names: tuple[str, ...]
    name: bytes
    is_parsed: bool = False


class ServerCursor:
    """What `statements` needs of a cursor, on a connection of psycopg that begins nothing by itself.

    Errors are psycopg's.
    """

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        self._driver = driver
        self._known: dict[str, _Known] = {}
        self._result: PGresult | None = None

    def execute(self, text: str, values: Mapping[str, object]) -> None:
        """Runs a statement whose values are named as psycopg has it, `%(name)s`."""
        known, server = self._known.get(text), self._driver.pgconn
        if known is None:
            # What is asked once is asked in one way to the server and back.
            known = self._known[text] = _Known(*_numbered(text), name=f"parco_{len(self._known)}".encode())
            given, types, formats = _sent(values, known.names)
            self._result = _checked(server.exec_params(known.text, given, types, formats, Format.BINARY))
            return
        given, types, formats = _sent(values, known.names)
        if not known.is_parsed:
            _checked(server.prepare(known.name, known.text, types))
            known.is_parsed = True
        self._result = _checked(server.exec_prepared(known.name, given, formats, Format.BINARY))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows of the last statement."""
        result = self._result
        if result is None:
            return []
        columns = range(result.nfields)
        readers = [_reader(result.ftype(column)) for column in columns]
        return [
            tuple(
                [
                    None if (value := result.get_value(row, column)) is None else read(value)
                    for column, read in zip(columns, readers, strict=True)
                ]
            )
            for row in range(result.ntuples)
        ]

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""
        return 0 if self._result is None else self._result.command_tuples or 0

    def copy(self, text: str) -> AbstractContextManager[Copy]:
        """psycopg's way to add many rows."""
        return self._driver.cursor().copy(text)


def run_plain(driver: psycopg.Connection[Any], text: str) -> tuple[str | None, ...]:
    """Runs several statements in one go, without values; returns the first row of the last one as text, if it has one.

    One way to the server and back.
    """
    result = _checked(driver.pgconn.exec_(text.encode()))
    row = [result.get_value(0, column) for column in range(result.nfields if result.ntuples else 0)]
    return tuple(None if value is None else value.decode() for value in row)


@lru_cache(maxsize=256)
def _numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """A statement with numbers in the place of names, and the names in their order."""
    names = tuple(dict.fromkeys(_NAMED.findall(text)))
    places = {name: f"${place}" for place, name in enumerate(names, start=1)}
    return _NAMED.sub(lambda found: places[found[1]], text).replace("%%", "%").encode(), names


def _sent(values: Mapping[str, object], names: tuple[str, ...]) -> tuple[list[Any], list[int], list[int]]:
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


def _reader(kind: int) -> Callable[[bytes], Any]:
    read = _READERS.get(kind)
    if read is None:
        raise InternalError(f"a column of a ledger has a type that is neither number, text nor bytes: {kind}")
    return read
