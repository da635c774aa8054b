"""A request from begin to end: the only statements that move money, all inside a caller's write transaction.

Spending is one conditional UPDATE for each account, in rising order, in the same transaction as the entries that say
so. Nothing here reads an amount, compares it, and writes. The statements of a release are made once and run with
parameters: making them anew would take longer than the disk does.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, func, literal_column, or_, select, update

from parco import canonical
from parco.errors import (
    BudgetError,
    ContractChangedError,
    ForfeitedError,
    InternalError,
    KeyReuseError,
    NotSignedError,
    RefinedError,
    RequestError,
    SharperError,
    SupersededError,
)
from parco.ledger.accounts import Admitted, sharpens
from parco.ledger.entries import Balance, Charge, Draw, Entry, Open, Refine, Reserve, Settle, Start, Stop
from parco.ledger.stops import why_not_stopped
from parco.measure import COST_UNIT, DELTA_UNIT, decimal_text
from parco.stores import drawing, lineage, quotas, reading, streams, tables, texts
from parco.stores.append import append_all
from parco.stores.lease import Lease, Watch
from parco.stores.owner import Owner, current_owner, is_alive
from parco.stores.records import FORFEITED, Pending, Request, Reserved, Settled, Started, Stopped, Stored
from parco.stores.signing import check_secret
from parco.stores.statements import ONE, Ahead, Insertion, Prepared, together

__all__ = [
    "Look",
    "ahead_of_begin",
    "ahead_of_settle",
    "check_charged",
    "decide",
    "ended",
    "give_back",
    "lift",
    "look",
    "not_in",
    "set_aside",
    "settle",
    "start",
    "stopped_error",
    "superseded_error",
]

_SALT_BYTES = 16
_KEY_BYTES = 16

_REQUESTS, _ACCOUNTS, _OWNERS = tables.requests.c, tables.accounts.c, tables.owners.c
_TEXTS = tables.texts.c
_OPEN = ("reserved", "started")
_KINDS = ("actor", "question", "key")

_OPEN_ONES = (
    select(_REQUESTS.request, _REQUESTS.state, _OWNERS.host, _OWNERS.boot, _OWNERS.pid, _OWNERS.started)
    .join_from(tables.requests, tables.owners, isouter=True)
    .where(or_(*(_REQUESTS.state == literal_column(f"'{state}'") for state in _OPEN)))
    .order_by(_REQUESTS.request)
)
_OPEN_REQUESTS = Prepared(_OPEN_ONES)
_RIVALS = Prepared(
    _OPEN_ONES.where(or_(_REQUESTS.question == bindparam("question"), _REQUESTS.key == bindparam("key_digest")))
)


class _Open(NamedTuple):
    """An open request, and, from column `_OWNER` on, who started it; None where nobody did."""

    request: int
    state: str
    host: str | None
    boot: str | None
    pid: int | None
    started: int | None


_OWNER = 2
_NUMBERED = _OPEN_ONES.where(_REQUESTS.request.in_(bindparam("numbers", expanding=True)))


_LEASES = select(tables.leases).join(tables.requests).where(_REQUESTS.state == "reserved")
_ENTRY = select(tables.entries.c.body).where(tables.entries.c.seq == bindparam("seq"))
_BY_KEY = select(tables.requests).where(_REQUESTS.key == bindparam("key_digest"))
_LAST = select(func.max(tables.entries.c.seq)).scalar_subquery()
# All requests of a ledger are of one kind, so that any of them tells it.
_KIND = select(_REQUESTS.private).limit(ONE).scalar_subquery()


class _Charged(NamedTuple):
    """An account that a request names, behind what is the same for all of them: the kind of the ledger's requests, its
    last entry, the contract's data set, an account that this descends from and that is not charged, a quota in force,
    and an interactive request that is open on one of the accounts, None where there is none. Behind it, for the first
    account, the entry that opened it.
    """

    kind: int | None
    last: int
    signed: str | None
    missing: int | None
    shared: int | None
    running: int | None
    account: int
    dataset: str
    opened: int
    secret: bytes | None
    signing: bytes | None


@lru_cache(maxsize=64)
def _charged(count: int) -> Prepared:
    """So many accounts, each behind the request's texts as `_Charged` has them."""
    numbers: list[BindParameter[int]] = [bindparam(f"at_{place}") for place in range(count)]
    signed = select(tables.contracts.c.dataset).where(tables.contracts.c.contract == bindparam("contract"))
    named = [select(_TEXTS.digest).where(_TEXTS.lookup == bindparam(kind, type_=_TEXTS.lookup.type)) for kind in _KINDS]
    opening = select(tables.entries.c.body).where(
        tables.entries.c.seq == _ACCOUNTS.opened, _ACCOUNTS.account == bindparam("first", type_=tables.Integer)
    )
    return Prepared(
        select(
            *(text.scalar_subquery() for text in named),
            _KIND,
            _LAST,
            signed.scalar_subquery(),
            lineage.missing(numbers),
            quotas.ANY,
            streams.running(numbers),
            _ACCOUNTS.account,
            _ACCOUNTS.dataset,
            _ACCOUNTS.opened,
            tables.secrets.c.secret,
            opening.scalar_subquery(),
        )
        .join_from(tables.accounts, tables.secrets, isouter=True)
        .where(_ACCOUNTS.account.in_(numbers))
        .order_by(_ACCOUNTS.account)
    )


_RESERVE = Prepared(
    select(_REQUESTS.state, tables.entries.c.body, _LAST)
    .join_from(tables.requests, tables.entries, tables.entries.c.seq == _REQUESTS.request)
    .where(_REQUESTS.request == bindparam("number"))
)

# The one statement that spends: the room is checked by the same UPDATE that takes it. Under the cap alone, without the
# excess, so that an overdrawn account takes no new spending. Written as differences, since a sum of three 64-bit
# integers could overflow.
_SET_ASIDE = Prepared(
    update(tables.accounts)
    .where(
        _ACCOUNTS.account == bindparam("number"),
        bindparam("cost", type_=tables.Integer) <= _ACCOUNTS.cap - _ACCOUNTS.spent - _ACCOUNTS.reserved,
        bindparam("delta", type_=tables.Integer)
        <= _ACCOUNTS.delta_cap - _ACCOUNTS.delta_spent - _ACCOUNTS.delta_reserved,
    )
    .values(
        reserved=_ACCOUNTS.reserved + bindparam("cost", type_=tables.Integer),
        delta_reserved=_ACCOUNTS.delta_reserved + bindparam("delta", type_=tables.Integer),
    )
)
# Takes a charge out of the reserved amounts, into the spent ones where it was spent; the CHECKs catch a false amount.
_LIFT = (
    update(tables.accounts)
    .where(_ACCOUNTS.account == bindparam("number"))
    .values(
        reserved=_ACCOUNTS.reserved - bindparam("cost", type_=tables.Integer),
        delta_reserved=_ACCOUNTS.delta_reserved - bindparam("delta", type_=tables.Integer),
        spent=_ACCOUNTS.spent + bindparam("cost_spent", type_=tables.Integer),
        delta_spent=_ACCOUNTS.delta_spent + bindparam("delta_spent_now", type_=tables.Integer),
    )
)
_LIFT_ONE = Prepared(_LIFT.returning(*(_ACCOUNTS[name] for name in Balance.__dataclass_fields__)))
_MOVE = Prepared(
    update(tables.requests)
    .where(_REQUESTS.request == bindparam("number"), _REQUESTS.state == bindparam("before"))
    .values(state=bindparam("after"), settled=bindparam("position"))
)
# What an answer is refined by, and whether anything recovered a lost past, in which it may have been refined as well.
_REFINING = (
    select(
        _REQUESTS.state,
        _REQUESTS.settled,
        tables.entries.c.body,
        select(tables.refinements.c.request)
        .where(tables.refinements.c.parent == bindparam("parent"))
        .scalar_subquery()
        .label("child"),
        select(func.max(tables.strays.c.recovered)).scalar_subquery().label("recovered"),
    )
    .select_from(tables.requests.join(tables.entries, tables.entries.c.seq == _REQUESTS.request))
    .where(_REQUESTS.request == bindparam("parent"))
)
_STATE = select(_REQUESTS.state).where(_REQUESTS.request == bindparam("request"))
# Only where the one before ended without an answer.
_OTHER_REFINEMENT = (
    update(tables.refinements)
    .where(
        tables.refinements.c.parent == bindparam("of"),
        tables.refinements.c.request.in_(select(_REQUESTS.request).where(_REQUESTS.state.in_(("void", "forfeited")))),
    )
    .values(request=bindparam("number"))
)
_RECOSTED = Prepared(
    select(func.max(tables.corrections.c.seq)).where(
        tables.corrections.c.about == bindparam("number"), tables.corrections.c.tag == literal_column("'recost'")
    )
)
_NEW_REQUEST, _NEW_OWNER = Insertion(tables.requests), Insertion(tables.owners)
_NEW_LEASE, _NEW_ANSWER = Insertion(tables.leases), Insertion(tables.answers)
_NEW_REFINEMENT = Insertion(tables.refinements)


@dataclass(frozen=True)
class Look:
    """What the ledger knows about a request: digests of its actor, key and question, and the open ones in its way.

    `charged` has a row for each account that the request names; none where the ledger has none of them. `near` are the
    open ones beside which it does not run.
    """

    request: Request
    names: Mapping[str, str]
    charged: Sequence[_Charged]
    rivals: Sequence[_Open]
    near: Sequence[_Open] = ()


def look(connection: Connection, request: Request) -> Look:
    """Finds a request's texts, and the open requests with its key or question."""
    rows = _charged(len(request.charges)).rows(connection, _asked(request))
    names = dict(zip(_KINDS, rows[0], strict=False)) if rows else texts.find_all(connection, _texts(request))
    names = {kind: digest for kind, digest in names.items() if digest is not None}
    rivals: Sequence[_Open] = ()
    if "key" in names or "question" in names:
        open_ones = {"question": names.get("question"), "key_digest": names.get("key")}
        rivals = [_Open(*row) for row in _RIVALS.rows(connection, open_ones)]
    charged = [_Charged(*row[len(_KINDS) :]) for row in rows]
    return Look(request, names, charged, rivals, _near(connection, request, charged))


def _near(connection: Connection, request: Request, charged: Sequence[_Charged]) -> Sequence[_Open]:
    """An interactive request that is open on its accounts; of one that is interactive itself, all open ones there."""
    if streams.is_interactive(request.mechanism):
        numbers = streams.open_on(connection, request.charges)
    else:
        numbers = [] if not charged or charged[0].running is None else [charged[0].running]
    return [_Open(*row) for row in connection.execute(_NUMBERED, {"numbers": numbers})] if numbers else ()


def _asked(request: Request) -> dict[str, object]:
    """What `_charged` is asked for a request."""
    wanted = _texts(request)
    lookups = {kind: texts.lookup(kind, wanted[kind]) if kind in wanted else None for kind in _KINDS}
    return _sought([charge.account for charge in request.charges], request.contract) | lookups


def _sought(accounts: Sequence[int], contract: str) -> dict[str, object]:
    """What `_charged` is asked for, but for the texts."""
    numbers: dict[str, object] = {f"at_{place}": account for place, account in enumerate(accounts)}
    return numbers | {"contract": contract, "first": min(accounts, default=0)}


def ended(
    connection: Connection, found: Sequence[Look] | None = None, *, in_hand: Set[int], watch: Watch, gone: Set[str]
) -> dict[int, str]:
    """Open requests that nobody will end, with their states: all, or of `found` those in its way.

    Started ones whose owner is gone, or was on a host declared `gone`; reserved ones whose lease is over. This process
    owns what is `in_hand`, and nothing else: what it started and then let go is dead, too.
    """
    rows: Sequence[tuple[Any, ...]]
    if found is None:
        rows = _OPEN_REQUESTS.rows(connection)
    else:
        rows = [row for one in found for row in (*one.rivals, *one.near)]
    if not rows:
        return {}
    mine = tuple(vars(current_owner()).values())
    # Asked once for each owner, who may have left a hundred thousand.
    alive, dead, waiting = dict[tuple[Any, ...], bool](), dict[int, str](), set[int]()
    for row in rows:
        request, state, owner = row[0], row[1], row[_OWNER:]
        if state == "reserved":
            waiting.add(request)
            continue
        if owner not in alive:
            alive[owner] = _is_alive(owner, gone)
        if not alive[owner] or (owner == mine and request not in in_hand):
            dead[request] = state
    leases = connection.execute(_LEASES).all() if waiting else ()
    over = {
        row.request: "reserved"
        for row in leases
        if row.request in waiting
        and (row.host in gone or watch.is_over(row.request, Lease(row.host, row.boot, row.given, row.seconds)))
    }
    return dict(sorted((dead | over).items()))


def _is_alive(owner: tuple[Any, ...], gone: Set[str]) -> bool:
    """Whether an owner's columns name one that may be there; all are None where there is none."""
    return owner[0] is not None and owner[0] not in gone and is_alive(Owner(*owner))


def decide(
    connection: Connection, found: Look, *, serves: Callable[[Settled], bool], holder: Owner | Lease
) -> Started | Reserved | Stored | Pending:
    """What a request comes to: a known key first, then a known question, then a new charge.

    What refines an answer is served by any that is sharp enough, too. With an owner, the charge is followed by its
    start; with a lease, it waits for it.
    """
    request = found.request
    _check_kind(found.charged[0].kind if found.charged else None, private=request.private)
    if "key" in found.names:
        return _same_key(connection, found)
    if not request.fresh and "question" in found.names:
        known = _same_question(connection, found, serves)
        if known is not None:
            return known
    return _reserve(connection, found, holder)


def start(connection: Connection, request: int, *, owner: Owner) -> None:
    """Starts a reserved request: from here on its owner may read the data. RequestError if it was given back."""
    reserve, last = _held(connection, request, "reserved")
    _move(connection, request, before="reserved", after="started")
    append_all(connection, [lambda seq: Start(seq=seq, actor=reserve.actor, request=request)], last=last)
    _NEW_OWNER.put(connection, {"request": request, **vars(owner)})


def ahead_of_begin(request: Request) -> Ahead:
    """What `look` asks first."""
    return _charged(len(request.charges)), _asked(request)


def ahead_of_settle(request: int) -> Ahead:
    """What `settle` asks first."""
    return _RESERVE, {"number": request}


def settle(connection: Connection, request: int, *, answer: bytes, stopped: Stopped | None = None) -> Stored:
    """Charges what was reserved, or what a ladder cost that stopped before its end, and stores the answer.

    Raises ForfeitedError if the request was forfeited before, or recosted while it ran and stopped; InternalError for
    a stop that is not in its ladder.
    """
    reserve, last = _held(connection, request, "started")
    realised = reserve.charges if stopped is None else _realised(connection, reserve, stopped)
    amounts = list(zip(reserve.charges, realised, strict=True))
    balances = tuple(_spend(connection, held, real) for held, real in amounts)
    if stopped is not None:
        rest = [Charge(held.account, held.cost - real.cost) for held, real in amounts]
        quotas.give_back(connection, [(reserve.actor, rest)])
    salt = secrets.token_bytes(_SALT_BYTES)
    facts: dict[str, Any] = {
        "seq": last + 1,
        "actor": reserve.actor,
        "request": request,
        "answer": canonical.salted_digest(salt, _text(answer)),
        "charges": realised,
        "accounts": balances,
    }
    entry: Settle = (
        Settle(**facts)
        if stopped is None
        else Stop(**facts, mechanism=stopped.mechanism, sensitivity=reserve.sensitivity, scales=stopped.scales)
    )
    with together(connection):
        (position,) = append_all(connection, [lambda _: entry], last=last)
        _move(connection, request, before="started", after="settled", position=position)
        _NEW_ANSWER.put(connection, {"request": request, "salt": salt, "body": answer})
    return Stored(
        request=request,
        position=position,
        reserve=reserve,
        charges=realised,
        accounts=balances,
        before=reading.before(connection, reserve),
        stopped=stopped,
        answer=answer,
    )


def _realised(connection: Connection, reserve: Admitted, stopped: Stopped) -> tuple[Charge, ...]:
    why = why_not_stopped(reserve, stopped.mechanism, stopped.charges, scales=stopped.scales)
    if why is not None:
        raise InternalError(f"request {reserve.seq} does not end so: {why}")
    ((recost,),) = _RECOSTED.rows(connection, {"number": reserve.seq})
    if recost is not None:
        # That stated a total of the whole; nobody said what a part of it costs.
        raise ForfeitedError(
            f"request {reserve.seq} was found by entry {recost}, while it ran, to cost more than it was charged: it is"
            " charged whole, and has no answer; ask anew",
            request=reserve.seq,
            recost=recost,
        )
    return stopped.charges


def _check_kind(kind: int | None, *, private: bool) -> None:
    """One release with noise from a tape makes every claim on its ledger void, so such a ledger takes no others."""
    if kind is not None and kind != int(private):
        raise RequestError(
            "this ledger holds releases whose noise came from a tape: they are not private, and no other release may"
            " stand beside them; use another ledger"
            if private
            else "releases with noise from a tape need a ledger of their own: this one holds private ones"
        )


def _same_key(connection: Connection, found: Look) -> Stored | Pending:
    row = connection.execute(_BY_KEY, {"key_digest": found.names["key"]}).one()
    reserve = reading.admitted(connection.scalar(_ENTRY, {"seq": row.request}), row.request)
    digests = {kind: found.names.get(kind) for kind in ("actor", "question")}
    body = {name: getattr(found.request, name) for name in _body(found.request)} | digests
    schedule = reserve.schedule if isinstance(reserve, Draw) else None
    if body != {name: getattr(reserve, name, None) for name in body} or schedule != found.request.schedule:
        raise KeyReuseError("this key was used for another request: use a new key", request=row.request)
    if row.state == "void":
        raise KeyReuseError(
            "the request of this key was given back before it started, and nothing was charged: use a new key",
            request=row.request,
        )
    if row.state == "settled":
        return reading.stored(connection, row.request)
    if row.state == "forfeited":
        raise ForfeitedError(FORFEITED, request=row.request)
    return Pending(row.request)


def _body(request: Request) -> tuple[str, ...]:
    """The fields that a request shares with the entry that admits it."""
    return (*_BODY, "fresh" if request.parent is None else "parent")


_BODY = ("contract", "private", "mechanism", "sensitivity", "cells", "charges")


def _same_question(connection: Connection, found: Look, serves: Callable[[Settled], bool]) -> Stored | Pending | None:
    best, known = reading.sharpest(connection, found.names["question"], serves)
    if best is not None:
        return best
    if found.rivals:
        return Pending(found.rivals[0].request)
    parent, standing = found.request.parent, [one.request for one in known if one.replaced is None]
    if parent in standing:
        return None
    if standing and parent is None:
        raise SharperError(
            "the stored answer to this question is less sharp than asked: take it by asking for less, sharpen it for"
            " the difference with `parco refine`, or pay in full for another with fresh=True (--fresh)"
        )
    replaced = [one for one in known if one.replaced is not None and parent in (None, one.request)]
    if replaced:
        raise superseded_error(replaced[-1])
    return None


def superseded_error(answer: Settled) -> SupersededError:
    """What is told to whoever asks a question whose every stored answer was superseded or withdrawn."""
    instead = f"is superseded by release {answer.replaced}" if answer.replaced else "was withdrawn"
    return SupersededError(
        f"the stored answer to this question, release {answer.request}, {instead}: `parco show` says why, and"
        " still shows it; pay in full for another with fresh=True (--fresh)",
        release=answer.request,
        by=answer.replaced or None,
    )


def _reserve(connection: Connection, found: Look, holder: Owner | Lease) -> Started | Reserved:
    request, starts = found.request, isinstance(holder, Owner)
    charged = _check_charged(connection, found)
    if found.near:
        raise streams.busy_error(request.mechanism, found.near[0].request)
    last = charged.last
    step = None if request.schedule is None else drawing.find(connection, request, found.names.get("question"))
    old = None if request.parent is None else _check_refines(connection, found, request.parent)
    for charge in request.charges:
        # A step's charge was set aside with its schedule; on an overdrawn account nothing begins all the same.
        set_aside(connection, charge if step is None else Charge(charge.account, 0, 0))
    if charged.shared is not None:
        quotas.take(connection, found.names.get("actor"), request.charges)
    wanted = {"key": secrets.token_hex(_KEY_BYTES), **_texts(request)}
    with together(connection):
        names: dict[str, Any] = texts.intern_all(connection, wanted, known=found.names)
        body: dict[str, Any] = {name: getattr(request, name) for name in _body(request)} | names
        body |= {} if step is None else {"schedule": request.schedule, "step": step}
        kind = Refine if request.parent is not None else Reserve if step is None else Draw
        makes: list[Callable[[int], Entry]] = [lambda seq: kind(seq=seq, time=request.time, **body)]
        if starts:
            makes.append(lambda seq: Start(seq=seq, actor=names["actor"], request=last + 1))
        number = append_all(connection, makes, last=last)[0]
        row = {"request": number, "key": names["key"], "question": names["question"], "settled": None}
        row |= {"state": "started" if starts else "reserved", "private": int(request.private)}
        _NEW_REQUEST.put(connection, row)
        (_NEW_OWNER if starts else _NEW_LEASE).put(connection, {"request": number, **vars(holder)})
        if request.parent is not None and old is None:
            _NEW_REFINEMENT.put(connection, {"parent": request.parent, "request": number})
    if streams.is_interactive(request.mechanism):
        streams.take(connection, request.charges, request=number)
    if step is not None:
        drawing.draw(connection, request.schedule or 0, step, request=number)
    if old is not None:
        other = {"of": request.parent, "number": number}
        if connection.execute(_OTHER_REFINEMENT, other).rowcount != 1:
            raise InternalError(f"request {request.parent} is refined already")
    return Started(number) if starts else Reserved(number)


def _check_refines(connection: Connection, found: Look, parent: int) -> int | None:
    """The request that refined the same answer before and came to nothing, None if there was none.

    Raises RefinedError where it did not, and RequestError where nothing may refine that answer.
    """
    row = connection.execute(_REFINING, {"parent": parent}).one_or_none()
    if row is None or row.state != "settled":
        raise RequestError(f"there is no answer to request {parent} that could be refined", request=parent)
    if isinstance(reading.entry(connection, row.settled, Settle), Stop):
        raise stopped_error(parent)
    if row.child is not None and connection.scalar(_STATE, {"request": row.child}) not in ("void", "forfeited"):
        raise RefinedError(f"the answer to request {parent} was refined by request {row.child}", request=row.child)
    if row.recovered is not None and parent < row.recovered:
        raise RequestError(
            f"request {parent} is older than the recovery of entry {row.recovered}: in the past that was lost, its"
            " answer may have been refined, and it must not be twice; ask anew with fresh=True (--fresh)",
            request=parent,
        )
    old = reading.admitted(row.body, parent)
    if old.question != found.names.get("question") or not sharpens(old, found.request):
        raise InternalError(f"request {parent} answered another question, or is no less sharp")
    return row.child if row.child is None else int(row.child)


def stopped_error(request: int) -> RequestError:
    """What is told to whoever would refine an answer at which a ladder stopped: its price is that of another law."""
    return RequestError(
        f"release {request} is the answer of a ladder that was reserved whole and stopped: it is not refined. Repeats"
        " of it stay free; ask anew with fresh=True (--fresh) for a sharper one, in a run also with reserve=True"
        " (--reserve)",
        request=request,
    )


def _texts(request: Request) -> dict[str, str]:
    wanted = {"actor": request.actor, "question": request.question, "key": request.key}
    return {kind: text for kind, text in wanted.items() if text is not None}


def set_aside(connection: Connection, charge: Charge) -> None:
    """Reserves a charge by the one statement that spends, or raises BudgetError."""
    values = {"number": charge.account, "cost": charge.cost, "delta": charge.delta}
    if _SET_ASIDE.count(connection, values) != 1:
        raise _no_room(connection, charge)


def give_back(connection: Connection, charges: Sequence[Charge]) -> None:
    """Takes charges out of the reserved amounts, and spends nothing."""
    lift(connection, [(one.account, one.cost, one.delta, 0, 0) for one in charges])


def lift(connection: Connection, amounts: Sequence[tuple[int, int, int, int, int]]) -> None:
    """Of each account, rising: takes cost and delta out of the reserved amounts, and spends what is then given."""
    if amounts:
        connection.execute(_LIFT, [_lifted(*one) for one in amounts])


def check_charged(connection: Connection, *, contract: str, charges: Sequence[Charge]) -> None:
    """Whether the contract stands, the charges are its own and those of all that its data set descends from, and the
    secrets of their data sets are at hand."""
    numbers = [charge.account for charge in charges]
    sought = _sought(numbers, contract) | dict.fromkeys(_KINDS)
    rows = [_Charged(*row[len(_KINDS) :]) for row in _charged(len(numbers)).rows(connection, sought)]
    _check_accounts(connection, rows, contract=contract, numbers=numbers)


def _check_charged(connection: Connection, found: Look) -> _Charged:
    """The same for a request that was looked at; returns the first account's row."""
    numbers = [charge.account for charge in found.request.charges]
    _check_accounts(connection, found.charged, contract=found.request.contract, numbers=numbers)
    return found.charged[0]


def _check_accounts(connection: Connection, rows: Sequence[_Charged], *, contract: str, numbers: Sequence[int]) -> None:
    signed = rows[0].signed if rows else None
    if signed is None:
        _check_signed(connection, contract)
    if numbers != [row.account for row in rows] or all(row.dataset != signed for row in rows):
        raise InternalError("charges must rise by account and include one of the contract's own")
    if rows[0].missing is not None:
        raise InternalError("a release on derived data charges all accounts that they descend from")
    # Accounts that were opened together share their data set's secret: as a rule, one entry bound all of them.
    bodies = {row.opened: row.signing for row in rows if row.signing is not None}
    for opened, secret in {(row.opened, row.secret): None for row in rows}:
        if opened in bodies:
            check_secret(reading.decoded(bodies[opened], opened, Open), secret)
        else:
            check_secret(reading.entry(connection, opened, Open), secret)


def _check_signed(connection: Connection, contract: str) -> None:
    signed = select(tables.contracts.c.contract).where(tables.contracts.c.contract == contract)
    if connection.scalar(signed) is None:
        known = select(tables.texts.c.digest).where(tables.texts.c.digest == contract)
        if connection.scalar(known) is None:
            raise NotSignedError("this contract was never signed on this ledger: run `parco sign`")
        raise ContractChangedError("this contract was revised meanwhile: read its new version, and ask again")


def _no_room(connection: Connection, charge: Charge) -> BudgetError:
    row = reading.account_row(connection, charge.account)
    if row is None:
        raise InternalError(f"there is no account {charge.account} on this ledger")
    asked, left, cap = (_cost_text(units) for units in (charge.cost, row.remaining, row.cap))
    facts = {"account": row.title, "measure": str(row.measure), "asked": asked, "remaining": left, "cap": cap}
    if charge.cost == charge.delta == 0:
        text = f"{row.title!r} is overdrawn: nothing is drawn from its schedules before its cap is raised"
    elif charge.cost > row.remaining:
        text = f"this would be charged as {asked} {row.measure}, and {left} of {cap} is left on {row.title!r}"
    else:
        asked, left, cap = (_delta_text(units) for units in (charge.delta, row.delta_remaining, row.delta_cap))
        text = f"this would be charged as delta {asked}, and {left} of {cap} is left on {row.title!r}"
        facts |= {"asked_delta": asked, "remaining_delta": left, "cap_delta": cap}
    return BudgetError(f"{text}; nothing was charged", **facts)


def _held(connection: Connection, request: int, state: str) -> tuple[Admitted, int]:
    """What a request in the state given had reserved, and the ledger's last entry; else the error that says it."""
    ((found, body, last),) = _RESERVE.rows(connection, {"number": request}) or ((None, None, 0),)
    if found != state:
        raise not_in(state, request, found)
    return reading.admitted(body, request), last


def not_in(state: str, request: int, found: str | None) -> ForfeitedError | RequestError | InternalError:
    """The error for a request that is not in the state in which it can be ended or started."""
    if found == "forfeited":
        return ForfeitedError(FORFEITED, request=request)
    if found == "void":
        return RequestError(
            f"request {request} was given back before it started, and nothing was charged: ask again", request=request
        )
    return InternalError(f"request {request} is {found or 'unknown'}, not {state}")


def _move(connection: Connection, request: int, *, before: str, after: str, position: int | None = None) -> None:
    """One conditional UPDATE takes a request from one state to the next: nobody else can have done so."""
    values = {"number": request, "before": before, "after": after, "position": position}
    _MOVE.put_one(connection, values, otherwise=InternalError(f"request {request} is no longer {before}"))


def _lifted(account: int, cost: int, delta: int, cost_spent: int, delta_spent: int) -> dict[str, int]:
    return {
        "number": account,
        "cost": cost,
        "delta": delta,
        "cost_spent": cost_spent,
        "delta_spent_now": delta_spent,
    }


def _spend(connection: Connection, held: Charge, real: Charge) -> Balance:
    """Lifts what was held, spends what it really cost, and returns the account as it then stands."""
    (row,) = _LIFT_ONE.rows(connection, _lifted(held.account, held.cost, held.delta, real.cost, real.delta))
    return Balance(*row)


def _text(answer: bytes) -> str:
    try:
        return answer.decode()
    except UnicodeDecodeError:
        raise InternalError("an answer is stored as UTF-8 text") from None


def _cost_text(units: int) -> str:
    return decimal_text(Fraction(units) * COST_UNIT)


def _delta_text(units: int) -> str:
    return decimal_text(Fraction(units) * DELTA_UNIT)
