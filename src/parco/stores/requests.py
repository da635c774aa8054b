"""A request from begin to end: the only statements that move money, all inside a caller's write transaction.

Spending is one conditional UPDATE for each account, in rising order, in the same transaction as the entries that say
so. Nothing here reads an amount, compares it, and writes. The statements of a release are made once and run with
parameters: making them anew would take longer than the disk does.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, or_, select, update

from parco import canonical
from parco.errors import (
    BudgetError,
    ContractChangedError,
    ForfeitedError,
    InternalError,
    KeyReuseError,
    NotSignedError,
    RequestError,
    SharperError,
)
from parco.ledger.entries import Balance, Charge, Entry, Forfeit, Open, Reserve, Settle, Start, Stop, Void
from parco.ledger.stops import why_not_stopped
from parco.measure import COST_UNIT, DELTA_UNIT, decimal_text
from parco.stores import reading, tables, texts
from parco.stores.append import append_all, together
from parco.stores.lease import Lease, Watch
from parco.stores.owner import Owner, current_owner, is_alive
from parco.stores.records import FORFEITED, Pending, Request, Reserved, Settled, Started, Stopped, Stored
from parco.stores.signing import check_secret

__all__ = ["Look", "decide", "end", "ended", "forfeit", "look", "settle", "start", "void"]

_SALT_BYTES = 16
_KEY_BYTES = 16
_BATCH = 10_000

_REQUESTS, _ACCOUNTS, _OWNERS = tables.requests.c, tables.accounts.c, tables.owners.c
_OPEN = ("reserved", "started")

_OPEN_REQUESTS = (
    select(tables.requests, _OWNERS.host, _OWNERS.boot, _OWNERS.pid, _OWNERS.started)
    .join_from(tables.requests, tables.owners, isouter=True)
    .where(_REQUESTS.state.in_(_OPEN))
    .order_by(_REQUESTS.request)
)
_RIVALS = _OPEN_REQUESTS.where(
    or_(_REQUESTS.question == bindparam("question"), _REQUESTS.key == bindparam("key_digest"))
)
_LEASES = select(tables.leases).join(tables.requests).where(_REQUESTS.state == "reserved")
_BY_KEY = select(tables.requests).where(_REQUESTS.key == bindparam("key_digest"))
_LAST = select(func.max(tables.entries.c.seq)).scalar_subquery()
# All requests of a ledger are of one kind, so that any of them tells it.
_KIND_AND_LAST = select(select(_REQUESTS.private).limit(1).scalar_subquery().label("kind"), _LAST.label("last"))
_CHARGED = (
    select(
        _ACCOUNTS.account,
        _ACCOUNTS.dataset,
        _ACCOUNTS.opened,
        tables.secrets.c.secret,
        select(tables.contracts.c.dataset)
        .where(tables.contracts.c.contract == bindparam("contract"))
        .scalar_subquery()
        .label("signed"),
        select(tables.entries.c.body)
        .where(tables.entries.c.seq == _ACCOUNTS.opened, _ACCOUNTS.account == bindparam("first"))
        .scalar_subquery()
        .label("signing"),
    )
    .join_from(tables.accounts, tables.secrets, isouter=True)
    .where(_ACCOUNTS.account.in_(bindparam("charged", expanding=True)))
    .order_by(_ACCOUNTS.account)
)
_RESERVES = (
    select(_REQUESTS.request, _REQUESTS.state, tables.entries.c.body, _LAST.label("last"))
    .join_from(tables.requests, tables.entries, tables.entries.c.seq == _REQUESTS.request)
    .where(_REQUESTS.request.in_(bindparam("numbers", expanding=True)))
)

# The one statement that spends: the room is checked by the same UPDATE that takes it. Under the cap alone, without the
# excess, so that an overdrawn account takes no new spending. Written as differences, since a sum of three 64-bit
# integers could overflow.
_SET_ASIDE = (
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
_LIFT_ONE = _LIFT.returning(*(_ACCOUNTS[name] for name in Balance.__dataclass_fields__))
_MOVE = (
    update(tables.requests)
    .where(_REQUESTS.request == bindparam("number"), _REQUESTS.state == bindparam("before"))
    .values(state=bindparam("after"), settled=bindparam("position"))
)
_END = (
    update(tables.requests)
    .where(_REQUESTS.request.in_(bindparam("numbers", expanding=True)), _REQUESTS.state == bindparam("before"))
    .values(state=bindparam("after"))
)
_NEW_REQUEST, _NEW_OWNER = insert(tables.requests), insert(tables.owners)
_NEW_LEASE, _NEW_ANSWER = insert(tables.leases), insert(tables.answers)


@dataclass(frozen=True)
class Look:
    """What the ledger knows about a request: digests of its actor, key and question, and the open ones in its way."""

    request: Request
    names: Mapping[str, str]
    rivals: Sequence[Row[Any]]


def look(connection: Connection, request: Request) -> Look:
    """Finds a request's texts, and the open requests with its key or question."""
    names = texts.find_all(connection, _texts(request))
    if "key" not in names and "question" not in names:
        return Look(request, names, ())
    sought = {"question": names.get("question"), "key_digest": names.get("key")}
    return Look(request, names, connection.execute(_RIVALS, sought).all())


def ended(
    connection: Connection, found: Sequence[Look] | None = None, *, in_hand: Set[int], watch: Watch, gone: Set[str]
) -> dict[int, str]:
    """Open requests that nobody will end, with their states: all, or of `found` those in its way.

    Started ones whose owner is gone, or was on a host declared `gone`; reserved ones whose lease is over. This process
    owns what is `in_hand`, and nothing else: what it started and then let go is dead, too.
    """
    if found is None:
        rows: Sequence[Row[Any]] = connection.execute(_OPEN_REQUESTS).all()
    else:
        rows = [row for one in found for row in one.rivals]
    if not rows:
        return {}
    mine, alive = current_owner(), cache(is_alive)
    dead = {
        row.request: "started"
        for row in rows
        if row.state == "started" and not _is_held(row, mine, alive, in_hand=in_hand, gone=gone)
    }
    waiting = {row.request for row in rows if row.state == "reserved"}
    leases = connection.execute(_LEASES).all() if waiting else ()
    over = {
        row.request: "reserved"
        for row in leases
        if row.request in waiting
        and (row.host in gone or watch.is_over(row.request, Lease(row.host, row.boot, row.given, row.seconds)))
    }
    return dict(sorted((dead | over).items()))


def _is_held(row: Row[Any], mine: Owner, alive: Callable[[Owner], bool], *, in_hand: Set[int], gone: Set[str]) -> bool:
    if row.host is None or row.host in gone:
        return False
    owner = Owner(row.host, row.boot, row.pid, row.started)
    return row.request in in_hand if owner == mine else alive(owner)


def decide(
    connection: Connection, found: Look, *, serves: Callable[[Settled], bool], holder: Owner | Lease
) -> Started | Reserved | Stored | Pending:
    """What a request comes to: a known key first, then a known question, then a new charge.

    With an owner, the charge is followed by its start; with a lease, it waits for it.
    """
    request = found.request
    kind, last = connection.execute(_KIND_AND_LAST).one()
    _check_kind(kind, private=request.private)
    if "key" in found.names:
        return _same_key(connection, found)
    if not request.fresh and "question" in found.names:
        known = _same_question(connection, found, serves)
        if known is not None:
            return known
    return _reserve(connection, found, holder, last=last or 0)


def start(connection: Connection, request: int, *, owner: Owner) -> None:
    """Starts a reserved request: from here on its owner may read the data. RequestError if it was given back."""
    reserve, last = _held(connection, request, "reserved")
    _move(connection, request, before="reserved", after="started")
    append_all(connection, [lambda seq: Start(seq=seq, actor=reserve.actor, request=request)], last=last)
    connection.execute(_NEW_OWNER, {"request": request, **vars(owner)})


def settle(connection: Connection, request: int, *, answer: bytes, stopped: Stopped | None = None) -> Stored:
    """Charges what was reserved, or what a ladder cost that stopped before its end, and stores the answer.

    Raises ForfeitedError if the request was forfeited before, InternalError for a stop that is not in its ladder.
    """
    reserve, last = _held(connection, request, "started")
    realised = reserve.charges if stopped is None else _realised(reserve, stopped)
    spent = zip(reserve.charges, realised, strict=True)
    balances = tuple(_spend(connection, held, real) for held, real in spent)
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
        else Stop(**facts, mechanism=stopped.mechanism, sensitivity=reserve.sensitivity)
    )
    (position,) = append_all(connection, [lambda _: entry], last=last)
    _move(connection, request, before="started", after="settled", position=position)
    connection.execute(_NEW_ANSWER, {"request": request, "salt": salt, "body": answer})
    return Stored(
        request=request,
        position=position,
        reserve=reserve,
        charges=realised,
        accounts=balances,
        stopped_at=None if stopped is None else stopped.mechanism,
        answer=answer,
    )


def _realised(reserve: Reserve, stopped: Stopped) -> tuple[Charge, ...]:
    why = why_not_stopped(reserve, stopped.mechanism, stopped.charges)
    if why is not None:
        raise InternalError(f"request {reserve.seq} does not end so: {why}")
    return stopped.charges


def forfeit(connection: Connection, request: int) -> None:
    """Spends the whole reservation of a started request that has no answer."""
    end(connection, {request: "started"})


def void(connection: Connection, request: int) -> None:
    """Gives back the whole reservation of a request that never started."""
    end(connection, {request: "reserved"})


def end(connection: Connection, states: Mapping[int, str]) -> None:
    """Forfeits the requests that are started and voids those that are reserved, however many, in rising order."""
    order = sorted(states)
    for place in range(0, len(order), _BATCH):
        _end(connection, [(number, states[number]) for number in order[place : place + _BATCH]])


def _end(connection: Connection, states: Sequence[tuple[int, str]]) -> None:
    reserves, last = _held_all(connection, dict(states))
    for before, after in (("started", "forfeited"), ("reserved", "void")):
        numbers = [number for number, state in states if state == before]
        if numbers and connection.execute(_END, {"numbers": numbers, "before": before, "after": after}).rowcount != len(
            numbers
        ):
            raise InternalError(f"some of these requests are no longer {before}")
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for number, state in states:
        for charge in reserves[number].charges:
            spent = (charge.cost, charge.delta) if state == "started" else (0, 0)
            sums[charge.account] = [
                old + new for old, new in zip(sums[charge.account], (charge.cost, charge.delta, *spent), strict=True)
            ]
    connection.execute(_LIFT, [_lifted(account, *amounts) for account, amounts in sorted(sums.items())])
    makes = [_ending(reserves[number], state) for number, state in states]
    append_all(connection, makes, last=last)


def _ending(reserve: Reserve, state: str) -> Callable[[int], Entry]:
    kind = Forfeit if state == "started" else Void
    return lambda seq: kind(seq=seq, actor=reserve.actor, request=reserve.seq)


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
    old = reading.entry(connection, row.request, Reserve)
    digests = {kind: found.names.get(kind) for kind in ("actor", "question")}
    body = {name: getattr(found.request, name) for name in _BODY} | digests
    if body != {name: getattr(old, name) for name in body}:
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


_BODY = ("contract", "fresh", "private", "mechanism", "sensitivity", "cells", "charges")


def _same_question(connection: Connection, found: Look, serves: Callable[[Settled], bool]) -> Stored | Pending | None:
    best, answered = reading.sharpest(connection, found.names["question"], serves)
    if best is not None:
        return best
    if found.rivals:
        return Pending(found.rivals[0].request)
    if answered:
        raise SharperError(
            "the stored answer to this question is less sharp than asked: take it by asking for less,"
            " or pay in full for another with fresh=True (--fresh)"
        )
    return None


def _reserve(connection: Connection, found: Look, holder: Owner | Lease, *, last: int) -> Started | Reserved:
    request, starts = found.request, isinstance(holder, Owner)
    _check_charged(connection, request)
    for charge in request.charges:
        values = {"number": charge.account, "cost": charge.cost, "delta": charge.delta}
        if connection.execute(_SET_ASIDE, values).rowcount != 1:
            raise _no_room(connection, charge)
    wanted = {"key": secrets.token_hex(_KEY_BYTES), **_texts(request)}
    with together(connection):
        names: dict[str, Any] = texts.intern_all(connection, wanted, known=found.names)
        body: dict[str, Any] = {name: getattr(request, name) for name in _BODY} | names
        makes: list[Callable[[int], Entry]] = [lambda seq: Reserve(seq=seq, time=request.time, **body)]
        if starts:
            makes.append(lambda seq: Start(seq=seq, actor=names["actor"], request=last + 1))
        number = append_all(connection, makes, last=last)[0]
        row = {"request": number, "key": names["key"], "question": names["question"], "settled": None}
        row |= {"state": "started" if starts else "reserved", "private": int(request.private)}
        connection.execute(_NEW_REQUEST, row)
        connection.execute(_NEW_OWNER if starts else _NEW_LEASE, {"request": number, **vars(holder)})
    return Started(number) if starts else Reserved(number)


def _texts(request: Request) -> dict[str, str]:
    wanted = {"actor": request.actor, "question": request.question, "key": request.key}
    return {kind: text for kind, text in wanted.items() if text is not None}


def _check_charged(connection: Connection, request: Request) -> None:
    """Whether the contract stands, the charges are its own, and the secrets of their data sets are at hand."""
    charged = [charge.account for charge in request.charges]
    sought = {"charged": charged, "contract": request.contract, "first": min(charged, default=0)}
    rows = connection.execute(_CHARGED, sought).all()
    signed = rows[0].signed if rows else None
    if signed is None:
        _check_signed(connection, request.contract)
    if charged != [row.account for row in rows] or all(row.dataset != signed for row in rows):
        raise InternalError("charges must rise by account and include one of the contract's own")
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
    if charge.cost > row.remaining:
        text = f"this would be charged as {asked} {row.measure}, and {left} of {cap} is left on {row.title!r}"
    else:
        asked, left, cap = (_delta_text(units) for units in (charge.delta, row.delta_remaining, row.delta_cap))
        text = f"this would be charged as delta {asked}, and {left} of {cap} is left on {row.title!r}"
        facts |= {"asked_delta": asked, "remaining_delta": left, "cap_delta": cap}
    return BudgetError(f"{text}; nothing was charged", **facts)


def _held(connection: Connection, request: int, state: str) -> tuple[Reserve, int]:
    reserves, last = _held_all(connection, {request: state})
    return reserves[request], last


def _held_all(connection: Connection, states: Mapping[int, str]) -> tuple[dict[int, Reserve], int]:
    """What each request had reserved that is in the state given, and the ledger's last entry; the error that says it,
    if a request is in another state.
    """
    rows = {row.request: row for row in connection.execute(_RESERVES, {"numbers": list(states)})}
    for request, state in states.items():
        found = rows[request].state if request in rows else None
        if found != state:
            raise _not_in(state, request, found)
    last = max((row.last for row in rows.values()), default=0)
    return {request: reading.decoded(row.body, request, Reserve) for request, row in rows.items()}, last


def _not_in(state: str, request: int, found: str | None) -> ForfeitedError | RequestError | InternalError:
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
    if connection.execute(_MOVE, values).rowcount != 1:
        raise InternalError(f"request {request} is no longer {before}")


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
    values = _lifted(held.account, held.cost, held.delta, real.cost, real.delta)
    return Balance(*connection.execute(_LIFT_ONE, values).one())


def _text(answer: bytes) -> str:
    try:
        return answer.decode()
    except UnicodeDecodeError:
        raise InternalError("an answer is stored as UTF-8 text") from None


def _cost_text(units: int) -> str:
    return decimal_text(Fraction(units) * COST_UNIT)


def _delta_text(units: int) -> str:
    return decimal_text(Fraction(units) * DELTA_UNIT)
