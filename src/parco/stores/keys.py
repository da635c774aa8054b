"""The ledger's signing keys (Ed25519): the one that signs, and the public halves of those before it.

The private key lies in the ledger's file, as the data set's secret does (docs/decisions/0033). It makes receipts that
nobody but the ledger can write; it does not hold the file's owner, whom only a head seen outside can.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from sqlalchemy import Connection, insert, select, update

from parco.errors import VerificationError
from parco.ledger.heads import Head
from parco.stores import tables
from parco.stores.append import note_trust
from parco.stores.statements import Prepared

__all__ = ["REPORT_LABEL", "SigningKey", "current", "known", "make", "of", "retire", "signature_holds", "verified"]

REPORT_LABEL = b"parco/report/1\x00"
"""What the statement of a frozen report begins with, as those of heads and rotations begin with theirs."""

_SEED_BYTES = 32

_KEYS = Prepared(select(tables.keys.c.key, tables.keys.c.private))


class SigningKey:
    """A private key and, as `public`, the 64 hexadecimal digits by which heads name it."""

    def __init__(self, seed: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._private.public_key().public_bytes_raw().hex()
        # The head that a commit signs is the one that the next checks; what is signed never changes.
        self._signed = lru_cache(maxsize=8)(self._private.sign)

    def sign(self, message: bytes) -> bytes:
        """The one signature of this key over the message: Ed25519 is deterministic."""
        return self._signed(message)


# A key is what its seed makes of it: kept by the very seed that was read, so that a changed one is another key.
_signing_key = lru_cache(maxsize=8)(SigningKey)


def current(connection: Connection) -> SigningKey | None:
    """The key that signs; None on a ledger that has none yet; VerificationError if it is lost or was changed."""
    return of(_KEYS.rows(connection))


def of(rows: Sequence[tuple[str, bytes | None]]) -> SigningKey | None:
    """The same, of all rows of the table: each key's public and private half, or of that one that has both."""
    private = [(public, bytes(seed)) for public, seed in rows if seed is not None]
    if not rows:
        return None
    if len(private) != 1 or (key := _signing_key(private[0][1])).public != private[0][0]:
        raise VerificationError(
            "the ledger's signing key is lost or was changed: nothing can be added; stored answers can still be read;"
            " restore the ledger from a backup"
        )
    return key


def make(connection: Connection) -> SigningKey:
    """A new key, which signs from now on."""
    seed = secrets.token_bytes(_SEED_BYTES)
    key = SigningKey(seed)
    note_trust(connection)
    connection.execute(insert(tables.keys).values(key=key.public, private=seed))
    return key


def retire(connection: Connection, key: SigningKey) -> None:
    """Forgets the private half for good."""
    note_trust(connection)
    _signing_key.cache_clear()
    connection.execute(update(tables.keys).where(tables.keys.c.key == key.public).values(private=None))


def known(connection: Connection, public: str) -> bool:
    """Whether this ledger ever signed with the key."""
    return connection.scalar(select(tables.keys.c.key).where(tables.keys.c.key == public)) is not None


def verified(head: Head) -> bool:
    """Whether the head's signature is its key's."""
    return signature_holds(head.key, head.signature, head.statement)


def signature_holds(public: str, signature: str, message: bytes) -> bool:
    """Whether a signature over a message is that of a public key; all but the message in hexadecimal digits."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
