"""Who holds a started request, and whether that process is still alive.

A process is known by host, boot, pid and start time: a pid alone is soon used again. Two machines may share a name and
two containers a kernel, so that the host has the machine's identity in it and the boot the name space of its pids.
Doubt means alive: a request whose owner merely seems alive keeps its charge reserved, while one declared dead too early
loses its answer.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import psutil

__all__ = ["Owner", "boot_now", "boot_of", "current_owner", "host_name", "is_alive", "requests_in_hand"]

_PROC = Path("/proc")
_MACHINE = Path("/etc/machine-id")
_IN_HAND: dict[tuple[int, Hashable], set[int]] = {}


@dataclass(frozen=True)
class Owner:
    """A process: `started` counts clock ticks since boot on Linux, microseconds since the epoch elsewhere."""

    host: str
    boot: str
    pid: int
    started: int


def current_owner() -> Owner:
    """The calling process; a fork is another one."""
    return _owner(os.getpid(), socket.gethostname())


@lru_cache(maxsize=4)
def _owner(pid: int, _: str) -> Owner:
    return Owner(host_name(), boot_now(), pid, _started(pid) or 0)


def requests_in_hand(ledger: Hashable) -> set[int]:
    """The requests on a ledger that this process is answering: one set for all its threads, empty after a fork."""
    return _IN_HAND.setdefault((os.getpid(), ledger), set())


def is_alive(owner: Owner) -> bool:
    """For every owner, False only if it is certainly gone.

    Another host cannot be asked, nor another name space of pids, so their processes count as alive; another boot of
    this host ended all of them.
    """
    if owner.host != host_name():
        return True
    if boot_of(owner.boot) != boot_of(boot_now()):
        return False
    if owner.boot != boot_now():
        return True
    started = _started(owner.pid)
    return _hidden(owner.pid) if started is None else started == owner.started


def host_name() -> str:
    """This host's name, and the machine's own identity where it has one."""
    return f"{socket.gethostname()} {_machine()}".strip()


def boot_now() -> str:
    """The boot's identity and the name space of pids on Linux; empty elsewhere, where start times tell boots apart."""
    if not sys.platform.startswith("linux"):
        return ""
    return f"{_boot()} {_pid_space(os.getpid())}".strip()


def boot_of(boot: str) -> str:
    """The boot alone, without the name space of pids."""
    return boot.partition(" ")[0]


@cache
def _machine() -> str:
    with suppress(OSError):
        return _MACHINE.read_text(encoding="ascii").strip()
    return ""


@cache
def _boot() -> str:
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


@lru_cache(maxsize=4)
def _pid_space(_: int) -> str:
    with suppress(OSError):
        return os.readlink(_PROC / "self/ns/pid")
    return ""


def _started(pid: int) -> int | None:
    """When a running process started, or None if there is none to be seen; a zombie runs no more."""
    if not sys.platform.startswith("linux"):
        return _started_portable(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # proc(5): field 2 is the command in brackets and may hold anything, so count from the last bracket: state is
    # field 3, start time field 22.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _started_portable(pid: int) -> int | None:
    try:
        process = psutil.Process(pid)
        gone = process.status() == psutil.STATUS_ZOMBIE
        return None if gone else round(process.create_time() * 1e6)
    except psutil.Error:
        return None


def _hidden(pid: int) -> bool:
    """Whether a process exists that may not be looked at (another user's, under a strict /proc)."""
    if pid <= 0 or os.name == "nt":
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    # It can be signalled, so it could have been read: a zombie, or gone by now.
    return False
