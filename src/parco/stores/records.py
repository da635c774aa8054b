"""What goes into a store and what comes out of it: frozen records, the same for every store."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from parco.ledger.entries import WHOLE, Balance, Capped, Charge, MechanismFacts, Reserve, SensitivityFacts
from parco.ledger.heads import Head
from parco.ledger.proofs import Inclusion
from parco.measure import Measure

__all__ = [
    "FORFEITED",
    "AccountRow",
    "Evidence",
    "HistoryRow",
    "Opening",
    "Pending",
    "Recovered",
    "Recovery",
    "Request",
    "Reserved",
    "Settled",
    "Signed",
    "Started",
    "Stopped",
    "Stored",
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

    `labels` names the data set's accounts, each with these caps.
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
    time: int = field(default_factory=_now)


@dataclass(frozen=True, kw_only=True)
class Signed:
    """A contract as it was signed or last revised, by the entry at `position`.

    `contract` is the digest by which entries name it, `text` its canonical text; `accounts` gives the account of each
    label, in rising order.
    """

    accounts: Mapping[str, int]
    position: int
    contract: str
    name: str
    dataset: str
    text: str

    @property
    def account(self) -> int:
        """The first account; the only one where the data set is not divided."""
        return min(self.accounts.values())


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a release asks of the ledger; `contract` is `Signed.contract`, `charges` rise by account.

    Without a key, one is drawn: such a request is never the same as another.
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
    time: int = field(default_factory=_now)


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
    """Where a ladder stopped whose finest law was reserved: the law of the estimate then, and what that costs."""

    mechanism: MechanismFacts
    charges: tuple[Charge, ...]


@dataclass(frozen=True, kw_only=True)
class Settled:
    """The public facts of an answered request; `position` is the sequence of its settle entry.

    `charges` are what it cost; `stopped_at` is the law that a ladder had reached where it stopped before the finest one
    that was reserved.
    """

    request: int
    position: int
    reserve: Reserve
    charges: tuple[Charge, ...]
    accounts: tuple[Balance, ...]
    stopped_at: MechanismFacts | None = None

    @property
    def mechanism(self) -> MechanismFacts:
        """The law of the answer."""
        return self.stopped_at or self.reserve.mechanism


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
    """One signing, revision, change of caps or request; texts that were erased are None, `name` is the contract's.

    `state` is `open`, `revise`, `cap`, `recover` or `rotate`, or for a request `reserved`, `started`, `settled`, `void`
    or `forfeited`; `charges` are what was realised once settled, what was reserved before, nothing once void, and what
    a recovery charged.
    """

    seq: int
    time: int
    actor: str | None
    state: str
    contract: str | None
    name: str | None = None
    reason: str | None = None
    caps: tuple[Capped, ...] = ()
    question: str | None = None
    fresh: bool = False
    position: int | None = None
    private: bool = True
    cells: int = 0
    charges: tuple[Charge, ...] = ()
    mechanism: MechanismFacts | None = None
    sensitivity: SensitivityFacts | None = None
