"""Who holds a started request, and whether that process is still alive.

A process is known by host, boot, pid and start time: a pid alone is soon used again. Doubt means alive: a request whose
owner merely seems alive keeps its charge reserved, while one declared dead too early loses its answer.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["Owner", "current_owner", "is_alive", "requests_in_hand"]

_PROC = Path("/proc")
_IN_HAND: dict[tuple[int, Path], set[int]] = {}


@dataclass(frozen=True)
class Owner:
    """A process: `started` counts clock ticks since boot on Linux, microseconds since the epoch elsewhere."""

    host: str
    boot: str
    pid: int
    started: int


def current_owner() -> Owner:
    """The calling process; asked anew each time, since a fork is another process."""
    pid = os.getpid()
    return Owner(socket.gethostname(), _boot(), pid, _started(pid) or 0)


def requests_in_hand(path: Path) -> set[int]:
    """The requests on a ledger that this process is answering: one set for all its threads, empty after a fork."""
    return _IN_HAND.setdefault((os.getpid(), path), set())


def is_alive(owner: Owner) -> bool:
    """For every owner, False only if it is certainly gone.

    Another host cannot be asked, so its processes count as alive; another boot of this host ended all of them.
    """
    if owner.host != socket.gethostname():
        return True
    if owner.boot != _boot():
        return False
    started = _started(owner.pid)
    return _hidden(owner.pid) if started is None else started == owner.started


def _boot() -> str:
    """The boot's identity on Linux; empty elsewhere, where start times are absolute and tell boots apart."""
    if not sys.platform.startswith("linux"):
        return ""
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
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
