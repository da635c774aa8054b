"""SQLite's journals: the log by choice, and only where it is safe; copies, lost journals and network file systems."""

from __future__ import annotations

import shutil
import subprocess
import threading
import warnings
from contextlib import closing
from pathlib import Path

import pytest

from parco.errors import HaltedError, LedgerFormatError, ParcoError, RequestError, StorageError, VerificationError
from parco.stores import filesystem, journal
from parco.stores.sqlite import SqliteStore

from .build import amounts, anything, ask, run_sql, signed_file, started
from .disk import Disk, images, watched


@pytest.mark.parametrize(
    ("version", "is_safe"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 44, 9), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 0), False),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), True),
        ((4, 0, 0), True),
    ],
)
def test_which_libraries_keep_a_log_safe(version: tuple[int, int, int], is_safe: bool) -> None:
    assert journal.wal_is_safe(version) is is_safe


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return signed_file(tmp_path / "x.ledger")


def _mode(store: SqliteStore) -> str:
    return str(run_sql(store.path, "PRAGMA journal_mode")[0][0])


def test_the_log_is_taken_by_choice_and_by_every_later_connection(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _mode(store) == "delete"
    monkeypatch.setattr(journal, "wal_is_safe", lambda: True)
    assert _mode(store) == "delete", "a safe library alone is no choice"
    store.choose_journal("wal")
    assert _mode(store) == "wal"
    with SqliteStore.open(store.path)._reading() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    store.settle(started(store), answer=b"[1]")
    store.choose_journal("rollback")
    assert _mode(store) == "delete"
    store.verify()


def test_an_affected_library_refuses_the_log_and_takes_the_rollback_journal(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "wal_is_safe", lambda: False)
    with pytest.raises(StorageError, match="can lose committed entries"):
        store.choose_journal("wal")
    monkeypatch.setattr(journal, "wal_is_safe", lambda: True)
    store.choose_journal("wal")
    store.settle(started(store), answer=b"[1]")
    store.close()
    monkeypatch.setattr(journal, "wal_is_safe", lambda: False)
    assert amounts(SqliteStore.open(store.path))[1] == 0
    assert _mode(store) == "delete"


def test_an_affected_library_refuses_while_another_uses_the_log(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "wal_is_safe", lambda: True)
    store.choose_journal("wal")
    assert amounts(store) == (0, 0)
    monkeypatch.setattr(journal, "wal_is_safe", lambda: False)
    with pytest.raises(StorageError):
        SqliteStore.open(store.path, busy_seconds=0.1)


def test_an_unknown_journal_is_refused(store: SqliteStore) -> None:
    with pytest.raises(RequestError):
        store.choose_journal("off")


MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:40 / /data rw - nfs4 server:/export rw
41 40 0:41 / /data/local rw - tmpfs tmpfs rw
42 22 0:42 / /mnt/my\040share rw shared:9 master:1 - fuse.sshfs ana@host: rw
43 22 0:43 / /over rw - ext4 /dev/vdb rw
44 43 0:44 / /over rw - cifs //server/share rw
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/home/x.ledger", None),
        ("/data/x.ledger", "nfs4"),
        ("/data/local/x.ledger", None),
        ("/database/x.ledger", None),
        ("/mnt/my share/x.ledger", "fuse.sshfs"),
        ("/over/x.ledger", "cifs"),
    ],
)
def test_network_file_systems_are_known_by_the_mount_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, found: str | None
) -> None:
    (tmp_path / "mounts").write_text(MOUNTS, encoding="ascii")
    monkeypatch.setattr(filesystem, "_MOUNTS", tmp_path / "mounts")
    assert filesystem.network_type(Path(path)) == found


def test_a_ledger_on_a_network_is_warned_of_and_gets_no_log(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SqliteStore.open(store.path)
    monkeypatch.setattr(filesystem, "network_type", lambda _: "nfs4")
    monkeypatch.setattr(journal, "network_type", lambda _: "nfs4")
    monkeypatch.setattr(journal, "wal_is_safe", lambda: True)
    with pytest.warns(RuntimeWarning, match="network file system"):
        SqliteStore.open(store.path)
    with pytest.raises(StorageError, match="network file system"):
        store.choose_journal("wal")


def _interrupted(store: SqliteStore) -> list[dict[str, bytes]]:
    """Files as a kill in the middle of a charge leaves them: with a journal that has still to be played back."""
    request = ask(store)
    store.close()
    before = {"x.ledger": store.path.read_bytes()}
    try:
        with watched(Disk()) as disk:
            store.begin(request, serves=anything)
            store.close()
    except OSError as error:
        pytest.skip(f"SQLite's library cannot be reached: {error}")
    found = [files for _, files in images(before, disk.steps, seed=1, each=0) if "x.ledger-journal" in files]
    half = [files for files in found if files["x.ledger"] != before["x.ledger"]]
    assert half
    return half


def _put(folder: Path, files: dict[str, bytes]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder / "x.ledger"


def test_a_journal_that_was_deleted_is_never_silent(store: SqliteStore, tmp_path: Path) -> None:
    """A ledger written by half without its journal is found by `verify`; with it, it is as it was before."""
    entries, refused = list(store.entries()), 0
    for files in _interrupted(store):
        with closing(SqliteStore(_put(tmp_path / "whole", files))) as whole:
            assert list(whole.entries()) == entries
            whole.verify()
        with closing(SqliteStore(_put(tmp_path / "lost", {"x.ledger": files["x.ledger"]}))) as lost:
            try:
                state = lost.verify()
            except (VerificationError, LedgerFormatError):
                refused += 1
            else:
                # What came to the disk belongs together: before the first page that matters, or behind the last.
                assert state.size in (len(entries), len(entries) + 2)
    assert refused > 0


def test_the_journal_of_another_ledger_is_never_silent(store: SqliteStore, tmp_path: Path) -> None:
    """Played back into a file it does not belong to, it makes one that does not add up; nothing is spent from that."""
    foreign = _interrupted(store)[0]["x.ledger-journal"]
    other = signed_file(tmp_path / "other.ledger", contract="another contract, of another length")
    other.settle(started(other), answer=b"[1]")
    other.close()
    files = {"x.ledger": other.path.read_bytes(), "x.ledger-journal": foreign}
    with closing(SqliteStore(_put(tmp_path / "mixed", files))) as mixed, pytest.raises(ParcoError):
        mixed.verify()


def test_a_file_copied_under_a_running_writer_opens_whole_or_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    """By a copy that knows nothing of locks, page after page, while another process's thread charges."""
    done, requests = threading.Event(), [ask(store, question=f"q{number}", cost=1) for number in range(400)]

    def write() -> None:
        for request in requests:
            if done.is_set():
                return
            store.begin(request, serves=anything)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(12):
            copy = tmp_path / f"copy {number}.ledger"
            # By another process: a plain read here would drop the locks of this one.
            subprocess.run(["cp", store.path, copy], check=True)
            try:
                with closing(SqliteStore(copy)) as left:
                    state = left.verify()
            except ParcoError:
                continue
            assert state.size % 2 == 1, "an entry without its commit"
    finally:
        done.set()
        writer.join()
    store.verify()


def test_a_file_put_in_the_ledgers_place_is_seen_before_the_next_charge(store: SqliteStore, tmp_path: Path) -> None:
    """The kept connection would write into a file that has no name any more: an entry acknowledged and lost."""
    backup = tmp_path / "backup"
    store.close()
    shutil.copy(store.path, backup)
    store.settle(started(store), answer=b"[1]")
    backup.replace(store.path)
    assert amounts(store) == (0, 0), "the file that is there is the one that is read"
    with pytest.raises(HaltedError):
        store.begin(ask(store, question="after"), serves=anything)
    store.marks_path.unlink()  # as if nobody knew how far it had come
    request = started(store, question="after")
    with closing(SqliteStore(store.path)) as again:
        assert [row.state for row in again.history()] == ["open", "started"]
    store.settle(request, answer=b"[1]")
