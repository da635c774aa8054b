"""The checks on a ledger in PostgreSQL: the same forty entries, harmed past every guard by somebody who may write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("psycopg", reason="the PostgreSQL store is left out: install psycopg to test it")

from parco.audit.verify import verify
from parco.errors import VerificationError
from parco.stores.postgres import PostgresStore
from tests.postgres import READER
from tests.stores import build
from tests.stores.build import backup, harm, put_back, run_sql, signed_store

from .build import fill, release
from .test_tampering import HARM, NAMED, check

if TYPE_CHECKING:
    from tests.postgres import Server


@pytest.fixture
def name(postgres: Server) -> Iterator[str]:
    """A database with the forty entries."""
    build.SERVERS.append(postgres)
    lent = postgres.ledger()
    fill(signed_store(postgres.url(lent)))
    yield lent
    build.SERVERS.clear()
    postgres.free(lent)


def test_the_ledger_passes_online_and_as_an_export(postgres: Server, name: str) -> None:
    store = PostgresStore(postgres.url(name))
    assert verify(store, heads=[store.head()]) is True
    check(list(store.export()), [store.head().record()])


def test_what_is_changed_in_the_tables_is_found_and_named(postgres: Server, name: str) -> None:
    address = postgres.url(name)
    store, whole = PostgresStore(address), backup(address)
    rows = run_sql(address, "SELECT count(*) FROM entries")
    for what, statements in HARM.items():
        harm(address, *statements.split("; "))
        with pytest.raises(VerificationError) as caught:
            verify(store)
        if what in NAMED:
            check_name, entry = NAMED[what]
            assert caught.value.facts["check"] == check_name, what
            assert caught.value.facts["entry"] in (entry, entry + 1), what
        put_back(address, whole)
        assert run_sql(address, "SELECT count(*) FROM entries") == rows
    verify(store)


def test_a_stale_replica_that_was_made_a_primary_is_found_by_a_head(postgres: Server, name: str) -> None:
    address = postgres.url(name)
    store, old = PostgresStore(address), backup(address)
    release(store, "lost")
    seen = store.head()
    put_back(address, old)
    with pytest.raises(VerificationError, match="witnessed"):
        verify(store)
    assert store.marks_path is not None
    store.marks_path.unlink()
    verify(store)
    with pytest.raises(VerificationError, match="witnessed"):
        verify(store, heads=[seen])


def test_a_reader_checks_all_but_what_it_may_not_read(postgres: Server, name: str) -> None:
    """Neither the secrets nor the key, which only those who spend may read: it says so, and finds all the rest."""
    reader = PostgresStore(postgres.url(name, READER))
    assert verify(reader, heads=[reader.head()]) is False
    assert verify(PostgresStore(postgres.url(name))) is True
    address = postgres.url(name)
    whole = backup(address)
    for what in ("an entry", "an answer", "an account", "a text", "a head"):
        harm(address, *HARM[what].split("; "))
        with pytest.raises(VerificationError):
            verify(reader)
        put_back(address, whole)
    harm(address, HARM["a secret"])
    assert verify(reader) is False
    with pytest.raises(VerificationError, match="kept"):
        verify(PostgresStore(address))
