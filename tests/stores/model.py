"""What a ledger is, said a second time and as simply as possible: amounts in a dictionary, requests in a list.

No code is shared with the stores but the classes of errors. `Model` answers each act with what a store must answer: an
outcome, or the class of the error it must raise; then nothing has changed. It knows no disk, no transaction and no
clock: whose process is alive and whose lease is over is told to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from parco.errors import (
    BudgetError,
    ContractChangedError,
    ContractError,
    ForfeitedError,
    InternalError,
    KeyReuseError,
    ParcoError,
    RequestError,
    SharperError,
)

__all__ = ["Account", "Ask", "Model", "Outcome", "Told"]

Told = type[ParcoError]
Outcome = tuple[str, int]
"""What an act came to, and the request it is about, by its place in the model's list."""


@dataclass
class Account:
    """Amounts of one account, in tenths; there is no excess here, since nothing in these lives overdraws."""

    cap: int
    spent: int = 0
    reserved: int = 0


@dataclass(frozen=True)
class Ask:
    """A request: `charges` gives the tenths for each account; `contract` is the version it is asked under."""

    question: str
    charges: tuple[tuple[int, int], ...]
    fresh: bool = False
    key: str | None = None
    contract: int = 0


@dataclass
class _Request:
    ask: Ask
    state: str
    is_held: bool = True
    stopped: bool = False

    @property
    def paid(self) -> tuple[tuple[int, int], ...]:
        """What it costs each account, where it costs anything: the half, rounded down, where it stopped early."""
        return tuple((account, cost // 2 if self.stopped else cost) for account, cost in self.ask.charges)


@dataclass
class Model:
    """A signed ledger with accounts 1, 2, … of one cap; `version` numbers its contract's text, `replaced` the old."""

    accounts: dict[int, Account]
    version: int = 0
    replaced: set[int] = field(default_factory=set)
    requests: list[_Request] = field(default_factory=list)
    entries: int = 1

    def begin(self, asks: list[Ask], *, serves: bool = True, queued: bool = False) -> list[Outcome] | Outcome | Told:
        """Several requests at once: all charged, or none. `serves`: whether a stored answer is sharp enough; `queued`
        leaves out the start.
        """
        self._end_rivals(asks)
        kept = self._copy()
        outcomes: list[Outcome] = []
        for ask in asks:
            outcome = self._enter(ask, serves=serves, queued=queued)
            if not isinstance(outcome, tuple) or outcome[0] == "pending":
                self._restore(kept)
                return outcome
            outcomes.append(outcome)
        return outcomes

    def start(self, number: int) -> Told | None:
        """A reserved request starts; one that was given back cannot."""
        request = self.requests[number]
        if request.state == "void":
            return RequestError
        if request.state == "forfeited":
            return ForfeitedError
        if request.state != "reserved":
            return InternalError
        request.state, request.is_held = "started", True
        self.entries += 1
        return None

    def settle(self, number: int) -> Told | None:
        """The charge is spent and the answer stored."""
        return self._end(number, "started", "settled")

    def stop(self, number: int) -> Told | None:
        """Half of the charge is spent, the other goes back, and the answer is stored."""
        if self.requests[number].state == "started":
            self.requests[number].stopped = True
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
        numbers = [number for number, request in enumerate(self.requests) if self._is_over(request)]
        for number in numbers:
            self._end_over(number)
        return numbers

    def revise(self, version: int) -> Told | None:
        """The contract has the text with this number; one that was replaced never comes back."""
        if version == self.version:
            return None
        if version in self.replaced:
            return ContractError
        self.replaced.add(self.version)
        self.version = version
        self.entries += 1
        return None

    def move_cap(self, cap: int, version: int) -> Told | None:
        """All accounts have this cap; the contract's text is revised with it."""
        caps = [account.cap for account in self.accounts.values()]
        if all(old == cap for old in caps):
            return RequestError
        if any(cap < account.cap and account.spent + account.reserved > cap for account in self.accounts.values()):
            return BudgetError
        if version in self.replaced:
            return ContractError
        for account in self.accounts.values():
            account.cap = cap
        self.entries += 1
        return self.revise(version)

    def amounts(self) -> list[tuple[int, int, int]]:
        """Cap, spent and reserved of each account."""
        return [(one.cap, one.spent, one.reserved) for _, one in sorted(self.accounts.items())]

    def states(self) -> list[str]:
        """The state of each request, in the order in which they were admitted."""
        return [request.state for request in self.requests]

    def _enter(self, ask: Ask, *, serves: bool, queued: bool) -> Outcome | Told:
        for number, old in enumerate(self.requests):
            if ask.key is not None and old.ask.key == ask.key:
                return self._same_key(number, old, ask)
        answered = [place for place, old in enumerate(self.requests) if self._answers(old, ask)]
        if not ask.fresh and answered and serves:
            # The one that cost most, the oldest of equals.
            cost = {place: sum(cost for _, cost in self.requests[place].paid) for place in answered}
            return "stored", max(answered, key=lambda place: (cost[place], -place))
        if not ask.fresh:
            for number, old in enumerate(self.requests):
                if old.ask.question == ask.question and old.state in ("reserved", "started"):
                    return "pending", number
            if answered:
                return SharperError
        return self._admit(ask, queued=queued)

    def _admit(self, ask: Ask, *, queued: bool) -> Outcome | Told:
        if ask.contract != self.version:
            return ContractChangedError
        for number, cost in ask.charges:
            account = self.accounts[number]
            if account.spent + account.reserved + cost > account.cap:
                return BudgetError
        for number, cost in ask.charges:
            self.accounts[number].reserved += cost
        self.requests.append(_Request(ask, "reserved" if queued else "started"))
        self.entries += 1 if queued else 2
        return ("reserved" if queued else "started"), len(self.requests) - 1

    @staticmethod
    def _answers(old: _Request, ask: Ask) -> bool:
        return old.ask.question == ask.question and old.state == "settled"

    @staticmethod
    def _same_key(number: int, old: _Request, ask: Ask) -> Outcome | Told:
        if old.ask != ask or old.state == "void":
            return KeyReuseError
        if old.state == "forfeited":
            return ForfeitedError
        return ("stored" if old.state == "settled" else "pending"), number

    def _end(self, number: int, before: str, after: str) -> Told | None:
        request = self.requests[number]
        if request.state == "forfeited":
            return ForfeitedError
        if request.state == "void":
            return RequestError
        if request.state != before:
            return InternalError
        for (account, held), (_, cost) in zip(request.ask.charges, request.paid, strict=True):
            self.accounts[account].reserved -= held
            self.accounts[account].spent += cost * (after != "void")
        request.state = after
        self.entries += 1
        return None

    def _end_rivals(self, asks: list[Ask]) -> None:
        """What stands in the way of a request by key or question and is held by nobody ends before it is decided."""
        for number, request in enumerate(self.requests):
            rival = any(
                request.ask.question == ask.question or (ask.key is not None and request.ask.key == ask.key)
                for ask in asks
            )
            if rival and self._is_over(request):
                self._end_over(number)

    @staticmethod
    def _is_over(request: _Request) -> bool:
        return request.state in ("reserved", "started") and not request.is_held

    def _end_over(self, number: int) -> None:
        if self.requests[number].state == "started":
            self.forfeit(number)
        else:
            self.void(number)

    def _copy(self) -> tuple[dict[int, Account], int, int]:
        kept = {number: Account(one.cap, one.spent, one.reserved) for number, one in self.accounts.items()}
        return kept, len(self.requests), self.entries

    def _restore(self, kept: tuple[dict[int, Account], int, int]) -> None:
        self.accounts, count, self.entries = kept
        del self.requests[count:]
