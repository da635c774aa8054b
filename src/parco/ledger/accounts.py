"""What a sequence of entries adds up to: accounts and requests as a pure state machine.

    reserve ──▶ start ──▶ settle | forfeit
       └──────▶ void

Before and between them stand `open`, `revise` (a contract has a new text), `cap` (an account's cap moves),
`recover` (a lost past is charged) and `rotate` (another key signs). `apply` checks each transition and changes nothing;
a violation raises VerificationError naming the entry. No store is trusted here: each must leave entries that replay to
the very accounts it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from parco.errors import VerificationError
from parco.ledger.entries import (
    Balance,
    Cap,
    Charge,
    Entry,
    Forfeit,
    Open,
    Opened,
    Recover,
    Reserve,
    Revise,
    Rotate,
    Settle,
    Start,
    Stop,
    Void,
    decode,
)
from parco.ledger.stops import why_not_stopped

__all__ = ["EMPTY", "Account", "Request", "State", "apply", "replay"]


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


@dataclass(frozen=True)
class Request:
    """One request: the entry that reserved it, and `reserved`, `started`, `settled`, `void` or `forfeited`."""

    reserve: Reserve
    state: str
    settled: int | None = None


@dataclass(frozen=True)
class State:
    """All that `size` entries add up to; `contracts` gives a signed contract's accounts, `keys` a key's request.

    `revisions` gives the text that replaced a contract's, `caps` the cap that an entry gave to an account, `strays` the
    entry that answered for a head, by its root, `rotations` the keys before and after an entry, and `names` the entry
    of a contract and the digest of its name.
    """

    size: int = 0
    accounts: Mapping[int, Account] = field(default_factory=dict)
    requests: Mapping[int, Request] = field(default_factory=dict)
    contracts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    keys: Mapping[str, int] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)
    caps: Mapping[tuple[int, int], int] = field(default_factory=dict)
    strays: Mapping[str, int] = field(default_factory=dict)
    rotations: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    names: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def current(self) -> dict[str, tuple[int, ...]]:
        """The accounts of each contract in its latest version."""
        return {contract: own for contract, own in self.contracts.items() if contract not in self.revisions}


EMPTY = State()


@dataclass(frozen=True)
class _Change:
    """What one entry adds or replaces in each mapping of a state."""

    accounts: Mapping[int, Account] = field(default_factory=dict)
    requests: Mapping[int, Request] = field(default_factory=dict)
    contracts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    keys: Mapping[str, int] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)
    caps: Mapping[tuple[int, int], int] = field(default_factory=dict)
    strays: Mapping[str, int] = field(default_factory=dict)
    rotations: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    names: Mapping[str, tuple[int, str]] = field(default_factory=dict)


_MAPPINGS = ("accounts", "requests", "contracts", "keys", "revisions", "caps", "strays", "rotations", "names")


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


def _current(state: State, entry: Entry, contract: str) -> tuple[int, ...]:
    own = state.contracts.get(contract)
    if own is None:
        raise _fault(entry, "its contract was never signed")
    _require(contract not in state.revisions, entry, "its contract was revised before")
    return own


def _reserve(state: State, entry: Reserve) -> _Change:
    _require(entry.key not in state.keys, entry, "its key belongs to another request")
    own = _current(state, entry, entry.contract)
    charged = {charge.account for charge in entry.charges}
    _require(not charged.isdisjoint(own), entry, "none of its contract's accounts is charged")
    accounts = {}
    for charge in entry.charges:
        account = state.accounts.get(charge.account)
        if account is None or not account.has_room(charge):
            raise _fault(entry, f"account {charge.account} has no room for its charge")
        accounts[charge.account] = account.moved(reserved=(charge.cost, charge.delta), spent=(0, 0))
    return _Change(accounts=accounts, requests={entry.seq: Request(entry, "reserved")}, keys={entry.key: entry.seq})


def _start(state: State, entry: Start) -> _Change:
    request = _request(state, entry, "reserved")
    return _Change(requests={entry.request: replace(request, state="started")})


def _settle(state: State, entry: Settle) -> _Change:
    request = _request(state, entry, "started")
    accounts = _resolved(state, entry, request.reserve.charges, entry.charges)
    balances = tuple(account.balance for account in accounts.values())
    _require(entry.accounts == balances, entry, "its accounts are not what the entries add up to")
    resolved = replace(request, state="settled", settled=entry.seq)
    return _Change(accounts=accounts, requests={entry.request: resolved})


def _stop(state: State, entry: Stop) -> _Change:
    """A ladder that ends early is settled like any request, for less."""
    change = _settle(state, entry)
    reserve = state.requests[entry.request].reserve
    why = why_not_stopped(reserve, entry.mechanism, entry.charges)
    _require(why is None, entry, str(why))
    _require(entry.sensitivity == reserve.sensitivity, entry, "its sensitivity is not the one that was reserved")
    return change


def _void(state: State, entry: Void) -> _Change:
    request = _request(state, entry, "reserved")
    nothing = tuple(Charge(charge.account, 0, 0) for charge in request.reserve.charges)
    accounts = _resolved(state, entry, request.reserve.charges, nothing)
    return _Change(accounts=accounts, requests={entry.request: replace(request, state="void")})


def _forfeit(state: State, entry: Forfeit) -> _Change:
    request = _request(state, entry, "started")
    accounts = _resolved(state, entry, request.reserve.charges, request.reserve.charges)
    return _Change(accounts=accounts, requests={entry.request: replace(request, state="forfeited")})


_RULES: dict[type[Any], Callable[[State, Any], _Change]] = {
    Open: _open,
    Revise: _revise,
    Cap: _cap,
    Reserve: _reserve,
    Start: _start,
    Settle: _settle,
    Stop: _stop,
    Void: _void,
    Forfeit: _forfeit,
    Recover: _recover,
    Rotate: _rotate,
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
