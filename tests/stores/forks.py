"""Children forked from this warm process and killed by a real SIGKILL: they start at once, and know all it does."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event

__all__ = ["STATEMENTS_MAX", "forked", "killed_at"]

STATEMENTS_MAX = 200


def forked(work: Callable[[], object]) -> int:
    """The id of a child process that does `work` and ends without Python's farewells; exit code 1 if it raised."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return child


def killed_at(statement: int, work: Callable[[], object]) -> bool:
    """Whether a forked child, killed with SIGKILL before its n-th statement, got that far; commits count as one."""

    def count_and_work() -> None:
        _die_at(statement)
        work()

    _, status = os.waitpid(forked(count_and_work), 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _die_at(statement: int) -> None:
    count = 0

    def step(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", step)
    event.listen(Engine, "commit", step)
