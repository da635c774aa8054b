"""What goes into a store and what comes out of it: frozen records, the same for every store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from parco.ledger.accounts import Admitted
from parco.ledger.entries import WHOLE, Added, Balance, Capped, Charge, MechanismFacts, SensitivityFacts, Steps
from parco.ledger.heads import Head
from parco.ledger.proofs import Inclusion
from parco.measure import COST_UNIT, DELTA_UNIT, Measure, decimal_text

__all__ = [
    "FORFEITED",
    "AccountRow",
    "Act",
    "Allotment",
    "Closed",
    "Correction",
    "Evidence",
    "HistoryRow",
    "Opening",
    "Pending",
    "QuotaRow",
    "Recharge",
    "Recosted",
    "Recosting",
    "Recovered",
    "Recovery",
    "Request",
    "Reserved",
    "Scheduled",
    "ScheduledStep",
    "Scheduling",
    "Settled",
    "Signed",
    "Started",
    "Stopped",
    "Stored",
    "reading_now",
]

# One text for every cause: why a release failed after the data was read could tell about the data.
FORFEITED = (
    "this release failed after its charge was made: the charge stands and there is no answer; ask again to pay again"
)


def _now() -> int:
    return int(time.time())


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What `sign` promises: texts in full (they go to the side table), cap in 10^-15, delta cap in 10^-18.

    `labels` names the data set's accounts, each with these caps. `parents` are the data sets that it is derived from;
    without them, `disjoint` says why it shares no row with the others on the ledger, if there are any.
    """

    actor: str
    name: str
    dataset: str
    contract: str
    terms: str
    measure: Measure
    cap: int
    delta_cap: int
    labels: tuple[str, ...] = (WHOLE,)
    parents: tuple[str, ...] = ()
    disjoint: str | None = None
    time: int = field(default_factory=_now)


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """What a quota shall be: `amount` in 10^-15 on each account of the data set, together; None lifts the quota.

    The data set need not be named where there is one alone on the ledger.
    """

    actor: str
    reason: str
    name: str
    amount: int | None
    members: tuple[str, ...] = ()
    dataset: str | None = None
    time: int = field(default_factory=_now)


@dataclass(frozen=True, kw_only=True)
class QuotaRow:
    """A quota on one account, as it stands: amounts in 10^-15; `position` is the entry that made it."""

    position: int
    name: str
    members: tuple[str, ...]
    number: int
    account: str
    measure: Measure
    amount: int
    used: int

    @property
    def remaining(self) -> int:
        """What its members can still ask together; negative where they had asked more before it was made."""
        return self.amount - self.used


@dataclass(frozen=True, kw_only=True)
class Signed:
    """A contract as it was signed or last revised, by the entry at `position`.

    `contract` is the digest by which entries name it, `text` its canonical text; `accounts` gives the account of each
    label, in rising order. `ancestors` gives the measure of each account that the data set descends from: each of them
    is charged, too.
    """

    accounts: Mapping[str, int]
    position: int
    contract: str
    name: str
    dataset: str
    text: str
    ancestors: Mapping[int, Measure] = field(default_factory=dict)

    @property
    def account(self) -> int:
        """The first account; the only one where the data set is not divided."""
        return min(self.accounts.values())


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a release asks of the ledger; `contract` is `Signed.contract`, `charges` rise by account.

    Without a key, one is drawn: such a request is never the same as another. `schedule` is the entry of the schedule
    that it is drawn from, if any: its facts must then be those of one of its steps. With a `parent` it refines the
    answer to that request: `mechanism` is then the law of what comes of it, `charges` what that costs beyond the
    parent's.
    """

    actor: str
    question: str
    contract: str
    mechanism: MechanismFacts
    sensitivity: SensitivityFacts
    cells: int
    charges: tuple[Charge, ...]
    fresh: bool = False
    private: bool = True
    key: str | None = None
    parent: int | None = None
    time: int = field(default_factory=_now)
    schedule: int | None = None


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """What a schedule fixes in advance: releases under a contract (`Signed.contract`), their questions as full texts.

    Steps are counted from 1, through all questions of all `steps`.
    """

    actor: str
    name: str
    contract: str
    steps: tuple[Steps, ...]
    time: int = field(default_factory=_now)


@dataclass(frozen=True, kw_only=True)
class ScheduledStep:
    """One release of a signed schedule; `question` is None if it was erased, `request` is the one that drew it."""

    number: int
    question: str | None
    facts: Steps
    request: int | None


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """A schedule as it stands: the entry that signed it, and the one by which it was left, if it was."""

    position: int
    name: str
    dataset: str
    contract: str
    ended: int | None
    steps: tuple[ScheduledStep, ...]


@dataclass(frozen=True)
class Started:
    """The charge is reserved and durable: the data may be read, then `settle` or `forfeit` must follow."""

    request: int


@dataclass(frozen=True)
class Reserved:
    """The charge is set aside and durable, and waits for its start under a lease; until then no data may be read."""

    request: int


@dataclass(frozen=True)
class Pending:
    """The same question (or key) is being answered by `request`, whose owner is alive: wait, then begin again."""

    request: int


@dataclass(frozen=True)
class Stopped:
    """Where a ladder stopped whose finest law was reserved: the law of the estimate then, and what that costs.

    `scales`: of each cell, where they are not all alike; `mechanism` is then that of the one with most noise.
    """

    mechanism: MechanismFacts
    charges: tuple[Charge, ...]
    scales: tuple[Fraction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Settled:
    """The public facts of an answered request; `position` is the sequence of its settle entry.

    `before` gives the laws of the answers that it refines, by their requests, the first one first. `replaced`: the
    request whose answer stands instead, 0 where it was withdrawn, None where it stands. `charges` are what it cost;
    `stopped` says where a ladder stopped that was reserved whole, None where nothing was to stop.
    """

    request: int
    position: int
    reserve: Admitted
    charges: tuple[Charge, ...]
    accounts: tuple[Balance, ...]
    before: Mapping[int, MechanismFacts] = field(default_factory=dict)
    replaced: int | None = None
    stopped: Stopped | None = None

    @property
    def mechanism(self) -> MechanismFacts:
        """The law of the answer, or of the cell with most noise."""
        return self.reserve.mechanism if self.stopped is None else self.stopped.mechanism


@dataclass(frozen=True, kw_only=True)
class Stored(Settled):
    """An answered request with the very bytes that were stored, checked against their digest."""

    answer: bytes


@dataclass(frozen=True)
class Evidence:
    """What shows outside the ledger that a release was settled: its entry under a signed head, and the answer's salt.

    With the salt, the answer's bytes have the digest that the entry holds.
    """

    proof: Inclusion
    answer: bytes
    salt: bytes

    def record(self) -> dict[str, object]:
        """The same as a tree of text and integers."""
        return {"proof": self.proof.record(), "answer": self.answer.decode(), "salt": self.salt.hex()}


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What is known of a lost past: receipts' proofs, and files of heads, each in the order in which it was written.

    `unshown`: what the lost entries may have cost each account of which no receipt shows it, in 10^-15, None if nobody
    says.
    """

    actor: str
    reason: str
    receipts: tuple[Inclusion, ...] = ()
    files: tuple[tuple[Head, ...], ...] = ()
    unshown: int | None = None
    time: int = field(default_factory=_now)


@dataclass(frozen=True)
class Recovered:
    """The `recover` entry's place, what it charged, and the sizes of the heads it answers for."""

    position: int
    charges: tuple[Charge, ...]
    lost: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Act:
    """Who corrects something, when, and why."""

    actor: str
    reason: str
    time: int = field(default_factory=_now)


@dataclass(frozen=True, kw_only=True)
class Recosting:
    """How a kind of mechanism was under-charged: each charge of cost `factor` times, or in all `cost` and `delta`.

    `only`: these requests, by default all that used the mechanism. `corrects`: the recost that stated too much.
    """

    mechanism: str
    factor: Fraction | None = None
    cost: int | None = None
    delta: int | None = None
    only: tuple[int, ...] | None = None
    corrects: int | None = None


@dataclass(frozen=True)
class Recharge:
    """What a release costs an account, (cost, delta): as it was `charged`, as it stood `before`, and `total` now."""

    request: int
    account: int
    charged: tuple[int, int]
    before: tuple[int, int]
    total: tuple[int, int]


@dataclass(frozen=True)
class Recosted:
    """The `recost` entry's place, None where nothing was done, each release's charges, and what accounts were added.

    `queued` are requests that had not started: they were given back, to be asked again at what they cost.
    """

    position: int | None
    releases: tuple[Recharge, ...]
    added: tuple[Added, ...]
    queued: tuple[int, ...]


@dataclass(frozen=True)
class Closed:
    """The `cap` entry's place, the caps, which are what was spent or reserved, requests that were given back, and the
    names of schedules that were left.
    """

    position: int
    caps: tuple[Capped, ...]
    queued: tuple[int, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Correction:
    """One correction of an entry or release, and what was corrected of it in turn; erased texts are None.

    `what` is `amend`, `supersede`, `recost` or `flag`. `field` and `text` are an amendment's (no text where it erased
    one, or was erased itself: `erases` tells which); `by` is what stands instead, 0 for nothing; `cost` and `delta` are
    what the release costs each account since.
    """

    entry: int
    what: str
    time: int
    actor: str | None
    reason: str | None
    field: str | None = None
    text: str | None = None
    erases: bool = False
    by: int | None = None
    cost: int | None = None
    delta: int | None = None
    corrections: tuple[Correction, ...] = ()

    def record(self) -> dict[str, object]:
        """The same as a tree of text and integers; amounts as exact decimal text."""
        told: dict[str, object] = {"entry": self.entry, "what": self.what, "actor": self.actor, "reason": self.reason}
        if self.field is not None:
            told |= {"field": self.field, "erases": True} if self.erases else {"field": self.field, "text": self.text}
        if self.by is not None:
            told |= {"by": self.by or None}
        if self.cost is not None:
            told |= {"cost": decimal_text(self.cost * COST_UNIT)}
        if self.delta:
            told |= {"delta": decimal_text(self.delta * DELTA_UNIT)}
        if self.corrections:
            told |= {"corrections": [one.record() for one in self.corrections]}
        return told

    def in_words(self) -> str:
        """One sentence: what, by what, by whom and why, as these texts read now."""
        actor, reason = self._now("actor", self.actor), self._now("reason", self.reason)
        return f"{self._what} by {actor} (entry {self.entry}): {reason}"

    @property
    def _what(self) -> str:
        if self.what == "amend":
            return f"{self.field} erased" if self.erases else f"{self.field} now reads {self.text or '(erased)'!r},"
        if self.what == "recost":
            return f"costs {decimal_text((self.cost or 0) * COST_UNIT)}, as found"
        if self.what == "flag":
            return "flagged"
        return f"superseded by release {self.by}, said" if self.by else "withdrawn"

    def _now(self, field: str, text: str | None) -> str:
        return reading_now(self.corrections, field) or text or "(erased)"


def reading_now(corrections: Sequence[Correction], field: str) -> str | None:
    """How a text reads by its last amendment; None where it was never amended, or was erased without another."""
    texts = [one.text for one in corrections if one.field == field]
    return texts[-1] if texts else None


@dataclass(frozen=True, kw_only=True)
class AccountRow:
    """An account as it stands; cost amounts in 10^-15 of the measure, delta amounts in 10^-18.

    `fixed_cap` is the cap as signed, None if the account was ever raised above it.
    """

    account: int
    name: str
    label: str = WHOLE
    measure: Measure
    cap: int
    spent: int
    reserved: int
    excess: int
    delta_cap: int
    delta_spent: int
    delta_reserved: int
    delta_excess: int
    fixed_cap: int | None

    @property
    def title(self) -> str:
        """The data set's name, and the label of the account where there are several."""
        return self.name if self.label == WHOLE else f"{self.name} / {self.label}"

    @property
    def remaining(self) -> int:
        """What can still be asked; negative on an overdrawn account."""
        return self.cap - self.spent - self.reserved

    @property
    def delta_remaining(self) -> int:
        """The delta that can still be asked; negative on an overdrawn account."""
        return self.delta_cap - self.delta_spent - self.delta_reserved


@dataclass(frozen=True, kw_only=True)
class HistoryRow:
    """One governing act, correction or request; erased texts are None, `name` is the contract's.

    `state` is `open`, `derive`, `revise`, `cap`, `quota`, `recover`, `rotate`, `schedule`, `leave`, `amend`,
    `supersede`, `recost` or `flag`, or for a request `reserved`, `started`, `settled`, `void` or `forfeited`; `charges`
    are what was realised once settled, what was reserved before, nothing once void, and what a recovery charged;
    `parent` is the request whose answer it refines. `schedule` is the name of the schedule that was signed
    (`set_aside` is its whole charge) or left, or whose `step` a request is. `corrections` are those of this row, oldest
    first, `about` is what a correction is of.
    """

    seq: int
    time: int
    actor: str | None
    state: str
    contract: str | None
    name: str | None = None
    reason: str | None = None
    caps: tuple[Capped, ...] = ()
    accounts: tuple[int, ...] = ()
    """Of a contract in a new text: the accounts of its data set."""
    members: tuple[str | None, ...] = ()
    """Of a quota: its actors; its `name` is its own, and `caps` are its amounts."""
    parents: tuple[str | None, ...] = ()
    """Of a data set, which is then `name`: those that it is derived from."""
    question: str | None = None
    fresh: bool = False
    parent: int | None = None
    position: int | None = None
    private: bool = True
    cells: int = 0
    charges: tuple[Charge, ...] = ()
    mechanism: MechanismFacts | None = None
    sensitivity: SensitivityFacts | None = None
    schedule: str | None = None
    step: int | None = None
    set_aside: tuple[Charge, ...] = ()
    held: tuple[Charge, ...] = ()
    """Of a ladder that stopped early: what had been reserved; `mechanism` is then the law that was reached."""
    about: tuple[int, ...] = ()
    corrections: tuple[Correction, ...] = ()
