"""The ledger as lines of text that a stranger can check: `docs/ledger-format.md` says what they are.

In the order of the ledger: each entry as it is stored, behind a `settle` its answer, behind the last entry of a commit
its head. Texts come last, and only if they are asked for: they name people. No secret and no private key is ever among
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, Row, select

from parco.ledger.entries import FORMAT
from parco.stores import tables

__all__ = ["lines"]

_BATCH = 5_000


def lines(
    reading: Callable[[], AbstractContextManager[Connection]], until: int, *, with_texts: bool = False
) -> Iterator[bytes]:
    """Every line up to entry `until`, without its end; nothing is checked.

    What is written never changes, so it is read in batches, a transaction each: nobody who writes has to wait for it.
    """
    yield b'{"format":%d,"tag":"export"}' % FORMAT
    for start in range(0, until, _BATCH):
        with reading() as connection:
            batch = list(_batch(connection, start, min(start + _BATCH, until)))
        yield from batch
    if with_texts:
        with reading() as connection:
            texts = connection.execute(select(tables.texts).order_by(tables.texts.c.digest)).all()
        yield from (_text(row) for row in texts if row.text is not None)


def _batch(connection: Connection, start: int, end: int) -> Iterator[bytes]:
    """The lines of the entries behind `start`, up to `end`."""
    entries, heads, requests = tables.entries.c, tables.heads.c, tables.requests.c
    bodies = select(entries.seq, entries.body).where(entries.seq > start, entries.seq <= end).order_by(entries.seq)
    signed = select(tables.heads).where(heads.size > start, heads.size <= end)
    answered = (
        select(requests.settled, tables.answers)
        .select_from(tables.answers.join(tables.requests))
        .where(requests.settled > start, requests.settled <= end)
    )
    behind: dict[int, list[bytes]] = {}
    for row in connection.execute(answered):
        behind.setdefault(row.settled, []).append(_answer(row))
    for row in connection.execute(signed):
        behind.setdefault(row.size, []).append(_head(row))
    for seq, body in connection.execute(bodies):
        yield bytes(body)
        yield from behind.get(seq, ())


# Written out by hand, since a large ledger has many: the canonical form, if the fields are what they should be.
def _head(row: Row[Any]) -> bytes:
    previous = "null" if row.previous is None else f'"{row.previous}"'
    return (
        f'{{"accounts":"{row.accounts}","format":{FORMAT},"key":"{row.key}","previous":{previous},"root":"{row.root}",'
        f'"signature":"{row.signature}","size":{row.size},"tag":"head"}}'
    ).encode()


def _answer(row: Row[Any]) -> bytes:
    # Bytes that are not UTF-8 differ from every answer ever settled; whoever checks finds that.
    body, salt = json.dumps(row.body.decode(errors="backslashreplace")), row.salt.hex()
    return f'{{"answer":{body},"format":{FORMAT},"request":{row.request},"salt":"{salt}","tag":"answer"}}'.encode()


def _text(row: Row[Any]) -> bytes:
    fields = {"digest": row.digest, "format": FORMAT, "salt": row.salt.hex(), "tag": "text", "text": row.text}
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
