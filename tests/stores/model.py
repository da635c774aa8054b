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
    QuotaError,
    RefinedError,
    RequestError,
    SharperError,
    SupersededError,
)

__all__ = ["Account", "Ask", "Model", "Outcome", "Planned", "Told"]

Planned = tuple[str, tuple[tuple[int, int], ...]]
"""A step of a schedule: its question, and its tenths for each account."""

DERIVED = 4
"""The account of the data that descend from all others."""

Told = type[ParcoError]
Outcome = tuple[str, int]
"""What an act came to, and the request it is about, by its place in the model's list."""


@dataclass
class Account:
    """Amounts of one account, in tenths; what was recosted may be spent beyond the cap."""

    cap: int
    spent: int = 0
    reserved: int = 0


@dataclass(frozen=True)
class Ask:
    """A request: `charges` gives the tenths for each account; `contract` is the version it is asked under.

    `schedule` names the one it is drawn from. `parent` is the place of the request that it refines, `depth` how many
    there are on that path.
    """

    question: str
    charges: tuple[tuple[int, int], ...]
    fresh: bool = False
    key: str | None = None
    contract: int = 0
    schedule: str | None = None
    parent: int | None = None
    depth: int = 0
    actor: str = "ana"
    derived: bool = False
    """Asked of a data set that descends from accounts 1, 2 and 3, and has account 4."""


@dataclass
class _Schedule:
    """Steps in order, the request that drew each, by its place in the model's list, and whether it was left."""

    steps: list[Planned]
    drawn: list[int | None]
    is_left: bool = False


@dataclass
class _Request:
    ask: Ask
    state: str
    is_held: bool = True
    totals: dict[int, int] = field(default_factory=dict)
    """What a recost stated, by account."""
    recost: int | None = None
    instead: int | None = None
    """What stands in its place: a place in the list, -1 for nothing, None where it stands."""
    stopped: bool = False

    @property
    def paid(self) -> tuple[tuple[int, int], ...]:
        """What it costs each account, where it costs anything: the half, rounded down, where it stopped early."""
        return tuple((account, cost // 2 if self.stopped else cost) for account, cost in self.ask.charges)

    @property
    def depth(self) -> int:
        """How often its noise was halved; that of a ladder that stopped early is twice what was reserved."""
        return -1 if self.stopped else self.ask.depth


@dataclass
class Model:
    """A signed ledger with accounts 1, 2, … of one cap; `version` numbers its contract's text, `replaced` the old."""

    accounts: dict[int, Account]
    version: int = 0
    replaced: set[int] = field(default_factory=set)
    requests: list[_Request] = field(default_factory=list)
    schedules: dict[str, _Schedule] = field(default_factory=dict)
    entries: int = 1
    recosts: int = 0
    quotas: dict[str, tuple[set[str], int]] = field(default_factory=dict)
    """By name: its actors, and the tenths that they may take of each of the accounts 1, 2 and 3."""

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
        """Half of the charge is spent, the other goes back, and the answer is stored; of a plain request alone."""
        request = self.requests[number]
        if request.state == "started":
            if request.ask.schedule is not None or request.ask.parent is not None:
                return InternalError
            request.stopped = True
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
        caps = {account.cap for number, account in self.accounts.items() if number != DERIVED}
        if version in self.replaced or len(caps) > 1:
            return ContractError
        self.replaced.add(self.version)
        self.version = version
        self.entries += 1
        return None

    def move_cap(self, cap: int, version: int) -> Told | None:
        """All accounts but the derived one have this cap; the contract's text is revised with it."""
        own = [account for number, account in self.accounts.items() if number != DERIVED]
        if all(account.cap == cap for account in own):
            return RequestError
        if any(cap < account.cap and account.spent + account.reserved > cap for account in own):
            return BudgetError
        if version in self.replaced:
            return ContractError
        for account in own:
            account.cap = cap
        self.entries += 1
        return self.revise(version)

    def sign_schedule(self, name: str, steps: list[Planned]) -> Told | None:
        """The whole charge of a schedule is set aside; the same one again changes nothing."""
        if name in self.schedules:
            return None if self.schedules[name].steps == steps else RequestError
        needed = self._sums(steps)
        for number, cost in needed.items():
            account = self.accounts[number]
            if account.spent + account.reserved + cost > account.cap:
                return BudgetError
        for number, cost in needed.items():
            self.accounts[number].reserved += cost
        self.schedules[name] = _Schedule(steps, [None] * len(steps))
        self.entries += 1
        return None

    def leave_schedule(self, name: str) -> Told | None:
        """What no step has drawn goes back."""
        schedule = self.schedules.get(name)
        if schedule is None or schedule.is_left:
            return RequestError
        open_steps = [step for step, drawer in zip(schedule.steps, schedule.drawn, strict=True) if drawer is None]
        for number, cost in self._sums(open_steps).items():
            self.accounts[number].reserved -= cost
        schedule.is_left = True
        self.entries += 1
        return None

    def drawn(self) -> dict[str, list[int | None]]:
        """The requests that drew the steps of each schedule."""
        return {name: list(schedule.drawn) for name, schedule in self.schedules.items()}

    @staticmethod
    def _sums(steps: list[Planned]) -> dict[int, int]:
        sums: dict[int, int] = {}
        for _, charges in steps:
            for number, cost in charges:
                sums[number] = sums.get(number, 0) + cost
        return sums

    def recost(self, factor: int, corrects: int | None) -> Told | None:
        """All that was started costs so many times what it was charged; what waits is given back."""
        changes = []
        for request in self.requests:
            if request.state not in ("started", "settled", "forfeited"):
                continue
            for number, cost in request.paid:
                before, after = request.totals.get(number, cost), factor * cost
                if after < before and request.recost != corrects:
                    return RequestError
                if after != before:
                    changes.append((request, number, before, after))
        if not changes:
            return RequestError
        self._give_back()
        for request, number, before, after in changes:
            request.totals[number], request.recost = after, self.recosts
            self.accounts[number].spent += after - before
        self.recosts += 1
        self.entries += 1
        return None

    def supersede(self, number: int, by: int | None) -> Told | None:
        """Another answer stands instead, none (None), or itself again."""
        request = self.requests[number]
        if request.state != "settled" or (by is not None and self.requests[by].state != "settled"):
            return RequestError
        instead = -1 if by is None else None if by == number else by
        place = instead
        while place not in (None, -1, number):
            place = self.requests[place].instead
        if instead == request.instead or place == number:
            return RequestError
        request.instead = instead
        self.entries += 1
        return None

    def remark(self) -> None:
        """A flag or a title: an entry, and nothing else."""
        self.entries += 1

    def close(self) -> Told | None:
        """No account has room any more; what waits is given back, and schedules are left."""
        held = [charge for one in self.requests if one.state == "reserved" for charge in one.ask.charges]
        for schedule in self.schedules.values():
            steps = [] if schedule.is_left else zip(schedule.steps, schedule.drawn, strict=True)
            held += [charge for (_, charges), drawer in steps if drawer is None for charge in charges]
        freed = {number: sum(cost for place, cost in held if place == number) for number in self.accounts}
        own = {number: account for number, account in self.accounts.items() if number != DERIVED}
        if all(one.spent + one.reserved - freed[number] >= one.cap for number, one in own.items()):
            return RequestError
        self._give_back()
        for name in self.schedules:
            self.leave_schedule(name)
        for account in own.values():
            account.cap = min(account.cap, account.spent + account.reserved)
        self.entries += 1
        return None

    def _give_back(self) -> None:
        for number, request in enumerate(self.requests):
            if request.state == "reserved":
                self.void(number)

    def set_quota(self, name: str, members: set[str], amount: int | None) -> Told | None:
        """These actors may take so much of each account, together; None lifts the quota."""
        if amount is None and name not in self.quotas:
            return RequestError
        self.entries += 1
        if amount is None:
            del self.quotas[name]
        else:
            self.quotas[name] = (members, amount)
        return None

    def used(self, members: set[str], number: int) -> int:
        """What requests of these actors took of an account: all but those that were given back."""
        taken = (one for one in self.requests if one.state != "void" and one.ask.actor in members)
        return sum(dict(one.paid).get(number, 0) for one in taken)

    def shares(self) -> list[tuple[str, int, int, int]]:
        """Each quota in force with account, amount and what is used, by name."""
        return sorted(
            (name, number, amount, self.used(members, number))
            for name, (members, amount) in self.quotas.items()
            for number in (1, 2, 3)
        )

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
        known = [place for place, old in enumerate(self.requests) if self._answers(old, ask)]
        answered = [place for place in known if self.requests[place].instead is None]
        if not ask.fresh and answered and serves:
            # The one with the least noise, then the one that cost most, the oldest of equals.
            cost = {place: sum(cost for _, cost in self.requests[place].paid) for place in answered}
            depth = {place: self.requests[place].depth for place in answered}
            return "stored", max(answered, key=lambda place: (depth[place], cost[place], -place))
        if not ask.fresh:
            for number, old in enumerate(self.requests):
                if old.ask.question == ask.question and old.state in ("reserved", "started"):
                    return "pending", number
            if answered and ask.parent is None:
                return SharperError
            # Whoever refines an answer that stands is not told of others that do not.
            if any(ask.parent in (None, place) for place in known if place not in answered):
                return SupersededError
        return self._admit(ask, queued=queued)

    def _admit(self, ask: Ask, *, queued: bool) -> Outcome | Told:
        if not ask.derived and ask.contract != self.version:
            return ContractChangedError
        if ask.derived and [number for number, _ in ask.charges] != [1, 2, 3, DERIVED]:
            return InternalError
        if ask.schedule is not None:
            told = self._draw(ask, self.schedules[ask.schedule])
            if told is not None:
                return told
        told = self._may_not_refine(ask) or self._has_no_room(ask)
        if told is not None:
            return told
        for number, cost in self._needed(ask):
            self.accounts[number].reserved += cost
        self.requests.append(_Request(ask, "reserved" if queued else "started"))
        self.entries += 1 if queued else 2
        return ("reserved" if queued else "started"), len(self.requests) - 1

    def _may_not_refine(self, ask: Ask) -> Told | None:
        if ask.parent is None:
            return None
        if self.requests[ask.parent].state != "settled" or self.requests[ask.parent].stopped:
            return RequestError
        refined = any(old.ask.parent == ask.parent and old.state not in ("void", "forfeited") for old in self.requests)
        return RefinedError if refined else None

    def _has_no_room(self, ask: Ask) -> Told | None:
        """Of accounts first, then of quotas, which count a step when it is drawn."""
        for number, cost in self._needed(ask):
            account = self.accounts[number]
            if account.spent + account.reserved + cost > account.cap:
                return BudgetError
        for members, amount in self.quotas.values():
            for number, cost in ask.charges:
                if ask.actor in members and number != DERIVED and self.used(members, number) + cost > amount:
                    return QuotaError
        return None

    @staticmethod
    def _needed(ask: Ask) -> list[tuple[int, int]]:
        """What a step takes was set aside before; on an account that is overdrawn nothing begins all the same."""
        return [(number, cost if ask.schedule is None else 0) for number, cost in ask.charges]

    def _draw(self, ask: Ask, schedule: _Schedule) -> Told | None:
        """The first open step of this question is drawn, if it says what is asked."""
        if schedule.is_left:
            return RequestError
        for place, (question, charges) in enumerate(schedule.steps):
            if question == ask.question and schedule.drawn[place] is None:
                if charges != ask.charges:
                    return RequestError
                schedule.drawn[place] = len(self.requests)
                return None
        return RequestError

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
        kept = after == "void" and self._reopen(number)
        for (account, held), (_, cost) in () if kept else zip(request.ask.charges, request.paid, strict=True):
            self.accounts[account].reserved -= held
            self.accounts[account].spent += cost * (after != "void")
        request.state = after
        self.entries += 1
        return None

    def _reopen(self, number: int) -> bool:
        """Opens the step that a request drew, if it drew one; whether its charge stays with the schedule."""
        name = self.requests[number].ask.schedule
        if name is None:
            return False
        schedule = self.schedules[name]
        schedule.drawn = [None if drawer == number else drawer for drawer in schedule.drawn]
        return not schedule.is_left

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
        for schedule in self.schedules.values():
            schedule.drawn = [None if drawer is not None and drawer >= count else drawer for drawer in schedule.drawn]
