"""What a ledger shows to those who do not trust it, and how it goes on after a loss: the same for every store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from parco.errors import InternalError, NotSignedError, VerificationError
from parco.ledger.heads import Head
from parco.ledger.proofs import Consistency, Inclusion
from parco.stores import export, halts, heads, keys, marks, reading, recovery, rotation, texts, verify
from parco.stores.append import last_entry
from parco.stores.durable import durable
from parco.stores.records import Evidence, Recovered, Recovery, Stored
from parco.stores.verify import Shown

__all__ = ["Witnessed"]

T = TypeVar("T")


class Witnessed(ABC):
    """A store's heads, proofs, exports and recovery; a store adds how transactions are made, and its mark."""

    def head(self) -> Head:
        """The last head; NotSignedError on a ledger on which nothing was signed."""
        with self._reading() as connection:
            head = heads.last(connection)
        if head is None:
            raise NotSignedError("nothing was ever signed on this ledger: run `parco sign`")
        return head

    def prove(self, position: int) -> Inclusion:
        """The proof that an entry is under the last head; VerificationError if it is missing or was changed."""
        head = self.head()
        with self._reading() as connection:
            return heads.inclusion(connection, position, head)

    def prove_from(self, size: int) -> Consistency:
        """The proof that the last head extends the one that was signed at `size`, or VerificationError."""
        head = self.head()
        with self._reading() as connection:
            return heads.consistency(connection, heads.at(connection, size), head)

    def stored(self, request: int) -> Stored:
        """An answered request, or VerificationError if it is not settled, or its answer is lost or was changed."""
        with self._reading() as connection:
            return reading.stored(connection, request)

    def text(self, digest: str) -> str | None:
        """The text that an entry names by this digest, None if it was erased; VerificationError if it was changed."""
        with self._reading() as connection:
            return texts.read(connection, digest)

    def salted_texts(self) -> dict[str, dict[str, str]]:
        """Every text that was not erased, with its salt, by the digest that entries name it by: each checked."""
        with self._reading() as connection:
            return texts.salted(connection)

    def sign_report(self, head: Head, statement: bytes) -> dict[str, str]:
        """The signature by the key that signed a head over the statement of a frozen report, and over nothing else.

        VerificationError where another key signs by now.
        """
        if not statement.startswith(keys.REPORT_LABEL):
            raise InternalError("a report's statement begins with a label of its own")
        with self._reading() as connection:
            key = keys.current(connection)
        if key is None or key.public != head.key:
            raise VerificationError("the ledger's signing key is another by now: freeze the report again")
        return {"signature": key.sign(statement).hex()}

    def evidence(self, request: int, position: int) -> Evidence:
        """What shows outside the ledger that a request was settled by the entry at `position`."""
        with self._reading() as connection:
            return reading.evidence(connection, request, position)

    @durable
    def witness(self, seen: Sequence[Head]) -> list[Head]:
        """The heads among `seen` that this ledger signed, does not extend and has not answered for: they halt it.

        VerificationError for a head that is not signed, or not by this ledger; then nothing changed.
        """
        return self._write(lambda connection: [head for head in seen if not halts.note(connection, head)])

    @durable
    def recover(self, known: Recovery) -> Recovered:
        """Charges what a lost past had cost, by its receipts, and lets a halted ledger go on.

        The mark is read as well. Raises RequestError if nothing is lost or it is not known what it cost,
        VerificationError for false evidence.
        """
        marked = tuple(head for head in self._marks() if keys.verified(head))
        recoveries = replace(known, files=(*known.files, marked))
        return self._write(lambda connection: recovery.recover(connection, recoveries))

    @durable
    def rotate(self, *, actor: str, reason: str) -> int:
        """Another key signs from here on; returns the sequence of the entry that both keys signed."""
        return self._write(lambda connection: rotation.rotate(connection, actor=actor, reason=reason), spends=True)

    def export(self, *, until: int | None = None) -> Iterator[bytes]:
        """The ledger as lines, without their ends, up to entry `until`, or to the last one now."""
        if until is None:
            with self._reading() as connection:
                until = last_entry(connection)
        return export.lines(self._reading, until)

    def tree(self, until: int) -> Iterator[tuple[int, bytes]]:
        """The rows of the tree up to entry `until`: a size, and the nodes that its last leaf completes."""
        for start in range(0, until, export.BATCH):
            with self._reading() as connection:
                batch = heads.rows(connection, start, min(start + export.BATCH, until))
            yield from batch

    def mark(self) -> Head | None:
        """The last head that the mark knows, None if it is missing, cannot be read or is not signed."""
        mark = self._last_mark()
        return mark if mark is not None and keys.verified(mark) else None

    def check_kept(self) -> bool:
        """VerificationError unless texts, secrets and signing key are those that entries and heads name.

        Returns False where this role may read neither secrets nor signing key, so that only the texts were looked at.
        """
        with self._reading() as connection:
            secrets = self._reads_secrets(connection)
            verify.check_kept(connection, secrets=secrets)
        return secrets

    def check_sound(self) -> None:
        """VerificationError unless the database itself finds its pages, indexes and references in order."""
        with self._reading() as connection:
            texts.check_lookups(connection)
            self._check_database(connection)

    def shown(self) -> Shown:
        """What the tables show of the entries, as of now."""
        with self._reading() as connection:
            return verify.shown(connection)

    @property
    @abstractmethod
    def marks_path(self) -> Path | None:
        """The file of heads that this host keeps of the ledger, None where it can keep none."""

    def _last_mark(self) -> Head | None:
        return None if self.marks_path is None else marks.last(self.marks_path)

    def _marks(self) -> list[Head]:
        return [] if self.marks_path is None else marks.read(self.marks_path)

    def _record_mark(self, head: Head) -> None:
        if self.marks_path is not None:
            marks.record(self.marks_path, head)

    def _reads_secrets(self, _: Connection) -> bool:
        """Whether whoever is connected may read secrets and signing key: of a file, everybody who may read it."""
        return True

    @abstractmethod
    def _check_database(self, connection: Connection) -> None:
        """Raises LedgerFormatError where the database itself is damaged, as far as it can be asked."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the ledger and changes nothing."""

    @abstractmethod
    def _write(self, work: Callable[[Connection], T], *, spends: bool = False) -> T:
        """What `work` returns, once what it wrote is durable, under a head that signs it; `work` may be run again.

        spends: something begins, which a ledger that has lost some of its past refuses.
        """
