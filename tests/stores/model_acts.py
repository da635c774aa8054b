"""The model's acts around requests: new texts of the contract, caps, schedules, refinements, ladders that stop, data
that descend from others, quotas and corrections. Each adds what it keeps, and what it changes of `model.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from parco.errors import (
    BudgetError,
    ContractChangedError,
    ContractError,
    ForfeitedError,
    InternalError,
    QuotaError,
    RefinedError,
    RequestError,
    SharperError,
    SupersededError,
)

from .model import Account, Ask, Charges, Model, Outcome, Told

__all__ = ["DERIVED", "FullAsk", "FullModel", "Planned", "half"]

Planned = tuple[str, Charges]
"""A step of a schedule: its question, and its tenths for each account."""

DERIVED = 4
"""The account of the data that descend from all others."""

_WITHDRAWN = -1


@dataclass(frozen=True)
class FullAsk(Ask):
    """`contract` is the version it is asked under, `schedule` names the one it is drawn from, `parent` is the place of
    the request that it refines, `depth` how many there are on that path.
    """

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

    @property
    def set_aside(self) -> dict[int, int]:
        """What it still holds of each account."""
        steps = [] if self.is_left else zip(self.steps, self.drawn, strict=True)
        return _sums(charges for (_, charges), drawer in steps if drawer is None)


@dataclass
class FullModel(Model[FullAsk]):
    """`version` numbers the contract's text, `replaced` the old ones. Requests are told by their places in the list."""

    version: int = 0
    replaced: set[int] = field(default_factory=set)
    schedules: dict[str, _Schedule] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)
    recosts: int = 0
    recosted: dict[int, int] = field(default_factory=dict)
    """By request: the recost that stated its totals last."""
    totals: dict[tuple[int, int], int] = field(default_factory=dict)
    """By request and account: what was stated."""
    instead: dict[int, int | None] = field(default_factory=dict)
    """By answer: what stands in its place, None where it stands itself."""
    quotas: dict[str, tuple[set[str], int]] = field(default_factory=dict)
    """By name: its actors, and the tenths that they may take of each of the accounts 1, 2 and 3."""

    def _refusal(self, ask: FullAsk) -> Told | None:
        return (
            self._not_current(ask)
            or self._busy(ask)
            or self._not_in_schedule(ask)
            or self._not_to_refine(ask)
            or self._no_room(ask)
            or self._no_share(ask)
        )

    # The contract's texts and caps, and data that descend from others: those have a contract that is never revised.

    def revise(self, version: int) -> Told | None:
        """The contract has the text with this number; one that was replaced never comes back."""
        if version == self.version:
            return None
        if version in self.replaced or len({account.cap for account in self._own()}) > 1:
            return ContractError
        self.replaced.add(self.version)
        self.version = version
        self.entries += 1
        return None

    def move_cap(self, cap: int, version: int) -> Told | None:
        """All accounts but the derived one have this cap; the contract's text is revised with it."""
        own = self._own()
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

    def _own(self) -> list[Account]:
        return [account for number, account in self.accounts.items() if number != DERIVED]

    def _not_current(self, ask: FullAsk) -> Told | None:
        if not ask.derived:
            return None if ask.contract == self.version else ContractChangedError
        return None if [number for number, _ in ask.charges] == [1, 2, 3, DERIVED] else InternalError

    # Schedules: a request of a step takes what was set aside before.

    def sign_schedule(self, name: str, steps: list[Planned]) -> Told | None:
        """The whole charge of a schedule is set aside; the same one again changes nothing."""
        if name in self.schedules:
            return None if self.schedules[name].steps == steps else RequestError
        schedule = _Schedule(steps, [None] * len(steps))
        if any(cost > self.accounts[number].room for number, cost in schedule.set_aside.items()):
            return BudgetError
        for number, cost in schedule.set_aside.items():
            self.accounts[number].reserved += cost
        self.schedules[name] = schedule
        self.entries += 1
        return None

    def leave_schedule(self, name: str) -> Told | None:
        """What no step has drawn goes back."""
        schedule = self.schedules.get(name)
        if schedule is None or schedule.is_left:
            return RequestError
        for number, cost in schedule.set_aside.items():
            self.accounts[number].reserved -= cost
        schedule.is_left = True
        self.entries += 1
        return None

    def drawn(self) -> dict[str, list[int | None]]:
        """The requests that drew the steps of each schedule."""
        return {name: list(schedule.drawn) for name, schedule in self.schedules.items()}

    def _step(self, ask: FullAsk) -> int | None:
        """The first open step of its question."""
        schedule = self.schedules[ask.schedule or ""]
        steps = zip(schedule.steps, schedule.drawn, strict=True)
        asked = [question == ask.question and drawer is None for (question, _), drawer in steps]
        return asked.index(True) if True in asked and not schedule.is_left else None

    def _not_in_schedule(self, ask: FullAsk) -> Told | None:
        if ask.schedule is None:
            return None
        step = self._step(ask)
        said = None if step is None else self.schedules[ask.schedule].steps[step][1]
        return None if said == ask.charges else RequestError

    def _needed(self, ask: FullAsk) -> Charges:
        """Nothing for a step; on an account that is overdrawn it does not begin all the same."""
        return tuple((number, 0 if ask.schedule else cost) for number, cost in ask.charges)

    def _admit(self, ask: FullAsk, *, queued: bool) -> Outcome | Told:
        outcome = super()._admit(ask, queued=queued)
        step = self._step(ask) if ask.schedule else None
        if ask.schedule and step is not None and isinstance(outcome, tuple):
            self.schedules[ask.schedule].drawn[step] = outcome[1]
        return outcome

    def void(self, number: int) -> Told | None:
        """The charge goes back, that of a step to its schedule, which can draw it again."""
        told = super().void(number)
        ask = self.requests[number].ask
        if told is None and ask.schedule:
            schedule = self.schedules[ask.schedule]
            schedule.drawn[schedule.drawn.index(number)] = None
            for account, cost in () if schedule.is_left else ask.charges:
                self.accounts[account].reserved += cost
        return told

    # Refinements: at each, the noise is halved; that of a ladder that stops early is twice what was reserved.

    def _not_to_refine(self, ask: FullAsk) -> Told | None:
        if ask.parent is None:
            return None
        parent = self.requests[ask.parent]
        if parent.state != "settled" or ask.parent in self.stopped:
            return RequestError
        if any(old.ask.parent == ask.parent and old.state not in ("void", "forfeited") for old in self.requests):
            return RefinedError
        return InternalError if parent.ask.is_stream else None

    def stop(self, number: int) -> Told | None:
        """Half of the charge is spent, the other goes back, and the answer is stored; of a plain request alone."""
        request = self.requests[number]
        if request.state == "started":
            if request.ask.schedule or request.ask.parent is not None or request.ask.is_stream:
                return InternalError
            if number in self.recosted:
                return ForfeitedError
        told = self.settle(number)
        if told is None:
            self.stopped.add(number)
            for (account, cost), (_, paid) in zip(request.ask.charges, self.paid(number), strict=True):
                self.accounts[account].spent -= cost - paid
        return told

    def paid(self, number: int) -> Charges:
        """What a request was charged, where it was."""
        charges = self.requests[number].ask.charges
        return half(charges) if number in self.stopped else charges

    def _sharpness(self, number: int) -> tuple[int, ...]:
        """The one with the least noise, then the one that cost most, the oldest of equals."""
        depth = -1 if number in self.stopped else self.requests[number].ask.depth
        return depth, sum(cost for _, cost in self.paid(number)), -number

    # Quotas: they count a step when it is drawn.

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

    def used(self, members: set[str], account: int) -> int:
        """What requests of these actors took of an account: all but those that were given back."""
        taken = [n for n, one in enumerate(self.requests) if one.state != "void" and one.ask.actor in members]
        return sum(dict(self.paid(number)).get(account, 0) for number in taken)

    def shares(self) -> list[tuple[str, int, int, int]]:
        """Each quota in force with account, amount and what is used, by name."""
        return sorted(
            (name, number, amount, self.used(members, number))
            for name, (members, amount) in self.quotas.items()
            for number in (1, 2, 3)
        )

    def _no_share(self, ask: FullAsk) -> Told | None:
        for members, amount in self.quotas.values():
            for number, cost in ask.charges:
                if ask.actor in members and number != DERIVED and self.used(members, number) + cost > amount:
                    return QuotaError
        return None

    # Corrections: an entry each, and every original stays as it is.

    def recost(self, factor: int, corrects: int | None, *, of_streams: bool = False) -> Told | None:
        """All that was started, of streams or of the others, costs so many times what it was charged, whatever the caps
        say; what waits is given back.
        """
        changes = []
        for place, request in enumerate(self.requests):
            if request.ask.is_stream != of_streams or request.state not in ("started", "settled", "forfeited"):
                continue
            for number, cost in self.paid(place):
                before, after = self.totals.get((place, number), cost), factor * cost
                if after < before and self.recosted[place] != corrects:
                    return RequestError
                if after != before:
                    changes.append((place, number, before, after))
        if not changes:
            return RequestError
        self._give_back([place for place in self._waiting() if self.requests[place].ask.is_stream == of_streams])
        for place, number, before, after in changes:
            self.totals[place, number], self.recosted[place] = after, self.recosts
            self.accounts[number].spent += after - before
        self.recosts += 1
        self.entries += 1
        return None

    def supersede(self, number: int, by: int | None) -> Told | None:
        """Another answer stands instead, none (None), or itself again."""
        if any(self.requests[one].state != "settled" for one in (number, by) if one is not None):
            return RequestError
        instead = _WITHDRAWN if by is None else None if by == number else by
        last = instead
        while last is not None and last not in (_WITHDRAWN, number):
            last = self.instead.get(last)
        if instead == self.instead.get(number) or last == number:
            return RequestError
        self.instead[number], self.requests[number].is_served = instead, instead is None
        self.entries += 1
        return None

    def remark(self) -> None:
        """A flag or a title: an entry, and nothing else."""
        self.entries += 1

    def close(self) -> Told | None:
        """No account has room any more; what waits is given back, and schedules are left."""
        held = [self.requests[place].ask.charges for place in self._waiting()]
        held += [tuple(schedule.set_aside.items()) for schedule in self.schedules.values()]
        freed = _sums(held)
        own = {number: account for number, account in self.accounts.items() if number != DERIVED}
        if all(account.room + freed.get(number, 0) <= 0 for number, account in own.items()):
            return RequestError
        self._give_back(self._waiting())
        for name in self.schedules:
            self.leave_schedule(name)
        for account in own.values():
            account.cap = min(account.cap, account.spent + account.reserved)
        self.entries += 1
        return None

    def _waiting(self) -> list[int]:
        return [place for place, request in enumerate(self.requests) if request.state == "reserved"]

    def _give_back(self, places: list[int]) -> None:
        for place in places:
            self.void(place)

    def _same_question(self, ask: FullAsk, *, serves: bool) -> Outcome | Told | None:
        """Whoever refines an answer that stands is not told of others that do not."""
        told = super()._same_question(ask, serves=serves)
        if told is SharperError and ask.parent is not None:
            told = None
        known = [number for number, old in enumerate(self.requests) if old.ask.question == ask.question]
        replaced = [number for number in known if not self.requests[number].is_served]
        if told is None and any(ask.parent in (None, number) for number in replaced):
            return SupersededError
        return told


def half(charges: Charges) -> Charges:
    """What a ladder costs that stopped early, rounded down."""
    return tuple((number, cost // 2) for number, cost in charges)


def _sums(charges: Iterable[Charges]) -> dict[int, int]:
    """Tenths of each account, over all."""
    sums: dict[int, int] = {}
    for number, cost in (pair for one in charges for pair in one):
        sums[number] = sums.get(number, 0) + cost
    return sums
