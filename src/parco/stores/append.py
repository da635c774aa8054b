"""The one place where entries are stored: each is the next, and every transaction knows which were its own."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, func, insert, select

from parco.ledger.entries import Entry, encode
from parco.stores import tables

__all__ = ["append", "appended", "forget_appended"]

_APPENDED = "parco: entries appended in this transaction"

_LAST = select(func.max(tables.entries.c.seq))
_INSERT = insert(tables.entries)


def append(connection: Connection, make: Callable[[int], Entry]) -> int:
    """Stores the next entry and returns its sequence; the caller's transaction holds the write lock."""
    seq = (connection.scalar(_LAST) or 0) + 1
    body = encode(make(seq))
    connection.execute(_INSERT, {"seq": seq, "body": body})
    connection.info.setdefault(_APPENDED, []).append((seq, body))
    return seq


def forget_appended(connection: Connection) -> None:
    """To be called where a transaction begins."""
    connection.info.pop(_APPENDED, None)


def appended(connection: Connection) -> list[tuple[int, bytes]]:
    """Sequence and bytes of each entry stored in the transaction at hand."""
    return list(connection.info.get(_APPENDED, ()))
