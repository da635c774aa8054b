"""Connections are bound to the process and the thread that opened them."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest

from parco.errors import InternalError
from parco.stores import held
from parco.stores.connection import opener
from parco.stores.held import Held, Holder

from .build import amounts, run_sql, signed_file
from .forks import forked


def _held(path: Path) -> Held:
    return Held(opener(path, busy_seconds=1)(), "here")


def test_another_thread_is_refused(tmp_path: Path) -> None:
    signed_file(tmp_path / "x.ledger")
    one = _held(tmp_path / "x.ledger")
    refused: list[Exception] = []

    def use() -> None:
        with pytest.raises(InternalError, match="process and the thread") as caught:
            _ = one.connection
        refused.append(caught.value)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert one.connection is not None
    assert len(refused) == 1
    one.close()


def test_a_child_is_refused_and_closing_there_leaves_the_parents_alone(tmp_path: Path) -> None:
    signed_file(tmp_path / "x.ledger")
    one = _held(tmp_path / "x.ledger")

    def child() -> None:
        with pytest.raises(InternalError, match="process and the thread"):
            _ = one.connection
        one.close()
        assert held._LEFT_LYING

    assert os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1]) == 0
    assert not held._LEFT_LYING
    with one.connection.begin():
        assert one.connection.exec_driver_sql("SELECT count(*) FROM entries").scalar() == 1
    one.close()


def test_a_connection_is_kept_until_its_place_changes(tmp_path: Path) -> None:
    signed_file(tmp_path / "x.ledger")
    opened: list[int] = []
    open_one = opener(tmp_path / "x.ledger", busy_seconds=1)
    holder = Holder(lambda: opened.append(1) or open_one())  # type: ignore[func-returns-value]
    assert holder.at("a") is holder.at("a")
    holder.at("b")
    assert len(opened) == 2
    holder.drop()
    holder.at("b")
    assert len(opened) == 3
    holder.drop()


def test_what_nobody_uses_any_more_is_closed(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")
    threads = [threading.Thread(target=store.accounts) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    assert amounts(store) == (0, 0)
    path = store.path
    del store
    gc.collect()
    descriptors = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_open(name)]
    assert str(path) not in descriptors
    run_sql(path, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "COMMIT")


def _is_open(name: str) -> bool:
    return Path(f"/proc/self/fd/{name}").exists()
