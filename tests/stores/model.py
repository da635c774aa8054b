"""What a ledger is, said a second time and as simply as possible: amounts in a dictionary, requests in a list.

No code is shared with the stores but the classes of errors. `Model` answers each act with what a store must answer: an
outcome, or the class of the error it must raise; then nothing has changed. It knows no disk, no transaction and no
clock: whose process is alive and whose lease is over is told to it.

Accounts, requests and charges are here, and whole by themselves; `model_acts.py` puts on top what is done around them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from parco.errors import (
    BudgetError,
    BusyError,
    ForfeitedError,
    InternalError,
    KeyReuseError,
    ParcoError,
    RequestError,
    SharperError,
)

__all__ = ["Account", "Ask", "Charges", "Model", "Outcome", "Request", "Told"]

Charges = tuple[tuple[int, int], ...]
"""Tenths for each account, by its number."""

Told = type[ParcoError]
Outcome = tuple[str, int]
"""What an act came to, and the request it is about, by its place in the model's list."""


@dataclass
class Account:
    """Amounts of one account, in tenths; spending goes as far as its cap."""

    cap: int
    spent: int = 0
    reserved: int = 0

    @property
    def room(self) -> int:
        """What can still be set aside."""
        return self.cap - self.spent - self.reserved


@dataclass(frozen=True)
class Ask:
    """A request. A stream is interactive: it has its accounts to itself while it is open."""

    question: str
    charges: Charges
    fresh: bool = False
    key: str | None = None
    is_stream: bool = False


AnyAsk = TypeVar("AnyAsk", bound=Ask)


@dataclass
class Request(Generic[AnyAsk]):
    """What was admitted: reserved, started, settled, forfeited or void."""

    ask: AnyAsk
    state: str
    is_held: bool = True
    """While it is open: whether anybody will end it."""
    is_served: bool = True
    """Once it is settled: whether its answer stands."""

    @property
    def is_open(self) -> bool:
        return self.state in ("reserved", "started")


@dataclass
class Model(Generic[AnyAsk]):
    """A signed ledger with accounts 1, 2, … and the requests on them, in the order in which they were admitted."""

    accounts: dict[int, Account]
    requests: list[Request[AnyAsk]] = field(default_factory=list)
    entries: int = 1

    def begin(self, asks: list[AnyAsk], *, serves: bool = True, queued: bool = False) -> list[Outcome] | Outcome | Told:
        """Several requests at once: all charged, or none. `serves`: whether a stored answer is sharp enough; `queued`
        leaves out the start.
        """
        self._end_in_the_way(asks)
        kept = copy.deepcopy(vars(self))
        outcomes: list[Outcome] = []
        for ask in asks:
            outcome = self._enter(ask, serves=serves, queued=queued)
            if not isinstance(outcome, tuple) or outcome[0] == "pending":
                vars(self).update(kept)
                return outcome
            outcomes.append(outcome)
        return outcomes

    def start(self, number: int) -> Told | None:
        """A reserved request starts; one that was given back cannot."""
        told = self._move(number, "reserved", "started")
        if told is None:
            self.requests[number].is_held = True
        return told

    def settle(self, number: int) -> Told | None:
        """The charge is spent and the answer stored."""
        return self._end(number, "started", "settled")

    def forfeit(self, number: int) -> Told | None:
        """The charge is spent and there is no answer."""
        return self._end(number, "started", "forfeited")

    def void(self, number: int) -> Told | None:
        """The charge goes back."""
        return self._end(number, "reserved", "void")

    def let_go(self, number: int) -> None:
        """The owner of a started request is gone, or the lease of a reserved one over: whoever comes next ends it."""
        self.requests[number].is_held = False

    def tidy(self) -> list[int]:
        """Ends all that nobody holds."""
        return self._end_over(range(len(self.requests)))

    def amounts(self) -> list[tuple[int, int, int]]:
        """Cap, spent and reserved of each account."""
        return [(one.cap, one.spent, one.reserved) for _, one in sorted(self.accounts.items())]

    def states(self) -> list[str]:
        """The state of each request, in the order in which they were admitted."""
        return [request.state for request in self.requests]

    # What a request comes to: its key first, then its question, then a new charge.

    def _enter(self, ask: AnyAsk, *, serves: bool, queued: bool) -> Outcome | Told:
        for number, old in enumerate(self.requests):
            if ask.key is not None and old.ask.key == ask.key:
                return self._same_key(number, ask)
        told = None if ask.fresh else self._same_question(ask, serves=serves)
        return self._admit(ask, queued=queued) if told is None else told

    def _same_key(self, number: int, ask: AnyAsk) -> Outcome | Told:
        old = self.requests[number]
        if old.ask != ask or old.state == "void":
            return KeyReuseError
        if old.state == "forfeited":
            return ForfeitedError
        return ("stored" if old.state == "settled" else "pending"), number

    def _same_question(self, ask: AnyAsk, *, serves: bool) -> Outcome | Told | None:
        known = [number for number, old in enumerate(self.requests) if old.ask.question == ask.question]
        settled = [number for number in known if self.requests[number].state == "settled"]
        answered = [number for number in settled if self.requests[number].is_served]
        if answered and serves:
            return "stored", max(answered, key=self._sharpness)
        for number in known:
            if self.requests[number].is_open:
                return "pending", number
        return SharperError if answered else None

    def _sharpness(self, number: int) -> tuple[int, ...]:
        """Rises from answer to answer: that which cost most, the oldest of equals."""
        return sum(cost for _, cost in self.requests[number].ask.charges), -number

    def _admit(self, ask: AnyAsk, *, queued: bool) -> Outcome | Told:
        told = self._refusal(ask)
        if told is not None:
            return told
        for account, cost in self._needed(ask):
            self.accounts[account].reserved += cost
        state = "reserved" if queued else "started"
        self.requests.append(Request(ask, state))
        self.entries += 1 if queued else 2
        return state, len(self.requests) - 1

    def _refusal(self, ask: AnyAsk) -> Told | None:
        """Why nothing is charged: the first reason of all."""
        return self._busy(ask) or self._no_room(ask)

    def _busy(self, ask: AnyAsk) -> Told | None:
        return BusyError if self._beside(ask) else None

    def _no_room(self, ask: AnyAsk) -> Told | None:
        short = any(cost > self.accounts[account].room for account, cost in self._needed(ask))
        return BudgetError if short else None

    def _needed(self, ask: AnyAsk) -> Charges:
        """What is set aside for it."""
        return ask.charges

    # How a request ends.

    def _end(self, number: int, before: str, after: str) -> Told | None:
        told = self._move(number, before, after)
        if told is None:
            for account, cost in self.requests[number].ask.charges:
                self.accounts[account].reserved -= cost
                self.accounts[account].spent += 0 if after == "void" else cost
        return told

    def _move(self, number: int, before: str, after: str) -> Told | None:
        request = self.requests[number]
        if request.state != before:
            return {"forfeited": ForfeitedError, "void": RequestError}.get(request.state, InternalError)
        request.state = after
        self.entries += 1
        return None

    # What stands in the way of a request and is held by nobody ends before anything is decided, and stays ended.

    def _end_in_the_way(self, asks: list[AnyAsk]) -> None:
        while self._end_over({number for ask in asks for number in [*self._rivals(ask), *self._beside(ask)]}):
            pass

    def _rivals(self, ask: AnyAsk) -> list[int]:
        """Open requests with its key or its question."""
        return [
            number
            for number, old in enumerate(self.requests)
            if old.is_open and (old.ask.question == ask.question or (ask.key is not None and old.ask.key == ask.key))
        ]

    def _beside(self, ask: AnyAsk) -> list[int]:
        """Open requests beside which it does not run: of a stream all on its accounts, of others the first stream."""
        accounts = dict(ask.charges)
        near = [
            number
            for number, old in enumerate(self.requests)
            if old.is_open and any(account in accounts for account, _ in old.ask.charges)
        ]
        return near if ask.is_stream else [number for number in near if self.requests[number].ask.is_stream][:1]

    def _end_over(self, numbers: range | set[int]) -> list[int]:
        """Of these, forfeits what had started and nobody holds, and gives back what had not."""
        over = [number for number in sorted(numbers) if self.requests[number].is_open]
        over = [number for number in over if not self.requests[number].is_held]
        for number in over:
            if self.requests[number].state == "started":
                self.forfeit(number)
            else:
                self.void(number)
        return over
