"""Proofs that leave the ledger: an entry is under a head, and a head is the beginning of another.

Each is a record of text and integers that anybody can check; hashes of a path are in base64, so that a path over a
million entries takes less than a kilobyte. Whether the signature of a head holds is another question.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parco.errors import VerificationError
from parco.ledger import merkle
from parco.ledger.entries import FORMAT
from parco.ledger.heads import Head, head_of

__all__ = ["Consistency", "Inclusion", "inclusion_of"]

_HASH_BYTES = 32
# A tree of 2^63 entries is 63 levels high.
_STEPS_MAX = 64


@dataclass(frozen=True)
class Inclusion:
    """Entry `position` of the ledger is `entry`, to the byte, in the tree of `head`."""

    position: int
    entry: bytes
    head: Head
    path: tuple[bytes, ...]

    @property
    def holds(self) -> bool:
        """Whether the path shows it; the head's signature is not looked at."""
        return merkle.includes(
            bytes.fromhex(self.head.root),
            size=self.head.size,
            index=self.position - 1,
            last=merkle.leaf(self.entry),
            path=self.path,
        )

    def record(self) -> dict[str, object]:
        """The proof as a tree of text and integers."""
        return {
            "format": FORMAT,
            "tag": "inclusion",
            "position": self.position,
            "entry": self.entry.decode(),
            "head": self.head.record(),
            "path": path_text(self.path),
        }


@dataclass(frozen=True)
class Consistency:
    """All that stood in the ledger at `old` stands in it at `head`, unchanged and in its place."""

    old: Head
    head: Head
    path: tuple[bytes, ...]

    @property
    def holds(self) -> bool:
        """Whether the path shows it; the heads' signatures are not looked at."""
        return merkle.extends(
            bytes.fromhex(self.head.root),
            size=self.head.size,
            old_top=bytes.fromhex(self.old.root),
            old_size=self.old.size,
            path=self.path,
        )

    def record(self) -> dict[str, object]:
        """The proof as a tree of text and integers."""
        return {
            "format": FORMAT,
            "tag": "consistency",
            "old": self.old.record(),
            "head": self.head.record(),
            "path": path_text(self.path),
        }


def inclusion_of(record: object) -> Inclusion:
    """For every record with the fields of an inclusion proof, returns it, holding or not, or VerificationError."""
    try:
        if not isinstance(record, Mapping) or type(record["position"]) is not int:
            raise ValueError
        entry, path = record["entry"].encode(), record["path"]
        if not isinstance(path, list) or len(path) > _STEPS_MAX:
            raise ValueError
        steps = tuple(base64.b64decode(step, validate=True) for step in path)
        if any(len(step) != _HASH_BYTES for step in steps) or path_text(steps) != path:
            raise ValueError
        return Inclusion(record["position"], entry, head_of(record["head"]), steps)
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
        raise VerificationError("a proof is damaged: a field is missing, unknown or out of its range") from None


def path_text(path: Sequence[bytes]) -> list[str]:
    """A path's hashes as base64."""
    return [base64.b64encode(step).decode("ascii") for step in path]
