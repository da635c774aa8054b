"""The ledger in one SQLite file: each method is one transaction, and what it returns is durable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection

from parco.errors import NotSignedError, StorageError, VerificationError
from parco.ledger.accounts import State
from parco.ledger.heads import Head
from parco.ledger.proofs import Consistency, Inclusion
from parco.stores import (
    export,
    halts,
    heads,
    keys,
    marks,
    reading,
    recovery,
    repeats,
    requests,
    revision,
    rotation,
    signing,
    texts,
    verify,
)
from parco.stores.connection import BEGIN_READ, BEGIN_WRITE, create_file, engine_for, upgrade_file
from parco.stores.faults import not_a_ledger, translated
from parco.stores.owner import current_owner, requests_in_hand
from parco.stores.records import (
    AccountRow,
    Evidence,
    HistoryRow,
    Opening,
    Pending,
    Recovered,
    Recovery,
    Request,
    Settled,
    Signed,
    Started,
    Stored,
)
from parco.stores.verify import Shown

__all__ = ["BUSY_SECONDS", "SqliteStore"]

BUSY_SECONDS = 60.0


class _WaitingError(Exception):
    """Undoes a transaction in which one of several requests has to wait."""

    def __init__(self, pending: Pending) -> None:
        super().__init__()
        self.pending = pending


class SqliteStore:
    """For every method: what it wrote is on disk when it returns, and if it raises, nothing was written.

    Safe to share among threads and over a fork, since no connection outlives a method. Raises StorageError (BusyError
    after `busy_seconds`) when the machine refuses, LedgerFormatError for a file that is no ledger of this format.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = Path(os.path.realpath(path))
        self._engine = engine_for(self.path, busy_seconds=busy_seconds)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> SqliteStore:
        """An existing ledger, after recovery; NotSignedError if there is none.

        A ledger that cannot be written can still be read: recovery is then left to whoever can write.
        """
        store = cls(path, busy_seconds=busy_seconds)
        with translated(store.path):
            if not _exists(store.path):
                raise NotSignedError(f"there is no ledger at {store.path}: run `parco sign`")
        with store._reading() as connection:
            dead = requests.dead_requests(connection, in_hand=requests_in_hand(store.path))
        if dead:
            # A ledger that is not as it was left takes no entries, and can still be read.
            with suppress(StorageError, VerificationError):
                store.recover()
        return store

    @classmethod
    def create_or_open(cls, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> SqliteStore:
        """The ledger at `path`, made empty if there is none; a crash leaves no ledger or a whole one."""
        real = Path(os.path.realpath(path))
        with translated(real):
            if not _exists(real):
                create_file(real, busy_seconds=busy_seconds)
        return cls.open(real, busy_seconds=busy_seconds)

    def sign(self, opening: Opening) -> Signed:
        """The contract as signed, now or before; ContractChangedError or ContractError if it contradicts the ledger."""
        with self._writing(spends=True) as connection:
            return signing.sign(connection, opening)

    def revise(self, opening: Opening, *, reason: str) -> Signed:
        """The contract in its new version; NotSignedError or ContractError if it cannot become that."""
        with self._writing(spends=True) as connection:
            return revision.revise(connection, opening, reason=reason)

    def move_cap(self, opening: Opening, *, reason: str) -> Signed:
        """The contract with its new cap, its accounts with the same; BudgetError if more is spent or reserved."""
        with self._writing(spends=True) as connection:
            return revision.move_cap(connection, opening, reason=reason)

    def fixed_cap(self, account: int, *, before: int | None = None) -> int | None:
        """The cap as signed, in 10^-15, if the account was never raised above it (before an entry); else None."""
        with self._reading() as connection:
            return reading.fixed_cap(connection, account, before=before)

    def signed(self, dataset: str, name: str) -> Signed:
        """The contract signed under this name for this data set, or NotSignedError."""
        with self._reading() as connection:
            return signing.find_signed(connection, dataset, name)

    def stored(self, request: int) -> Stored:
        """An answered request, or VerificationError if it is not settled, or its answer is lost or was changed."""
        with self._reading() as connection:
            return reading.stored(connection, request)

    def text(self, digest: str) -> str | None:
        """The text that an entry names by this digest, None if it was erased; VerificationError if it was changed."""
        with self._reading() as connection:
            return texts.read(connection, digest)

    def contract_text(self, contract: str) -> str:
        """The text of the contract that an entry names by this digest, or VerificationError if it was removed."""
        with self._reading() as connection:
            return signing.contract_text(connection, contract)

    def contract_texts(self, account: int) -> list[str]:
        """The texts of all contracts on an account's data set, in their latest versions, the latest signed last."""
        with self._reading() as connection:
            return signing.contract_texts(connection, account)

    def secret(self, account: int) -> bytes:
        """The 256-bit secret of an account's data set, or VerificationError if it is lost or was changed."""
        with self._reading() as connection:
            return signing.secret_of(connection, account)

    def begin(self, request: Request, *, serves: Callable[[Settled], bool]) -> Started | Stored | Pending:
        """For every request: a stored answer that serves, free; or who is answering it; or a charge, and the start.

        Raises KeyReuseError, ForfeitedError (its key's request was forfeited), SharperError (there are answers and none
        serves) or BudgetError; then nothing was charged.
        """
        outcome = self.begin_all([request], serves=[serves])
        return outcome if isinstance(outcome, Pending) else outcome[0]

    def begin_all(
        self, wanted: Sequence[Request], *, serves: Sequence[Callable[[Settled], bool]]
    ) -> list[Started | Stored] | Pending:
        """The same for several requests on different questions, in one commit: all charges are made, or none is.

        Where one of them waits for another's answer, nothing was charged and all begin again.
        """
        owner, in_hand = current_owner(), requests_in_hand(self.path)
        while True:
            started: set[int] = set()
            try:
                with self._writing(spends=True) as connection:
                    dead: set[int] = set()
                    for request in wanted:
                        dead |= set(requests.dead_requests(connection, request, in_hand=in_hand))
                    outcomes: list[Started | Stored] = []
                    for request, serve in zip(wanted, serves, strict=True):
                        if dead:
                            break
                        outcome = requests.decide(connection, request, serves=serve, owner=owner)
                        if isinstance(outcome, Pending):
                            raise _WaitingError(outcome)
                        outcomes.append(outcome)
                        # In hand before the commit: from then on, another thread may ask who holds it.
                        started |= {outcome.request} if isinstance(outcome, Started) else set()
                    in_hand |= started
                    # A transaction of its own: what died stays forfeited even if this request is then refused.
                    for number in sorted(dead):
                        requests.forfeit(connection, number)
            except _WaitingError as waiting:
                return waiting.pending
            except BaseException:
                in_hand -= started
                raise
            if not dead:
                return outcomes

    def abandon(self, request: int) -> None:
        """Lets go of a started request that this process will not end: whoever comes next forfeits it."""
        requests_in_hand(self.path).discard(request)

    def settle(self, request: int, *, answer: bytes) -> Stored:
        """Stores the answer (UTF-8) and charges it; ForfeitedError if the request was forfeited meanwhile."""
        with self._writing() as connection:
            stored = requests.settle(connection, request, answer=answer)
        self.abandon(request)
        return stored

    def settle_all(self, answers: Mapping[int, bytes]) -> list[Stored]:
        """The same for several requests, in one commit."""
        if len(answers) == 1:
            return [self.settle(request, answer=answer) for request, answer in answers.items()]
        with self._writing() as connection:
            stored = [requests.settle(connection, request, answer=answer) for request, answer in answers.items()]
        for request in answers:
            self.abandon(request)
        return stored

    def forfeit(self, request: int) -> None:
        """Spends the reservation of a started request that will have no answer; ForfeitedError if that was done."""
        with self._writing() as connection:
            requests.forfeit(connection, request)
        self.abandon(request)

    def forfeit_all(self, numbers: Sequence[int]) -> None:
        """The same for several requests, in one commit."""
        with self._writing() as connection:
            for number in numbers:
                requests.forfeit(connection, number)
        for number in numbers:
            self.abandon(number)

    def void(self, request: int) -> None:
        """Gives back the reservation of a request that never started; InternalError for any other."""
        with self._writing() as connection:
            requests.void(connection, request)

    def recover(self) -> list[int]:
        """Forfeits every started request whose owner is gone, and returns them."""
        with self._writing() as connection:
            dead = requests.dead_requests(connection, in_hand=requests_in_hand(self.path))
            for number in dead:
                requests.forfeit(connection, number)
        return dead

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

    def evidence(self, request: int, position: int) -> Evidence:
        """What shows outside the ledger that a request was settled by the entry at `position`."""
        with self._reading() as connection:
            return reading.evidence(connection, request, position)

    def witness(self, seen: Sequence[Head]) -> list[Head]:
        """The heads among `seen` that this ledger signed, does not extend and has not answered for: they halt it.

        VerificationError for a head that is not signed, or not by this ledger; then nothing changed.
        """
        with self._writing() as connection:
            return [head for head in seen if not halts.note(connection, head)]

    def strays(self, seen: Sequence[Head]) -> list[Head]:
        """The same heads, changing nothing."""
        with self._reading() as connection:
            return [head for head in seen if halts.is_stray(connection, halts.own(connection, head))]

    def recharge(self, known: Recovery) -> Recovered:
        """Charges what a lost past had cost, by its receipts, and lets a halted ledger go on.

        Raises RequestError if nothing is lost or it is not known what it cost, VerificationError for false evidence.
        """
        mark = tuple(head for head in marks.read(self.path) if keys.verified(head))
        with self._writing() as connection:
            return recovery.recover(connection, replace(known, files=(*known.files, mark)))

    def rotate(self, *, actor: str, reason: str) -> int:
        """Another key signs from here on; returns the sequence of the entry that both keys signed."""
        with self._writing(spends=True) as connection:
            return rotation.rotate(connection, actor=actor, reason=reason)

    def export(self, *, until: int | None = None) -> Iterator[bytes]:
        """The ledger as lines, without their ends, up to entry `until`, or to the last one now."""
        return export.lines(self._reading, self.shown().size if until is None else until)

    def tree(self, until: int) -> Iterator[tuple[int, bytes]]:
        """The rows of the tree up to entry `until`: a size, and the nodes that its last leaf completes."""
        for start in range(0, until, export.BATCH):
            with self._reading() as connection:
                batch = heads.rows(connection, start, min(start + export.BATCH, until))
            yield from batch

    def mark(self) -> Head | None:
        """The last head that the file beside the ledger knows, None if it is missing or cannot be read."""
        mark = marks.last(self.path)
        return mark if mark is not None and keys.verified(mark) else None

    def check_kept(self) -> None:
        """VerificationError unless texts, secrets and signing key are those that entries and heads name."""
        with self._reading() as connection:
            verify.check_kept(connection)

    def shown(self) -> Shown:
        """What the tables show of the entries, as of now."""
        with self._reading() as connection:
            return verify.shown(connection)

    @classmethod
    def upgrade(cls, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> int:
        """Brings a ledger made by an older parco to this one's tables; returns the version it had."""
        real = Path(os.path.realpath(path))
        with translated(real):
            if not _exists(real):
                raise NotSignedError(f"there is no ledger at {real}: run `parco sign`")
            return upgrade_file(real, busy_seconds=busy_seconds)

    def answers(self, question: str) -> list[Stored]:
        """All stored answers to a question, oldest first; takes no write lock."""
        with self._reading() as connection:
            digest = texts.find(connection, "question", question)
            return [] if digest is None else reading.stored_answers(connection, digest)

    def accounts(self) -> list[AccountRow]:
        """All accounts as they stand."""
        with self._reading() as connection:
            return reading.account_rows(connection)

    def history(self) -> list[HistoryRow]:
        """All signings, revisions, changes of caps and requests, in order."""
        with self._reading() as connection:
            return reading.history_rows(connection)

    def entries(self) -> Iterator[bytes]:
        """All entries as stored, first to last, as of now."""
        with self._reading() as connection:
            return iter(list(reading.bodies(connection)))

    def verify(self) -> State:
        """What the entries add up to, or VerificationError where the store shows something else."""
        with self._reading() as connection:
            return verify.verify(connection)

    def erase(self, kind: str, text: str) -> bool:
        """Erases a text for good (see `texts.ERASABLE`), every entry standing; returns whether it was there."""
        with self._writing() as connection:
            return texts.erase(connection, kind, text)

    def repeated(self, request: int) -> None:
        """Counts one repeat beside the ledger, as well as the machine allows."""
        repeats.record(self.path, request)

    def repeats(self) -> dict[int, int]:
        """Repeats by request, as far as they were counted."""
        return repeats.count(self.path)

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._transaction(BEGIN_READ)

    @contextmanager
    def _writing(self, *, spends: bool = False) -> Iterator[Connection]:
        """A transaction that may append: from the last head, once it is found to hold, to the next one.

        `spends`: something begins here, which a ledger that has lost some of its past refuses.
        """
        with self._transaction(BEGIN_WRITE) as connection:
            before, mark = heads.check(connection), marks.last(self.path)
            fault = halts.trusted(connection, before, mark)
            if spends:
                halts.check(connection)
                if fault is not None:
                    raise fault
            yield connection
            head = heads.seal(connection, before)
            if fault is not None and halts.trusted(connection, head, mark) is not None:
                # What the mark knows and this ledger has lost must not be covered by a later line.
                head = None
        if head is not None:
            marks.record(self.path, head)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with (
            translated(self.path),
            self._engine.connect().execution_options(begin=begin) as connection,
            connection.begin(),
        ):
            yield connection


def _exists(path: Path) -> bool:
    """Whether something is there that may be a ledger; looks at the name only, never opens it (see `connection`)."""
    if not path.exists():
        return False
    if not path.is_file() or path.stat().st_size == 0:
        raise not_a_ledger(path)
    return True
