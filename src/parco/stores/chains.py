"""Corrections as they are read: what is about an entry, and what is about that in turn, each with actor and reason.

A correction is about an earlier entry, so that following them comes to an end. Nothing here hides an original: a row
of the history keeps its own texts and charges, and its corrections stand beside it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sqlalchemy import Connection, func, select

from parco.errors import VerificationError
from parco.ledger.entries import Amend, Entry, Flag, Recost, Supersede, Total, decode
from parco.stores import tables, texts
from parco.stores.records import Correction

__all__ = ["Acts", "CorrectionEntry", "added_since", "chain_of", "subjects"]

CorrectionEntry: TypeAlias = Amend | Supersede | Recost | Flag
Read: TypeAlias = Callable[[str], str | None]

_CORRECTIONS, _RECOSTS = tables.corrections.c, tables.recosts.c


@dataclass
class Acts:
    """Corrections by what they are about, as they are found, first to last."""

    known: Mapping[str, str | None]
    _found: dict[int, list[tuple[CorrectionEntry, Total | None]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, entry: CorrectionEntry) -> None:
        """Notes one under all that it is about."""
        if not isinstance(entry, Recost):
            self._found[subjects(entry)[0]].append((entry, None))
            return
        # Of a release on derived data the last account is its own, and all of its own pay alike.
        for total in {total.request: total for total in sorted(entry.totals, key=lambda one: one.account)}.values():
            self._found[total.request].append((entry, total))

    def chain(self, about: int) -> tuple[Correction, ...]:
        """What is about an entry, oldest first, each with what is about it."""
        return tuple(
            _correction(entry, total, self.known.get, corrections=self.chain(entry.seq))
            for entry, total in self._found.get(about, ())
        )


def subjects(entry: CorrectionEntry) -> tuple[int, ...]:
    """The entries or requests that a correction is about, rising."""
    if isinstance(entry, Recost):
        return tuple(sorted({total.request for total in entry.totals}))
    return (entry.request if isinstance(entry, Supersede) else entry.entry,)


def chain_of(connection: Connection, about: int, *, until: int | None = None) -> tuple[Correction, ...]:
    """The same from the tables, for one entry alone; corrections after entry `until` are left out."""
    query = (
        select(tables.entries.c.seq, tables.entries.c.body)
        .join(tables.corrections, tables.entries.c.seq == _CORRECTIONS.seq)
        .where(_CORRECTIONS.about == about)
        .order_by(tables.entries.c.seq)
    )
    if until is not None:
        query = query.where(_CORRECTIONS.seq <= until)
    found = []
    for seq, body in connection.execute(query).all():
        entry = _entry(decode(bytes(body)), seq)
        total = _own(entry.totals, about) if isinstance(entry, Recost) else None
        inner = chain_of(connection, seq, until=until)
        found.append(_correction(entry, total, lambda digest: texts.read(connection, digest), corrections=inner))
    return tuple(found)


def added_since(connection: Connection, *, after: int, until: int | None = None) -> dict[int, tuple[int, int]]:
    """What recosts behind entry `after`, up to `until`, added to what is spent on each account, cost and delta.

    For releases up to `after` this is at least what was added for them: what later releases were raised by since their
    start is never below 0.
    """
    query = select(_RECOSTS.account, func.sum(_RECOSTS.cost), func.sum(_RECOSTS.delta)).group_by(_RECOSTS.account)
    query = query.where(_RECOSTS.seq > after)
    if until is not None:
        query = query.where(_RECOSTS.seq <= until)
    return {account: (int(cost), int(delta)) for account, cost, delta in connection.execute(query).all()}


def _entry(found: Entry, seq: int) -> CorrectionEntry:
    if not isinstance(found, Amend | Supersede | Recost | Flag) or found.seq != seq:
        raise VerificationError(f"entry {seq} is not the correction it is used as", entry=seq)
    return found


def _own(totals: Sequence[Total], request: int) -> Total:
    """The release's total on the last of its accounts; they rise by request."""
    place = bisect_left(totals, request, key=lambda one: one.request)
    own = []
    while place < len(totals) and totals[place].request == request:
        own.append(totals[place])
        place += 1
    if not own:
        raise VerificationError(f"a recost is listed for request {request} and does not state it", entry=request)
    return max(own, key=lambda one: one.account)


def _correction(
    entry: CorrectionEntry, total: Total | None, read: Read, *, corrections: tuple[Correction, ...]
) -> Correction:
    found = Correction(
        entry=entry.seq,
        what=type(entry).__name__.lower(),
        time=entry.time,
        actor=read(entry.actor),
        reason=read(entry.reason),
        corrections=corrections,
    )
    match entry:
        case Amend():
            text = None if entry.text is None else read(entry.text)
            return replace(found, field=entry.field, text=text, erases=entry.text is None)
        case Supersede():
            return replace(found, by=entry.by or 0)
        case Recost() if total is not None:
            return replace(found, cost=total.cost, delta=total.delta)
    return found
