"""What one entry of ledger format 1 is, and the only bytes that say it.

An entry holds integers, closed tags and salted digests, nothing else: no free text can come in, so that every text can
be erased while all entries stand. There is no time in `start`, `settle`, `void` and `forfeit`: how long a data access
took may depend on the data. Order is by `seq`, which counts from 1 without gaps; entry n is leaf n - 1 of any tree.
Amounts count 10^-15 of the account's measure, deltas 10^-18; both lie in [0, 2^63).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from parco import canonical
from parco.errors import InternalError, LedgerFormatError, VerificationError
from parco.ledger import _codecs as codecs

__all__ = [
    "FIELDS",
    "FORMAT",
    "INTERACTIVE",
    "KINDS",
    "LADDERS",
    "MEASURES",
    "WHOLE",
    "Added",
    "Amend",
    "Balance",
    "Cap",
    "Capped",
    "Charge",
    "Derive",
    "Draw",
    "Entry",
    "Flag",
    "Forfeit",
    "Leave",
    "MechanismFacts",
    "Open",
    "Opened",
    "Quota",
    "Recost",
    "Recover",
    "Refine",
    "Reserve",
    "Revise",
    "Rotate",
    "Schedule",
    "SensitivityFacts",
    "Settle",
    "Start",
    "Steps",
    "Stop",
    "Stray",
    "Supersede",
    "Total",
    "Void",
    "decode",
    "encode",
    "held",
    "rotation_statement",
    "secret_commitment",
    "total_of",
]

FORMAT = 1

KINDS = ("gaussian", "two-sided-geometric", "exponential", "sparse-vector")

INTERACTIVE = ("sparse-vector",)
"""Kinds that answer again and again between `start` and the end: nothing else is admitted on their accounts then."""

# The kinds of noise that a later, finer draw refines, so that a whole path costs what its last law does.
LADDERS = ("gaussian", "two-sided-geometric")

# All four currencies of format 1; the state machine knows that `renyi` and no other has an order.
MEASURES = ("pure", "zcdp", "gdp", "renyi")

WHOLE = "whole"
"""The label of a data set's account where it is not divided into parts or periods."""

FIELDS = ("actor", "key", "note", "question", "reason", "title")
"""Which text of an entry an `amend` is about: one that the entry names, or a title or note that it gets so."""


@dataclass(frozen=True, order=True)
class Charge:
    """What one account pays: cost in 10^-15 of its measure, delta in 10^-18."""

    account: int
    cost: int
    delta: int = 0


@dataclass(frozen=True)
class Balance:
    """An account as it stands after an entry; the four amounts, then their delta twins."""

    account: int
    cap: int
    spent: int
    reserved: int
    excess: int
    delta_cap: int
    delta_spent: int
    delta_reserved: int
    delta_excess: int


@dataclass(frozen=True)
class MechanismFacts:
    """Which noise was drawn: kind, scale and output lattice, in the units of the value."""

    kind: str
    scale: Fraction
    lattice: Fraction


@dataclass(frozen=True)
class SensitivityFacts:
    """How far neighbours can lie apart: L1, and the square of L2, since the square is rational."""

    l1: Fraction
    l2_squared: Fraction


@dataclass(frozen=True)
class Opened:
    """An account as signed: the digest of its label (the whole data set, a part, a period), and its caps."""

    account: int
    label: str
    cap: int
    delta_cap: int


@dataclass(frozen=True, kw_only=True)
class Open:
    """A contract was signed: what it promises, in which measure (`order` for renyi), on which accounts."""

    seq: int
    actor: str
    time: int
    contract: str
    name: str
    dataset: str
    terms: str
    measure: str
    order: Fraction | None
    accounts: tuple[Opened, ...]
    secret: str


@dataclass(frozen=True)
class Capped:
    """The cap of an account from here on, in 10^-15 of its measure."""

    account: int
    cap: int


@dataclass(frozen=True, kw_only=True)
class Derive:
    """What the data set that the entry before opened is made of: rows of its `parents`, data sets signed before.

    Each of its releases charges all accounts that it descends from. Without parents it says that no row of it is, or is
    made from, a row of another data set on this ledger: a person's word, never a comparison of contents.
    """

    seq: int
    actor: str
    time: int
    dataset: str
    parents: tuple[str, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Quota:
    """The most that the requests of some actors, together, may take of accounts: a fair share, and no guarantee.

    It replaces an earlier one of the same name; without accounts it limits nothing. What its members' requests took
    before counts.
    """

    seq: int
    actor: str
    time: int
    name: str
    members: tuple[str, ...]
    accounts: tuple[Capped, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Revise:
    """A signed contract has a new text: `revised` is the one it replaces; accounts, caps and terms are as they stand.

    Releases made before keep the digest of the text they were made under.
    """

    seq: int
    actor: str
    time: int
    contract: str
    revised: str
    terms: str
    accounts: tuple[Opened, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Cap:
    """Somebody raised or lowered caps of one data set, for a reason. Nothing spent or reserved is touched."""

    seq: int
    actor: str
    time: int
    accounts: tuple[Capped, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Reserve:
    """A request was admitted and its whole charge set aside; its `seq` is the request's id.

    `private` is False where the noise comes from a tape: nothing released so is private.
    """

    seq: int
    actor: str
    time: int
    key: str
    question: str
    contract: str
    fresh: bool
    private: bool
    mechanism: MechanismFacts
    sensitivity: SensitivityFacts
    cells: int
    charges: tuple[Charge, ...]


@dataclass(frozen=True)
class Steps:
    """Releases of a schedule that differ in their question alone: one for each of `questions`, with these facts."""

    questions: tuple[str, ...]
    mechanism: MechanismFacts
    sensitivity: SensitivityFacts
    cells: int
    charges: tuple[Charge, ...]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Releases fixed in advance, and their whole charge set aside. Its steps are counted from 1, through all `steps`.

    `name` is the digest of the schedule's name.
    """

    seq: int
    actor: str
    time: int
    contract: str
    name: str
    steps: tuple[Steps, ...]

    def step(self, number: int) -> tuple[str, Steps] | None:
        """The question and facts of a step, None where there is no such step."""
        left = number
        for steps in self.steps:
            if 1 <= left <= len(steps.questions):
                return steps.questions[left - 1], steps
            left -= len(steps.questions)
        return None

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What all steps together are charged, rising by account."""
        return total_of((steps, len(steps.questions)) for steps in self.steps)


@dataclass(frozen=True, kw_only=True)
class Draw(Reserve):
    """A request that is a `step` of a `schedule`: its charge comes out of what the schedule set aside.

    Its facts are those of the step, and a step is drawn once; one whose request was void is drawn no longer.
    """

    schedule: int
    step: int


@dataclass(frozen=True, kw_only=True)
class Leave:
    """A schedule ends: what its steps that are not drawn had set aside goes back, and nothing more is drawn from it."""

    seq: int
    actor: str
    time: int
    schedule: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Refine:
    """A request as `Reserve` is, for the settled answer to request `parent` made sharper: its `seq` is its own id.

    `mechanism` is the law of the answer that comes of it, `charges` what that costs beyond what the parent's law does.
    """

    seq: int
    actor: str
    time: int
    key: str
    question: str
    contract: str
    parent: int
    private: bool
    mechanism: MechanismFacts
    sensitivity: SensitivityFacts
    cells: int
    charges: tuple[Charge, ...]


@dataclass(frozen=True, kw_only=True)
class Start:
    """From here on the data may have been read."""

    seq: int
    actor: str
    request: int


@dataclass(frozen=True, kw_only=True)
class Settle:
    """The answer is stored, what it really cost is charged, and the accounts stand as listed."""

    seq: int
    actor: str
    request: int
    answer: str
    charges: tuple[Charge, ...]
    accounts: tuple[Balance, ...]


@dataclass(frozen=True, kw_only=True)
class Stop(Settle):
    """The answer of a ladder of refinements whose finest law was reserved, and which stopped before it.

    `mechanism` is the law that was reached, of the same kind and on the same lattice: what it costs is charged, and the
    rest goes back. Only laws for which whole paths cost what their last one does can stop so. `scales`: those of each
    cell, where cells stopped apart; `mechanism` is then that of the one with most noise.
    """

    mechanism: MechanismFacts
    sensitivity: SensitivityFacts
    scales: tuple[Fraction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Void:
    """The request never started: its whole reservation goes back."""

    seq: int
    actor: str
    request: int


@dataclass(frozen=True, kw_only=True)
class Forfeit:
    """The request started and gave no answer: its whole reservation is spent."""

    seq: int
    actor: str
    request: int


@dataclass(frozen=True)
class Stray:
    """A head that this ledger signed and does not extend: some of its past was lost."""

    size: int
    root: str


@dataclass(frozen=True, kw_only=True)
class Recover:
    """A lost past is answered for: what its receipts show is spent here, whatever the caps say.

    Where spent + reserved then exceed a cap, the account's excess is raised to cover it. `charges` may be empty.
    """

    seq: int
    actor: str
    time: int
    strays: tuple[Stray, ...]
    charges: tuple[Charge, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Rotate:
    """From the head of this entry on, `new` signs, and nothing that `old` signs later counts.

    `by_old` and `by_new` are the signatures of both keys over `rotation_statement`.
    """

    seq: int
    actor: str
    time: int
    old: str
    new: str
    reason: str
    by_old: str
    by_new: str


@dataclass(frozen=True, kw_only=True)
class Amend:
    """A text of `entry` reads as `text` from here on, or was erased (None). Its digest in that entry stands."""

    seq: int
    actor: str
    time: int
    entry: int
    field: str
    text: str | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Supersede:
    """The answer of `request` is replaced by that of `by`, or withdrawn (None); by itself, it stands again."""

    seq: int
    actor: str
    time: int
    request: int
    by: int | None
    reason: str


@dataclass(frozen=True)
class Total:
    """What a release costs an account in all, as it is now known: cost in 10^-15 of its measure, delta in 10^-18."""

    request: int
    account: int
    cost: int
    delta: int


@dataclass(frozen=True)
class Added:
    """What a recost adds to what is spent on an account; below 0 where it corrects an earlier one."""

    account: int
    cost: int
    delta: int


@dataclass(frozen=True, kw_only=True)
class Recost:
    """A kind of noise was found to be under-charged: these releases cost these `totals`, whatever the caps say.

    With a `factor`, each cost is that many times the one recorded, rounded up. No total is below what was charged, nor
    below the one before, unless the recost that stated that one is named in `corrects`. What `added` does not fit under
    a cap raises the account's excess.
    """

    seq: int
    actor: str
    time: int
    mechanism: str
    factor: Fraction | None
    corrects: int | None
    totals: tuple[Total, ...]
    added: tuple[Added, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A remark on an entry: `reason` is the remark. Nothing else changes."""

    seq: int
    actor: str
    time: int
    entry: int
    reason: str


Entry: TypeAlias = (
    Open
    | Derive
    | Revise
    | Cap
    | Quota
    | Reserve
    | Refine
    | Start
    | Settle
    | Stop
    | Void
    | Forfeit
    | Recover
    | Rotate
    | Schedule
    | Draw
    | Leave
    | Amend
    | Supersede
    | Recost
    | Flag
)

_OPENED = codecs.row(Opened, codecs.ordinal, codecs.digest, codecs.amount, codecs.amount)
_CAPPED = codecs.row(Capped, codecs.ordinal, codecs.amount)
_CHARGE = codecs.row(Charge, codecs.ordinal, codecs.amount, codecs.amount)
_BALANCE = codecs.row(Balance, codecs.ordinal, *(codecs.amount,) * 8)
_MECHANISM = codecs.record(
    MechanismFacts, {"kind": codecs.one_of(KINDS), "scale": codecs.positive, "lattice": codecs.positive}
)
_SENSITIVITY = codecs.record(SensitivityFacts, {"l1": codecs.positive, "l2_squared": codecs.positive})
_CHARGES = codecs.sorted_rows(_CHARGE)
_STRAY = codecs.row(Stray, codecs.ordinal, codecs.digest)
_FACTS = {"cells": codecs.ordinal, "charges": _CHARGES, "mechanism": _MECHANISM, "sensitivity": _SENSITIVITY}
_STEPS = codecs.record(Steps, {**_FACTS, "questions": codecs.listed(codecs.digest)})
_TOTAL = codecs.row(Total, codecs.ordinal, codecs.ordinal, codecs.amount, codecs.amount)
_ADDED = codecs.row(Added, codecs.ordinal, codecs.difference, codecs.difference)

_COMMON = {"seq": codecs.ordinal, "actor": codecs.digest}
_REQUEST = {**_COMMON, "request": codecs.ordinal}
_CORRECTION = {**_COMMON, "time": codecs.amount, "reason": codecs.digest}
_ADMITTED = {
    **_COMMON,
    **_FACTS,
    "time": codecs.amount,
    **dict.fromkeys(("key", "question", "contract"), codecs.digest),
    "private": codecs.bit,
}

# The closed table: a tag means one class for ever; a new meaning is a new tag.
_SCHEMAS: dict[str, tuple[type[Any], dict[str, codecs.Codec]]] = {
    "open": (
        Open,
        {
            **_COMMON,
            "time": codecs.amount,
            **dict.fromkeys(("contract", "name", "dataset", "terms", "secret"), codecs.digest),
            "measure": codecs.one_of(MEASURES),
            "order": codecs.optional(codecs.positive),
            "accounts": codecs.sorted_rows(_OPENED),
        },
    ),
    "derive": (
        Derive,
        {
            **_COMMON,
            "time": codecs.amount,
            **dict.fromkeys(("dataset", "reason"), codecs.digest),
            "parents": codecs.sorted_digests(least=0),
        },
    ),
    "quota": (
        Quota,
        {
            **_COMMON,
            "time": codecs.amount,
            **dict.fromkeys(("name", "reason"), codecs.digest),
            "members": codecs.sorted_digests(),
            "accounts": codecs.sorted_rows(_CAPPED, least=0),
        },
    ),
    "revise": (
        Revise,
        {
            **_COMMON,
            "time": codecs.amount,
            **dict.fromkeys(("contract", "revised", "terms", "reason"), codecs.digest),
            "accounts": codecs.sorted_rows(_OPENED),
        },
    ),
    "cap": (
        Cap,
        {
            **_COMMON,
            "time": codecs.amount,
            "reason": codecs.digest,
            "accounts": codecs.sorted_rows(_CAPPED),
        },
    ),
    "reserve": (Reserve, {**_ADMITTED, "fresh": codecs.bit}),
    "refine": (Refine, {**_ADMITTED, "parent": codecs.ordinal}),
    "start": (Start, _REQUEST),
    "settle": (
        Settle,
        {
            **_REQUEST,
            "answer": codecs.digest,
            "charges": _CHARGES,
            "accounts": codecs.sorted_rows(_BALANCE),
        },
    ),
    "stop": (
        Stop,
        {
            **_REQUEST,
            "answer": codecs.digest,
            "charges": _CHARGES,
            "accounts": codecs.sorted_rows(_BALANCE),
            "mechanism": _MECHANISM,
            "sensitivity": _SENSITIVITY,
            "scales": codecs.listed(codecs.positive, least=0),
        },
    ),
    "void": (Void, _REQUEST),
    "forfeit": (Forfeit, _REQUEST),
    "recover": (
        Recover,
        {
            **_COMMON,
            "time": codecs.amount,
            "reason": codecs.digest,
            "strays": codecs.sorted_rows(_STRAY, "size", "root"),
            "charges": codecs.sorted_rows(_CHARGE, least=0),
        },
    ),
    "rotate": (
        Rotate,
        {
            **_COMMON,
            "time": codecs.amount,
            **dict.fromkeys(("reason", "old", "new"), codecs.digest),
            **dict.fromkeys(("by_old", "by_new"), codecs.signature),
        },
    ),
    "schedule": (
        Schedule,
        {
            **_COMMON,
            "time": codecs.amount,
            **dict.fromkeys(("contract", "name"), codecs.digest),
            "steps": codecs.listed(_STEPS),
        },
    ),
    "draw": (Draw, {**_ADMITTED, "fresh": codecs.bit, **dict.fromkeys(("schedule", "step"), codecs.ordinal)}),
    "leave": (
        Leave,
        {**_COMMON, "time": codecs.amount, "reason": codecs.digest, "schedule": codecs.ordinal},
    ),
    "amend": (
        Amend,
        {
            **_CORRECTION,
            "entry": codecs.ordinal,
            "field": codecs.one_of(FIELDS),
            "text": codecs.optional(codecs.digest),
        },
    ),
    "supersede": (
        Supersede,
        {**_CORRECTION, "request": codecs.ordinal, "by": codecs.optional(codecs.ordinal)},
    ),
    "recost": (
        Recost,
        {
            **_CORRECTION,
            "mechanism": codecs.one_of(KINDS),
            "factor": codecs.optional(codecs.positive),
            "corrects": codecs.optional(codecs.ordinal),
            "totals": codecs.sorted_rows(_TOTAL, "request", "account"),
            "added": codecs.sorted_rows(_ADDED),
        },
    ),
    "flag": (Flag, {**_CORRECTION, "entry": codecs.ordinal}),
}
_TAGS = {kind: tag for tag, (kind, _) in _SCHEMAS.items()}

# The same, laid out for those who read and write: every entry goes this way.
_Reader: TypeAlias = tuple[str, Callable[[Any], Any]]
_READERS: dict[str, tuple[type[Any], list[_Reader], frozenset[str]]] = {
    tag: (kind, [(name, codec.read) for name, codec in schema.items()], frozenset({"format", "tag", *schema}))
    for tag, (kind, schema) in _SCHEMAS.items()
}
_WRITERS = {kind: ({"format": FORMAT, "tag": tag}, codecs.writers(schema)) for tag, (kind, schema) in _SCHEMAS.items()}
_ADMITTING = ("reserve", "draw", "refine")
_SEQ, _ACTOR = codecs.ordinal.read, codecs.digest.read
_SIGNATURES = frozenset({"by_old", "by_new"})


def encode(entry: Entry) -> bytes:
    """For every entry that `decode` would accept, returns its only encoding; raises InternalError for any other.

    The writer is checked by the reader, so nothing can be written that a later reading refuses.
    """
    try:
        record = _record(entry)
        # As `decode` reads it, but for the way into bytes and back: what is read so holds integers, tags and digests.
        same = _values(record) == (type(entry), vars(entry))
        data = canonical.encode_plain(record)
    except (TypeError, ValueError, KeyError, AttributeError, VerificationError):
        same = False
    if not same:
        tag = _TAGS[type(entry)]
        raise InternalError(
            f"a {tag} entry holds something other than numbers, closed tags and digests in their ranges"
        )
    return data


def decode(data: bytes) -> Entry:
    """For every encoding that `encode` writes, returns its entry; raises VerificationError for any other bytes.

    LedgerFormatError, if the entry is of a newer format or has a tag that only a newer version understands.
    """
    return _entry(canonical.decode(data))


def _entry(record: object) -> Entry:
    kind, values = _values(record)
    entry: Entry = kind(**values)
    return entry


def _values(record: object) -> tuple[type[Any], dict[str, Any]]:
    """The kind of an entry, and each of its fields."""
    if not isinstance(record, dict):
        raise VerificationError("an entry of the ledger is not a record")
    kind, readers, names = _READERS[_tag(record)]
    if record.keys() != names:
        odd = ", ".join(sorted(record.keys() ^ names))
        raise VerificationError(f"{_place(record)}: fields missing or unknown: {odd}")
    try:
        values = {name: read(record[name]) for name, read in readers}
    except (TypeError, ValueError):
        raise VerificationError(
            f"{_place(record)}: field {_unreadable(record, readers)!r} is not in its form or range"
        ) from None
    return kind, values


def held(data: bytes) -> tuple[int, str, tuple[Charge, ...]]:
    """For every encoding of a `Reserve`, `Draw` or `Refine`, returns its sequence, actor and charges alone.

    They are read as `decode` reads them, and nothing is said of the rest: a third of the time. Raises VerificationError
    for other bytes.
    """
    try:
        record = json.loads(data)
        if _tag(record) not in _ADMITTING:
            raise ValueError
        return _SEQ(record["seq"]), _ACTOR(record["actor"]), _CHARGES.read(record["charges"])
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        raise VerificationError("an entry that should hold a charge is damaged") from None


def secret_commitment(secret: bytes) -> str:
    """The digest by which an `open` entry binds the data set's 256-bit secret without showing it."""
    return hashlib.sha256(b"parco/secret/1\x00" + secret).hexdigest()


def rotation_statement(entry: Rotate) -> bytes:
    """What both keys sign: the entry without its signatures, so that they hold at this place and for this reason."""
    record = _record(entry)
    return b"parco/rotate/1\x00" + canonical.encode({name: record[name] for name in record.keys() - _SIGNATURES})


def total_of(found: Iterable[tuple[Steps, int]]) -> tuple[Charge, ...]:
    """What steps are charged together, each so many times, rising by account."""
    costs, deltas = Counter[int](), Counter[int]()
    for steps, times in found:
        for charge in steps.charges:
            costs[charge.account] += times * charge.cost
            deltas[charge.account] += times * charge.delta
    return tuple(Charge(account, costs[account], deltas[account]) for account in sorted(costs))


def _record(entry: Entry) -> dict[str, object]:
    head, writers = _WRITERS[type(entry)]
    return codecs.written(head | vars(entry), writers)


def _tag(record: dict[str, Any]) -> str:
    written = record.get("format")
    if type(written) is not int or written != FORMAT:
        raise LedgerFormatError(
            f"{_place(record)} has format {written!r}; this version reads format {FORMAT}: upgrade parco"
        )
    tag = record.get("tag")
    if not isinstance(tag, str) or tag not in _SCHEMAS:
        raise LedgerFormatError(f"{_place(record)} has a tag that this version does not know: upgrade parco")
    return tag


def _unreadable(record: dict[str, Any], readers: Iterable[_Reader]) -> str:
    """The first field that its reader refuses."""
    for name, read in readers:
        try:
            read(record[name])
        except (TypeError, ValueError):
            return name
    raise InternalError("a record was refused, and each of its fields is taken")


def _place(record: dict[str, Any]) -> str:
    seq = record.get("seq")
    return f"entry {seq}" if type(seq) is int else "an entry"
