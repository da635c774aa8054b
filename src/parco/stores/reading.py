"""What a ledger shows: entries, accounts, answers, history. All only reads, in a caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, bindparam, select

from parco import canonical
from parco.errors import VerificationError
from parco.ledger.entries import (
    Cap,
    Entry,
    Forfeit,
    Open,
    Recover,
    Reserve,
    Revise,
    Rotate,
    Settle,
    Start,
    Stop,
    Void,
    decode,
)
from parco.measure import Measure
from parco.stores import heads, tables, texts
from parco.stores.records import AccountRow, Evidence, HistoryRow, Settled, Stored

__all__ = [
    "account_row",
    "account_rows",
    "bodies",
    "decoded",
    "entry",
    "evidence",
    "fixed_cap",
    "history_rows",
    "sharpest",
    "stored",
    "stored_answers",
]

_Kind = TypeVar("_Kind", Open, Reserve, Settle)

_BODY = select(tables.entries.c.body).where(tables.entries.c.seq == bindparam("seq"))
_RESERVES, _SETTLES = tables.entries.alias("reserves"), tables.entries.alias("settles")
# Answered requests with all that says so, in one statement: whatever is missing is None.
_ANSWERED: Select[Any] = (
    select(
        tables.requests.c.request,
        tables.requests.c.settled,
        _RESERVES.c.body.label("reserve"),
        _SETTLES.c.body.label("settle"),
        tables.answers.c.salt,
        tables.answers.c.body,
    )
    .select_from(tables.requests)
    .join(_RESERVES, _RESERVES.c.seq == tables.requests.c.request, isouter=True)
    .join(_SETTLES, _SETTLES.c.seq == tables.requests.c.settled, isouter=True)
    .join(tables.answers, tables.answers.c.request == tables.requests.c.request, isouter=True)
    .order_by(tables.requests.c.request)
)
_BY_QUESTION = _ANSWERED.where(
    tables.requests.c.question == bindparam("question"), tables.requests.c.state == "settled"
)
_ANSWER = select(tables.answers).where(tables.answers.c.request == bindparam("request"))
_BY_REQUEST = _ANSWERED.where(tables.requests.c.request == bindparam("request"))


def bodies(connection: Connection) -> Iterator[bytes]:
    """All entries as stored, first to last."""
    yield from connection.scalars(select(tables.entries.c.body).order_by(tables.entries.c.seq))


def entry(connection: Connection, seq: int, kind: type[_Kind]) -> _Kind:
    """The entry with this sequence, or VerificationError if it is missing or of another kind."""
    return decoded(connection.scalar(_BODY, {"seq": seq}), seq, kind)


def decoded(body: bytes | None, seq: int, kind: type[_Kind]) -> _Kind:
    """The entry whose bytes are stored under this sequence, or VerificationError if there are none or it is another."""
    if body is None:
        raise VerificationError(f"entry {seq} is missing", entry=seq)
    found = _decode(body)
    if not isinstance(found, kind) or found.seq != seq:
        raise VerificationError(f"entry {seq} is not the {kind.__name__.lower()} entry it is used as", entry=seq)
    return found


# The same few entries are looked at again and again: the one that opened an account, and those of a repeated answer.
_decode = lru_cache(maxsize=256)(decode)


def account_rows(connection: Connection) -> list[AccountRow]:
    """All accounts, in the order in which they were opened."""
    rows = connection.execute(select(tables.accounts).order_by(tables.accounts.c.account))
    return [_account_row(connection, row) for row in rows.all()]


def account_row(connection: Connection, account: int) -> AccountRow | None:
    """One account, None if there is none of this number."""
    row = connection.execute(select(tables.accounts).where(tables.accounts.c.account == account)).one_or_none()
    return None if row is None else _account_row(connection, row)


def _account_row(connection: Connection, row: Row[tuple[object, ...]]) -> AccountRow:
    values = {name: value for name, value in row._mapping.items() if name in AccountRow.__dataclass_fields__}
    name = texts.read(connection, row.dataset) or f"account {row.account}"
    label = texts.read(connection, row.label) or f"account {row.account}"
    # What a recovery charged beyond the cap, no cap held back.
    fixed = None if row.excess else fixed_cap(connection, row.account)
    facts = {"name": name, "label": label, "measure": Measure.parse(row.measure), "fixed_cap": fixed}
    return AccountRow(**{**values, **facts})


def fixed_cap(connection: Connection, account: int, *, before: int | None = None) -> int | None:
    """The cap as signed, if no entry (`before` a sequence, if given) ever raised the account above it; else None."""
    opened = connection.scalar(select(tables.accounts.c.opened).where(tables.accounts.c.account == account))
    if opened is None:
        raise VerificationError(f"there is no account {account} on this ledger")
    first = next(one.cap for one in entry(connection, opened, Open).accounts if one.account == account)
    raised = select(tables.caps.c.seq).where(tables.caps.c.account == account, tables.caps.c.cap > first).limit(1)
    if before is not None:
        raised = raised.where(tables.caps.c.seq < before)
    return None if connection.scalar(raised) is not None else first


def stored(connection: Connection, request: int) -> Stored:
    """The answer to a settled request, or VerificationError if it is not settled, is lost or was changed."""
    row = connection.execute(_BY_REQUEST, {"request": request}).one_or_none()
    if row is None or row.settled is None:
        raise VerificationError(f"request {request} is not settled", entry=request)
    return _stored(row)


def evidence(connection: Connection, request: int, position: int) -> Evidence:
    """What shows outside the ledger that a request was settled by the entry at `position`: under its first head."""
    proof = heads.inclusion(connection, position, heads.first_from(connection, position))
    row = connection.execute(_ANSWER, {"request": request}).one_or_none()
    if row is None:
        raise VerificationError(f"the answer to request {request} is lost; its charge stands", entry=request)
    return Evidence(proof, answer=bytes(row.body), salt=bytes(row.salt))


def stored_answers(connection: Connection, question: str) -> list[Stored]:
    """All answers to a question's digest, oldest first."""
    return [_stored(row) for row in connection.execute(_BY_QUESTION, {"question": question}).all()]


def sharpest(connection: Connection, question: str, serves: Callable[[Settled], bool]) -> tuple[Stored | None, bool]:
    """The answer that cost most among those that serve, the oldest of equals, and whether there is any answer at all.

    The same question under the same measure is sharper the more it cost; the oldest, so that repeats agree.
    """
    rows = {row.request: row for row in connection.execute(_BY_QUESTION, {"question": question}).all()}
    good = [facts for facts in map(_settled, rows.values()) if serves(facts)]
    best = max(good, key=lambda facts: (sum(charge.cost for charge in facts.charges), -facts.request), default=None)
    return (None if best is None else _stored(rows[best.request])), bool(rows)


def _settled(row: Row[Any]) -> Settled:
    reserve, settle = decoded(row.reserve, row.request, Reserve), decoded(row.settle, row.settled, Settle)
    if settle.request != row.request:
        raise VerificationError(f"entry {row.settled} settles another request than {row.request}", entry=row.settled)
    return Settled(
        request=row.request,
        position=row.settled,
        reserve=reserve,
        charges=settle.charges,
        accounts=settle.accounts,
        stopped_at=settle.mechanism if isinstance(settle, Stop) else None,
    )


def _stored(row: Row[Any]) -> Stored:
    facts, digest = _settled(row), decoded(row.settle, row.settled, Settle).answer
    if row.body is None:
        raise VerificationError(f"the answer to request {row.request} is lost; its charge stands", entry=row.request)
    if not _holds(row.salt, row.body, digest):
        raise VerificationError(f"the answer to request {row.request} differs from the one settled", entry=row.request)
    return Stored(**vars(facts), answer=bytes(row.body))


def _holds(salt: bytes, body: bytes, digest: str) -> bool:
    try:
        return canonical.salted_digest(salt, body.decode()) == digest
    except UnicodeDecodeError:
        return False


def history_rows(connection: Connection) -> list[HistoryRow]:
    """One row for each signing, revision, change of caps and request, in order, each as it stands now."""
    known = texts.read_all(connection)
    rows: dict[int, HistoryRow] = {}
    names: dict[str, str | None] = {}
    for body in bodies(connection):
        _into(rows, decode(body), known, names=names)
    return list(rows.values())


def _into(
    rows: dict[int, HistoryRow], found: Entry, known: dict[str, str | None], *, names: dict[str, str | None]
) -> None:
    if isinstance(found, Open):
        names[found.contract] = known.get(found.name)
        rows[found.seq] = _opened(found, known)
        return
    if isinstance(found, Revise | Cap | Recover | Rotate):
        if isinstance(found, Revise):
            names[found.contract] = names.get(found.revised)
        rows[found.seq] = _act(found, known, names=names)
        return
    if isinstance(found, Reserve):
        rows[found.seq] = _reserved(found, known, name=names.get(found.contract))
        return
    old = rows.get(found.request)
    if old is None:
        raise VerificationError(f"entry {found.seq} names request {found.request}, which is missing", entry=found.seq)
    rows[found.request] = HistoryRow(**{**vars(old), **_news(found)})


def _opened(found: Open, known: dict[str, str | None]) -> HistoryRow:
    return HistoryRow(
        seq=found.seq,
        time=found.time,
        actor=known.get(found.actor),
        state="open",
        contract=found.contract,
        name=known.get(found.name),
    )


def _act(
    found: Revise | Cap | Recover | Rotate, known: dict[str, str | None], *, names: dict[str, str | None]
) -> HistoryRow:
    contract = found.contract if isinstance(found, Revise) else None
    return HistoryRow(
        seq=found.seq,
        time=found.time,
        actor=known.get(found.actor),
        state=type(found).__name__.lower(),
        contract=contract,
        name=None if contract is None else names.get(contract),
        reason=known.get(found.reason),
        caps=found.accounts if isinstance(found, Cap) else (),
        charges=found.charges if isinstance(found, Recover) else (),
    )


def _reserved(found: Reserve, known: dict[str, str | None], *, name: str | None) -> HistoryRow:
    return HistoryRow(
        seq=found.seq,
        time=found.time,
        actor=known.get(found.actor),
        state="reserved",
        contract=found.contract,
        name=name,
        question=known.get(found.question),
        fresh=found.fresh,
        private=found.private,
        cells=found.cells,
        charges=found.charges,
        mechanism=found.mechanism,
        sensitivity=found.sensitivity,
    )


def _news(found: Start | Settle | Void | Forfeit) -> dict[str, object]:
    if isinstance(found, Settle):
        return {"state": "settled", "position": found.seq, "charges": found.charges}
    if isinstance(found, Void):
        return {"state": "void", "charges": ()}
    return {"state": "started" if isinstance(found, Start) else "forfeited"}
