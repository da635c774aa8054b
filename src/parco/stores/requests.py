"""A request from begin to end: the only statements that move money, all inside a caller's write transaction.

Spending is one conditional UPDATE for each account, in rising order, in the same transaction as the entries that say
so. Nothing here reads an amount, compares it, and writes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Set
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select, update

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
from parco.ledger.entries import Balance, Charge, Forfeit, Reserve, Settle, Start, Void
from parco.measure import COST_UNIT, DELTA_UNIT, decimal_text
from parco.stores import reading, tables, texts
from parco.stores.append import append
from parco.stores.owner import Owner, current_owner, is_alive
from parco.stores.records import FORFEITED, Pending, Request, Settled, Started, Stored
from parco.stores.signing import accounts_of, secret_of

__all__ = ["dead_requests", "decide", "forfeit", "settle", "void"]

_SALT_BYTES = 16
_KEY_BYTES = 16

_REQUESTS, _ACCOUNTS, _OWNERS = tables.requests.c, tables.accounts.c, tables.owners.c


def dead_requests(connection: Connection, rival: Request | None = None, *, in_hand: Set[int]) -> list[int]:
    """Started requests whose owner is gone; with `rival`, only those that stand in its way by key or question.

    This process owns what is `in_hand`, and nothing else: what it started and then let go is dead, too.
    """
    query = select(tables.owners).join(tables.requests).where(_REQUESTS.state == "started").order_by(_OWNERS.request)
    if rival is not None:
        question = texts.find(connection, "question", rival.question)
        key = None if rival.key is None else texts.find(connection, "key", rival.key)
        query = query.where(or_(_REQUESTS.question == question, _REQUESTS.key == key))
    rows = connection.execute(query).all()
    mine = current_owner()
    owners = {row.request: Owner(row.host, row.boot, row.pid, row.started) for row in rows}
    return [
        number for number, owner in owners.items() if (number not in in_hand if owner == mine else not is_alive(owner))
    ]


def decide(
    connection: Connection, request: Request, *, serves: Callable[[Settled], bool], owner: Owner
) -> Started | Stored | Pending:
    """What a request comes to: a known key first, then a known question, then a new charge."""
    _check_kind(connection, private=request.private)
    known = None if request.key is None else texts.find(connection, "key", request.key)
    if known is not None:
        row = connection.execute(select(tables.requests).where(_REQUESTS.key == known)).one()
        return _same_key(connection, row, request)
    question = texts.find(connection, "question", request.question)
    if not request.fresh and question is not None:
        found = _same_question(connection, question, serves)
        if found is not None:
            return found
    return _reserve(connection, request, owner)


def _check_kind(connection: Connection, *, private: bool) -> None:
    """One release with noise from a tape makes every claim on its ledger void, so such a ledger takes no others."""
    others = select(_REQUESTS.request).where(_REQUESTS.private != int(private)).limit(1)
    if connection.scalar(others) is not None:
        raise RequestError(
            "this ledger holds releases whose noise came from a tape: they are not private, and no other release may"
            " stand beside them; use another ledger"
            if private
            else "releases with noise from a tape need a ledger of their own: this one holds private ones"
        )


def settle(connection: Connection, request: int, *, answer: bytes) -> Stored:
    """Charges what was reserved and stores the answer; raises ForfeitedError if the request was forfeited before."""
    reserve = _leave(connection, request, "started", "started")
    for charge in reserve.charges:
        _lift(connection, charge, spent=True)
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = canonical.salted_digest(salt, _text(answer))
    balances = tuple(_balance(connection, charge.account) for charge in reserve.charges)
    position = append(
        connection,
        lambda seq: Settle(
            seq=seq,
            actor=reserve.actor,
            request=request,
            answer=digest,
            charges=reserve.charges,
            accounts=balances,
        ),
    )
    changed = update(tables.requests).where(_REQUESTS.request == request)
    connection.execute(changed.values(state="settled", settled=position))
    connection.execute(insert(tables.answers).values(request=request, salt=salt, body=answer))
    return reading.stored(connection, request)


def forfeit(connection: Connection, request: int) -> None:
    """Spends the whole reservation of a started request that has no answer."""
    reserve = _leave(connection, request, "started", "forfeited")
    for charge in reserve.charges:
        _lift(connection, charge, spent=True)
    append(connection, lambda seq: Forfeit(seq=seq, actor=reserve.actor, request=request))


def void(connection: Connection, request: int) -> None:
    """Gives back the whole reservation of a request that never started."""
    reserve = _leave(connection, request, "reserved", "void")
    for charge in reserve.charges:
        _lift(connection, charge, spent=False)
    append(connection, lambda seq: Void(seq=seq, actor=reserve.actor, request=request))


def _same_key(connection: Connection, row: Row[tuple[object, ...]], request: Request) -> Stored | Pending:
    old = reading.entry(connection, row.request, Reserve)
    digests = {kind: texts.find(connection, kind, getattr(request, kind)) for kind in ("actor", "question")}
    body = {name: getattr(request, name) for name in _BODY} | digests
    if row.state == "void" or body != {name: getattr(old, name) for name in body}:
        raise KeyReuseError("this key was used for another request: use a new key", request=row.request)
    if row.state == "settled":
        return reading.stored(connection, row.request)
    if row.state == "forfeited":
        raise ForfeitedError(FORFEITED, request=row.request)
    return Pending(row.request)


_BODY = ("contract", "fresh", "private", "mechanism", "sensitivity", "cells", "charges")


def _same_question(connection: Connection, question: str, serves: Callable[[Settled], bool]) -> Stored | Pending | None:
    best, answered = reading.sharpest(connection, question, serves)
    if best is not None:
        return best
    is_open = _REQUESTS.state.in_(("reserved", "started"))
    query = select(_REQUESTS.request).where(_REQUESTS.question == question, is_open).limit(1)
    waiting = connection.scalar(query)
    if waiting is not None:
        return Pending(waiting)
    if answered:
        raise SharperError(
            "the stored answer to this question is less sharp than asked: take it by asking for less,"
            " or pay in full for another with fresh=True (--fresh)"
        )
    return None


def _reserve(connection: Connection, request: Request, owner: Owner) -> Started:
    _check_signed(connection, request)
    for charge in request.charges:
        secret_of(connection, charge.account)
        _set_aside(connection, charge)
    names: dict[str, Any] = {
        "actor": texts.intern(connection, "actor", request.actor),
        "key": texts.intern(connection, "key", request.key or secrets.token_hex(_KEY_BYTES)),
        "question": texts.intern(connection, "question", request.question),
    }
    body: dict[str, Any] = {name: getattr(request, name) for name in _BODY}
    number = append(connection, lambda seq: Reserve(seq=seq, time=request.time, **body, **names))
    append(connection, lambda seq: Start(seq=seq, actor=names["actor"], request=number))
    row = {"request": number, "key": names["key"], "question": names["question"], "state": "started"}
    row["private"] = int(request.private)
    connection.execute(insert(tables.requests).values(row))
    connection.execute(insert(tables.owners).values(request=number, **vars(owner)))
    return Started(number)


def _check_signed(connection: Connection, request: Request) -> None:
    columns = tables.contracts.c
    dataset = connection.scalar(select(columns.dataset).where(columns.contract == request.contract))
    if dataset is None:
        raise _not_current(connection, request.contract)
    own = {row.account for row in accounts_of(connection, dataset)}
    charged = [charge.account for charge in request.charges]
    if own.isdisjoint(charged) or charged != sorted(set(charged)):
        raise InternalError("charges must rise by account and include one of the contract's own")


def _not_current(connection: Connection, contract: str) -> ContractChangedError | NotSignedError:
    known = select(tables.texts.c.digest).where(tables.texts.c.digest == contract)
    if connection.scalar(known) is None:
        return NotSignedError("this contract was never signed on this ledger: run `parco sign`")
    return ContractChangedError("this contract was revised meanwhile: read its new version, and ask again")


def _set_aside(connection: Connection, charge: Charge) -> None:
    """The one statement that spends: the room is checked by the same UPDATE that takes it.

    Under the cap alone, without the excess, so that an overdrawn account takes no new spending. Written as differences,
    since a sum of three 64-bit integers could overflow.
    """
    taken = (
        update(tables.accounts)
        .where(
            _ACCOUNTS.account == charge.account,
            charge.cost <= _ACCOUNTS.cap - _ACCOUNTS.spent - _ACCOUNTS.reserved,
            charge.delta <= _ACCOUNTS.delta_cap - _ACCOUNTS.delta_spent - _ACCOUNTS.delta_reserved,
        )
        .values(
            reserved=_ACCOUNTS.reserved + charge.cost,
            delta_reserved=_ACCOUNTS.delta_reserved + charge.delta,
        )
    )
    if connection.execute(taken).rowcount != 1:
        raise _no_room(connection, charge)


def _no_room(connection: Connection, charge: Charge) -> BudgetError:
    row = next((row for row in reading.account_rows(connection) if row.account == charge.account), None)
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


def _leave(connection: Connection, request: int, state: str, after: str) -> Reserve:
    """Takes a request out of `state` by one conditional UPDATE, and returns what it had reserved."""
    left = update(tables.requests).where(_REQUESTS.request == request, _REQUESTS.state == state).values(state=after)
    if connection.execute(left).rowcount != 1:
        found = connection.scalar(select(_REQUESTS.state).where(_REQUESTS.request == request))
        if found == "forfeited":
            raise ForfeitedError(FORFEITED, request=request)
        raise InternalError(f"request {request} is {found or 'unknown'}, not {state}")
    connection.execute(delete(tables.owners).where(_OWNERS.request == request))
    return reading.entry(connection, request, Reserve)


def _lift(connection: Connection, charge: Charge, *, spent: bool) -> None:
    """Takes a charge out of the reserved amounts, into the spent ones if `spent`; the CHECKs catch a false amount."""
    cost, delta = (charge.cost, charge.delta) if spent else (0, 0)
    lifted = update(tables.accounts).where(_ACCOUNTS.account == charge.account)
    connection.execute(
        lifted.values(
            reserved=_ACCOUNTS.reserved - charge.cost,
            delta_reserved=_ACCOUNTS.delta_reserved - charge.delta,
            spent=_ACCOUNTS.spent + cost,
            delta_spent=_ACCOUNTS.delta_spent + delta,
        )
    )


def _balance(connection: Connection, account: int) -> Balance:
    columns = [_ACCOUNTS[name] for name in Balance.__dataclass_fields__]
    return Balance(*connection.execute(select(*columns).where(_ACCOUNTS.account == account)).one())


def _text(answer: bytes) -> str:
    try:
        return answer.decode()
    except UnicodeDecodeError:
        raise InternalError("an answer is stored as UTF-8 text") from None


def _cost_text(units: int) -> str:
    return decimal_text(Fraction(units) * COST_UNIT)


def _delta_text(units: int) -> str:
    return decimal_text(Fraction(units) * DELTA_UNIT)
