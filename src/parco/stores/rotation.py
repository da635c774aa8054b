"""Rotation: another key signs from here on, by an entry that both keys signed; the old private key is erased."""

from __future__ import annotations

import time
from dataclasses import replace

from sqlalchemy import Connection

from parco.errors import RequestError
from parco.ledger.entries import Rotate, rotation_statement
from parco.stores import keys, texts
from parco.stores.append import append

__all__ = ["rotate"]

_UNSIGNED = "0" * 128


def rotate(connection: Connection, *, actor: str, reason: str) -> int:
    """Appends the entry and returns its sequence; RequestError on a ledger that has signed nothing yet."""
    old = keys.current(connection)
    if old is None:
        raise RequestError("this ledger has no signing key yet: `parco sign` makes it")
    keys.retire(connection, old)
    new = keys.make(connection)
    names = {"actor": actor, "reason": reason}
    digests = {kind: texts.intern(connection, kind, text) for kind, text in names.items()}
    now = int(time.time())

    def signed(seq: int) -> Rotate:
        entry = Rotate(seq=seq, time=now, old=old.public, new=new.public, by_old=_UNSIGNED, by_new=_UNSIGNED, **digests)
        statement = rotation_statement(entry)
        return replace(entry, by_old=old.sign(statement).hex(), by_new=new.sign(statement).hex())

    return append(connection, signed)
