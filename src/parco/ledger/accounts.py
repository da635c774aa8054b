"""What a sequence of entries adds up to: accounts and requests as a pure state machine.

    reserve | refine ──▶ start ──▶ settle | forfeit
             │          └───▶ stop
             └─────────▶ void

A `stop` settles for less: a ladder that was reserved whole and ended early (`ledger/stops.py`).
A `draw` stands for `reserve` where the charge comes out of what a schedule has set aside. Before and between them stand
`open`, `revise` (a contract has a new text), `cap` (an account's cap moves), `derive` (of what a data set is made),
`quota` (what some actors may take of accounts), `recover` (a lost past is charged), `rotate` (another key signs),
`schedule` (releases fixed in advance), `leave` (a schedule ends), and the corrections: `amend` (a text), `supersede`
(an answer), `recost` (what releases cost) and `flag` (a remark). `apply` checks each transition and changes nothing; a
violation raises VerificationError naming the entry. No store is trusted here: each must leave entries that replay to
the very accounts it shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from parco.errors import VerificationError
from parco.ledger.entries import (
    INTERACTIVE,
    Added,
    Amend,
    Balance,
    Cap,
    Charge,
    Derive,
    Draw,
    Entry,
    Flag,
    Forfeit,
    Leave,
    MechanismFacts,
    Open,
    Opened,
    Quota,
    Recost,
    Recover,
    Refine,
    Reserve,
    Revise,
    Rotate,
    Schedule,
    SensitivityFacts,
    Settle,
    Start,
    Stop,
    Supersede,
    Total,
    Void,
    decode,
    total_of,
)
from parco.ledger.stops import why_not_stopped

__all__ = ["EMPTY", "Account", "Admitted", "Request", "Share", "State", "apply", "replay", "sharpens"]


@dataclass(frozen=True)
class Account:
    """One account: terms fixed at signing, then spent + reserved <= cap + excess, and the same for delta."""

    account: int
    label: str
    measure: str
    order: Fraction | None
    dataset: str
    terms: str
    secret: str
    cap: int
    delta_cap: int
    spent: int = 0
    reserved: int = 0
    excess: int = 0
    delta_spent: int = 0
    delta_reserved: int = 0
    delta_excess: int = 0

    @property
    def balance(self) -> Balance:
        """The row that a `settle` entry carries."""
        return Balance(**{name: getattr(self, name) for name in Balance.__dataclass_fields__})

    def has_room(self, charge: Charge) -> bool:
        """Whether the charge fits under the cap itself: an overdrawn account (excess > 0) takes no new spending."""
        return (
            charge.cost <= self.cap - self.spent - self.reserved
            and charge.delta <= self.delta_cap - self.delta_spent - self.delta_reserved
        )

    def moved(self, *, reserved: tuple[int, int], spent: tuple[int, int]) -> Account:
        """The account after (cost, delta) moved into or out of `reserved` and into `spent`."""
        return replace(
            self,
            reserved=self.reserved + reserved[0],
            delta_reserved=self.delta_reserved + reserved[1],
            spent=self.spent + spent[0],
            delta_spent=self.delta_spent + spent[1],
        )

    def recharged(self, charge: Charge) -> Account:
        """The account after a loss was charged, room or not: the excess rises as far as it must, and never falls."""
        cost, delta = self.spent + charge.cost, self.delta_spent + charge.delta
        return replace(
            self,
            spent=cost,
            excess=max(self.excess, cost + self.reserved - self.cap),
            delta_spent=delta,
            delta_excess=max(self.delta_excess, delta + self.delta_reserved - self.delta_cap),
        )

    def recosted(self, added: Added) -> Account:
        """The account after a recost: as after a loss; where it takes something back, the excess falls with it."""
        cost, delta = self.spent + added.cost, self.delta_spent + added.delta
        return replace(
            self,
            spent=cost,
            excess=max(0 if added.cost < 0 else self.excess, cost + self.reserved - self.cap),
            delta_spent=delta,
            delta_excess=max(0 if added.delta < 0 else self.delta_excess, delta + self.delta_reserved - self.delta_cap),
        )


Admitted: TypeAlias = Reserve | Refine
"""The entry that admitted a request."""


class Wanted(Protocol):
    """What an entry that admits a request has in common with the record of one that is not admitted yet."""

    @property
    def private(self) -> bool: ...
    @property
    def mechanism(self) -> MechanismFacts: ...
    @property
    def sensitivity(self) -> SensitivityFacts: ...
    @property
    def cells(self) -> int: ...
    @property
    def charges(self) -> tuple[Charge, ...]: ...


@dataclass(frozen=True)
class Request:
    """One request: the entry that reserved it, and `reserved`, `started`, `settled`, `void` or `forfeited`.

    `stopped`: whether it was settled for less, as a ladder that ended early.
    """

    reserve: Admitted
    state: str
    settled: int | None = None
    realised: tuple[Charge, ...] = ()
    stopped: bool = False

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it has taken of accounts so far; nothing of it was given back unless it is void."""
        return self.realised if self.state == "settled" else self.reserve.charges


@dataclass(frozen=True)
class Share:
    """A quota, and what its members' requests took of each of its accounts until another `replaced` it."""

    quota: Quota
    used: Mapping[int, int]
    replaced: int | None = None

    def limits(self, actor: str) -> bool:
        """Whether it is in force, and this is one of its actors."""
        return self.replaced is None and actor in self.quota.members

    def has_room(self, charge: Charge) -> bool:
        """Whether the charge fits, or is to an account that the quota does not limit."""
        return all(
            charge.cost <= row.cap - self.used[row.account]
            for row in self.quota.accounts
            if row.account == charge.account
        )

    def counted(self, taken: Mapping[int, int]) -> Share:
        """The same after these amounts were taken of accounts, or given back where they are negative."""
        return replace(self, used={account: used + taken.get(account, 0) for account, used in self.used.items()})


@dataclass(frozen=True)
class _Mappings:
    """What `State` is made of, beside its size."""

    accounts: Mapping[int, Account] = field(default_factory=dict)
    requests: Mapping[int, Request] = field(default_factory=dict)
    contracts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    keys: Mapping[str, int] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)
    caps: Mapping[tuple[int, int], int] = field(default_factory=dict)
    strays: Mapping[str, int] = field(default_factory=dict)
    rotations: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    names: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    schedules: Mapping[int, tuple[Schedule, int | None]] = field(default_factory=dict)
    steps: Mapping[tuple[int, int], tuple[str, int | None]] = field(default_factory=dict)
    refinements: Mapping[int, int] = field(default_factory=dict)
    corrections: Mapping[tuple[int, int], tuple[str, int | None]] = field(default_factory=dict)
    totals: Mapping[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    added: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    replaced: Mapping[int, int] = field(default_factory=dict)
    ancestors: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    shares: Mapping[int, Share] = field(default_factory=dict)
    streams: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class State(_Mappings):
    """All that `size` entries add up to; `contracts` gives a signed contract's accounts, `keys` a key's request.

    `revisions` gives the text that replaced a contract's, `caps` the cap that an entry gave to an account, `strays` the
    entry that answered for a head, by its root, `rotations` the keys before and after an entry, and `names` the entry
    of a contract and the digest of its name. `ancestors` gives all accounts that a data set descends from, where
    something was said of its lineage, and `shares` a quota, by its entry. `schedules` gives a schedule's entry and the
    one that ended it, `steps` the question of a step, by schedule and number, and the request that drew it,
    `refinements` the last request that refines an answered one. `corrections` gives what is about an entry or request,
    by that and by the correction's own entry: its tag, and for `supersede` what stands instead (0 for nothing).
    `totals` gives what a recost stated of a request on an account, with that recost's entry, `added` what it added to
    an account, `replaced` what stands instead of an answer now: itself, another, or 0. `streams` gives the last
    interactive request on an account.
    """

    size: int = 0

    @property
    def current(self) -> dict[str, tuple[int, ...]]:
        """The accounts of each contract in its latest version."""
        return {contract: own for contract, own in self.contracts.items() if contract not in self.revisions}


EMPTY = State()


@dataclass(frozen=True)
class _Change(_Mappings):
    """What one entry adds or replaces in each mapping of a state."""


_MAPPINGS = tuple(one.name for one in fields(_Mappings))


def apply(state: State, entry: Entry) -> State:
    """For every entry that may follow `state`, returns the state after it; raises VerificationError for any other."""
    change = _change(state, entry)
    merged: dict[str, Any] = {name: {**getattr(state, name), **getattr(change, name)} for name in _MAPPINGS}
    return State(size=entry.seq, **merged)


def replay(entries: Iterable[bytes]) -> State:
    """Returns what stored entries add up to, first to last, or raises VerificationError naming the first bad one.

    Same as folding `apply`, but linear: one set of mappings is filled in place and shown only when complete.
    """
    mappings: dict[str, Any] = {name: {} for name in _MAPPINGS}
    size = 0
    for body in entries:
        entry = decode(body)
        change = _change(State(size=size, **mappings), entry)
        for name in _MAPPINGS:
            mappings[name].update(getattr(change, name))
        size = entry.seq
    return State(size=size, **mappings)


def sharpens(old: Wanted, new: Wanted) -> bool:
    """Whether a request asks what another did, of the same accounts, with less noise of a kind that can be refined.

    Their questions, which a record holds in other words than an entry, are not looked at.
    """
    same = all(getattr(old, name) == getattr(new, name) for name in ("private", "sensitivity", "cells"))
    paying = [charge.account for charge in old.charges] == [charge.account for charge in new.charges]
    before, after = old.mechanism, new.mechanism
    # A geometric path is drawn on one lattice; each Gaussian draw has its own.
    alike = before.kind == after.kind and (
        after.kind == "gaussian" or (after.kind == "two-sided-geometric" and before.lattice == after.lattice)
    )
    return same and paying and alike and after.scale < before.scale


def _change(state: State, entry: Entry) -> _Change:
    _require(entry.seq == state.size + 1, entry, f"entry {state.size + 1} should stand here")
    rule: Callable[[State, Any], _Change] = _RULES[type(entry)]
    return rule(state, entry)


def _open(state: State, entry: Open) -> _Change:
    _require(entry.contract not in state.contracts, entry, "this contract is signed already")
    _require(
        (entry.measure == "renyi") == (entry.order is not None), entry, "renyi, and no other measure, has an order"
    )
    new = {
        opened.account: Account(
            account=opened.account,
            label=opened.label,
            measure=entry.measure,
            order=entry.order,
            dataset=entry.dataset,
            terms=entry.terms,
            secret=entry.secret,
            cap=opened.cap,
            delta_cap=opened.delta_cap,
        )
        for opened in entry.accounts
    }
    old = {number: account for number, account in state.accounts.items() if account.dataset == entry.dataset}
    _check_opened(state, entry, old=old, new=new)
    names = {entry.contract: (entry.seq, entry.name)}
    return _Change(accounts=old or new, contracts={entry.contract: tuple(new)}, names=names)


def _check_opened(state: State, entry: Open, *, old: dict[int, Account], new: dict[int, Account]) -> None:
    """A data set's accounts are opened once, all together; whoever signs later names the same, on the same terms."""
    if not old:
        first = len(state.accounts) + 1
        _require(list(new) == list(range(first, first + len(new))), entry, "accounts are numbered without gaps")
        _require(len({account.label for account in new.values()}) == len(new), entry, "two accounts have one label")
        return
    fixed = ("label", "measure", "order", "dataset", "terms", "secret", "cap", "delta_cap")
    same = new.keys() == old.keys() and all(
        getattr(old[number], name) == getattr(new[number], name) for number in new for name in fixed
    )
    _require(same, entry, "its accounts or terms differ from those of its data set")


def _derive(state: State, entry: Derive) -> _Change:
    """Directly behind the entry that opened the data set, so that none of its releases was charged otherwise."""
    own = [number for number, account in state.accounts.items() if account.dataset == entry.dataset]
    last = [contract for contract, (seq, _) in state.names.items() if seq == entry.seq - 1]
    first = [contract for contract, accounts in state.contracts.items() if own and accounts == tuple(own)]
    _require(len(own) > 0 and last == first, entry, "the entry before did not open its data set")
    _require(entry.dataset not in entry.parents, entry, "its data set is its own parent")
    ancestors = {number for parent in entry.parents for number in state.ancestors.get(parent, ())}
    for parent in entry.parents:
        accounts = {number for number, account in state.accounts.items() if account.dataset == parent}
        _require(len(accounts) > 0, entry, "one of its parents was never signed")
        ancestors |= accounts
    return _Change(ancestors={entry.dataset: tuple(sorted(ancestors))})


def _quota(state: State, entry: Quota) -> _Change:
    """What its members' requests took before counts; one of the same name is replaced."""
    _require(all(row.account in state.accounts for row in entry.accounts), entry, "it limits an unknown account")
    used = {row.account: 0 for row in entry.accounts}
    for request in state.requests.values():
        if request.state != "void" and request.reserve.actor in entry.members:
            for charge in request.charges:
                if charge.account in used:
                    used[charge.account] += charge.cost
    replaced = {
        seq: replace(share, replaced=entry.seq)
        for seq, share in state.shares.items()
        if share.replaced is None and share.quota.name == entry.name
    }
    return _Change(shares={**replaced, entry.seq: Share(entry, used)})


def _shared(state: State, actor: str, taken: Mapping[int, int]) -> dict[int, Share]:
    """The quotas of an actor after a request took this much of accounts, or gave it back."""
    if not any(taken.values()):
        return {}
    return {seq: share.counted(taken) for seq, share in state.shares.items() if share.limits(actor)}


def _revise(state: State, entry: Revise) -> _Change:
    own = _current(state, entry, entry.revised)
    _require(entry.contract not in state.contracts, entry, "this contract is signed already")
    accounts = [state.accounts[number] for number in own]
    same = entry.accounts == tuple(Opened(one.account, one.label, one.cap, one.delta_cap) for one in accounts)
    _require(same and all(one.terms == entry.terms for one in accounts), entry, "its accounts, caps or terms differ")
    _, name = state.names[entry.revised]
    names = {entry.contract: (entry.seq, name)}
    return _Change(contracts={entry.contract: own}, revisions={entry.revised: entry.contract}, names=names)


def _cap(state: State, entry: Cap) -> _Change:
    """A cap never falls below what is spent or reserved; requests in flight were admitted under the old one."""
    accounts = {}
    for capped in entry.accounts:
        account = state.accounts.get(capped.account)
        if account is None:
            raise _fault(entry, f"there is no account {capped.account}")
        room = capped.cap >= account.cap or account.spent + account.reserved <= capped.cap
        _require(room, entry, f"account {capped.account} has more spent or reserved than its new cap")
        accounts[capped.account] = replace(account, cap=capped.cap)
    datasets = {account.dataset for account in accounts.values()}
    _require(len(datasets) == 1, entry, "its accounts are of two data sets")
    moved = any(state.accounts[number].cap != account.cap for number, account in accounts.items())
    _require(moved, entry, "no cap moves")
    return _Change(accounts=accounts, caps={(entry.seq, capped.account): capped.cap for capped in entry.accounts})


def _recover(state: State, entry: Recover) -> _Change:
    fresh = {stray.root for stray in entry.strays}.isdisjoint(state.strays)
    _require(fresh, entry, "it answers for a head that was answered for before")
    accounts = {}
    for charge in entry.charges:
        account = state.accounts.get(charge.account)
        if account is None:
            raise _fault(entry, f"there is no account {charge.account}")
        accounts[charge.account] = account.recharged(charge)
    return _Change(accounts=accounts, strays={stray.root: entry.seq for stray in entry.strays})


def _rotate(state: State, entry: Rotate) -> _Change:
    known = [key for pair in state.rotations.values() for key in pair]
    _require(not known or entry.old == known[-1], entry, "the key it replaces is not the one that signs")
    _require(entry.new not in (entry.old, *known), entry, "its new key was used before")
    return _Change(rotations={entry.seq: (entry.old, entry.new)})


def _about(state: State, entry: Amend | Flag) -> _Change:
    _require(entry.entry <= state.size, entry, "it is about an entry that is yet to come")
    return _Change(corrections={(entry.entry, entry.seq): (type(entry).__name__.lower(), None)})


def _supersede(state: State, entry: Supersede) -> _Change:
    for number in (entry.request, entry.by or entry.request):
        request = state.requests.get(number)
        _require(request is not None and request.state == "settled", entry, f"request {number} has no answer")
    by = entry.by or 0
    _require(by != state.replaced.get(entry.request, entry.request), entry, "that stands in its place already")
    after = by
    while after not in (0, entry.request) and state.replaced.get(after, after) != after:
        after = state.replaced[after]
    _require(after != entry.request or by == entry.request, entry, "the other is superseded by it")
    corrections = {(entry.request, entry.seq): ("supersede", by)}
    return _Change(corrections=corrections, replaced={entry.request: by})


def _recost(state: State, entry: Recost) -> _Change:
    """Each total against what was charged and stated before, their differences against what is added."""
    known = entry.corrects is None or any(seq == entry.corrects for seq, _ in state.added)
    _require(known, entry, "what it corrects is no recost")
    # A lost past was charged by what receipts say was spent in all: what they counted must not be taken back.
    since = entry.corrects is None or entry.corrects > max(state.strays.values(), default=0)
    _require(since, entry, "what it corrects came before a recovery")
    added: dict[int, tuple[int, int]] = {}
    for total in entry.totals:
        cost, delta = _difference(state, entry, total)
        before = added.get(total.account, (0, 0))
        added[total.account] = (before[0] + cost, before[1] + delta)
    _require(entry.added == tuple(Added(number, *added[number]) for number in sorted(added)), entry, "its sums are off")
    return _Change(
        accounts={one.account: state.accounts[one.account].recosted(one) for one in entry.added},
        corrections={(total.request, entry.seq): ("recost", None) for total in entry.totals},
        totals={(one.request, one.account): (one.cost, one.delta, entry.seq) for one in entry.totals},
        added={(entry.seq, one.account): (one.cost, one.delta) for one in entry.added},
    )


def _difference(state: State, entry: Recost, total: Total) -> tuple[int, int]:
    """What one total adds, cost and delta, if it may be stated."""
    request = state.requests.get(total.request)
    if request is None or request.state not in ("started", "settled", "forfeited"):
        raise _fault(entry, f"request {total.request} cost nothing")
    _require(request.reserve.mechanism.kind == entry.mechanism, entry, f"request {total.request} is of another kind")
    charge = next((one for one in request.charges if one.account == total.account), None)
    if charge is None:
        raise _fault(entry, f"request {total.request} was not charged to account {total.account}")
    cost, delta, stated = state.totals.get((total.request, total.account), (charge.cost, charge.delta, None))
    _require(total.cost >= charge.cost and total.delta >= charge.delta, entry, "a total is below what was charged")
    exact = entry.factor is None or total.cost == math.ceil(entry.factor * charge.cost)
    _require(exact, entry, "a total is not its factor's")
    _require((total.cost, total.delta) != (cost, delta), entry, "a total is stated that stands already")
    rises = total.cost >= cost and total.delta >= delta
    _require(rises or (stated is not None and stated == entry.corrects), entry, "a total falls without a correction")
    return total.cost - cost, total.delta - delta


def _current(state: State, entry: Entry, contract: str) -> tuple[int, ...]:
    own = state.contracts.get(contract)
    if own is None:
        raise _fault(entry, "its contract was never signed")
    _require(contract not in state.revisions, entry, "its contract was revised before")
    return own


def _refine(state: State, entry: Refine) -> _Change:
    """An answer is refined once: a second refinement of it would be a fork, unless the first one gave no answer.

    No answer from before a recovery is refined: in the past that was lost it may have been.
    """
    parent = state.requests.get(entry.parent)
    if parent is None or parent.state != "settled":
        raise _fault(entry, f"there is no answer to request {entry.parent}")
    _require(not parent.stopped, entry, f"request {entry.parent} is a ladder that stopped early")
    child = state.refinements.get(entry.parent)
    free = child is None or state.requests[child].state in ("void", "forfeited")
    _require(free, entry, f"the answer to request {entry.parent} is refined already")
    _require(entry.parent > max(state.strays.values(), default=0), entry, "what it refines is older than a recovery")
    old = parent.reserve
    pure = {state.accounts[charge.account].measure == "pure" for charge in old.charges}
    _require(
        old.question == entry.question and sharpens(old, entry) and pure == {entry.mechanism.kind != "gaussian"},
        entry,
        f"it is not the question that request {entry.parent} answered, or no sharper",
    )
    return replace(_reserve(state, entry), refinements={entry.parent: entry.seq})


def _reserve(state: State, entry: Admitted) -> _Change:
    accounts = _set_aside(state, entry, entry.charges, fresh=True)
    return _Change(accounts=accounts, **_admitted(state, entry))


def _admitted(state: State, entry: Admitted) -> dict[str, Any]:
    """Its key, what it asks for, and what it takes of its actor's quotas, which count a draw when it is drawn."""
    _require(entry.key not in state.keys, entry, "its key belongs to another request")
    for share in state.shares.values():
        fits = not share.limits(entry.actor) or all(map(share.has_room, entry.charges))
        _require(fits, entry, "a quota of its actor has no room for its charge")
    _require(not _others(state, entry), entry, "an interactive mechanism is alone on its accounts while it runs")
    is_stream = entry.mechanism.kind in INTERACTIVE
    return {
        "streams": {charge.account: entry.seq for charge in entry.charges} if is_stream else {},
        "requests": {entry.seq: Request(entry, "reserved")},
        "keys": {entry.key: entry.seq},
        "shares": _shared(state, entry.actor, {charge.account: charge.cost for charge in entry.charges}),
    }


def _others(state: State, entry: Admitted) -> bool:
    """Whether an open request on one of its accounts is interactive; for one that is, whether there is any at all."""
    charged = {charge.account for charge in entry.charges}
    near = {state.streams[account] for account in charged & state.streams.keys()}
    if entry.mechanism.kind in INTERACTIVE:
        near = {
            number
            for number, request in state.requests.items()
            if any(charge.account in charged for charge in request.reserve.charges)
        }
    return any(state.requests[number].state in ("reserved", "started") for number in near)


def _set_aside(
    state: State, entry: Admitted | Schedule, charges: tuple[Charge, ...], *, fresh: bool
) -> dict[int, Account]:
    """The accounts once the charges are reserved; not `fresh`, they are already, on accounts that are not overdrawn."""
    own = _current(state, entry, entry.contract)
    charged = {charge.account for charge in charges}
    _require(not charged.isdisjoint(own), entry, "none of its contract's accounts is charged")
    descends = state.ancestors.get(state.accounts[own[0]].dataset, ())
    _require(charged.issuperset(descends), entry, "an account that its data set descends from is not charged")
    accounts = {}
    for charge in charges:
        cost, delta = (charge.cost, charge.delta) if fresh else (0, 0)
        account = state.accounts.get(charge.account)
        if account is None or not account.has_room(Charge(charge.account, cost, delta)):
            raise _fault(entry, f"account {charge.account} has no room for its charge")
        accounts[charge.account] = account.moved(reserved=(cost, delta), spent=(0, 0))
    return accounts


def _schedule(state: State, entry: Schedule) -> _Change:
    named = any(old.name == entry.name for old, _ in state.schedules.values())
    _require(not named, entry, "another schedule has this name")
    accounts = _set_aside(state, entry, entry.charges, fresh=True)
    questions = (question for steps in entry.steps for question in steps.questions)
    steps = {(entry.seq, number): (question, None) for number, question in enumerate(questions, start=1)}
    return _Change(accounts=accounts, schedules={entry.seq: (entry, None)}, steps=steps)


def _draw(state: State, entry: Draw) -> _Change:
    schedule = _in_force(state, entry)
    found = schedule.step(entry.step)
    if found is None or state.steps[entry.schedule, entry.step][1] is not None:
        raise _fault(entry, f"schedule {entry.schedule} has no step {entry.step}, or it was drawn before")
    question, steps = found
    facts = (entry.mechanism, entry.sensitivity, entry.cells, entry.charges)
    same = (entry.question, *facts) == (question, steps.mechanism, steps.sensitivity, steps.cells, steps.charges)
    _require(same, entry, f"it is not what step {entry.step} of schedule {entry.schedule} says")
    _set_aside(state, entry, entry.charges, fresh=False)
    return _Change(steps={(entry.schedule, entry.step): (question, entry.seq)}, **_admitted(state, entry))


def _leave(state: State, entry: Leave) -> _Change:
    schedule, number = _in_force(state, entry), 0
    open_steps = []
    for steps in schedule.steps:
        numbers = range(number + 1, number + 1 + len(steps.questions))
        open_steps.append((steps, sum(state.steps[entry.schedule, one][1] is None for one in numbers)))
        number += len(steps.questions)
    accounts = {
        charge.account: state.accounts[charge.account].moved(reserved=(-charge.cost, -charge.delta), spent=(0, 0))
        for charge in total_of(open_steps)
    }
    return _Change(accounts=accounts, schedules={entry.schedule: (schedule, entry.seq)})


def _in_force(state: State, entry: Draw | Leave) -> Schedule:
    found = state.schedules.get(entry.schedule)
    if found is None or found[1] is not None:
        raise _fault(entry, f"there is no schedule {entry.schedule}, or it has ended")
    return found[0]


def _start(state: State, entry: Start) -> _Change:
    request = _request(state, entry, "reserved")
    return _Change(requests={entry.request: replace(request, state="started")})


def _settle(state: State, entry: Settle) -> _Change:
    request = _request(state, entry, "started")
    accounts = _resolved(state, entry, request.reserve.charges, entry.charges)
    balances = tuple(account.balance for account in accounts.values())
    _require(entry.accounts == balances, entry, "its accounts are not what the entries add up to")
    resolved = replace(request, state="settled", settled=entry.seq, realised=entry.charges)
    lifted = zip(request.reserve.charges, entry.charges, strict=True)
    less = {held.account: real.cost - held.cost for held, real in lifted}
    shares = _shared(state, entry.actor, less)
    return _Change(accounts=accounts, requests={entry.request: resolved}, shares=shares)


def _stop(state: State, entry: Stop) -> _Change:
    """A ladder that ends early is settled like any request, for less."""
    change = _settle(state, entry)
    reserve = state.requests[entry.request].reserve
    why = why_not_stopped(reserve, entry.mechanism, entry.charges, scales=entry.scales)
    _require(why is None, entry, str(why))
    _require(entry.sensitivity == reserve.sensitivity, entry, "its sensitivity is not the one that was reserved")
    # What that stated is a total of the whole: a correction of it would take back what the stop gave back before.
    recosted = any((entry.request, charge.account) in state.totals for charge in entry.charges)
    _require(not recosted, entry, f"request {entry.request} was recosted while it ran, and is charged whole")
    stopped = {entry.request: replace(change.requests[entry.request], stopped=True)}
    return replace(change, requests=stopped)


def _void(state: State, entry: Void) -> _Change:
    request = _request(state, entry, "reserved")
    ended, drawn = {entry.request: replace(request, state="void")}, request.reserve
    shares = _shared(state, entry.actor, {charge.account: -charge.cost for charge in drawn.charges})
    if not isinstance(drawn, Draw):
        return _Change(accounts=_given_back(state, entry, drawn), requests=ended, shares=shares)
    # Its step is open again, and its charge with the schedule, if that is still in force.
    steps = {(drawn.schedule, drawn.step): (drawn.question, None)}
    is_over = state.schedules[drawn.schedule][1] is not None
    accounts = _given_back(state, entry, drawn) if is_over else {}
    return _Change(accounts=accounts, requests=ended, steps=steps, shares=shares)


def _given_back(state: State, entry: Void, reserve: Admitted) -> dict[int, Account]:
    nothing = tuple(Charge(charge.account, 0, 0) for charge in reserve.charges)
    return _resolved(state, entry, reserve.charges, nothing)


def _forfeit(state: State, entry: Forfeit) -> _Change:
    request = _request(state, entry, "started")
    accounts = _resolved(state, entry, request.reserve.charges, request.reserve.charges)
    return _Change(accounts=accounts, requests={entry.request: replace(request, state="forfeited")})


_RULES: dict[type[Any], Callable[[State, Any], _Change]] = {
    Open: _open,
    Derive: _derive,
    Quota: _quota,
    Revise: _revise,
    Cap: _cap,
    Reserve: _reserve,
    Refine: _refine,
    Start: _start,
    Settle: _settle,
    Stop: _stop,
    Void: _void,
    Forfeit: _forfeit,
    Recover: _recover,
    Rotate: _rotate,
    Schedule: _schedule,
    Draw: _draw,
    Leave: _leave,
    Amend: _about,
    Supersede: _supersede,
    Recost: _recost,
    Flag: _about,
}


def _request(state: State, entry: Start | Settle | Void | Forfeit, expected: str) -> Request:
    request = state.requests.get(entry.request)
    if request is None:
        raise _fault(entry, f"there is no request {entry.request}")
    _require(request.state == expected, entry, f"request {entry.request} is {request.state}, not {expected}")
    _require(request.reserve.actor == entry.actor, entry, f"request {entry.request} belongs to another actor")
    return request


def _resolved(
    state: State, entry: Entry, reserved: tuple[Charge, ...], realised: tuple[Charge, ...]
) -> dict[int, Account]:
    """The accounts after a reservation was lifted and what it really cost was spent."""
    accounts = {}
    _require(
        [charge.account for charge in reserved] == [charge.account for charge in realised],
        entry,
        "it charges other accounts than were reserved",
    )
    for held, real in zip(reserved, realised, strict=True):
        _require(real.cost <= held.cost and real.delta <= held.delta, entry, "it charges more than was reserved")
        lifted = (-held.cost, -held.delta)
        accounts[held.account] = state.accounts[held.account].moved(reserved=lifted, spent=(real.cost, real.delta))
    return accounts


def _require(holds: bool, entry: Entry, why: str) -> None:
    if not holds:
        raise _fault(entry, why)


def _fault(entry: Entry, why: str) -> VerificationError:
    tag = type(entry).__name__.lower()
    return VerificationError(f"entry {entry.seq} ({tag}): {why}", entry=entry.seq)
