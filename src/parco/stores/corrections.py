"""Corrections: acts of their own, with actor and reason, that leave every earlier entry and answer as it is.

A text is amended or erased, an answer superseded, releases are charged what they are now known to cost, an entry is
flagged, an account closed. What is corrected can be corrected again. All inside a caller's write transaction, and
everything that can be refused is refused before anything is changed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, case, func, insert, select, update

from parco.errors import RequestError, VerificationError
from parco.ledger.entries import (
    FIELDS,
    KINDS,
    Added,
    Amend,
    Cap,
    Capped,
    Charge,
    Entry,
    Flag,
    Forfeit,
    Recost,
    Settle,
    Start,
    Supersede,
    Total,
    Void,
    decode,
)
from parco.measure import UNITS_MAX
from parco.stores import ending, schedules, tables, texts
from parco.stores.append import append, last_entry
from parco.stores.records import Act, Closed, Recharge, Recosted, Recosting
from parco.stores.signing import accounts_of

__all__ = ["affected", "amend", "close", "flag", "recost", "supersede"]

_ACCOUNTS, _REQUESTS, _CORRECTIONS = tables.accounts.c, tables.requests.c, tables.corrections.c
_OWN = ("note", "title")
_LIVE = ("reserved", "started", "settled", "forfeited")

_BODY = select(tables.entries.c.body).where(tables.entries.c.seq == bindparam("seq"))
_ENDING = tables.entries.alias()
_CHARGED: Select[Any] = (
    select(_REQUESTS.request, _REQUESTS.state, tables.entries.c.body, _ENDING.c.body)
    .join_from(tables.requests, tables.entries, tables.entries.c.seq == _REQUESTS.request)
    .outerjoin(_ENDING, _ENDING.c.seq == _REQUESTS.settled)
    .where(_REQUESTS.state.in_(_LIVE))
    .order_by(_REQUESTS.request)
)
_RECOSTS = (
    select(tables.entries.c.body)
    .where(tables.entries.c.seq.in_(select(tables.recosts.c.seq)))
    .order_by(tables.entries.c.seq)
)

_PLUS, _DELTA_PLUS = bindparam("plus", type_=tables.Integer), bindparam("delta_plus", type_=tables.Integer)
_OVER = _ACCOUNTS.spent - _ACCOUNTS.cap + _PLUS + _ACCOUNTS.reserved
_DELTA_OVER = _ACCOUNTS.delta_spent - _ACCOUNTS.delta_cap + _DELTA_PLUS + _ACCOUNTS.delta_reserved
_FLOOR = case((_PLUS < 0, 0), else_=_ACCOUNTS.excess)
_DELTA_FLOOR = case((_DELTA_PLUS < 0, 0), else_=_ACCOUNTS.delta_excess)
# Spends whether there is room or not, as far as an account can count; the excess rises where the cap does not reach,
# and falls again with what is taken back. Under the write lock, and in one statement all the same.
_ADD = (
    update(tables.accounts)
    .where(
        _ACCOUNTS.account == bindparam("number"),
        _ACCOUNTS.spent <= bindparam("most", type_=tables.Integer) - _ACCOUNTS.reserved,
        _ACCOUNTS.delta_spent <= bindparam("delta_most", type_=tables.Integer) - _ACCOUNTS.delta_reserved,
    )
    .values(
        spent=_ACCOUNTS.spent + _PLUS,
        excess=case((_OVER > _FLOOR, _OVER), else_=_FLOOR),
        delta_spent=_ACCOUNTS.delta_spent + _DELTA_PLUS,
        delta_excess=case((_DELTA_OVER > _DELTA_FLOOR, _DELTA_OVER), else_=_DELTA_FLOOR),
    )
)
_CLOSE = (
    update(tables.accounts)
    .where(_ACCOUNTS.account == bindparam("number"), _ACCOUNTS.spent < _ACCOUNTS.cap - _ACCOUNTS.reserved)
    .values(cap=_ACCOUNTS.spent + _ACCOUNTS.reserved)
    .returning(_ACCOUNTS.cap)
)


def amend(connection: Connection, act: Act, *, entry: int, field: str, text: str | None) -> int:
    """Says how a text of an entry is to be read, or with None erases it, and all it was amended to, for good.

    Equal texts are one row: erased in one place, they are in all. Returns the amendment's sequence. RequestError where
    there is no such text, or it reads so already.
    """
    if field not in FIELDS:
        raise RequestError(f"an entry has none of this kind: name one of {', '.join(FIELDS)}")
    own = getattr(_corrected(connection, entry), field, None)
    if own is None and field not in _OWN:
        raise RequestError(f"entry {entry} has no {field}: `parco history` shows what it is")
    named = [] if own is None else [own]
    named += [one.text for one in _amendments(connection, entry, field) if one.text is not None]
    digest = None
    if text is None:
        if texts.erase(connection, named) == 0:
            raise RequestError(f"there is no {field} of entry {entry} to erase")
    else:
        if named and texts.read(connection, named[-1]) == texts.normal(text):
            raise RequestError(f"the {field} of entry {entry} reads so already")
        digest = texts.intern(connection, "remark", text)
    named_by = _names(connection, act)
    seq = append(
        connection, lambda seq: Amend(seq=seq, time=act.time, entry=entry, field=field, text=digest, **named_by)
    )
    _note(connection, seq, "amend", [entry])
    return seq


def supersede(connection: Connection, act: Act, *, request: int, by: int | None) -> int:
    """Puts another answer in the place of one, or none; by itself, it stands again. Returns the entry's sequence.

    RequestError where one of them has no answer, where that stands in its place already, or where each would stand for
    the other.
    """
    for number in (request, request if by is None else by):
        state = connection.scalar(select(_REQUESTS.state).where(_REQUESTS.request == number))
        if state != "settled":
            raise RequestError(f"{number} is no release that was answered: `parco history` lists them by their entry")
    wanted = by or 0
    if wanted == _instead(connection, request):
        told = "stands" if by == request else "was withdrawn" if by is None else f"is superseded by {by}"
        raise RequestError(f"release {request} {told} already")
    after = wanted
    while after not in (0, request) and (instead := _instead(connection, after)) != after:
        after = instead
    if after == request and by != request:
        raise RequestError(f"release {by} is superseded by {request} itself: first say that it stands again")
    names = _names(connection, act)
    seq = append(connection, lambda seq: Supersede(seq=seq, time=act.time, request=request, by=by, **names))
    _note(connection, seq, "supersede", [request], instead=wanted)
    return seq


def flag(connection: Connection, act: Act, *, entry: int) -> int:
    """Puts a remark on an entry, a correction among them; returns the sequence. RequestError if there is none such."""
    _corrected(connection, entry)
    names = _names(connection, act)
    seq = append(connection, lambda seq: Flag(seq=seq, time=act.time, entry=entry, **names))
    _note(connection, seq, "flag", [entry])
    return seq


def affected(connection: Connection, recosting: Recosting) -> Recosted:
    """For every recost, what it would do; nothing is changed. RequestError where it may not be done.

    Two statements and one pass over the reservations: from an entry's bytes, which have one form, its kind is told
    without reading the rest.
    """
    _check_recosting(recosting)
    kind = f'"mechanism":{{"kind":"{recosting.mechanism}",'.encode()
    only = None if recosting.only is None else frozenset(recosting.only)
    rows = [
        (number, state, bytes(body), bytes(end or body)) for number, state, body, end in connection.execute(_CHARGED)
    ]
    own = [row for row in rows if kind in row[2] and (only is None or row[0] in only)]
    missing = sorted((only or frozenset()) - {number for number, *_ in own})
    if missing:
        raise RequestError(f"no release by {recosting.mechanism} that was charged: {', '.join(map(str, missing))}")
    stated, recosts = _stated(connection)
    if recosting.corrects not in (None, *recosts):
        raise RequestError(f"entry {recosting.corrects} is no recost that could be corrected")
    recovered = connection.scalar(select(func.max(tables.strays.c.recovered))) or 0
    if recosting.corrects is not None and recosting.corrects < recovered:
        raise RequestError(
            f"what a lost past had cost was charged by entry {recovered}, by receipts that count what was recosted"
            " before: that can no longer be taken back"
        )
    found = [
        _recharge(recosting, number, Charge(*charge), stated.get((number, charge[0])))
        for number, state, _, end in own
        if state != "reserved"
        for charge in _charges(end)
    ]
    if recosting.cost is not None:
        _check_measures(connection, {one.account for one in found})
    releases = tuple(one for one in found if one.total != one.before)
    queued = tuple(number for number, state, *_ in own if state == "reserved")
    return Recosted(None, releases, _sums(releases), queued)


def recost(connection: Connection, act: Act, recosting: Recosting) -> Recosted:
    """Charges releases what they are now known to cost, whatever the caps say; requests that wait are given back.

    RequestError where nothing would change, where a total would fall below what was charged, or below one that
    `corrects` does not name.
    """
    found = affected(connection, recosting)
    if not found.releases:
        raise RequestError("every such release is charged this already, or there is none: nothing to recost")
    ending.end(connection, dict.fromkeys(found.queued, "reserved"))
    for one in found.added:
        _add(connection, one)
    names = _names(connection, act)
    seq = append(
        connection,
        lambda seq: Recost(
            seq=seq,
            time=act.time,
            mechanism=recosting.mechanism,
            factor=recosting.factor,
            corrects=recosting.corrects,
            totals=tuple(Total(one.request, one.account, *one.total) for one in found.releases),
            added=found.added,
            **names,
        ),
    )
    _note(connection, seq, "recost", sorted({one.request for one in found.releases}))
    connection.execute(insert(tables.recosts), [{"seq": seq, **vars(one)} for one in found.added])
    return Recosted(seq, found.releases, found.added, found.queued)


def close(connection: Connection, act: Act, *, dataset: str | None) -> Closed:
    """Lowers the caps of a data set's accounts to what is spent or reserved, so that nothing more is released from it.

    What had not started is given back first, and its schedules are left: what their steps hold could be drawn, or given
    back under the cap. `dataset` may be None where the ledger has one. RequestError where there is nothing to close.
    """
    digest = _dataset(connection, dataset)
    accounts = accounts_of(connection, digest)
    numbers = {row.account for row in accounts}
    query = _CHARGED.where(_REQUESTS.state == "reserved")
    queued = tuple(
        number
        for number, _, body, _ in connection.execute(query).all()
        if not numbers.isdisjoint(charge[0] for charge in _charges(bytes(body)))
    )
    ending.end(connection, dict.fromkeys(queued, "reserved"))
    left = schedules.in_force(connection, digest)
    for name in left:
        schedules.leave(connection, name, actor=act.actor, reason=act.reason)
    closed = [(number, connection.scalar(_CLOSE, {"number": number})) for number in sorted(numbers)]
    caps = tuple(Capped(number, cap) for number, cap in closed if cap is not None)
    if not caps:
        raise RequestError("its accounts hold nothing that could be spent: they are closed already")
    names = _names(connection, act)
    seq = append(connection, lambda seq: Cap(seq=seq, time=act.time, accounts=caps, **names))
    connection.execute(insert(tables.caps), [{"seq": seq, **vars(one)} for one in caps])
    return Closed(seq, caps, queued, left)


def _dataset(connection: Connection, name: str | None) -> str:
    if name is not None:
        digest = texts.find(connection, "dataset", name)
        if digest is None:
            raise RequestError("there is no data set of this name on the ledger: `parco budget` lists them")
        return digest
    found = list(connection.scalars(select(_ACCOUNTS.dataset).distinct()))
    if len(found) != 1:
        raise RequestError("name the data set whose accounts are to be closed: `parco budget` lists them")
    return str(found[0])


def _corrected(connection: Connection, seq: int) -> Entry:
    """An entry that can be corrected: the end of a release is told with its beginning."""
    body = connection.scalar(_BODY, {"seq": seq})
    if body is None:
        raise RequestError(f"there is no entry {seq}: the last is {last_entry(connection)}")
    found = decode(bytes(body))
    if isinstance(found, Start | Settle | Void | Forfeit):
        raise RequestError(f"entry {seq} belongs to release {found.request}: name that")
    return found


def _amendments(connection: Connection, entry: int, field: str) -> list[Amend]:
    query = (
        select(tables.entries.c.body)
        .join(tables.corrections, tables.entries.c.seq == _CORRECTIONS.seq)
        .where(_CORRECTIONS.about == entry, _CORRECTIONS.tag == "amend")
        .order_by(tables.entries.c.seq)
    )
    found = [decode(bytes(body)) for body in connection.scalars(query)]
    return [one for one in found if isinstance(one, Amend) and one.field == field]


def _instead(connection: Connection, request: int) -> int:
    """What stands instead of an answer: itself, another, or 0 for nothing."""
    last = (
        select(_CORRECTIONS.stands)
        .where(_CORRECTIONS.about == request, _CORRECTIONS.tag == "supersede")
        .order_by(_CORRECTIONS.seq.desc())
        .limit(1)
    )
    found = connection.scalar(last)
    return request if found is None else int(found)


def _charges(body: bytes) -> list[list[int]]:
    """The charges of a reservation or of its end, from the only place in its bytes where they can stand."""
    start = body.index(b'"charges":') + len(b'"charges":')
    found: list[list[int]] = json.loads(body[start : body.index(b"]]", start) + 2])
    return found


def _check_recosting(recosting: Recosting) -> None:
    if recosting.mechanism not in KINDS:
        raise RequestError(f"there is no mechanism of this name: choose one of {', '.join(KINDS)}")
    if recosting.factor is None and recosting.cost is None and recosting.delta is None:
        raise RequestError("say what it costs: a factor of what was charged, or a cost, or a delta")
    if recosting.factor is not None and recosting.cost is not None:
        raise RequestError("say what it costs by a factor or by a cost, not by both")
    if recosting.factor is not None and recosting.factor < 1:
        raise RequestError("a factor below 1 would take back what was charged: that stands")


def _check_measures(connection: Connection, accounts: Collection[int]) -> None:
    """RequestError where a cost would be an amount of several measures, as releases on derived data are charged in."""
    measures = select(tables.accounts.c.measure).where(tables.accounts.c.account.in_(accounts)).distinct()
    if len(connection.scalars(measures).all()) > 1:
        raise RequestError("these releases charge accounts in several measures: say what they cost by a factor")


def _stated(connection: Connection) -> tuple[dict[tuple[int, int], tuple[int, int, int]], set[int]]:
    """The totals that recosts stated last, and which did; and all recosts."""
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    recosts = set()
    for body in connection.scalars(_RECOSTS).all():
        entry = decode(bytes(body))
        if not isinstance(entry, Recost):
            raise VerificationError("an entry that is listed as a recost is none")
        found |= {(one.request, one.account): (one.cost, one.delta, entry.seq) for one in entry.totals}
        recosts.add(entry.seq)
    return found, recosts


def _recharge(recosting: Recosting, number: int, charge: Charge, stated: tuple[int, int, int] | None) -> Recharge:
    """One release's charge to one account, before and after."""
    cost = charge.cost if recosting.cost is None else recosting.cost
    if recosting.factor is not None:
        cost = -(-charge.cost * recosting.factor.numerator // recosting.factor.denominator)
    *before, last = stated or (charge.cost, charge.delta, None)
    delta = before[1] if recosting.delta is None else recosting.delta
    if recosting.factor is None and recosting.cost is None:
        cost = before[0]
    if cost < charge.cost or delta < charge.delta:
        raise RequestError(f"release {number} was charged more than this, and that stands: name others with only")
    if max(cost, delta) > UNITS_MAX:
        raise RequestError(f"release {number} would cost more than a ledger can count")
    if (cost < before[0] or delta < before[1]) and last != recosting.corrects:
        raise RequestError(
            f"release {number} is known to cost more by entry {last}: state what it costs in all, or correct that entry"
            " if it was wrong (corrects, --corrects)",
            release=number,
            recost=last,
        )
    return Recharge(number, charge.account, (charge.cost, charge.delta), (before[0], before[1]), (cost, delta))


def _sums(releases: Sequence[Recharge]) -> tuple[Added, ...]:
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for one in releases:
        sums[one.account][0] += one.total[0] - one.before[0]
        sums[one.account][1] += one.total[1] - one.before[1]
    return tuple(Added(account, *sums[account]) for account in sorted(sums))


def _add(connection: Connection, added: Added) -> None:
    values = {
        "number": added.account,
        "plus": added.cost,
        "delta_plus": added.delta,
        "most": UNITS_MAX - max(added.cost, 0),
        "delta_most": UNITS_MAX - max(added.delta, 0),
    }
    if max(added.cost, added.delta) > UNITS_MAX or connection.execute(_ADD, values).rowcount != 1:
        raise RequestError(f"account {added.account} cannot count as much as this: nothing was charged")


def _names(connection: Connection, act: Act) -> dict[str, str]:
    return texts.intern_all(connection, {"actor": act.actor, "reason": act.reason})


def _note(connection: Connection, seq: int, tag: str, about: Sequence[int], *, instead: int | None = None) -> None:
    rows = [{"about": number, "seq": seq, "tag": tag, "stands": instead} for number in about]
    connection.execute(insert(tables.corrections), rows)
