"""Every durable method, broken at every point, by every fault: afterwards the ledger is as before or as after.

The points are the statements that a method sends and its commit, or what SQLite asks of the disk. They are counted by
running the method, so that a new one is met by the faults without a line being written here. A failure names act,
fault and point, and the seed where there is chance: the same words run it again.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine, event

from parco import stores
from parco.errors import ParcoError, StorageError
from parco.stores import journal
from parco.stores.address import is_url
from parco.stores.durable import DURABLE
from parco.stores.sqlite import SqliteStore, failed_sync_path
from parco.stores.store import Store

from .build import Address, signed_file, signed_store
from .disk import Disk, images, watched
from .forks import STATEMENTS_MAX, killed_at
from .scenarios import ACTS

if TYPE_CHECKING:
    from tests.postgres import Server

SEED = 20261130
IMAGES_EACH = 2

acts = pytest.mark.parametrize("act", ACTS)


def test_every_durable_method_has_its_act() -> None:
    assert set(DURABLE) == set(ACTS)
    assert len(set(DURABLE)) == len(DURABLE)


_IN_SOURCE = re.compile(r"\b(insert|Insertion|update|delete)\(tables\.(\w+)")
_SENT = re.compile(r"(INSERT INTO|UPDATE|DELETE FROM) (\w+)")
_VERBS = {"insert": "INSERT INTO", "Insertion": "INSERT INTO", "update": "UPDATE", "delete": "DELETE FROM"}


def test_the_acts_make_every_change_that_stands_in_the_source(tmp_path: Path) -> None:
    """And no other, so that the source is read as it is meant."""
    folder = Path(stores.__file__).parent
    source = "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.py")))
    sent: list[str] = []
    for act, prepare in ACTS.items():
        with closing(signed_file(tmp_path / f"{act}.ledger")) as store:
            work = prepare(store)
            with _at_each(lambda *told: sent.append(told[2] if len(told) > 2 else "COMMIT")):
                work()
    assert set(_SENT.findall("\n".join(sent))) == {(_VERBS[verb], table) for verb, table in _IN_SOURCE.findall(source)}


class Watch:
    """What a ledger held before an act; afterwards it holds that, or what the whole act adds, and adds up."""

    def __init__(self, store: Store) -> None:
        self.before = list(store.entries())
        self.beside = self._beside(store)

    def is_done(self, store: Store, *, added: int) -> bool:
        """True if the act was done as a whole, False if nothing of it was; fails for anything between."""
        store.verify()
        entries = list(store.entries())
        assert entries[: len(self.before)] == self.before, "an acknowledged entry is gone or was changed"
        assert len(entries) - len(self.before) in (0, added), "the act was done by half"
        if added:
            done = len(entries) > len(self.before)
            assert done or self._beside(store) == self.beside, "texts or heads of an act that was not done"
            return done
        return self._beside(store) != self.beside

    @staticmethod
    def _beside(store: Store) -> list[object]:
        """Texts, and heads that nothing has answered for: what an act may change without an entry."""
        texts = [part for row in store.history() for part in (row.actor, row.question, row.reason)]
        return [*texts, store.shown().unanswered]


def untidied(address: Address) -> Store:
    """The ledger as the fault left it: opened without the tidying that would end what the dead had begun."""
    if is_url(address):
        from parco.stores.postgres import PostgresStore

        return PostgresStore(str(address))
    return SqliteStore(address)


@acts
def test_killed_before_each_statement(address: Address, act: str) -> None:
    store = signed_store(address)
    work = ACTS[act](store)
    watch = Watch(store)
    for statement in range(1, STATEMENTS_MAX):
        if not killed_at(statement, work):
            break
        with closing(untidied(address)) as left:
            # Everything up to the commit is undone, and the commit is the last of the points.
            added = len(list(left.entries())) - len(watch.before)
            assert added == 0
            assert not watch.is_done(left, added=added), f"{act} killed at statement {statement}"
    assert 2 <= statement < STATEMENTS_MAX - 1, "the act ended too soon to have done anything, or never"
    left = untidied(address)
    added = len(list(left.entries())) - len(watch.before)
    assert watch.is_done(left, added=added)


def points(work: Callable[[], object]) -> int:
    """How many statements and commits `work` comes to."""
    count = 0

    def step(*_: Any) -> None:
        nonlocal count
        count += 1

    with _at_each(step):
        work()
    return count


@contextmanager
def _at_each(step: Callable[..., None]) -> Iterator[None]:
    event.listen(Engine, "before_cursor_execute", step)
    event.listen(Engine, "commit", step)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", step)
        event.remove(Engine, "commit", step)


def at_point(number: int, fault: Callable[[], None]) -> Any:
    """Does `fault` before the statement or commit with this number, from 1."""
    count = 0

    def step(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == number:
            fault()

    return _at_each(step)


@acts
@pytest.mark.parametrize("state", ["53100", "58030"], ids=["disk-full", "io-error"])
def test_the_server_refuses_at_each_statement(postgres: Server, act: str, state: str) -> None:
    """Disk full and input or output error, as the server tells them: nothing of the act, and the next try does it."""
    import psycopg

    name = postgres.ledger()
    store = signed_store(postgres.url(name))
    work = ACTS[act](store)
    watch = Watch(store)

    def refuse() -> None:
        raise psycopg.errors.lookup(state)

    number = 0
    while True:
        number += 1
        assert number < STATEMENTS_MAX
        try:
            with at_point(number, refuse):
                work()
        except StorageError:
            assert not watch.is_done(store, added=0), f"{act} refused at {number}"
            continue
        break
    assert number > 2
    added = len(list(store.entries())) - len(watch.before)
    assert watch.is_done(store, added=added)
    postgres.free(name)


@acts
def test_the_connection_is_cut_at_each_statement(postgres: Server, act: str) -> None:
    """The server ends the connection: the whole act begins again by itself, and is done once."""
    name = postgres.ledger()
    number, ended = 0, False
    while not ended:
        number += 1
        postgres.empty(name)
        with closing(signed_store(postgres.url(name))) as store:
            work = ACTS[act](store)
            watch = Watch(store)
            cut: list[int] = []

            def fault(cut: list[int] = cut) -> None:
                cut.append(1)
                postgres.run_sql(
                    name,
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
                )

            with at_point(number, fault):
                try:
                    work()
                except StorageError:
                    # Of an act without entries nobody can tell whether its commit went through.
                    assert act == "witness"
                    continue
            ended = not cut
            added = len(list(store.entries())) - len(watch.before)
            assert watch.is_done(store, added=added), f"{act} cut at {number}"
    assert number > 2
    postgres.free(name)


@pytest.fixture(params=["rollback", "wal"])
def prepared(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    """A signed ledger with either journal."""
    try:
        with watched(Disk()):
            pass
    except OSError as error:
        pytest.skip(f"failures of the disk are left out: SQLite's library cannot be reached ({error})")
    monkeypatch.setattr(journal, "wal_is_safe", lambda: True)
    store = signed_file(tmp_path / "x.ledger")
    store.choose_journal(request.param)
    return store


def _files(folder: Path) -> dict[str, bytes]:
    kept = [path for path in folder.iterdir() if path.is_file() and not path.name.endswith("-shm")]
    return {path.name: path.read_bytes() for path in kept}


@acts
def test_the_power_fails_at_each_write(prepared: SqliteStore, tmp_path: Path, act: str) -> None:
    """Unsynced writes lost, torn, reordered: the ledger opens as before or as after, and as after once acknowledged."""
    work = ACTS[act](prepared)
    watch = Watch(prepared)
    prepared.close()
    before = _files(tmp_path)
    with watched(Disk()) as disk:
        work()
        told = len(disk.steps)
        prepared.close()
    added = len(list(prepared.entries())) - len(watch.before)
    assert any(step.kind == "sync" for step in disk.steps)
    place = tmp_path / "after"
    seen = set()
    for number, (done, files) in enumerate(images(before, disk.steps, seed=SEED, each=IMAGES_EACH)):
        place.mkdir()
        for name, data in files.items():
            (place / name).write_bytes(data)
        with closing(SqliteStore(place / "x.ledger")) as left:
            is_done = watch.is_done(left, added=added)
        assert is_done or done < told, f"{act} acknowledged and lost: image {number} of seed {SEED}"
        seen.add(is_done)
        shutil.rmtree(place)
    assert seen == {False, True}


_FULL = dict.fromkeys(("write", "truncate"), sqlite3.SQLITE_FULL)
_BROKEN = {
    "write": sqlite3.SQLITE_IOERR_WRITE,
    "truncate": sqlite3.SQLITE_IOERR_TRUNCATE,
    "sync": sqlite3.SQLITE_IOERR_FSYNC,
    "delete": sqlite3.SQLITE_IOERR_DELETE,
}


@acts
@pytest.mark.parametrize("faults", [_FULL, _BROKEN], ids=["disk-full", "io-error"])
def test_the_disk_fails_at_each_step(prepared: SqliteStore, tmp_path: Path, act: str, faults: dict[str, int]) -> None:
    """Never reported as done, never done by half; after a failed sync nothing is written until somebody looks."""
    mode = "wal" if (tmp_path / "x.ledger-wal").exists() else "rollback"
    number, steps = 0, 1
    while number < steps:
        disk = _broken(tmp_path / "copy", act, mode, number, faults)
        number, steps = number + 1, max(steps, len(disk.steps))
    assert number > 2


def _broken(place: Path, act: str, mode: str, number: int, faults: dict[str, int]) -> Disk:
    """The act on a ledger of its own, with one step of the disk broken."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    store = signed_file(place / "x.ledger")
    store.choose_journal(mode)
    work, watch = ACTS[act](store), Watch(store)
    store.close()
    disk, told = Disk(broken=number), True
    with watched(disk, faults=faults):
        try:
            work()
        except StorageError:
            told = False
        store.close()
    if disk.failed and disk.steps[number].kind == "sync" and not told:
        assert failed_sync_path(store.path).exists()
        with pytest.raises(ParcoError, match="failed-sync"):
            work()
        assert store.accounts()
        failed_sync_path(store.path).unlink()
    with closing(SqliteStore(store.path)) as left:
        added = len(list(left.entries())) - len(watch.before)
        assert watch.is_done(left, added=added) or not told, f"{act}: step {number} failed, and success was reported"
    return disk
