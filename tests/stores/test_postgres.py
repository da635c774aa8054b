"""What PostgreSQL alone can do to a ledger: roles, settings, conflicts, lost connections, crashes of the server."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="the PostgreSQL store is left out: install psycopg to test it")

from sqlalchemy import Engine, event  # noqa: E402 - what is left out above does not need it

from parco.errors import (  # noqa: E402
    BusyError,
    LedgerFormatError,
    NotSignedError,
    ParcoError,
    RequestError,
    StorageError,
)
from parco.stores import postgres_faults  # noqa: E402
from parco.stores.append import appended  # noqa: E402
from parco.stores.postgres import PostgresStore  # noqa: E402
from parco.stores.postgres_connection import target  # noqa: E402
from parco.stores.postgres_cursor import LedgerConnection  # noqa: E402
from parco.stores.postgres_schema import administrators_sql  # noqa: E402
from parco.stores.records import Started  # noqa: E402
from parco.stores.upgrade import VERSION  # noqa: E402
from tests.postgres import ADMIN, READER  # noqa: E402

from .build import ACT, ONE, TENTH, amounts, anything, ask, signed_store, started  # noqa: E402

if TYPE_CHECKING:
    from tests.postgres import Server


@pytest.fixture
def name(postgres: Server) -> Iterator[str]:
    """A database with an empty ledger."""
    lent = postgres.ledger()
    yield lent
    postgres.free(lent)


@pytest.fixture
def url(postgres: Server, name: str) -> str:
    return postgres.url(name)


@contextmanager
def hooked(what: str, act: Callable[..., None]) -> Iterator[None]:
    event.listen(Engine, what, act)
    try:
        yield
    finally:
        event.remove(Engine, what, act)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries",
        "UPDATE entries SET body = body",
        "TRUNCATE entries CASCADE",
        "DELETE FROM answers",
        "UPDATE answers SET body = body",
        "DELETE FROM texts",
        "DELETE FROM accounts",
        "UPDATE accounts SET account = 9",
        "DELETE FROM requests",
        "UPDATE requests SET key = key",
        "DELETE FROM owners",
        "DELETE FROM leases",
        "DELETE FROM secrets",
        "UPDATE secrets SET secret = secret",
        "DELETE FROM tree",
        "UPDATE tree SET nodes = nodes",
        "DELETE FROM heads",
        "UPDATE heads SET signature = signature",
        "DELETE FROM keys",
        "UPDATE keys SET key = key",
        "DELETE FROM strays",
        "UPDATE strays SET root = root",
        "DELETE FROM repeats",
        "UPDATE ledger SET version = 5",
        "DROP TABLE entries",
        "ALTER TABLE entries DISABLE TRIGGER ALL",
        "CREATE TABLE parco.other (one INTEGER)",
    ],
)
def test_the_role_of_parco_cannot_delete_or_change(url: str, statement: str) -> None:
    signed_store(url)
    with psycopg.connect(url, options="-c search_path=parco") as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)
        connection.rollback()


def test_a_reader_sees_everything_but_the_secrets(postgres: Server, name: str) -> None:
    signed_store(postgres.url(name))
    reader = PostgresStore(postgres.url(name, READER))
    assert [row.state for row in reader.history()] == ["open"]
    assert reader.verify().size == 1
    assert reader.head() == PostgresStore(postgres.url(name)).head()
    assert len(list(reader.export())) == 2
    with pytest.raises(StorageError, match="may not do that"):
        reader.secret(1)
    with psycopg.connect(postgres.url(name, READER), options="-c search_path=parco") as connection:
        assert connection.execute("SELECT key FROM keys").fetchall() == [(reader.head().key,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT private FROM keys")
    with pytest.raises(StorageError, match="may not do that"):
        reader.amend(ACT, entry=1, field="actor", text=None)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = body",
        "DELETE FROM entries",
        "TRUNCATE entries CASCADE",
        "INSERT INTO entries VALUES (9, 'x')",
        "DELETE FROM answers",
        "UPDATE tree SET nodes = nodes",
        "DELETE FROM tree",
        "INSERT INTO tree VALUES (9, sha256('x'))",
        "TRUNCATE heads",
        "UPDATE heads SET size = size",
        "INSERT INTO heads SELECT 1, root, accounts, previous, key, signature FROM heads LIMIT 1",
        "UPDATE accounts SET spent = cap + 1",
        "UPDATE accounts SET reserved = -1",
        "UPDATE requests SET state = 'lost'",
        "UPDATE requests SET settled = NULL",
        "DELETE FROM texts",
    ],
)
def test_the_tables_refuse_even_their_owner_what_no_store_would_write(
    postgres: Server, name: str, statement: str
) -> None:
    store = signed_store(postgres.url(name))
    store.settle(started(store), answer=b"[1]")
    with pytest.raises(psycopg.errors.IntegrityError):
        postgres.run_sql(name, statement)
    store.verify()


@pytest.mark.parametrize("role", ["", "a b", 'x"; DROP', "1a", "é"])
def test_a_role_has_a_plain_name(role: str) -> None:
    with pytest.raises(RequestError, match="role"):
        administrators_sql(role)


def test_a_database_without_a_ledger_says_who_makes_one(postgres: Server) -> None:
    with pytest.raises(NotSignedError, match="parco ledger sql"):
        PostgresStore.open(postgres.url("postgres"))


def test_a_newer_version_is_refused_by_name(postgres: Server, name: str) -> None:
    postgres.run_sql(name, f"UPDATE ledger SET version = {VERSION + 1}")
    with pytest.raises(LedgerFormatError, match=rf"version {VERSION + 1} .*reads version {VERSION}"):
        PostgresStore.open(postgres.url(name))


def test_no_message_holds_a_password() -> None:
    assert target("postgresql://ana:sesame@db.example:5433/shop?password=sesame").name == (
        "postgresql://db.example:5433/shop"
    )
    with pytest.raises(StorageError, match="cannot be reached") as caught:
        PostgresStore.open("postgresql://ana:sesame@127.0.0.1:1/shop", busy_seconds=0.1)
    assert "sesame" not in str(caught.value)
    with pytest.raises(RequestError, match="not a URL"):
        target("postgresql://[oops")


@pytest.mark.parametrize("setting", ["synchronous_commit", "fsync", "full_page_writes"])
def test_settings_that_could_lose_a_commit_are_refused_at_once_and_later(
    postgres: Server, name: str, setting: str
) -> None:
    """Even while a connection is open: an administrator's change reaches it, and is seen before the next charge."""
    store = signed_store(postgres.url(name))
    request = ask(store)
    try:
        postgres.run_sql("postgres", f"ALTER SYSTEM SET {setting} = off", "SELECT pg_reload_conf()")
        _wait(lambda: postgres.run_sql("postgres", f"SHOW {setting}") == [("off",)])
        for use in (lambda: PostgresStore.open(postgres.url(name)), lambda: store.begin(request, serves=anything)):
            with pytest.raises(StorageError, match=f"{setting} = off"):
                use()
    finally:
        postgres.run_sql("postgres", f"ALTER SYSTEM RESET {setting}", "SELECT pg_reload_conf()")
        _wait(lambda: postgres.run_sql("postgres", f"SHOW {setting}") == [("on",)])
    assert amounts(store) == (0, 0)
    assert isinstance(store.begin(request, serves=anything), Started)


def _wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not until():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_replica_or_a_read_only_server_can_be_read_and_not_spent_on(postgres: Server, name: str) -> None:
    store = signed_store(postgres.url(name))
    request = ask(store)
    postgres.run_sql("postgres", f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        replica = PostgresStore.open(postgres.url(name))
        assert replica.accounts()[0].remaining == ONE
        with pytest.raises(StorageError, match="spend on the primary"):
            replica.begin(request, serves=anything)
    finally:
        postgres.run_sql("postgres", f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert amounts(store) == (0, 0)


def test_a_conflict_with_another_writer_makes_the_whole_begin_again(postgres: Server, name: str) -> None:
    """40001: somebody who is not parco writes the account between our first look and our charge."""
    store = signed_store(postgres.url(name))
    request, tries = ask(store, cost=ONE - TENTH), list[int]()

    def meddle(*statement: Any) -> None:
        if "UPDATE accounts" in statement[2]:
            tries.append(1)
            if len(tries) == 1:
                postgres.run_sql(name, "UPDATE accounts SET cap = cap")

    with hooked("before_cursor_execute", meddle):
        outcome = store.begin(request, serves=anything)
    assert isinstance(outcome, Started)
    assert len(tries) == 2
    assert [(row.cap, row.reserved) for row in store.accounts()] == [(ONE, ONE - TENTH)]


def test_a_deadlock_with_another_writer_ends_and_the_whole_begins_again(postgres: Server, name: str) -> None:
    """40P01: another locks two accounts in the opposite order; one of the two is undone by the server."""
    store = signed_store(postgres.url(name), labels=("fit", "test"))
    from parco.ledger.entries import Charge

    request = ask(store, charges=(Charge(1, TENTH), Charge(2, TENTH)))
    holds_2, may_want_1, tries = threading.Event(), threading.Event(), list[int]()

    def meddle() -> None:
        with psycopg.connect(postgres.url(name, ADMIN), options="-c search_path=parco") as other:
            other.execute("SET deadlock_timeout = '60s'")
            other.execute("SELECT * FROM accounts WHERE account = 2 FOR UPDATE")
            holds_2.set()
            may_want_1.wait(60)
            other.execute("SELECT * FROM accounts WHERE account = 1 FOR UPDATE")
            other.rollback()

    def watch(*statement: Any) -> None:
        if "UPDATE accounts" not in statement[2]:
            return
        tries.append(1)
        if len(tries) == 2:
            # Ours holds 1 and is about to want 2: the circle is closed by ours, and so the server undoes ours.
            may_want_1.set()
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"
            _wait(lambda: postgres.run_sql("postgres", waiting.replace("%s", f"'{name}'")) == [(1,)])

    thread = threading.Thread(target=meddle)
    thread.start()
    assert holds_2.wait(60)
    with hooked("before_cursor_execute", watch):
        outcome = store.begin(request, serves=anything)
    thread.join()
    assert isinstance(outcome, Started)
    assert len(tries) == 4, "the charge of two accounts was made twice"
    assert [row.reserved for row in store.accounts()] == [TENTH, TENTH]
    store.verify()


def test_conflicts_without_end_are_busy(url: str) -> None:
    store = PostgresStore(url, busy_seconds=0.2)

    def conflict(*_: Any) -> None:
        raise psycopg.errors.SerializationFailure

    signed_store(url)
    request = ask(store)
    with hooked("commit", conflict), pytest.raises(BusyError, match="try again"):
        store.begin(request, serves=anything)
    assert amounts(store) == (0, 0)


def test_a_held_turn_is_busy_and_leaves_nothing(postgres: Server, name: str) -> None:
    store = PostgresStore(postgres.url(name), busy_seconds=0.1)
    signed_store(postgres.url(name))
    request = ask(store)
    with psycopg.connect(postgres.url(name), options="-c search_path=parco") as other:
        other.execute("LOCK TABLE writing IN EXCLUSIVE MODE")
        with pytest.raises(BusyError, match="another writer"):
            store.begin(request, serves=anything)
        assert amounts(store) == (0, 0), "readers do not wait"
        other.rollback()
    store.begin(request, serves=anything)


def _lose_the_reply(connection: Any) -> None:
    """The commit happens, and its answer never comes."""
    driver = connection.connection.dbapi_connection
    driver.commit()
    driver.close()
    raise psycopg.OperationalError("the reply was lost")


def _lose_the_question(connection: Any) -> None:
    """The connection ends before the commit reaches the server."""
    connection.connection.dbapi_connection.close()
    raise psycopg.OperationalError("the question was lost")


@pytest.mark.parametrize("lose", [_lose_the_reply, _lose_the_question])
@pytest.mark.parametrize("key", ["k", None])
def test_a_commit_without_an_answer_is_looked_up_and_neither_lost_nor_doubled(
    url: str, lose: Callable[[Any], None], key: str | None
) -> None:
    store = signed_store(url)
    request, times = ask(store, key=key), list[int]()

    def once(connection: Any) -> None:
        times.append(1)
        if len(times) == 1:
            lose(connection)

    with hooked("commit", once):
        outcome = store.begin(request, serves=anything)
    assert isinstance(outcome, Started)
    times.clear()
    with hooked("commit", once):
        stored = store.settle(outcome.request, answer=b"[1]")
    assert store.answers("count by month") == [stored]
    assert amounts(store) == (TENTH, 0)
    assert [row.state for row in store.history()] == ["open", "settled"]
    store.verify()


def test_a_connection_that_is_lost_in_every_commit_ends_in_an_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = signed_store(url)
    request = ask(store)
    monkeypatch.setattr("parco.stores.postgres._PAUSE_SECONDS", 0.0)

    def lose(connection: Any) -> None:
        # The look-up itself has nothing to commit.
        if appended(connection):
            _lose_the_question(connection)

    with hooked("commit", lose), pytest.raises(StorageError, match="nothing was written"):
        store.begin(request, serves=anything)
    assert amounts(store) == (0, 0)


def test_a_commit_that_cannot_be_looked_up_is_told_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PostgresStore(url)
    signed_store(url)
    request = ask(store, key="k")

    def lose(connection: Any) -> None:
        _lose_the_reply(connection)

    monkeypatch.setattr("parco.stores.postgres._PAUSE_SECONDS", 0.0)
    with hooked("commit", lose), pytest.raises(StorageError, match="cannot be told whether it did"):
        store.begin(request, serves=anything)
    # By the key it can be told: it was charged, and since nobody holds it, it is forfeited.
    again = PostgresStore.open(url)
    assert [row.state for row in again.history()] == ["open", "forfeited"]
    assert amounts(again) == (TENTH, 0)


def test_a_connection_that_the_server_closed_meanwhile_is_opened_anew(postgres: Server, name: str) -> None:
    store = signed_store(postgres.url(name))
    request = ask(store)
    for use in (store.accounts, lambda: store.begin(request, serves=anything)):
        postgres.run_sql(name, _TERMINATE)
        use()


_TERMINATE = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def test_a_connection_that_is_cut_while_it_reads_is_told_as_any(postgres: Server, name: str) -> None:
    """At the end of the reading, where a writer would look whether it wrote."""
    store = signed_store(postgres.url(name))

    def read() -> None:
        with store._reading():
            postgres.run_sql(name, _TERMINATE)

    with pytest.raises(StorageError, match="cannot be reached"):
        read()
    assert len(store.accounts()) == 1


def test_a_repeat_that_is_cut_off_raises_nothing(postgres: Server, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = signed_store(postgres.url(name))
    commit = LedgerConnection.commit

    def cut(connection: LedgerConnection) -> None:
        postgres.run_sql(name, _TERMINATE)
        connection.execute("SELECT 1")
        commit(connection)

    monkeypatch.setattr(LedgerConnection, "commit", cut)
    store.repeated(2)
    monkeypatch.undo()
    assert len(store.accounts()) == 1


def test_acknowledged_entries_survive_a_crash_of_the_server(postgres: Server, name: str) -> None:
    """The server is stopped as by a power cut while threads charge: each acknowledged charge is there afterwards."""
    store = signed_store(postgres.url(name), cap=1000 * ONE)
    requests = [ask(store, cost=1, question=f"q{number}", key=f"k{number}") for number in range(200)]
    told: list[str | None] = []

    def charge(part: list[Any]) -> None:
        for request in part:
            try:
                store.begin(request, serves=anything)
            except ParcoError:
                return
            told.append(request.key)

    threads = [threading.Thread(target=charge, args=(requests[place::4],)) for place in range(4)]
    for thread in threads:
        thread.start()
    _wait(lambda: len(told) > 8)
    postgres.stop(signal.SIGQUIT)
    postgres.start()
    for thread in threads:
        thread.join()
    again = PostgresStore(postgres.url(name))
    state = again.verify()
    assert len(state.requests) >= len(told)
    with psycopg.connect(postgres.url(name), options="-c search_path=parco") as connection:
        kept = connection.execute(
            "SELECT texts.text FROM requests JOIN texts ON requests.key = texts.digest"
        ).fetchall()
    assert set(told) <= {key for (key,) in kept}


def test_a_child_leaves_its_parents_connection_alone(url: str) -> None:
    store = signed_store(url)
    mine = started(store, question="mine")
    child = os.fork()
    if child == 0:
        outcome = store.begin(ask(store, key="child"), serves=anything)
        os._exit(7 if isinstance(outcome, Started) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    store.settle(mine, answer=b"[1]")
    assert [row.state for row in PostgresStore.open(url).history()] == ["open", "settled", "forfeited"]


def test_two_addresses_of_one_database_are_one_ledger(url: str) -> None:
    """Or what the one has in hand would seem let go to the other."""
    store = signed_store(url)
    request = started(store)
    other = PostgresStore.open(f"{url}&application_name=other")
    assert other.identity == store.identity
    assert [row.state for row in other.history()] == ["open", "started"]
    other.settle(request, answer=b"[1]")


def test_repeats_are_counted_and_wait_for_no_disk(postgres: Server, name: str) -> None:
    store = signed_store(postgres.url(name))
    for request in (2, 5, 2):
        store.repeated(request)
    assert store.repeats() == {2: 2, 5: 1}
    # What is lost with the server's crash was never waited for: a table without a log.
    assert postgres.run_sql(name, "SELECT relpersistence FROM pg_class WHERE relname = 'repeats'") == [("u",)]
    postgres.run_sql(name, "DROP TABLE repeats")
    store.repeated(2)
    postgres.run_sql(name, "CREATE UNLOGGED TABLE repeats (request BIGINT NOT NULL)")
    postgres.run_sql(name, "GRANT SELECT, INSERT ON repeats TO parco_app", "GRANT SELECT ON repeats TO parco_reader")


@pytest.mark.parametrize(
    ("state", "expected", "words"),
    [
        ("53100", StorageError, "disk is full"),
        ("58030", StorageError, "disk failed"),
        ("55P03", BusyError, "another writer"),
        ("53300", BusyError, "no connection left"),
        ("25006", StorageError, "primary"),
        ("28P01", StorageError, "password"),
        ("XX001", LedgerFormatError, "damaged"),
        ("23514", ParcoError, "rules"),
        ("99999", ParcoError, "failed"),
    ],
)
def test_each_fault_has_its_class_and_says_no_more(state: str, expected: type[ParcoError], words: str) -> None:
    kind = psycopg.errors.lookup(state) if state != "99999" else psycopg.Error
    error = kind("near 'Ada Lovelace'")
    error.sqlstate = state
    with pytest.raises(expected, match=words) as caught, postgres_faults.translated("postgresql:///x"):
        raise error
    assert "Ada" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_thread_that_ends_gives_its_connection_back(postgres: Server, name: str) -> None:
    store = signed_store(postgres.url(name))
    threads = [threading.Thread(target=store.accounts) for _ in range(5)]
    for thread in threads:
        thread.start()
        thread.join()
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'parco'"
    _wait(lambda: postgres.run_sql(name, count) == [(1,)])
    with closing(store):
        pass
    _wait(lambda: postgres.run_sql(name, count) == [(0,)])


@pytest.mark.parametrize("table", ["entries", "tree"])
def test_rows_are_only_added_as_the_next_ones(postgres: Server, name: str, table: str) -> None:
    """Whoever may add rows, however many in one statement: no gap, before them or among them."""
    signed_store(postgres.url(name))
    column, message = {"entries": ("seq", "entries"), "tree": ("size", "nodes")}[table]
    ((last,),) = postgres.run_sql(name, f"SELECT max({column}) FROM {table}")
    node = b"n" * 32
    with psycopg.connect(postgres.url(name), options="-c search_path=parco") as connection:
        if table == "tree":
            for further in range(1, 6):
                connection.execute("INSERT INTO entries VALUES (%s, 'x')", (last + further,))
            connection.commit()
        for steps in [(2,), (1, 3), (2, 3), (1, 2, 4), (2, 1, 4)]:
            for add in (_insert, _copy):
                with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match=f"{message} are only added"):
                    add(connection, table, [(last + step, node) for step in steps])
                connection.rollback()
        for steps in [(1,), (1, 2, 3), (2, 1)]:
            for add in (_insert, _copy):
                add(connection, table, [(last + step, node) for step in steps])
                connection.rollback()


def _insert(connection: Any, table: str, rows: list[tuple[int, bytes]]) -> None:
    marks = ", ".join(["(%s, %s)"] * len(rows))
    connection.execute(f"INSERT INTO {table} VALUES {marks}", [part for row in rows for part in row])


def _copy(connection: Any, table: str, rows: list[tuple[int, bytes]]) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
