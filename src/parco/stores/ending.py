"""Requests that end without an answer, one or a hundred thousand: forfeited where they had started, else given back.

Whoever opens a ledger may have to end all that a process left behind. So they are read and written by the batch, each
entry is made when its turn comes, and of each request is kept what its end needs, once for those that are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sqlalchemy import ARRAY, BigInteger, Connection, any_, bindparam, literal_column, or_, select, update

from parco.errors import InternalError, VerificationError
from parco.ledger.entries import Charge, Draw, Forfeit, Void, held
from parco.stores import drawing, quotas, reading, tables
from parco.stores.append import append_each, last_entry
from parco.stores.requests import lift, not_in
from parco.stores.statements import Change, Prepared

__all__ = ["end", "forfeit", "void"]

_BATCH = 10_000

_REQUESTS = tables.requests.c
_OPEN = ("reserved", "started")
# Between two ends, in one statement however many are wanted: what lies between them is open, and so of little number.
_BETWEEN = Prepared(
    select(_REQUESTS.request, _REQUESTS.state, tables.entries.c.body)
    .join_from(tables.requests, tables.entries, tables.entries.c.seq == _REQUESTS.request)
    .where(
        or_(*(_REQUESTS.state == literal_column(f"'{state}'") for state in _OPEN)),
        _REQUESTS.request >= bindparam("first"),
        _REQUESTS.request <= bindparam("final"),
    )
)
_STATE = select(_REQUESTS.state).where(_REQUESTS.request == bindparam("number"))
_END = update(tables.requests).where(_REQUESTS.state == bindparam("before")).values(state=bindparam("after"))
_END_ALL = Change(
    each=_END.where(_REQUESTS.request == bindparam("number")),
    listed=_END.where(_REQUESTS.request == any_(bindparam("numbers", type_=ARRAY(BigInteger)))),
)


class _Held(NamedTuple):
    """What a request's end needs of the entry that admitted it; the whole of one that goes back to its schedule."""

    actor: str
    charges: tuple[Charge, ...]
    draw: Draw | None = None


def forfeit(connection: Connection, request: int) -> None:
    """Spends the whole reservation of a started request that has no answer."""
    end(connection, {request: "started"})


def void(connection: Connection, request: int) -> None:
    """Gives back the whole reservation of a request that never started."""
    end(connection, {request: "reserved"})


def end(connection: Connection, states: Mapping[int, str]) -> None:
    """Forfeits the requests that are started and voids those that are reserved, however many, in rising order."""
    order, last = sorted(states), last_entry(connection) if states else 0
    for place in range(0, len(order), _BATCH):
        batch = {number: states[number] for number in order[place : place + _BATCH]}
        _end(connection, batch, last=last)
        last += len(batch)


def _end(connection: Connection, states: Mapping[int, str], *, last: int) -> None:
    found = _held(connection, states)
    for before, after in (("started", "forfeited"), ("reserved", "void")):
        numbers = [number for number, state in states.items() if state == before]
        if _END_ALL.count(connection, numbers, {"before": before, "after": after}) != len(numbers):
            raise InternalError(f"some of these requests are no longer {before}")
    # What was drawn and never started goes back to its schedule, which holds the charge as before.
    kept = drawing.give_back(connection, [(number, one.draw) for number, one in found.items() if one.draw is not None])
    lift(connection, _sums((states[number], one.charges) for number, one in found.items() if number not in kept))
    voided = [found[number] for number, state in states.items() if state == "reserved"]
    quotas.give_back(connection, [(one.actor, one.charges) for one in voided])
    append_each(connection, _endings(found, states, last=last), last=last)


def _held(connection: Connection, states: Mapping[int, str]) -> dict[int, _Held]:
    """What each request had reserved that is in the state given; the error that says it, if one is in another."""
    ends = {"first": min(states), "final": max(states)}
    found, alike = dict[int, _Held](), dict[_Held, _Held]()
    for number, state, body in _BETWEEN.rows(connection, ends):
        if states.get(number) == state:
            one = _given_back(body, number) if state == "reserved" else _spent(body, number)
            found[number] = alike.setdefault(one, one)
    for number, state in states.items():
        if number not in found:
            raise not_in(state, number, connection.scalar(_STATE, {"number": number}))
    return found


def _given_back(body: bytes, number: int) -> _Held:
    one = reading.admitted(body, number)
    return _Held(one.actor, one.charges, one if isinstance(one, Draw) else None)


def _spent(body: bytes, number: int) -> _Held:
    # Of what is spent in any case, only what is spent: a crash may have left a hundred thousand.
    seq, actor, charges = held(body)
    if seq != number:
        raise VerificationError(f"entry {number} is not the reserve entry it is used as", entry=number)
    return _Held(actor, charges)


def _sums(ended: Iterable[tuple[str, tuple[Charge, ...]]]) -> list[tuple[int, int, int, int, int]]:
    """Of each account, rising: what goes out of its reserved amounts, cost and delta, and what of it is spent."""
    sums: dict[int, tuple[int, int, int, int]] = {}
    for state, charges in ended:
        for charge in charges:
            cost, delta, cost_spent, delta_spent = sums.get(charge.account, (0, 0, 0, 0))
            cost, delta = cost + charge.cost, delta + charge.delta
            if state == "started":
                cost_spent, delta_spent = cost_spent + charge.cost, delta_spent + charge.delta
            sums[charge.account] = cost, delta, cost_spent, delta_spent
    return [(account, *amounts) for account, amounts in sorted(sums.items())]


def _endings(found: Mapping[int, _Held], states: Mapping[int, str], *, last: int) -> Iterator[Forfeit | Void]:
    for seq, (number, state) in enumerate(states.items(), start=last + 1):
        kind = Forfeit if state == "started" else Void
        yield kind(seq=seq, actor=found[number].actor, request=number)
