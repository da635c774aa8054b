"""Quotas: what the requests of some actors, together, may take of accounts. Fairness, and no guarantee.

An actor is a name that somebody gave, and names can be invented: what is promised of the data rests on the account
alone. A quota is enforced as an account is, by a conditional UPDATE in the transaction that admits the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from parco.errors import QuotaError, RequestError
from parco.ledger.entries import WHOLE, Capped, Charge, Quota, decode
from parco.measure import COST_UNIT, Measure, decimal_text
from parco.stores import tables, texts
from parco.stores.append import append
from parco.stores.records import Allotment, QuotaRow
from parco.stores.statements import ONE

__all__ = ["ANY", "give_back", "rows", "set_quota", "take"]

_QUOTAS, _MEMBERS, _AMOUNTS = tables.quotas.c, tables.quota_members.c, tables.quota_amounts.c

ANY = select(_QUOTAS.quota).where(_QUOTAS.replaced.is_(None)).limit(ONE).scalar_subquery()
"""Null on a ledger without quotas, whose requests then pay nothing for them."""

_OWN = (
    select(_QUOTAS.quota)
    .join(tables.quota_members, _MEMBERS.quota == _QUOTAS.quota)
    .where(_QUOTAS.replaced.is_(None), _MEMBERS.actor == bindparam("of"))
)
_LIMITS = (
    select(tables.quota_amounts)
    .where(_AMOUNTS.quota.in_(_OWN), _AMOUNTS.account.in_(bindparam("charged", expanding=True)))
    .order_by(_AMOUNTS.quota, _AMOUNTS.account)
)
# As for accounts: the room is checked by the same UPDATE that takes it.
_TAKE = (
    update(tables.quota_amounts)
    .where(
        _AMOUNTS.quota == bindparam("by"),
        _AMOUNTS.account == bindparam("number"),
        bindparam("cost", type_=tables.Integer) <= _AMOUNTS.amount - _AMOUNTS.used,
    )
    .values(used=_AMOUNTS.used + bindparam("cost", type_=tables.Integer))
)
_GIVE_BACK = (
    update(tables.quota_amounts)
    .where(_AMOUNTS.quota.in_(_OWN), _AMOUNTS.account == bindparam("number"))
    .values(used=_AMOUNTS.used - bindparam("cost", type_=tables.Integer))
)
_ENDING = tables.entries.alias()
_TAKING = (
    select(tables.entries.c.body, _ENDING.c.body)
    .join(tables.requests, tables.requests.c.request == tables.entries.c.seq)
    .outerjoin(_ENDING, _ENDING.c.seq == tables.requests.c.settled)
    .where(tables.requests.c.state != "void")
)
_IN_FORCE = (
    select(
        _QUOTAS.quota,
        _QUOTAS.name,
        _AMOUNTS.account,
        _AMOUNTS.amount,
        _AMOUNTS.used,
        *(tables.accounts.c[name] for name in ("dataset", "label", "measure")),
    )
    .join_from(tables.quotas, tables.quota_amounts)
    .join(tables.accounts)
    .where(_QUOTAS.replaced.is_(None))
    .order_by(_QUOTAS.quota, _AMOUNTS.account)
)


def set_quota(connection: Connection, wanted: Allotment) -> list[QuotaRow]:
    """Makes or replaces the quota of a name, or lifts it where `amount` is None; returns it as it stands.

    What its members' requests took before counts. Raises RequestError for an unknown data set, or one that has to be
    named, and for a quota to lift that is not there; then nothing was changed.
    """
    named = texts.find(connection, "quota", wanted.name)
    old = connection.scalar(select(_QUOTAS.quota).where(_QUOTAS.name == named, _QUOTAS.replaced.is_(None)))
    accounts: tuple[Capped, ...] = ()
    if wanted.amount is None:
        members = _members(connection, old, wanted.name)
    else:
        accounts = tuple(Capped(number, wanted.amount) for number in _accounts(connection, wanted.dataset))
        members = tuple(sorted({texts.intern(connection, "actor", member) for member in wanted.members}))
    given = {"actor": wanted.actor, "quota": wanted.name, "reason": wanted.reason}
    names = {kind: texts.intern(connection, kind, text) for kind, text in given.items()}
    facts = {"actor": names["actor"], "name": names["quota"], "reason": names["reason"]}
    seq = append(connection, lambda seq: Quota(seq=seq, time=wanted.time, members=members, accounts=accounts, **facts))
    if old is not None:
        connection.execute(update(tables.quotas).where(_QUOTAS.quota == old).values(replaced=seq))
    connection.execute(insert(tables.quotas).values(quota=seq, name=names["quota"], replaced=None))
    connection.execute(insert(tables.quota_members), [{"quota": seq, "actor": member} for member in members])
    if accounts:
        used = _used(connection, members)
        amounts = [
            {"quota": seq, "account": row.account, "amount": row.cap, "used": used[row.account]} for row in accounts
        ]
        connection.execute(insert(tables.quota_amounts), amounts)
    return [row for row in rows(connection) if row.position == seq]


def take(connection: Connection, actor: str | None, charges: Sequence[Charge]) -> None:
    """Counts a request's charges on all quotas of its actor's digest; QuotaError where one of them has no room.

    An actor without a digest was never named, and is in none.
    """
    costs = {charge.account: charge.cost for charge in charges}
    if actor is None:
        return
    for row in connection.execute(_LIMITS, {"of": actor, "charged": list(costs)}).all():
        values = {"by": row.quota, "number": row.account, "cost": costs[row.account]}
        if connection.execute(_TAKE, values).rowcount != 1:
            raise _refusal(connection, row, cost=costs[row.account])


def give_back(connection: Connection, given: Sequence[tuple[str, Sequence[Charge]]]) -> None:
    """Takes off their actors' quotas what requests gave back: those that never started, and ladders that stopped."""
    sums = Counter[tuple[str, int]]()
    for actor, charges in given:
        sums.update({(actor, charge.account): charge.cost for charge in charges})
    if sums and connection.scalar(select(ANY)) is not None:
        values = [{"of": actor, "number": number, "cost": cost} for (actor, number), cost in sorted(sums.items())]
        connection.execute(_GIVE_BACK, values)


def rows(connection: Connection) -> list[QuotaRow]:
    """The quotas in force, each with every account that it limits, in the order in which they were made."""
    found = connection.execute(_IN_FORCE).all()
    if not found:
        return []
    members: dict[int, list[str]] = {}
    for row in connection.execute(select(tables.quota_members).order_by(_MEMBERS.quota, _MEMBERS.actor)).all():
        members.setdefault(row.quota, []).append(texts.read(connection, row.actor) or "(erased)")
    return [
        QuotaRow(
            position=row.quota,
            name=texts.read(connection, row.name) or f"quota {row.quota}",
            members=tuple(sorted(members[row.quota])),
            number=row.account,
            account=_title(connection, row),
            measure=Measure.parse(row.measure),
            amount=row.amount,
            used=row.used,
        )
        for row in found
    ]


def _members(connection: Connection, old: int | None, name: str) -> tuple[str, ...]:
    if old is None or connection.scalar(select(_AMOUNTS.quota).where(_AMOUNTS.quota == old).limit(1)) is None:
        raise RequestError(f"there is no quota {name!r} to lift: `parco quota --list` shows those in force")
    return tuple(connection.scalars(select(_MEMBERS.actor).where(_MEMBERS.quota == old).order_by(_MEMBERS.actor)))


def _accounts(connection: Connection, dataset: str | None) -> list[int]:
    """The accounts of a data set; it need not be named where there is one alone."""
    accounts = tables.accounts.c
    known = list(dict.fromkeys(connection.scalars(select(accounts.dataset).order_by(accounts.account))))
    if dataset is None and len(known) > 1:
        names = ", ".join(texts.read(connection, digest) or "(erased)" for digest in known)
        raise RequestError(f"several data sets are on this ledger ({names}): say with --dataset which one is shared")
    chosen = known[0] if dataset is None and known else texts.find(connection, "dataset", dataset or "")
    if chosen not in known:
        raise RequestError("there is no such data set on this ledger: `parco budget` shows those that were signed")
    return list(
        connection.scalars(select(accounts.account).where(accounts.dataset == chosen).order_by(accounts.account))
    )


def _used(connection: Connection, members: Sequence[str]) -> Counter[int]:
    """What the requests of these actors took of each account so far, by their entries."""
    used, of = Counter[int](), set(members)
    for reserve, settle in connection.execute(_TAKING):
        # What was answered took what its last entry says, which is less than was reserved where a ladder stopped.
        entry: Any = decode(reserve if settle is None else settle)
        if entry.actor in of:
            used.update({charge.account: charge.cost for charge in entry.charges})
    return used


def _refusal(connection: Connection, limit: Row[Any], *, cost: int) -> QuotaError:
    row = next(one for one in rows(connection) if (one.position, one.number) == (limit.quota, limit.account))
    asked, left, amount = (decimal_text(Fraction(units) * COST_UNIT) for units in (cost, row.remaining, row.amount))
    return QuotaError(
        f"this would be charged as {asked} {row.measure}, and {left} of {amount} is left of the quota {row.name!r} on"
        f" {row.account!r}; nothing was charged. A quota shares the budget and protects nobody: ask for less, or have"
        " it changed with `parco quota`",
        quota=row.name,
        account=row.account,
        measure=str(row.measure),
        asked=asked,
        remaining=left,
        amount=amount,
    )


def _title(connection: Connection, row: Row[Any]) -> str:
    name, label = texts.read(connection, row.dataset), texts.read(connection, row.label)
    return f"{name}" if label == WHOLE else f"{name} / {label}"
