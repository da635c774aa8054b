"""The ledger in one SQLite file: each method is one transaction, and what it returns is durable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from parco.errors import NotSignedError, StorageError, VerificationError
from parco.ledger.accounts import State
from parco.ledger.heads import Head
from parco.stores import marks, reading, repeats, requests, revision, signing, texts, verify
from parco.stores.append import forget_appended
from parco.stores.connection import BEGIN_READ, BEGIN_WRITE, create_file, engine_for, upgrade_file
from parco.stores.faults import not_a_ledger, translated
from parco.stores.owner import current_owner, requests_in_hand
from parco.stores.records import (
    AccountRow,
    HistoryRow,
    Opening,
    Pending,
    Request,
    Settled,
    Signed,
    Started,
    Stored,
)
from parco.stores.sealing import sealed
from parco.stores.witnessed import Witnessed

__all__ = ["BUSY_SECONDS", "SqliteStore"]

BUSY_SECONDS = 60.0

T = TypeVar("T")


class _WaitingError(Exception):
    """Undoes a transaction in which one of several requests has to wait."""

    def __init__(self, pending: Pending) -> None:
        super().__init__()
        self.pending = pending


@dataclass
class _Attempt:
    """Several requests on their way in: what each came to, and the started ones that this process has in hand."""

    wanted: Sequence[Request]
    serves: Sequence[Callable[[Settled], bool]]
    outcomes: list[Started | Stored] = field(default_factory=list)
    started: set[int] = field(default_factory=set)


class SqliteStore(Witnessed):
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
        return self._write(lambda connection: signing.sign(connection, opening), spends=True)

    def revise(self, opening: Opening, *, reason: str) -> Signed:
        """The contract in its new version; NotSignedError or ContractError if it cannot become that."""
        return self._write(lambda connection: revision.revise(connection, opening, reason=reason), spends=True)

    def move_cap(self, opening: Opening, *, reason: str) -> Signed:
        """The contract with its new cap, its accounts with the same; BudgetError if more is spent or reserved."""
        return self._write(lambda connection: revision.move_cap(connection, opening, reason=reason), spends=True)

    def fixed_cap(self, account: int, *, before: int | None = None) -> int | None:
        """The cap as signed, in 10^-15, if the account was never raised above it (before an entry); else None."""
        with self._reading() as connection:
            return reading.fixed_cap(connection, account, before=before)

    def signed(self, dataset: str, name: str) -> Signed:
        """The contract signed under this name for this data set, or NotSignedError."""
        with self._reading() as connection:
            return signing.find_signed(connection, dataset, name)

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
        in_hand = requests_in_hand(self.path)
        while True:
            attempt = _Attempt(wanted, serves)
            try:
                decided = self._write(partial(self._decide, attempt), spends=True)
            except _WaitingError as waiting:
                return waiting.pending
            except BaseException:
                in_hand -= attempt.started
                raise
            if decided:
                return attempt.outcomes

    def _decide(self, attempt: _Attempt, connection: Connection) -> bool:
        """False where dead requests were forfeited instead: a transaction of its own, so that they stay forfeited even
        if this request is then refused.
        """
        owner, in_hand, dead = current_owner(), requests_in_hand(self.path), set[int]()
        for request in attempt.wanted:
            dead |= set(requests.dead_requests(connection, request, in_hand=in_hand))
        for number in sorted(dead):
            requests.forfeit(connection, number)
        if dead:
            return False
        for request, serve in zip(attempt.wanted, attempt.serves, strict=True):
            outcome = requests.decide(connection, request, serves=serve, owner=owner)
            if isinstance(outcome, Pending):
                raise _WaitingError(outcome)
            attempt.outcomes.append(outcome)
            attempt.started |= {outcome.request} if isinstance(outcome, Started) else set()
        # In hand before the commit: from then on, another thread may ask who holds it.
        in_hand |= attempt.started
        return True

    def abandon(self, request: int) -> None:
        """Lets go of a started request that this process will not end: whoever comes next forfeits it."""
        requests_in_hand(self.path).discard(request)

    def settle(self, request: int, *, answer: bytes) -> Stored:
        """Stores the answer (UTF-8) and charges it; ForfeitedError if the request was forfeited meanwhile."""
        stored = self._write(lambda connection: requests.settle(connection, request, answer=answer))
        self.abandon(request)
        return stored

    def settle_all(self, answers: Mapping[int, bytes]) -> list[Stored]:
        """The same for several requests, in one commit."""
        if len(answers) == 1:
            return [self.settle(request, answer=answer) for request, answer in answers.items()]

        def work(connection: Connection) -> list[Stored]:
            return [requests.settle(connection, request, answer=answer) for request, answer in answers.items()]

        stored = self._write(work)
        for request in answers:
            self.abandon(request)
        return stored

    def forfeit(self, request: int) -> None:
        """Spends the reservation of a started request that will have no answer; ForfeitedError if that was done."""
        self._write(lambda connection: requests.forfeit(connection, request))
        self.abandon(request)

    def forfeit_all(self, numbers: Sequence[int]) -> None:
        """The same for several requests, in one commit."""

        def work(connection: Connection) -> None:
            for number in numbers:
                requests.forfeit(connection, number)

        self._write(work)
        for number in numbers:
            self.abandon(number)

    def void(self, request: int) -> None:
        """Gives back the reservation of a request that never started; InternalError for any other."""
        self._write(lambda connection: requests.void(connection, request))

    def recover(self) -> list[int]:
        """Forfeits every started request whose owner is gone, and returns them."""

        def work(connection: Connection) -> list[int]:
            dead = requests.dead_requests(connection, in_hand=requests_in_hand(self.path))
            for number in dead:
                requests.forfeit(connection, number)
            return dead

        return self._write(work)

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
        return self._write(lambda connection: texts.erase(connection, kind, text))

    def repeated(self, request: int) -> None:
        """Counts one repeat beside the ledger, as well as the machine allows."""
        repeats.record(self.path, request)

    def repeats(self) -> dict[int, int]:
        """Repeats by request, as far as they were counted."""
        return repeats.count(self.path)

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._transaction(BEGIN_READ)

    def _write(self, work: Callable[[Connection], T], *, spends: bool = False) -> T:
        with self._writing() as connection:
            result, head = sealed(connection, work, mark=marks.last(self.path), spends=spends)
        if head is not None:
            marks.record(self.path, head)
        return result

    def _last_mark(self) -> Head | None:
        return marks.last(self.path)

    def _marks(self) -> list[Head]:
        return marks.read(self.path)

    def _writing(self) -> AbstractContextManager[Connection]:
        return self._transaction(BEGIN_WRITE)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with (
            translated(self.path),
            self._engine.connect().execution_options(begin=begin) as connection,
            connection.begin(),
        ):
            forget_appended(connection)
            yield connection


def _exists(path: Path) -> bool:
    """Whether something is there that may be a ledger; looks at the name only, never opens it (see `connection`)."""
    if not path.exists():
        return False
    if not path.is_file() or path.stat().st_size == 0:
        raise not_a_ledger(path)
    return True
