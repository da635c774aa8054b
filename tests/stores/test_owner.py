"""Owners: alive until certainly gone."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from parco.stores import owner
from parco.stores.owner import current_owner, is_alive


def test_this_process_is_alive_and_a_forked_child_is_another() -> None:
    mine = current_owner()
    assert mine.pid == os.getpid()
    assert mine.started > 0
    assert is_alive(mine)


def test_another_process_with_the_same_pid_is_not_the_owner() -> None:
    assert not is_alive(replace(current_owner(), started=current_owner().started - 1))


def test_another_boot_ended_every_process_and_another_host_cannot_be_asked() -> None:
    assert not is_alive(replace(current_owner(), boot="an earlier boot"))
    assert is_alive(replace(current_owner(), host="elsewhere", boot="any", pid=1, started=1))


def test_an_ended_process_and_a_zombie_are_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    held = replace(current_owner(), pid=child.pid, started=owner._started(child.pid) or 0)
    assert is_alive(held)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, not yet collected: a zombie
    assert not is_alive(held)
    child.communicate()
    assert not is_alive(held)


def test_the_portable_reading_agrees() -> None:
    assert owner._started_portable(os.getpid())
    assert owner._started_portable(2**30) is None


@pytest.mark.parametrize("pid", [0, -1, 2**40])
def test_impossible_pids_are_dead(pid: int) -> None:
    assert not is_alive(replace(current_owner(), pid=pid))
