"""Statements given to the driver itself: the same rows in every database, however many, and none that goes unheard."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, bindparam, event, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from parco.errors import BusyError, InternalError, ParcoError
from parco.stores import postgres_cursor, tables
from parco.stores.postgres import PostgresStore
from parco.stores.records import Started
from parco.stores.statements import FEW, Insertion, Prepared, together
from parco.stores.store import Store

from .build import Address, ask, nothing, opening, signed_store, started

if TYPE_CHECKING:
    from tests.postgres import Server

NASTY = ("", "tab\tand\nline", "back\\slash \\N \\. end", "'quoted\" $1 %s :x", "Ünïcödé \U0001f512", "x" * 5000)
_TEXTS = Insertion(tables.texts)
_READ = Prepared(
    select(tables.texts.c.digest, tables.texts.c.salt, tables.texts.c.text, tables.texts.c.lookup)
    .where(tables.texts.c.digest >= bindparam("least"))
    .order_by(tables.texts.c.digest)
)
_COUNT = Prepared(select(func.count()).select_from(tables.texts))
_ERASE = Prepared(
    update(tables.texts).where(tables.texts.c.digest == bindparam("named")).values(salt=None, text=None, lookup=None)
)


_ANEW = select(func.count(tables.texts.c.salt)).where(tables.texts.c.digest > "")
_KEPT = Prepared(select(func.count(tables.texts.c.salt)))


def rows(count: int) -> list[dict[str, Any]]:
    made = []
    for number in range(count):
        digest = hashlib.sha256(bytes([number])).hexdigest()
        text = NASTY[number % len(NASTY)]
        erased = {"salt": None, "text": None, "lookup": None}
        kept = {"salt": bytes([0, 92, number, 255]), "text": text, "lookup": digest[::-1]}
        made.append({"digest": digest, **(erased if number % 7 == 6 else kept)})
    return made


@pytest.mark.parametrize("count", [1, 2, FEW, FEW + 1, 60])
def test_rows_come_back_as_they_went_in(address: Address, count: int) -> None:
    store, made = signed_store(address), rows(count)
    with store._writing() as connection:
        before = _COUNT.rows(connection)[0][0]
        _TEXTS.put(connection, *made)
        found = {row[0]: row for row in _READ.rows(connection, {"least": ""})}
        assert _COUNT.rows(connection) == [(before + count,)]
        assert all(found[one["digest"]] == tuple(one.values()) for one in made)
        assert _ERASE.count(connection, {"named": made[0]["digest"]}) == 1
        assert _ERASE.count(connection, {"named": "nobody"}) == 0


def test_whoever_listens_to_sqlalchemy_hears_of_each(address: Address) -> None:
    """So the faults of `test_fault_points` come before these statements as well."""
    heard: list[str] = []

    def listen(*told: Any) -> None:
        heard.append(told[2])

    store = signed_store(address)
    event.listen(Engine, "before_cursor_execute", listen)
    try:
        with store._writing() as connection:
            for count in (1, FEW, 9):
                _TEXTS.put(
                    connection,
                    *({**one, "digest": f"{count}{one['digest'][1:]}"} | _own(count, one) for one in rows(count)),
                )
            _COUNT.rows(connection)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    assert sum("texts" in statement for statement in heard) == 4


def _named(number: int) -> dict[str, Any]:
    return rows(number + 1)[number]


def test_what_stands_together_is_one_statement_for_a_server_and_all_of_it_is_there(address: Address) -> None:
    heard: list[str] = []
    store = signed_store(address)
    with store._writing() as connection, _heard(heard):
        before = _COUNT.rows(connection)[0][0]
        _TEXTS.put(connection, _named(0))
        heard.clear()
        with together(connection):
            _ERASE.put_one(connection, {"named": _named(0)["digest"]}, otherwise=InternalError("gone"))
            _TEXTS.put(connection, _named(1))
            _TEXTS.put(connection, _named(2), _named(3))
        server = connection.dialect.name == "postgresql"
        assert len(heard) == (1 if server else 3)
        assert _COUNT.rows(connection) == [(before + 4,)]
        found = {row[0]: row for row in _READ.rows(connection, {"least": ""})}
        assert found[_named(0)["digest"]][1:] == (None, None, None)
        assert all(found[_named(number)["digest"]] == tuple(_named(number).values()) for number in (1, 2, 3))


@pytest.mark.parametrize("then", ["look", "ask otherwise", "add many", "commit"])
def test_a_change_of_nothing_is_the_fault_that_was_named_and_undoes_all(address: Address, then: str) -> None:
    store = signed_store(address)
    with store._reading() as connection:
        before = _COUNT.rows(connection)

    def work(connection: Connection) -> None:
        with together(connection):
            _TEXTS.put(connection, _named(1))
            _ERASE.put_one(connection, {"named": "nobody"}, otherwise=InternalError("it is gone"))
        if then == "look":
            _COUNT.rows(connection)
        elif then == "ask otherwise":
            connection.scalar(select(func.count()).select_from(tables.texts))
        elif then == "add many":
            _TEXTS.put(connection, *({**one, "digest": f"y{one['digest'][1:]}"} | _own(8, one) for one in rows(9)))

    with pytest.raises(InternalError, match="it is gone"):
        _write(store, work)
    with store._reading() as connection:
        assert _COUNT.rows(connection) == before


@pytest.mark.parametrize("then", ["look", "ask otherwise", "commit"])
def test_a_fault_among_what_waits_is_raised_and_undoes_all(address: Address, then: str) -> None:
    """The second row has a key that is taken; nothing behind it is done, the commit least of all."""
    store = signed_store(address)
    with store._reading() as connection:
        before = _COUNT.rows(connection)

    def work(connection: Connection) -> None:
        _TEXTS.put(connection, _named(1))
        with together(connection):
            _TEXTS.put(connection, _named(2))
            _TEXTS.put(connection, _named(1))
        if then == "look":
            _COUNT.rows(connection)
        elif then == "ask otherwise":
            connection.scalar(select(func.count()).select_from(tables.texts))

    for _ in range(3):
        with pytest.raises((ParcoError, DBAPIError)):
            _write(store, work)
        with store._reading() as connection:
            assert _COUNT.rows(connection) == before


def test_what_waits_is_seen_by_whatever_comes_next(address: Address) -> None:
    store = signed_store(address)
    with store._writing() as connection:
        before = _COUNT.rows(connection)[0][0]
        with together(connection):
            _TEXTS.put(connection, _named(1))
        assert connection.scalar(select(func.count()).select_from(tables.texts)) == before + 1
        with together(connection):
            _TEXTS.put(connection, _named(2))
        _TEXTS.put(connection, *({**one, "digest": f"x{one['digest'][1:]}"} | _own(7, one) for one in rows(FEW + 1)))
        assert _COUNT.rows(connection) == [(before + FEW + 3,)]
    with store._reading() as connection:
        assert _COUNT.rows(connection) == [(before + FEW + 3,)]


def test_what_is_asked_ahead_is_asked_again_behind_anything_else(address: Address) -> None:
    """Never an answer from before a change: neither behind one that was put, nor behind one of SQLAlchemy's own."""
    store = signed_store(address)
    changes: list[Callable[[Connection], object]] = [
        lambda connection: _TEXTS.put(connection, _named(1)),
        lambda connection: connection.execute(insert(tables.texts), _named(2)),
        lambda connection: _ERASE.count(connection, {"named": _named(1)["digest"]}),
        lambda _: None,
    ]
    for change in changes:

        def work(connection: Connection, change: Callable[[Connection], object] = change) -> None:
            assert _KEPT.rows(connection) == _KEPT.rows(connection), "as asked ahead, and anew"
            change(connection)
            asked = _KEPT.rows(connection)
            assert asked == [(connection.scalar(_ANEW),)]

        store._commit(work, lambda: [(_KEPT, {}), (_KEPT, {}), (_KEPT, {})])


def test_looking_at_what_waits_for_others_is_refused(postgres: Server, name: str) -> None:
    store = signed_store(postgres.url(name))
    with store._writing() as connection, together(connection), pytest.raises(InternalError, match="sent together"):
        _COUNT.rows(connection)


def test_a_rollback_forgets_what_waits_and_keeps_what_the_server_parsed(postgres: Server, name: str) -> None:
    store = signed_store(postgres.url(name))
    with store._reading() as connection:
        before = _COUNT.rows(connection)

    def work(connection: Connection) -> None:
        _READ.rows(connection, {"least": ""})
        with together(connection):
            _TEXTS.put(connection, _named(1))
        raise KeyError

    for _ in range(4):
        with pytest.raises(KeyError):
            _write(store, work)
        with store._reading() as connection:
            assert _COUNT.rows(connection) == before


def test_what_the_server_could_not_parse_is_parsed_another_time(postgres: Server, name: str) -> None:
    """Somebody held the table until the time was over; behind a statement that waited, so that both went as one."""
    store = PostgresStore(postgres.url(name), busy_seconds=0.05)
    store.sign(opening())
    steps = Prepared(select(func.count()).select_from(tables.steps))

    def work(connection: Connection) -> list[tuple[Any, ...]]:
        with together(connection):
            _TEXTS.put(connection, _named(1))
        return steps.rows(connection)

    with store._writing() as connection:
        steps.rows(connection)
    with psycopg.connect(postgres.url(name, "admin")) as other:
        other.execute("LOCK TABLE parco.steps IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(BusyError):
            store._commit(work, tuple)
    assert store._commit(work, tuple) == [(0,)]


@pytest.mark.parametrize("place_of_it", ["_is_readable", "_checked"])
def test_an_interrupt_is_raised_and_nothing_is_answered_late_or_prepared_twice(
    postgres: Server, name: str, monkeypatch: pytest.MonkeyPatch, place_of_it: str
) -> None:
    """At each wait, or behind each answer, in turn, the commit's too: it is no lost connection, and begins nothing."""
    store = signed_store(postgres.url(name))
    calls, call = [0, 0], getattr(postgres_cursor, place_of_it)

    def interrupted(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == calls[1]:
            raise KeyboardInterrupt
        return call(*given, **named)

    monkeypatch.setattr(postgres_cursor, place_of_it, interrupted)
    for place in range(1, 100):
        # Once before, so that it is the second time that it is asked: then statements are parsed.
        store.settle(started(store, question="before", fresh=True, cost=1), answer=b"[1]")
        calls[:] = [0, place]
        try:
            outcome = store.begin(ask(store, cost=1, fresh=True), serves=nothing)
        except KeyboardInterrupt:
            calls[:] = [0, 0]
            store.verify()
            continue
        break
    calls[:] = [0, 0]
    assert place > 2
    assert isinstance(outcome, Started)
    store.settle(outcome.request, answer=b"[1]")
    assert store.verify().accounts[1].reserved == 0, "what an interrupted commit had begun was forfeited by the next"


def _write(store: Store, work: Callable[[Connection], None]) -> None:
    with store._writing() as connection:
        work(connection)


@pytest.fixture
def name(postgres: Server) -> Iterator[str]:
    """A database with an empty ledger."""
    lent = postgres.ledger()
    yield lent
    postgres.free(lent)


@contextmanager
def _heard(heard: list[str]) -> Iterator[None]:
    def listen(*told: Any) -> None:
        heard.append(told[2])

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", listen)


def _own(count: int, row: dict[str, Any]) -> dict[str, Any]:
    return {} if row["lookup"] is None else {"lookup": f"{count}{row['lookup'][1:]}"}
