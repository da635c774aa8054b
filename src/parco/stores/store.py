"""What every ledger can do, whatever database keeps it: each method is one transaction, and what it returns is durable.

A store adds how a transaction begins and ends (`_writing`, `_reading`), how it is run again where the database says so
(`_commit`), where its marks lie, and where repeats are counted. What it shows to those who do not trust it is in
`witnessed`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

from sqlalchemy import Connection

from parco.errors import InternalError, StorageError, VerificationError
from parco.ledger.accounts import State
from parco.stores import ending, heads, quotas, reading, requests, revision, schedules, signing, verify
from parco.stores.corrected import Corrected
from parco.stores.durable import durable
from parco.stores.lease import Lease, Watch, granted
from parco.stores.owner import Owner, current_owner, requests_in_hand
from parco.stores.records import (
    AccountRow,
    Allotment,
    HistoryRow,
    Opening,
    Pending,
    QuotaRow,
    Request,
    Reserved,
    Scheduled,
    Scheduling,
    Settled,
    Signed,
    Started,
    Stopped,
    Stored,
)
from parco.stores.sealing import sealed
from parco.stores.statements import Ahead

__all__ = ["BUSY_SECONDS", "Asks", "Store"]

BUSY_SECONDS = 60.0

T = TypeVar("T")
Serves: TypeAlias = Callable[[Settled], bool]
Asks: TypeAlias = Callable[[], Sequence[Ahead]]


class _WaitingError(Exception):
    """Undoes a transaction in which one of several requests has to wait."""

    def __init__(self, pending: Pending) -> None:
        super().__init__()
        self.pending = pending


@dataclass
class _Attempt:
    """Several requests on their way in: what each came to, and the started ones that this process has in hand."""

    wanted: Sequence[Request]
    serves: Sequence[Serves]
    holder: Owner | Lease
    outcomes: list[Started | Reserved | Stored] = field(default_factory=list)
    started: set[int] = field(default_factory=set)


class Store(Corrected):
    """For every method: what it wrote is durable when it returns, and if it raises, nothing was written.

    One exception, said by its message: where the machine fails in the very moment of a commit, a StorageError may leave
    either; the charge of such a request is kept until somebody tidies, which forfeits it. Safe to share among threads
    and over a fork. Raises StorageError (BusyError after `busy_seconds`) when the machine refuses, LedgerFormatError
    for something that is no ledger of this format, VerificationError for a ledger that is not as its last head left it.
    """

    name: str
    """The ledger in messages; holds no password."""

    identity: Hashable
    """What tells this ledger from every other within a process."""

    def __init__(self) -> None:
        self._watch = Watch()

    @durable
    def sign(self, opening: Opening) -> Signed:
        """The contract as signed, now or before; ContractChangedError or ContractError if it contradicts the ledger."""
        return self._write(lambda connection: signing.sign(connection, opening), spends=True)

    @durable
    def revise(self, opening: Opening, *, reason: str) -> Signed:
        """The contract in its new version; NotSignedError or ContractError if it cannot become that."""
        return self._write(lambda connection: revision.revise(connection, opening, reason=reason), spends=True)

    @durable
    def move_cap(self, opening: Opening, *, reason: str) -> Signed:
        """The contract with its new cap, its accounts with the same; BudgetError if more is spent or reserved."""
        return self._write(lambda connection: revision.move_cap(connection, opening, reason=reason), spends=True)

    @durable
    def sign_schedule(self, scheduling: Scheduling) -> Scheduled:
        """The schedule as signed, now or before, its whole charge set aside; RequestError if its name is taken.

        BudgetError if it does not fit: then nothing was set aside.
        """
        return self._write(lambda connection: schedules.sign(connection, scheduling), spends=True)

    @durable
    def leave_schedule(self, name: str, *, actor: str, reason: str) -> Scheduled:
        """Ends a schedule and gives back what its steps that are not drawn had set aside; RequestError if it has ended.

        Requests that were drawn go on.
        """
        return self._write(lambda connection: schedules.leave(connection, name, actor=actor, reason=reason))

    def schedule(self, name: str) -> Scheduled:
        """The schedule signed under this name, as it stands, or RequestError."""
        with self._reading() as connection:
            return schedules.find(connection, name)

    def schedule_name(self, position: int) -> str:
        """The name of the schedule that an entry signed, or VerificationError."""
        with self._reading() as connection:
            return schedules.name_of(connection, position)

    def schedules(self) -> list[Scheduled]:
        """All schedules as they stand, in the order in which they were signed."""
        with self._reading() as connection:
            return schedules.find_all(connection)

    def keyed(self, key: str) -> tuple[int, str] | None:
        """The request of an idempotency key, and its state; None where the key was never used."""
        with self._reading() as connection:
            return reading.keyed(connection, key)

    @durable
    def set_quota(self, wanted: Allotment) -> list[QuotaRow]:
        """The quota as it then stands, account by account, empty once lifted; RequestError if it cannot be so."""
        return self._write(lambda connection: quotas.set_quota(connection, wanted), spends=True)

    def quotas(self) -> list[QuotaRow]:
        """The quotas in force, each with every account that it limits."""
        with self._reading() as connection:
            return quotas.rows(connection)

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

    def begin(self, request: Request, *, serves: Serves) -> Started | Stored | Pending:
        """For every request: a stored answer that serves, free; or who is answering it; or a charge, and the start.

        Raises KeyReuseError, ForfeitedError (its key's request was forfeited), SharperError (there are answers and none
        serves) or BudgetError; then nothing was charged.
        """
        outcome = self.begin_all([request], serves=[serves])
        return outcome if isinstance(outcome, Pending) else outcome[0]

    @durable
    def begin_all(self, wanted: Sequence[Request], *, serves: Sequence[Serves]) -> list[Started | Stored] | Pending:
        """The same for several requests on different questions, in one commit: all charges are made, or none is.

        Where one of them waits for another's answer, nothing was charged and all begin again.
        """
        outcomes = self._enter(wanted, serves, holder=current_owner())
        return outcomes if isinstance(outcomes, Pending) else [_not_reserved(one) for one in outcomes]

    @durable
    def reserve(self, request: Request, *, serves: Serves, lease_seconds: int) -> Reserved | Stored | Pending:
        """The same for a request that is queued: its charge is set aside, and waits for `start` as long as its lease.

        Once the lease is over, whoever comes next gives the charge back. A lease that ends costs nothing, and one that
        is over and not yet noticed can still be started.
        """
        outcomes = self._enter([request], [serves], holder=granted(lease_seconds))
        return outcomes if isinstance(outcomes, Pending) else _not_started(outcomes[0])

    @durable
    def start(self, request: int) -> Started:
        """Starts a reserved request, whoever reserved it; RequestError if it was given back.

        When this returns, the start is durable and this process owns the request: the data may be read.
        """
        owner, in_hand, mine = current_owner(), requests_in_hand(self.identity), list[int]()

        def work(connection: Connection) -> Started:
            mine.clear()
            requests.start(connection, request, owner=owner)
            # In hand before the commit: from then on, another thread may ask who holds it.
            in_hand.add(request)
            mine.append(request)
            return Started(request)

        try:
            return self._write(work, spends=True)
        except BaseException:
            # Where it was started before, it stays in the hand of whoever did that.
            for number in mine:
                self.abandon(number)
            raise

    def abandon(self, request: int) -> None:
        """Lets go of a started request that this process will not end: whoever comes next forfeits it."""
        requests_in_hand(self.identity).discard(request)

    def settle(self, request: int, *, answer: bytes) -> Stored:
        """Stores the answer (UTF-8) and charges it; ForfeitedError if the request was forfeited meanwhile."""
        return self.settle_all({request: answer})[0]

    @durable
    def settle_all(self, answers: Mapping[int, bytes]) -> list[Stored]:
        """The same for several requests, in one commit."""

        def work(connection: Connection) -> list[Stored]:
            return [requests.settle(connection, request, answer=answer) for request, answer in answers.items()]

        stored = self._write(work, ahead=lambda: [requests.ahead_of_settle(request) for request in list(answers)[:1]])
        for request in answers:
            self.abandon(request)
        return stored

    @durable
    def stop(self, request: int, *, answer: bytes, stopped: Stopped) -> Stored:
        """Stores the answer of a ladder that was reserved whole and stopped before its end, and charges its steps.

        The rest of the reservation is free again. What a stop may depend on is released output alone: docs/decisions,
        "Settling less". ForfeitedError as `settle`, and where it was recosted while it ran; InternalError for steps or
        charges beyond what was reserved.
        """
        stored = self._write(lambda connection: requests.settle(connection, request, answer=answer, stopped=stopped))
        self.abandon(request)
        return stored

    def forfeit(self, request: int) -> None:
        """Spends the reservation of a started request that will have no answer; ForfeitedError if that was done."""
        self.forfeit_all([request])

    @durable
    def forfeit_all(self, numbers: Sequence[int]) -> None:
        """The same for several requests, in one commit."""
        self._write(lambda connection: ending.end(connection, dict.fromkeys(numbers, "started")))
        for number in numbers:
            self.abandon(number)

    @durable
    def void(self, request: int) -> None:
        """Gives back the reservation of a request that never started; InternalError for any other."""
        self._write(lambda connection: ending.void(connection, request))

    @durable
    def tidy(self, *, gone: Collection[str] = ()) -> list[int]:
        """Ends every open request that nobody will end, and returns them.

        Started ones whose owner is gone are forfeited, reserved ones whose lease is over are given back. What was begun
        on another host is left alone, unless that host (as `owner.host_name` names it there) is declared `gone`.
        """

        def work(connection: Connection) -> list[int]:
            over = self._over(connection, None, gone=frozenset(gone))
            ending.end(connection, over)
            return list(over)

        return self._write(work)

    def answers(self, question: str) -> list[Stored]:
        """All stored answers to a question, oldest first; takes no write lock."""
        with self._reading() as connection:
            return reading.stored_answers(connection, question)

    def answer(self, request: int) -> Stored | None:
        """The answer to one request, None where no such request is settled; takes no write lock."""
        with self._reading() as connection:
            return reading.answer(connection, request)

    def accounts(self) -> list[AccountRow]:
        """All accounts as they stand."""
        with self._reading() as connection:
            return reading.account_rows(connection)

    def history(self) -> list[HistoryRow]:
        """All governing acts, corrections and requests, in order."""
        with self._reading() as connection:
            return reading.history_rows(connection)

    def entries(self) -> Iterator[bytes]:
        """All entries as stored, first to last, as of now."""
        with self._reading() as connection:
            return iter(list(reading.bodies(connection)))

    def verify(self) -> State:
        """What the entries add up to, or VerificationError where the store shows something else."""
        with self._reading() as connection:
            state = verify.verify(connection)
            self._check_database(connection)
            return state

    @abstractmethod
    def repeated(self, request: int) -> None:
        """Counts one repeat, as well as the machine allows: without a wait for the disk, and without an error."""

    @abstractmethod
    def repeats(self) -> dict[int, int]:
        """Repeats by request, as far as they were counted."""

    @abstractmethod
    def close(self) -> None:
        """Closes this thread's connection; the next method opens another."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Connection]:
        """A transaction that is alone in writing, durable when it is left, undone where it is left by an exception."""

    def _write(self, work: Callable[[Connection], T], *, spends: bool = False, ahead: Asks = tuple) -> T:
        mark = self._last_mark()
        result, head = self._commit(
            lambda connection: sealed(connection, work, mark=mark, spends=spends),
            lambda: [heads.AHEAD, *ahead()],
        )
        if head is not None:
            self._record_mark(head)
        return result

    def _commit(self, work: Callable[[Connection], T], _: Asks) -> T:
        """What `work` returns, once what it wrote is durable; `work` may be run more than once.

        It can learn what `work` asks first: a server that is far away is asked as the transaction begins.
        """
        with self._writing() as connection:
            return work(connection)

    def _tidy_what_is_over(self) -> None:
        """At opening. A ledger that cannot be written can still be read, and is left to whoever can write; one that is
        not as it was left takes no entries.
        """
        with self._reading() as connection:
            over = self._over(connection, None, gone=frozenset())
        if over:
            with suppress(StorageError, VerificationError):
                self.tidy()

    def _over(
        self, connection: Connection, found: Sequence[requests.Look] | None, *, gone: frozenset[str]
    ) -> dict[int, str]:
        in_hand = requests_in_hand(self.identity)
        return requests.ended(connection, found, in_hand=in_hand, watch=self._watch, gone=gone)

    def _enter(
        self, wanted: Sequence[Request], serves: Sequence[Serves], *, holder: Owner | Lease
    ) -> list[Started | Reserved | Stored] | Pending:
        """Lets requests in together, once nothing stands in their way that nobody will end."""
        in_hand = requests_in_hand(self.identity)

        def ahead() -> Sequence[Ahead]:
            return [requests.ahead_of_begin(request) for request in wanted[:1]]

        while True:
            attempt = _Attempt(wanted, serves, holder)
            try:
                decided = self._write(partial(self._decide, attempt), spends=True, ahead=ahead)
            except _WaitingError as waiting:
                return waiting.pending
            except BaseException:
                in_hand -= attempt.started
                raise
            if decided:
                return attempt.outcomes

    def _decide(self, attempt: _Attempt, connection: Connection) -> bool:
        """False where others' requests were ended instead: a transaction of its own, so that they stay ended even if
        this request is then refused.
        """
        in_hand = requests_in_hand(self.identity)
        in_hand -= attempt.started
        attempt.started.clear()
        attempt.outcomes.clear()
        found = [requests.look(connection, request) for request in attempt.wanted]
        over = self._over(connection, found, gone=frozenset())
        if over:
            ending.end(connection, over)
            return False
        for place, (request, serve) in enumerate(zip(attempt.wanted, attempt.serves, strict=True)):
            # What the one before stored is known to the next.
            one = requests.look(connection, request) if place else found[0]
            outcome = requests.decide(connection, one, serves=serve, holder=attempt.holder)
            if isinstance(outcome, Pending):
                raise _WaitingError(outcome)
            attempt.outcomes.append(outcome)
            attempt.started |= {outcome.request} if isinstance(outcome, Started) else set()
        # In hand before the commit: from then on, another thread may ask who holds it.
        in_hand |= attempt.started
        return True


def _not_reserved(outcome: Started | Reserved | Stored) -> Started | Stored:
    if isinstance(outcome, Reserved):
        raise InternalError("a request with an owner was reserved without its start")
    return outcome


def _not_started(outcome: Started | Reserved | Stored) -> Reserved | Stored:
    if isinstance(outcome, Started):
        raise InternalError("a request with a lease was started")
    return outcome
