"""Crashes and full or read-only disks: real processes, real signals, real files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parco.errors import ForfeitedError, NotSignedError, StorageError
from parco.stores import connection
from parco.stores.records import Started
from parco.stores.sqlite import SqliteStore

from .build import TENTH, amounts, anything, ask, opening, signed_file, started
from .children import run
from .forks import STATEMENTS_MAX, killed_at


def every_statement(work: Callable[[], object]) -> Iterator[int]:
    """Kills `work` before its first statement, its second, ... and yields after each, until it runs to its end."""
    for statement in range(1, STATEMENTS_MAX):
        if not killed_at(statement, work):
            assert statement > 4, "the work ended too soon to have done anything"
            return
        yield statement
    raise AssertionError("the work never came to its end")


def test_killed_before_each_statement_of_a_reservation(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")
    request = ask(store, key="k")
    before = list(store.entries())
    for _ in every_statement(lambda: store.begin(request, serves=anything)):
        assert list(SqliteStore.open(store.path).entries()) == before
        assert amounts(store) == (0, 0)
    # The last child reserved, and ended as a zombie's parent does not: it is gone, so its charge is forfeited.
    assert SqliteStore.open(store.path).history()[-1].state == "forfeited"
    store.verify()


def test_killed_before_each_statement_of_a_settlement(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")
    request = started(store)
    before = list(store.entries())
    for _ in every_statement(lambda: store.settle(request, answer=b"[1]")):
        assert list(SqliteStore.open(store.path).entries()) == before
        assert amounts(store) == (0, TENTH)
    assert store.answers("count by month")[0].answer == b"[1]"
    store.verify()


def test_killed_before_each_statement_of_signing(tmp_path: Path) -> None:
    """Nothing, an empty ledger or a signed one, each of which can be signed."""
    path = tmp_path / "x.ledger"
    for _ in every_statement(lambda: signed_file(path)):
        if path.exists():
            store = SqliteStore.open(path)
            assert store.verify().size == 0
            with pytest.raises(NotSignedError):
                store.signed("purchases", "sales")
            path.unlink()
    assert signed_file(path).verify().size == 1


@pytest.mark.parametrize("moment", ["link", "unlink", "_sync_folder"])
def test_killed_around_the_naming_of_a_new_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    path = tmp_path / "x.ledger"

    def die(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    place = {"link": os, "unlink": Path, "_sync_folder": connection}[moment]
    with monkeypatch.context() as patch:
        patch.setattr(place, moment, die)
        assert killed_at(STATEMENTS_MAX, lambda: signed_file(path))
    assert path.exists() == (moment != "link")
    assert signed_file(path).verify().size == 1


def test_two_signers_at_once_make_one_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.ledger"
    link = os.link

    def late(draft: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        signed_file(path)
        link(draft, target)

    monkeypatch.setattr(os, "link", late)
    store = signed_file(path)
    assert store.verify().size == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.ledger", "x.ledger.heads"]


# The limit stops the journal's first page, or lets it pass and stops the growing ledger itself.
LIMIT = """
import resource
from parco.errors import StorageError
def fill_disk(limit):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
limits = {"journal": 2048, "ledger": path.stat().st_size}
"""

FULL_AT_RESERVE = """
store = SqliteStore.open(path)
request = ask(store, question="q" * 60_000)
fill_disk(limits[WHICH])
try:
    store.begin(request, serves=anything)
except StorageError as error:
    print(amounts(store), len(list(store.entries())), error.exit_code)
"""

FULL_AT_SETTLE = """
store = SqliteStore.open(path)
request = started(store)
fill_disk(limits[WHICH])
try:
    store.settle(request, answer=b"[" + b"1," * 60_000 + b"1]")
except StorageError as error:
    print(amounts(store), len(list(store.entries())), error.exit_code)
"""


@pytest.mark.parametrize("which", ["journal", "ledger"])
def test_disk_full_at_reserve_changes_nothing(tmp_path: Path, which: str) -> None:
    store = signed_file(tmp_path / "x.ledger")
    done = run(LIMIT + f"WHICH = {which!r}\n" + FULL_AT_RESERVE, store.path)
    assert done.stdout == "(0, 0) 1 5\n", done.stderr
    assert SqliteStore.open(store.path).verify().size == 1
    started(store, question="q" * 60_000)


@pytest.mark.parametrize("which", ["journal", "ledger"])
def test_disk_full_at_settle_keeps_the_charge(tmp_path: Path, which: str) -> None:
    store = signed_file(tmp_path / "x.ledger")
    done = run(LIMIT + f"WHICH = {which!r}\n" + FULL_AT_SETTLE, store.path)
    assert done.stdout == f"(0, {TENTH}) 3 5\n", done.stderr
    assert amounts(store) == (0, TENTH)
    again = SqliteStore.open(store.path)
    assert amounts(again) == (TENTH, 0)
    assert again.history()[-1].state == "forfeited"
    again.verify()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if mount is None or os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk; the limit on file size above tests the same paths")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    store = signed_file(small_disk / "x.ledger")
    request = started(store)
    filler = fill(small_disk)
    for step in (
        lambda: store.settle(request, answer=b"[1]"),
        lambda: store.begin(ask(store, question="another"), serves=anything),
        lambda: SqliteStore.create_or_open(small_disk / "y.ledger"),
    ):
        with pytest.raises(StorageError, match="full"):
            step()
        assert amounts(store) == (0, TENTH)
    assert [file.name for file in sorted(small_disk.iterdir())] == ["filler", "x.ledger", "x.ledger.heads"]
    filler.unlink()
    store.settle(request, answer=b"[1]")
    store.verify()
    store.close()


def as_nobody(work: Callable[[], object]) -> str:
    """What `work` returns, as text, in a forked child without root's power to write anywhere.

    Forked, since the interpreter itself may lie where only root can start it.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(writing, repr(work()).encode())
        except BaseException as error:  # noqa: BLE001 - the parent compares what it reads
            os.write(writing, f"raised {error!r}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def _use_read_only(path: Path) -> list[object]:
    store = SqliteStore.open(path)
    seen: list[object] = [amounts(store), [row.state for row in store.history()], len(store.answers("answered"))]
    for work in (
        lambda: store.begin(ask(store), serves=anything),
        lambda: store.sign(opening(name="other", contract="other")),
        lambda: SqliteStore.create_or_open(path.with_name("new.ledger")),
    ):
        with pytest.raises(StorageError):
            work()
    store.repeated(2)
    return [*seen, sorted(file.name for file in path.parent.iterdir())]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can look into, unlike pytest's own."""
    place = Path(tempfile.mkdtemp())
    yield place
    place.chmod(0o755)
    shutil.rmtree(place)


@pytest.mark.parametrize("file_mode", [0o444, 0o666])
def test_read_only_media_can_be_read(open_folder: Path, file_mode: int) -> None:
    """Even with a dead owner's request, which only a writer can forfeit."""
    path = open_folder / "x.ledger"
    store = signed_file(path)
    store.settle(started(store, question="answered"), answer=b"[1]")
    run("store = SqliteStore.open(path)\nstarted(store)", path)
    path.chmod(file_mode)
    open_folder.chmod(0o555)
    said = as_nobody(lambda: _use_read_only(path))
    assert said == repr([(TENTH, TENTH), ["open", "settled", "started"], 1, ["x.ledger", "x.ledger.heads"]])
    open_folder.chmod(0o755)
    path.chmod(0o644)
    assert SqliteStore.open(path).history()[-1].state == "forfeited"


def test_a_ledger_shared_over_a_fork(tmp_path: Path) -> None:
    """A child opens a connection of its own and leaves its parent's alone; it is an owner of its own, too."""
    store = signed_file(tmp_path / "x.ledger")
    mine = started(store, question="mine")
    child = os.fork()
    if child == 0:
        outcome = store.begin(ask(store, key="child"), serves=anything)
        os._exit(7 if isinstance(outcome, Started) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with pytest.raises(ForfeitedError):
        store.begin(ask(store, key="child"), serves=anything)
    store.settle(mine, answer=b"[1]")
    assert amounts(store) == (2 * TENTH, 0)


def test_signing_again_after_a_crash_is_the_same_contract(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")
    first = store.signed("purchases", "sales")
    assert not killed_at(STATEMENTS_MAX, lambda: store.sign(opening()))
    assert store.sign(opening()) == first
