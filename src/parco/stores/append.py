"""The one place where entries are stored: each is the next, and every transaction knows which were its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, func, select

from parco.errors import InternalError
from parco.ledger.entries import Entry, encode
from parco.stores import tables
from parco.stores.statements import Insertion, Prepared

__all__ = [
    "append",
    "append_all",
    "append_each",
    "appended",
    "forget_appended",
    "last_entry",
    "lately",
    "note_trust",
    "stands",
    "trust_changed",
]

_THIS = "parco: what this transaction did"

_LAST = Prepared(select(func.max(tables.entries.c.seq)))
_BODY = select(tables.entries.c.body).where(tables.entries.c.seq == bindparam("seq"))
_INSERT = Insertion(tables.entries)

# A request is read again when it is settled: its bytes say what they said when `encode` compared them with it.
_LATELY: deque[tuple[bytes, Entry]] = deque(maxlen=16)


def append(connection: Connection, make: Callable[[int], Entry]) -> int:
    """Stores the next entry and returns its sequence; the caller's transaction holds the write lock."""
    return append_all(connection, [make], last=last_entry(connection))[0]


def append_all(connection: Connection, makes: Sequence[Callable[[int], Entry]], *, last: int) -> list[int]:
    """Stores the entries that follow entry `last`, and returns their sequences."""
    sequences = range(last + 1, last + 1 + len(makes))
    entries = [make(seq) for seq, make in zip(sequences, makes, strict=True)]
    rows = [(seq, encode(entry)) for seq, entry in zip(sequences, entries, strict=True)]
    _INSERT.put(connection, *({"seq": seq, "body": body} for seq, body in rows))
    _LATELY.extend((body, entry) for (_, body), entry in zip(rows, entries, strict=True))
    _this(connection).appended.extend(rows)
    return list(sequences)


def append_each(connection: Connection, entries: Iterable[Entry], *, last: int) -> None:
    """Stores entries that follow entry `last`, however many: each is made while the database takes those before it."""
    kept = _this(connection).appended

    def rows() -> Iterator[tuple[int, bytes]]:
        for seq, entry in enumerate(entries, start=last + 1):
            if entry.seq != seq:
                raise InternalError(f"entry {entry.seq} is to be stored as entry {seq}")
            row = (seq, encode(entry))
            kept.append(row)
            yield row

    _INSERT.stream(connection, rows())


def lately(body: bytes) -> Entry | None:
    """The entry that these bytes say, where this process wrote them lately; None where it did not."""
    return next((entry for written, entry in tuple(_LATELY) if written == body), None)


def last_entry(connection: Connection) -> int:
    """The sequence of the last entry, 0 where there is none."""
    ((found,),) = _LAST.rows(connection)
    return found or 0


def forget_appended(connection: Connection) -> None:
    """To be called where a transaction begins."""
    connection.info.pop(_THIS, None)


def appended(connection: Connection) -> list[tuple[int, bytes]]:
    """Sequence and bytes of each entry stored in the transaction at hand."""
    return list(_this(connection).appended)


def note_trust(connection: Connection) -> None:
    """The transaction at hand changed which key signs, or which heads halt the ledger."""
    _this(connection).trust_changed = True


def trust_changed(connection: Connection) -> bool:
    """Whether it did."""
    return _this(connection).trust_changed


@dataclass
class _This:
    appended: list[tuple[int, bytes]] = field(default_factory=list)
    trust_changed: bool = False


def _this(connection: Connection) -> _This:
    found: _This = connection.info.setdefault(_THIS, _This())
    return found


def stands(connection: Connection, entries: Sequence[tuple[int, bytes]]) -> bool:
    """Whether the ledger holds these very entries: so it is told whether a commit went through that was not answered.

    Another transaction cannot have written the same bytes of a reservation, a settlement or a signing: each names a
    text under a salt that its attempt drew. A forfeit or void can be written by two, and is then the same act.
    """
    return bool(entries) and all(connection.scalar(_BODY, {"seq": seq}) == body for seq, body in entries)
