"""Texts beside the ledger: an entry names a text by its salted digest, and the text can be erased.

Once salt, text and look-up are gone, the digest in the entries still holds and says nothing. Equal text of one kind has
one row, found by `lookup`, so that a question asked again is known.
"""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from parco import canonical
from parco.errors import InternalError, RequestError, VerificationError
from parco.stores import tables

__all__ = [
    "ERASABLE",
    "KINDS",
    "check_lookups",
    "erase",
    "find",
    "find_all",
    "intern",
    "intern_all",
    "normal",
    "read",
    "read_all",
]

KINDS = ("actor", "contract", "dataset", "key", "label", "name", "question", "quota", "reason", "terms")

# The others hold the budget together: with a data set's name gone, the data set could be signed as if it were new.
ERASABLE = ("actor", "key", "question", "reason")

_SALT_BYTES = 16


_TEXTS = tables.texts.c
_FIND = select(_TEXTS.lookup, _TEXTS.digest).where(_TEXTS.lookup.in_(bindparam("lookups", expanding=True)))
_READ = select(tables.texts).where(_TEXTS.digest == bindparam("named"))
_INSERT = insert(tables.texts)


def find(connection: Connection, kind: str, text: str) -> str | None:
    """The digest of a text stored before, or None."""
    return find_all(connection, {kind: text}).get(kind)


def find_all(connection: Connection, wanted: Mapping[str, str]) -> dict[str, str]:
    """The digests of those texts, each by its kind, that were stored before."""
    lookups = {_lookup(kind, text): kind for kind, text in wanted.items()}
    rows = connection.execute(_FIND, {"lookups": list(lookups)})
    return {lookups[row.lookup]: row.digest for row in rows}


def intern(connection: Connection, kind: str, text: str) -> str:
    """The digest of a text, stored now if it never was."""
    return intern_all(connection, {kind: text})[kind]


def intern_all(
    connection: Connection, wanted: Mapping[str, str], *, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The digests of texts by their kinds, stored now if they never were; `known` are those found already."""
    digests = dict(find_all(connection, wanted) if known is None else known)
    rows = {kind: _row(kind, text) for kind, text in wanted.items() if kind not in digests}
    if rows:
        connection.execute(_INSERT, list(rows.values()))
    return digests | {kind: row["digest"] for kind, row in rows.items()}


def read(connection: Connection, digest: str) -> str | None:
    """The text, None if it was erased; raises VerificationError if it is missing or not the text that was stored."""
    row = connection.execute(_READ, {"named": digest}).one_or_none()
    if row is None:
        raise VerificationError("a text that the ledger's entries name is missing from its side table")
    return _checked(row.digest, row.salt, row.text)


def read_all(connection: Connection) -> dict[str, str | None]:
    """Every text by its digest, checked like `read`."""
    columns = tables.texts.c
    rows = connection.execute(select(columns.digest, columns.salt, columns.text)).all()
    return {digest: _checked(digest, salt, text) for digest, salt, text in rows}


def check_lookups(connection: Connection) -> None:
    """Raises VerificationError unless each text is found under one of the kinds it may be of."""
    for text, lookup in connection.execute(select(tables.texts.c.text, tables.texts.c.lookup)).all():
        if text is not None and lookup not in {_lookup(kind, text) for kind in KINDS}:
            raise VerificationError("a text of the ledger would not be found again: its look-up differs from it")


def erase(connection: Connection, kind: str, text: str) -> bool:
    """Erases a text for good; returns whether it was there. Answers to an erased question are found no more."""
    if kind not in ERASABLE:
        raise RequestError(f"only texts of these kinds can be erased: {', '.join(ERASABLE)}")
    gone = update(tables.texts).where(tables.texts.c.lookup == _lookup(kind, text))
    return connection.execute(gone.values(salt=None, text=None, lookup=None)).rowcount == 1


def normal(text: str) -> str:
    """The form in which a text is stored and compared: Unicode NFC."""
    return unicodedata.normalize("NFC", text)


def _row(kind: str, text: str) -> dict[str, Any]:
    salt, stored = secrets.token_bytes(_SALT_BYTES), normal(text)
    return {
        "digest": canonical.salted_digest(salt, stored),
        "salt": salt,
        "text": stored,
        "lookup": _lookup(kind, text),
    }


def _lookup(kind: str, text: str) -> str:
    if kind not in KINDS:
        raise InternalError(f"there is no kind of text {kind!r}")
    return hashlib.sha256(f"parco/lookup/1\x00{kind}\x00{normal(text)}".encode()).hexdigest()


def _checked(digest: str, salt: bytes | None, text: str | None) -> str | None:
    if salt is None or text is None:
        return None
    if canonical.salted_digest(salt, text) != digest:
        raise VerificationError("a text of the ledger differs from the one that was stored")
    return text
