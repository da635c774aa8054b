"""Texts beside the ledger: an entry names a text by its salted digest, and the text can be erased.

Once salt, text and look-up are gone, the digest in the entries still holds and says nothing. Equal text of one kind has
one row, found by `lookup`, so that a question asked again is known.
"""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from parco import canonical
from parco.errors import InternalError, VerificationError
from parco.stores import tables
from parco.stores.statements import Insertion, Prepared

__all__ = [
    "ERASABLE",
    "KINDS",
    "check_lookups",
    "erase",
    "find",
    "find_all",
    "intern",
    "intern_all",
    "intern_many",
    "lookup",
    "normal",
    "read",
    "read_all",
    "salted",
]

KINDS = (
    "actor",
    "contract",
    "dataset",
    "key",
    "label",
    "name",
    "question",
    "quota",
    "reason",
    "remark",
    "schedule",
    "terms",
)

# The others hold the budget together: with a data set's name gone, the data set could be signed as if it were new.
# A remark is what an amended text reads instead, a title or a note.
ERASABLE = ("actor", "key", "question", "reason", "remark")

_SALT_BYTES = 16


_TEXTS = tables.texts.c
_READ = select(tables.texts).where(_TEXTS.digest == bindparam("named"))
_INSERT = Insertion(tables.texts)


@cache
def _find(count: int) -> Prepared:
    """Finds so many texts, of which there are never more at once than kinds."""
    return Prepared(
        select(_TEXTS.lookup, _TEXTS.digest).where(
            _TEXTS.lookup.in_([bindparam(f"at_{place}") for place in range(count)])
        )
    )


def find(connection: Connection, kind: str, text: str) -> str | None:
    """The digest of a text stored before, or None."""
    return find_all(connection, {kind: text}).get(kind)


def find_all(connection: Connection, wanted: Mapping[str, str]) -> dict[str, str]:
    """The digests of those texts, each by its kind, that were stored before."""
    lookups = {lookup(kind, text): kind for kind, text in wanted.items()}
    rows = _find(len(lookups)).rows(connection, {f"at_{place}": sought for place, sought in enumerate(lookups)})
    return {lookups[found]: digest for found, digest in rows}


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
        _INSERT.put(connection, *rows.values())
    return digests | {kind: row["digest"] for kind, row in rows.items()}


def intern_many(connection: Connection, kind: str, wanted: Iterable[str]) -> list[str]:
    """The digests of texts of one kind, in their order, stored now where they never were."""
    listed = [normal(text) for text in wanted]
    rows = {text: _row(kind, text) for text in dict.fromkeys(listed)}
    sought = select(_TEXTS.lookup, _TEXTS.digest).where(_TEXTS.lookup.in_(bindparam("lookups", expanding=True)))
    found = connection.execute(sought, {"lookups": [row["lookup"] for row in rows.values()]})
    known = {row.lookup: row.digest for row in found}
    new = [row for row in rows.values() if row["lookup"] not in known]
    if new:
        _INSERT.put(connection, *new)
    return [known.get(rows[text]["lookup"], rows[text]["digest"]) for text in listed]


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


def salted(connection: Connection) -> dict[str, dict[str, str]]:
    """Salt and text of every text that was not erased, by its digest, checked like `read`."""
    columns = tables.texts.c
    rows = connection.execute(select(columns.digest, columns.salt, columns.text)).all()
    there = {digest: (salt, _checked(digest, salt, text)) for digest, salt, text in rows}
    return {digest: {"salt": salt.hex(), "text": text} for digest, (salt, text) in there.items() if text is not None}


def check_lookups(connection: Connection) -> None:
    """Raises VerificationError unless each text is found under one of the kinds it may be of."""
    for text, found in connection.execute(select(tables.texts.c.text, tables.texts.c.lookup)).all():
        if text is not None and found not in {lookup(kind, text) for kind in KINDS}:
            raise VerificationError("a text of the ledger would not be found again: its look-up differs from it")


def erase(connection: Connection, digests: Sequence[str]) -> int:
    """Erases texts for good; returns how many were there. Whoever calls this sees to it that they may be (ERASABLE).

    Answers to an erased question are found no more.
    """
    gone = update(tables.texts).where(_TEXTS.digest.in_(digests), _TEXTS.text.is_not(None))
    return connection.execute(gone.values(salt=None, text=None, lookup=None)).rowcount


def normal(text: str) -> str:
    """The form in which a text is stored and compared: Unicode NFC."""
    return unicodedata.normalize("NFC", text)


def _row(kind: str, text: str) -> dict[str, Any]:
    salt, stored = secrets.token_bytes(_SALT_BYTES), normal(text)
    return {
        "digest": canonical.salted_digest(salt, stored),
        "salt": salt,
        "text": stored,
        "lookup": lookup(kind, text),
    }


def lookup(kind: str, text: str) -> str:
    """What a text of this kind is found by."""
    if kind not in KINDS:
        raise InternalError(f"there is no kind of text {kind!r}")
    return hashlib.sha256(f"parco/lookup/1\x00{kind}\x00{normal(text)}".encode()).hexdigest()


def _checked(digest: str, salt: bytes | None, text: str | None) -> str | None:
    if salt is None or text is None:
        return None
    if canonical.salted_digest(salt, text) != digest:
        raise VerificationError("a text of the ledger differs from the one that was stored")
    return text
