"""The ledger as lines of text that a stranger can check: `docs/ledger-format.md` says what they are.

In the order of the ledger: each entry as it is stored, behind a `settle` or `stop` its answer, behind the last entry
of a commit its head. No text is among them (texts name people), no secret and no private key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from parco.ledger.entries import FORMAT
from parco.stores import tables
from parco.stores.statements import Prepared

__all__ = ["BATCH", "lines"]

BATCH = 1_000

_ENTRIES, _HEADS, _REQUESTS, _ANSWERS = (
    table.c for table in (tables.entries, tables.heads, tables.requests, tables.answers)
)


def _between(query: Select[Any], place: ColumnElement[int]) -> Prepared:
    """The rows of a query behind one place, up to another, in order."""
    return Prepared(query.where(place > bindparam("start"), place <= bindparam("end")).order_by(place))


_BODIES = _between(select(_ENTRIES.seq, _ENTRIES.body), _ENTRIES.seq)
_SIGNED = _between(
    select(_HEADS.size, _HEADS.root, _HEADS.accounts, _HEADS.previous, _HEADS.key, _HEADS.signature), _HEADS.size
)
_ANSWERED = _between(
    select(_REQUESTS.settled, _ANSWERS.request, _ANSWERS.salt, _ANSWERS.body).select_from(
        tables.answers.join(tables.requests)
    ),
    _REQUESTS.settled,
)


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
    ends = {"start": start, "end": end}
    bodies, signed, answered = (query.rows(connection, ends) for query in (_BODIES, _SIGNED, _ANSWERED))
    behind, above = iter(answered), iter(signed)
    answer, head = next(behind, None), next(above, None)
    for seq, body in bodies:
        yield bytes(body)
        while answer is not None and answer[0] <= seq:
            yield _answer(*answer[1:])
            answer = next(behind, None)
        while head is not None and head[0] <= seq:
            yield _head(*head)
            head = next(above, None)


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
