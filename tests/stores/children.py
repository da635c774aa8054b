"""Real child processes: Python text run beside `build`, told to stop by signals, never by exceptions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

_PRELUDE = "import os, signal, sys\nfrom pathlib import Path\nfrom build import *\npath = Path(sys.argv[1])\n"


def _command(script: str, path: Path) -> list[str]:
    return [sys.executable, "-c", _PRELUDE + script, str(path)]


def _environment() -> dict[str, str]:
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(script: str, path: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a script to its end, whatever end that is."""
    command = _command(script, path)
    return subprocess.run(
        command, env=_environment(), capture_output=True, text=True, timeout=60, check=False, **options
    )


@contextmanager
def running(script: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A script that has printed its first line; killed at the end if it still runs."""
    with subprocess.Popen(_command(script, path), env=_environment(), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()
