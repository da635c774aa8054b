"""A head: the size and Merkle root of the ledger, what its accounts stand at, and the ledger's signature on that.

Each head holds the digest of the one before it, so that the last signature answers for all of them. A head has no time:
how long a data access took may depend on the data. Signatures are made and checked elsewhere (`stores`, `audit`): here
is only what they are over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from parco import canonical
from parco.errors import LedgerFormatError, VerificationError
from parco.ledger import _codecs as codecs
from parco.ledger.entries import FORMAT, Balance

__all__ = ["Head", "accounts_digest", "head_of"]

_LABEL = b"parco/head/1\x00"
_KIND = {"format": FORMAT, "tag": "head"}

_SCHEMA: dict[str, codecs.Codec] = {
    "size": codecs.ordinal,
    "root": codecs.digest,
    "accounts": codecs.digest,
    "previous": codecs.optional(codecs.digest),
    "key": codecs.digest,
    "signature": codecs.signature,
}


@dataclass(frozen=True, kw_only=True)
class Head:
    """What one commit left: `size` entries under `root`, accounts whose digest is `accounts`.

    `previous`: the digest of the head before, None for the first. `key`: the public key of `signature` (Ed25519). All
    are hexadecimal. A head that is not signed yet has an empty signature.
    """

    size: int
    root: str
    accounts: str
    previous: str | None
    key: str
    signature: str = ""

    @property
    def statement(self) -> bytes:
        """The bytes that are signed."""
        return _statement(self.size, self.root, self.accounts, self.previous, self.key)

    @property
    def digest(self) -> str:
        """What the next head calls this one."""
        return hashlib.sha256(self.line).hexdigest()

    @property
    def line(self) -> bytes:
        """The head as its one line of text, without the end of the line."""
        return _line(self)

    def record(self) -> dict[str, object]:
        """The head as a tree of text and integers."""
        return _KIND | vars(self)

    def signed(self, signature: bytes) -> Head:
        """The same head with its signature."""
        return Head(**{**vars(self), "signature": signature.hex()})


# What one commit signs and marks, the next one checks and continues.
@lru_cache(maxsize=16)
def _line(head: Head) -> bytes:
    return canonical.encode_plain(head.record())


@lru_cache(maxsize=16)
def _statement(size: int, root: str, accounts: str, previous: str | None, key: str) -> bytes:
    facts = {"size": size, "root": root, "accounts": accounts, "previous": previous, "key": key}
    return _LABEL + canonical.encode_plain(_KIND | facts)


def head_of(record: object) -> Head:
    """For every record that a head wrote, returns the head, or raises VerificationError.

    LedgerFormatError for a head of a newer format. Nothing is said of its signature.
    """
    if not isinstance(record, Mapping) or record.get("tag") != "head":
        raise VerificationError("this is not a head: `parco ledger head` prints one")
    if type(record.get("format")) is not int or record["format"] != FORMAT:
        raise LedgerFormatError(f"a head has another format than {FORMAT}, which this version reads: upgrade parco")
    try:
        if record.keys() != {"format", "tag", *_SCHEMA}:
            raise ValueError
        return Head(**{name: codec.read(record[name]) for name, codec in _SCHEMA.items()})
    except (TypeError, ValueError):
        raise VerificationError("a head is damaged: a field is missing, unknown or out of its range") from None


def accounts_digest(balances: Iterable[Balance]) -> str:
    """The digest of all accounts as they stand, by rising number."""
    # The fields in their order; `dataclasses.astuple` would copy each, at ten times the price.
    return hashlib.sha256(canonical.encode_plain([[*vars(one).values()] for one in balances])).hexdigest()
