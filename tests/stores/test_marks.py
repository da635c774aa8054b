"""The file of heads on a disk that fails: a commit stands without it, and it never halts a ledger that is whole."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parco.errors import HaltedError
from parco.stores import marks
from parco.stores.address import open_ledger
from parco.stores.sqlite import SqliteStore
from parco.stores.store import Store

from .build import (
    TENTH,
    Address,
    address_of,
    amounts,
    anything,
    ask,
    backup,
    put_back,
    signed_file,
    signed_store,
    started,
)
from .disk import Disk, images, watched

SEED = 20261130
HALF = 100


class BrokenOs:
    """The system as `marks` sees it, with the n-th call from now (from 1) done by `fault`; others are counted."""

    def __init__(self, broken: int, fault: Callable[..., Any]) -> None:
        self.calls, self._broken, self._fault = 0, broken, fault

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in ("open", "write", "fstat", "lseek", "read", "close"):
            return real

        def call(*arguments: Any, **more: Any) -> Any:
            self.calls += 1
            if self.calls != self._broken:
                return real(*arguments, **more)
            if name == "close":
                # Linux closes a file even where it says that closing failed.
                real(*arguments)
            return self._fault(name, *arguments)

        return call


def fails(number: int) -> Callable[..., Any]:
    def fault(*_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fault


def half(name: str, *arguments: Any) -> Any:
    """A write that is cut short, and says so or not."""
    if name == "write":
        return os.write(arguments[0], arguments[1][:HALF])
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("fault", [fails(errno.EIO), fails(errno.ENOSPC), half], ids=["io-error", "disk-full", "torn"])
def test_every_call_for_the_mark_may_fail(
    address: Address, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., Any]
) -> None:
    """What was committed is acknowledged all the same; the ledger goes on, and the next mark is whole."""
    store = signed_store(address, cap=100 * TENTH)
    number, calls, releases = 0, 1, 0
    while number < calls:
        number += 1
        broken = BrokenOs(number, fault)
        with monkeypatch.context() as patch:
            patch.setattr(marks, "os", broken)
            request = started(store, question=f"while call {number} fails", cost=TENTH)
        calls, releases = max(calls, broken.calls), releases + 1
        assert amounts(store) == ((releases - 1) * TENTH, TENTH)
        store.settle(request, answer=b"[1]")
        assert store.mark() == store.head()
    assert number >= 4
    store.verify()
    _still_warns(store)


def _still_warns(store: Store) -> None:
    """An old copy in the ledger's place is still noticed."""
    kept = backup(address_of(store))
    store.settle(started(store, question="lost", cost=TENTH), answer=b"[1]")
    put_back(address_of(store), kept)
    with pytest.raises(HaltedError):
        started(store, question="new", cost=TENTH)


def test_the_power_fails_and_the_mark_is_old_torn_new_or_gone(tmp_path: Path) -> None:
    """The mark is not synced, and written after the commit: any part of it may be there. No such ledger is halted."""
    store = signed_file(tmp_path / "x.ledger")
    request, path = ask(store, question="when the power failed"), store.marks_path
    store.close()
    before, old = {store.path.name: store.path.read_bytes()}, path.read_bytes()
    try:
        with watched(Disk()) as disk:
            store.begin(request, serves=anything)
            told = len(disk.steps)
            store.close()
    except OSError as error:
        pytest.skip(f"failures of the disk are left out: SQLite's library cannot be reached ({error})")
    new, dice, done_seen = path.read_bytes(), random.Random(SEED), set()
    assert new.startswith(old)
    for number, (done, files) in enumerate(images(before, disk.steps, seed=SEED, each=1)):
        # Not before the commit was acknowledged is a mark of it written.
        written = (old, new, new[: dice.randrange(len(old), len(new))], old + bytes(len(new) - len(old)), None)
        for mark in written if done >= told else (old, old[: dice.randrange(len(old))], None):
            place = tmp_path / "after"
            place.mkdir()
            for name, data in files.items():
                (place / name).write_bytes(data)
            if mark is not None:
                (place / path.name).write_bytes(mark)
            with closing(SqliteStore(place / "x.ledger")) as left:
                assert started(left, question="afterwards"), f"image {number} of seed {SEED}"
                left.verify()
                assert left.mark() == left.head()
                done_seen.add(left.head().size)
            shutil.rmtree(place)
    # As before, or as after, and the request that followed.
    assert done_seen == {3, 5}


def test_a_mark_that_cannot_be_cut_down_grows_on(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full just when the file of heads should be written anew: the old one stays as it is."""
    store = signed_store(address, cap=100 * TENTH)
    monkeypatch.setattr(marks, "_BYTES_MAX", 1)
    monkeypatch.setattr(marks, "_cut", fails(errno.ENOSPC))
    for number in range(3):
        store.settle(started(store, question=str(number)), answer=b"[1]")
    assert store.mark() == store.head()
    assert store.marks_path is not None
    assert len(marks.read(store.marks_path)) == 7
    started(open_ledger(address), question="more")
