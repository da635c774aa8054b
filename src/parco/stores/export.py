"""The ledger as lines of text that a stranger can check: `docs/ledger-format.md` says what they are.

In the order of the ledger: each entry as it is stored, behind a `settle` its answer, behind the last entry of a commit
its head. No text is among them (texts name people), no secret and no private key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from sqlalchemy import Connection, select

from parco.ledger.entries import FORMAT
from parco.stores import tables

__all__ = ["BATCH", "lines"]

BATCH = 5_000


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
    entries, heads, requests = tables.entries.c, tables.heads.c, tables.requests.c
    bodies = select(entries.seq, entries.body).where(entries.seq > start, entries.seq <= end).order_by(entries.seq)
    signed = select(heads.size, heads.root, heads.accounts, heads.previous, heads.key, heads.signature).where(
        heads.size > start, heads.size <= end
    )
    answered = (
        select(requests.settled, tables.answers.c.request, tables.answers.c.salt, tables.answers.c.body)
        .select_from(tables.answers.join(tables.requests))
        .where(requests.settled > start, requests.settled <= end)
    )
    behind: dict[int, list[bytes]] = {}
    for settled, *answer in connection.execute(answered).all():
        behind.setdefault(settled, []).append(_answer(*answer))
    for head in connection.execute(signed).all():
        behind.setdefault(head.size, []).append(_head(*head))
    for seq, body in connection.execute(bodies).all():
        yield bytes(body)
        yield from behind.get(seq, ())


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
