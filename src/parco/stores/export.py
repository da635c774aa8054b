"""The ledger as lines of text that a stranger can check: `docs/ledger-format.md` says what they are.

In the order of the ledger: each entry as it is stored, behind a `settle` its answer, behind the last entry of a commit
its head. No text is among them (texts name people), no secret and no private key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, Select, select

from parco.ledger.entries import FORMAT
from parco.stores import tables

__all__ = ["BATCH", "lines"]

BATCH = 5_000
_FETCH = 100


def lines(reading: Callable[[], AbstractContextManager[Connection]], until: int) -> Iterator[bytes]:
    """Every line up to entry `until`, without its end; nothing is checked.

    What is written never changes, so it is read in batches, a transaction each: nobody who writes has to wait for it.
    """
    for start in range(0, until, BATCH):
        with reading() as connection:
            batch = list(_batch(connection, start, min(start + BATCH, until)))
        yield from batch


def _batch(connection: Connection, start: int, end: int) -> Iterator[bytes]:
    """The lines of the entries behind `start`, up to `end`."""
    entries, heads, requests, answers = tables.entries.c, tables.heads.c, tables.requests.c, tables.answers.c
    bodies = select(entries.seq, entries.body).where(entries.seq > start, entries.seq <= end).order_by(entries.seq)
    signed = select(heads.size, heads.root, heads.accounts, heads.previous, heads.key, heads.signature)
    answered = select(requests.settled, answers.request, answers.salt, answers.body).select_from(
        tables.answers.join(tables.requests)
    )
    signed = signed.where(heads.size > start, heads.size <= end).order_by(heads.size)
    answered = answered.where(requests.settled > start, requests.settled <= end).order_by(requests.settled)
    behind, above = _rows(connection, answered), _rows(connection, signed)
    answer, head = next(behind, None), next(above, None)
    for seq, body in _rows(connection, bodies):
        yield bytes(body)
        while answer is not None and answer[0] <= seq:
            yield _answer(*answer[1:])
            answer = next(behind, None)
        while head is not None and head[0] <= seq:
            yield _head(*head)
            head = next(above, None)


def _rows(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Any]]:
    # A few at a time: thousands of rows alive at once would keep the garbage collector busy.
    return iter(connection.execute(query.execution_options(yield_per=_FETCH)))


# Written out by hand, since a large ledger has many: the canonical form, if the fields are what they should be.
def _head(size: int, root: str, accounts: str, previous: str | None, key: str, signature: str) -> bytes:
    before = "null" if previous is None else f'"{previous}"'
    return (
        f'{{"accounts":"{accounts}","format":{FORMAT},"key":"{key}","previous":{before},"root":"{root}",'
        f'"signature":"{signature}","size":{size},"tag":"head"}}'
    ).encode()


def _answer(request: int, salt: bytes, body: bytes) -> bytes:
    # Bytes that are not UTF-8 differ from every answer ever settled; whoever checks finds that.
    text = json.dumps(body.decode(errors="backslashreplace"))
    return f'{{"answer":{text},"format":{FORMAT},"request":{request},"salt":"{salt.hex()}","tag":"answer"}}'.encode()
