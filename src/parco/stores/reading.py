"""What a ledger shows: entries, accounts, answers, history. All only reads, in a caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import Connection, Row, Select, bindparam, literal_column, select

from parco import canonical
from parco.errors import RequestError, VerificationError
from parco.ledger.accounts import Admitted
from parco.ledger.entries import (
    Amend,
    Cap,
    Charge,
    Derive,
    Draw,
    Entry,
    Flag,
    Forfeit,
    Leave,
    MechanismFacts,
    Open,
    Quota,
    Recost,
    Recover,
    Refine,
    Reserve,
    Revise,
    Rotate,
    Schedule,
    Settle,
    Start,
    Stop,
    Supersede,
    Void,
    decode,
)
from parco.measure import Measure
from parco.stores import heads, tables, texts
from parco.stores.append import lately
from parco.stores.chains import Acts, chain_of, subjects
from parco.stores.records import AccountRow, Evidence, HistoryRow, Settled, Stopped, Stored
from parco.stores.statements import ONE, Prepared

__all__ = [
    "account_row",
    "account_rows",
    "admitted",
    "answer",
    "before",
    "bodies",
    "decoded",
    "entry",
    "evidence",
    "fixed_cap",
    "history_row",
    "history_rows",
    "keyed",
    "sharpest",
    "stored",
    "stored_answers",
]

_Kind = TypeVar("_Kind", Open, Refine, Reserve, Schedule, Settle)

_BODY = select(tables.entries.c.body).where(tables.entries.c.seq == bindparam("seq"))
_RESERVES, _SETTLES = tables.entries.alias("reserves"), tables.entries.alias("settles")
# What stands instead of an answer, by its last `supersede`: none if it was never superseded, 0 for nothing.
_STANDS = (
    select(tables.corrections.c.stands)
    .where(tables.corrections.c.about == tables.requests.c.request, tables.corrections.c.tag == "supersede")
    .order_by(tables.corrections.c.seq.desc())
    .limit(ONE)
    .correlate(tables.requests)
    .scalar_subquery()
)
# Answered requests with all that says so, in one statement: whatever is missing is None.
_ANSWERED: Select[Any] = (
    select(
        tables.requests.c.request,
        tables.requests.c.settled,
        _RESERVES.c.body.label("reserve"),
        _SETTLES.c.body.label("settle"),
        tables.answers.c.salt,
        tables.answers.c.body,
        _STANDS.label("stands"),
    )
    .select_from(tables.requests)
    .join(_RESERVES, _RESERVES.c.seq == tables.requests.c.request, isouter=True)
    .join(_SETTLES, _SETTLES.c.seq == tables.requests.c.settled, isouter=True)
    .join(tables.answers, tables.answers.c.request == tables.requests.c.request, isouter=True)
    .order_by(tables.requests.c.request)
)
_SETTLED = tables.requests.c.state == literal_column("'settled'")
_BY_QUESTION = Prepared(_ANSWERED.where(tables.requests.c.question == bindparam("question"), _SETTLED))
_ASKED = select(tables.texts.c.digest).where(tables.texts.c.lookup == bindparam("lookup")).scalar_subquery()
# As text from the start: a repeat is found by one statement.
_BY_TEXT = Prepared(_ANSWERED.where(tables.requests.c.question == _ASKED, _SETTLED))
_ANSWER = select(tables.answers).where(tables.answers.c.request == bindparam("request"))
_STATE = select(tables.requests.c.state, tables.requests.c.settled).where(
    tables.requests.c.request == bindparam("request")
)
_BY_REQUEST = Prepared(_ANSWERED.where(tables.requests.c.request == bindparam("request")))


class _Answered(NamedTuple):
    """A row of `_ANSWERED`."""

    request: int
    settled: int | None
    reserve: bytes | None
    settle: bytes | None
    salt: bytes | None
    body: bytes | None
    stands: int | None


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


def admitted(body: bytes | None, seq: int) -> Admitted:
    """The same of the entry that admitted a request."""
    found = None if body is None else _decode(body)
    if found is None:
        raise VerificationError(f"entry {seq} is missing", entry=seq)
    if not isinstance(found, Refine | Reserve) or found.seq != seq:
        raise VerificationError(f"entry {seq} is not the reserve entry it is used as", entry=seq)
    return found


def _decode(body: bytes) -> Entry:
    return lately(body) or _decoded(body)


# The same few entries are looked at again and again: the one that opened an account, and those of a repeated answer.
_decoded = lru_cache(maxsize=256)(decode)


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
    row = _answered(connection, request)
    if row is None or row.settled is None:
        raise VerificationError(f"request {request} is not settled", entry=request)
    return _stored(row, lambda number: _answered(connection, number))


def answer(connection: Connection, request: int) -> Stored | None:
    """The same, or None where no such request is settled."""
    row = _answered(connection, request)
    return None if row is None or row.settled is None else stored(connection, request)


def before(connection: Connection, reserve: Admitted) -> dict[int, MechanismFacts]:
    """The laws of the answers that a request refines, by their requests, the first one first."""
    return _before(reserve, lambda number: _answered(connection, number))


def _answered(connection: Connection, request: int) -> _Answered | None:
    rows = _BY_REQUEST.rows(connection, {"request": request})
    return _Answered(*rows[0]) if rows else None


def keyed(connection: Connection, key: str) -> tuple[int, str] | None:
    """The request of an idempotency key, and its state; None where the key was never used."""
    digest = texts.find(connection, "key", key)
    columns = tables.requests.c
    made = select(columns.request, columns.state).where(columns.key == digest)
    row = None if digest is None else connection.execute(made).one_or_none()
    return None if row is None else (row.request, row.state)


def evidence(connection: Connection, request: int, position: int) -> Evidence:
    """What shows outside the ledger that a request was settled by the entry at `position`: under its first head."""
    proof = heads.inclusion(connection, position, heads.first_from(connection, position))
    row = connection.execute(_ANSWER, {"request": request}).one_or_none()
    if row is None:
        raise VerificationError(f"the answer to request {request} is lost; its charge stands", entry=request)
    return Evidence(proof, answer=bytes(row.body), salt=bytes(row.salt))


def stored_answers(connection: Connection, question: str) -> list[Stored]:
    """All answers to a question, oldest first."""
    rows = _by_number(_BY_TEXT.rows(connection, {"lookup": texts.lookup("question", question)}))
    return [_stored(row, rows.get) for row in rows.values()]


def _by_number(rows: Iterable[tuple[Any, ...]]) -> dict[int, _Answered]:
    # What an answer refines is an answer to the same question, so that all of a path are here.
    return {row.request: row for row in (_Answered(*row) for row in rows)}


def sharpest(
    connection: Connection, question: str, serves: Callable[[Settled], bool]
) -> tuple[Stored | None, list[Settled]]:
    """The answer with the least noise among those that stand and serve, the dearest and then the oldest of equals, and
    all answers there are.

    The oldest, so that repeats agree.
    """
    rows = _by_number(_BY_QUESTION.rows(connection, {"question": question}))
    known = [_settled(row, rows.get) for row in rows.values()]
    good = [facts for facts in known if facts.replaced is None and serves(facts)]
    best = min(good, key=_sharpness, default=None)
    return (None if best is None else _stored(rows[best.request], rows.get)), known


def _sharpness(facts: Settled) -> tuple[Fraction, int, int]:
    return facts.mechanism.scale, -sum(charge.cost for charge in facts.charges), facts.request


_Find: TypeAlias = Callable[[int], _Answered | None]


def _settled(row: _Answered, find: _Find) -> Settled:
    position = row.settled or 0
    reserve, settle = admitted(row.reserve, row.request), decoded(row.settle, position, Settle)
    if settle.request != row.request:
        raise VerificationError(f"entry {position} settles another request than {row.request}", entry=position)
    return Settled(
        request=row.request,
        position=position,
        reserve=reserve,
        charges=settle.charges,
        accounts=settle.accounts,
        before=_before(reserve, find),
        replaced=None if row.stands == row.request else row.stands,
        stopped=Stopped(settle.mechanism, settle.charges, settle.scales) if isinstance(settle, Stop) else None,
    )


def _before(reserve: Admitted, find: _Find) -> dict[int, MechanismFacts]:
    """What a request refines, the first first; its numbers fall on the way there, so that the way ends."""
    found: dict[int, MechanismFacts] = {}
    while isinstance(reserve, Refine):
        row, parent = find(reserve.parent), reserve.parent
        if row is None or parent >= reserve.seq:
            raise VerificationError(f"entry {reserve.seq} refines no earlier answer", entry=reserve.seq)
        reserve = admitted(row.reserve, parent)
        found[parent] = reserve.mechanism
    return dict(reversed(found.items()))


def _stored(row: _Answered, find: _Find) -> Stored:
    facts = _settled(row, find)
    digest = decoded(row.settle, facts.position, Settle).answer
    if row.body is None or row.salt is None:
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
    """One row for each governing act, correction and request, in order, each as it stands now."""
    known = texts.read_all(connection)
    rows: dict[int, HistoryRow] = {}
    names: dict[str, str | None] = {}
    acts = Acts(known)
    for body in bodies(connection):
        found = decode(body)
        if isinstance(found, Schedule | Leave):
            rows[found.seq] = _scheduling(found, known, names=names, rows=rows)
        else:
            _into(rows, found, known, names=names)
        if isinstance(found, Amend | Supersede | Recost | Flag):
            acts.add(found)
    return [replace(row, corrections=chain) if (chain := acts.chain(row.seq)) else row for row in rows.values()]


def history_row(connection: Connection, seq: int) -> HistoryRow:
    """The row of one entry or release, without reading the others; RequestError if there is none of this number."""
    body = connection.scalar(_BODY, {"seq": seq})
    found = None if body is None else decode(bytes(body))
    if found is None or isinstance(found, Start | Settle | Void | Forfeit):
        raise RequestError(f"{seq} is no release and no act of this ledger: `parco history` lists them")
    known = {digest: texts.read(connection, digest) for digest in _named(connection, found)}
    rows: dict[int, HistoryRow] = {}
    if isinstance(found, Schedule | Leave | Draw):
        schedule = found if isinstance(found, Schedule) else entry(connection, found.schedule, Schedule)
        rows[schedule.seq] = _scheduling(schedule, known, names={}, rows=rows)
    if isinstance(found, Schedule | Leave):
        rows[seq] = _scheduling(found, known, names={}, rows=rows)
    else:
        _into(rows, found, known, names={})
    row = replace(rows[seq], corrections=chain_of(connection, seq))
    if not isinstance(found, Reserve | Refine):
        return row
    state, settled = connection.execute(_STATE, {"request": seq}).one()
    facts: dict[str, Any] = {"charges": () if state == "void" else row.charges}
    if settled is not None:
        facts = _settling(entry(connection, settled, Settle), held=row.charges)
    return replace(row, state=state, position=settled, name=_name_of(connection, found.contract), **facts)


def _named(connection: Connection, found: Entry) -> list[str]:
    """The digests of an entry's texts that a row of the history shows; of a step also its schedule's name."""
    own = [getattr(found, name) for name in ("actor", "question", "reason", "name") if hasattr(found, name)]
    if isinstance(found, Draw | Leave):
        schedule = entry(connection, found.schedule, Schedule)
        return [*own, schedule.name, schedule.actor]
    return own


def _name_of(connection: Connection, contract: str) -> str | None:
    """The name under which a contract is in force, None for a version that was replaced."""
    name = connection.scalar(select(tables.contracts.c.name).where(tables.contracts.c.contract == contract))
    return None if name is None else texts.read(connection, name)


def _scheduling(
    found: Schedule | Leave,
    known: dict[str, str | None],
    *,
    names: dict[str, str | None],
    rows: dict[int, HistoryRow],
) -> HistoryRow:
    row = HistoryRow(
        seq=found.seq,
        time=found.time,
        actor=known.get(found.actor),
        state=type(found).__name__.lower(),
        contract=found.contract if isinstance(found, Schedule) else rows[found.schedule].contract,
    )
    if isinstance(found, Schedule):
        name = names.get(found.contract)
        return replace(row, name=name, schedule=known.get(found.name), set_aside=found.charges)
    left = rows[found.schedule]
    return replace(row, name=left.name, schedule=left.schedule, reason=known.get(found.reason))


def _into(
    rows: dict[int, HistoryRow], found: Entry, known: Mapping[str, str | None], *, names: dict[str, str | None]
) -> None:
    if isinstance(found, Open):
        names[found.contract] = known.get(found.name)
        rows[found.seq] = _opened(found, known)
        return
    if isinstance(found, Derive | Quota):
        rows[found.seq] = _governing(found, known)
        return
    if isinstance(found, _Act):
        if isinstance(found, Revise):
            names[found.contract] = names.get(found.revised)
        rows[found.seq] = _act(found, known, names=names)
        return
    if isinstance(found, Reserve | Refine):
        row = _reserved(found, known, name=names.get(found.contract))
        if isinstance(found, Draw):
            row = replace(row, schedule=rows[found.schedule].schedule, step=found.step)
        rows[found.seq] = row
        return
    if isinstance(found, Schedule | Leave):
        raise VerificationError(f"entry {found.seq} is no part of a request", entry=found.seq)
    old = rows.get(found.request)
    if old is None:
        raise VerificationError(f"entry {found.seq} names request {found.request}, which is missing", entry=found.seq)
    rows[found.request] = HistoryRow(**{**vars(old), **_news(found, held=old.charges)})


_Act = Revise | Cap | Recover | Rotate | Amend | Supersede | Recost | Flag


def _opened(found: Open, known: Mapping[str, str | None]) -> HistoryRow:
    return HistoryRow(
        seq=found.seq,
        time=found.time,
        actor=known.get(found.actor),
        state="open",
        contract=found.contract,
        name=known.get(found.name),
        accounts=tuple(one.account for one in found.accounts),
    )


def _names(digests: Sequence[str], known: Mapping[str, str | None]) -> tuple[str | None, ...]:
    """In the order of the names: that of their digests, which are salted, says nothing."""
    return tuple(sorted(map(known.get, digests), key=lambda name: name or ""))


def _governing(found: Derive | Quota, known: Mapping[str, str | None]) -> HistoryRow:
    about: dict[str, Any]
    if isinstance(found, Quota):
        members = _names(found.members, known)
        about = {"state": "quota", "name": known.get(found.name), "caps": found.accounts, "members": members}
    else:
        parents = _names(found.parents, known)
        about = {"state": "derive", "name": known.get(found.dataset), "parents": parents}
    actor, reason = known.get(found.actor), known.get(found.reason)
    return HistoryRow(seq=found.seq, time=found.time, actor=actor, contract=None, reason=reason, **about)


def _act(
    found: Revise | Cap | Recover | Rotate | Amend | Supersede | Recost | Flag,
    known: Mapping[str, str | None],
    *,
    names: dict[str, str | None],
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
        accounts=tuple(one.account for one in found.accounts) if isinstance(found, Revise) else (),
        charges=found.charges if isinstance(found, Recover) else (),
        about=subjects(found) if isinstance(found, Amend | Supersede | Recost | Flag) else (),
    )


def _reserved(found: Admitted, known: Mapping[str, str | None], *, name: str | None) -> HistoryRow:
    return HistoryRow(
        seq=found.seq,
        time=found.time,
        actor=known.get(found.actor),
        state="reserved",
        contract=found.contract,
        name=name,
        question=known.get(found.question),
        fresh=isinstance(found, Reserve) and found.fresh,
        parent=found.parent if isinstance(found, Refine) else None,
        private=found.private,
        cells=found.cells,
        charges=found.charges,
        mechanism=found.mechanism,
        sensitivity=found.sensitivity,
    )


def _news(found: Start | Settle | Void | Forfeit, *, held: tuple[Charge, ...]) -> dict[str, object]:
    if isinstance(found, Settle):
        return {"state": "settled", "position": found.seq, **_settling(found, held=held)}
    if isinstance(found, Void):
        return {"state": "void", "charges": ()}
    return {"state": "started" if isinstance(found, Start) else "forfeited"}


def _settling(found: Settle, *, held: tuple[Charge, ...]) -> dict[str, Any]:
    """What a release cost; of a ladder that stopped early also the law that it reached, and what had been reserved."""
    stop = {"mechanism": found.mechanism, "held": held} if isinstance(found, Stop) else {}
    return {"charges": found.charges, **stop}
