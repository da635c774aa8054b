"""A progress line on standard error, for work that takes more than a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["progress_after_a_second"]

_PATIENCE_SECONDS = 1.0


@contextmanager
def progress_after_a_second() -> Iterator[Callable[[str, int, int], None]]:
    """Gives a callback (stage, done, total); shows nothing unless the block takes longer than a second.

    It appears on a terminal only, and is gone afterwards.
    """
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = progress.add_task("starting", total=None)
    timer = threading.Timer(_PATIENCE_SECONDS, progress.start)
    timer.daemon = True
    timer.start()

    def report(stage: str, done: int, total: int) -> None:
        progress.update(task, description=stage, completed=done, total=total or None)

    try:
        yield report
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
