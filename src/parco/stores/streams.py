"""Interactive mechanisms: while one is open, it has its accounts to itself, whichever process asks for them.

It answers again and again between its start and its end, each time by a secret of its process. That adaptive
composition also holds where others run in between is a theorem of its own (docs/mathematics.md, "Sparse vector"); here
nothing rests on it, as none is admitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, ScalarSelect, bindparam, exists, literal_column, or_, select, update

from parco.errors import BusyError
from parco.ledger.entries import INTERACTIVE, Charge, MechanismFacts
from parco.stores import reading, tables
from parco.stores.statements import ONE, Insertion

__all__ = ["busy_error", "is_interactive", "open_on", "running", "take"]

_STREAMS, _REQUESTS, _ENTRIES = tables.streams.c, tables.requests.c, tables.entries.c
_IS_OPEN = or_(*(_REQUESTS.state == literal_column(f"'{state}'") for state in ("reserved", "started")))
_OPEN = (
    select(_REQUESTS.request, _ENTRIES.body)
    .join_from(tables.requests, tables.entries, _ENTRIES.seq == _REQUESTS.request)
    .where(_IS_OPEN)
    .order_by(_REQUESTS.request)
)
_AGAIN = (
    update(tables.streams)
    .where(_STREAMS.account == bindparam("number"))
    .values(request=bindparam("by", type_=tables.Integer))
)
_NEW = Insertion(tables.streams)


def is_interactive(mechanism: MechanismFacts) -> bool:
    """Whether a request with these facts has its accounts to itself."""
    return mechanism.kind in INTERACTIVE


def running(numbers: Sequence[BindParameter[int]]) -> ScalarSelect[Any]:
    """The first open interactive request on one of these accounts; null where there is none."""
    # The few streams first: as a join, the planner may begin with all that was ever requested.
    is_open = exists().where(_REQUESTS.request == _STREAMS.request, _IS_OPEN).correlate(tables.streams)
    return (
        select(_STREAMS.request)
        .where(_STREAMS.account.in_(numbers), is_open)
        .order_by(_STREAMS.request)
        .limit(ONE)
        .scalar_subquery()
    )


def open_on(connection: Connection, charges: Sequence[Charge]) -> list[int]:
    """All open requests on the accounts of these charges."""
    accounts = {charge.account for charge in charges}
    return [
        row.request
        for row in connection.execute(_OPEN).all()
        if any(charge.account in accounts for charge in reading.admitted(row.body, row.request).charges)
    ]


def take(connection: Connection, charges: Sequence[Charge], *, request: int) -> None:
    """Gives an interactive request the accounts that it charges."""
    for charge in charges:
        if connection.execute(_AGAIN, {"number": charge.account, "by": request}).rowcount != 1:
            _NEW.put(connection, {"account": charge.account, "request": request})


def busy_error(mechanism: MechanismFacts, near: int) -> BusyError:
    """What is told to whoever comes while `near` is open, or is interactive and comes while anything is."""
    if is_interactive(mechanism):
        text = f"request {near} is open on this account, and an interactive mechanism runs on it alone: ask again later"
    else:
        text = f"request {near} is interactive and has this account to itself until it ends: ask again then"
    return BusyError(f"{text}; nothing was charged", request=near)
