"""Real child processes: Python text run beside `build`, told to stop by signals, never by exceptions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .build import Address

HERE = Path(__file__).parent

_PRELUDE = """import os, signal, sys
from pathlib import Path
from build import *
from parco.stores.address import open_ledger
address = sys.argv[1]
path = Path(address)
"""


def _command(script: str, address: Address) -> list[str]:
    return [sys.executable, "-c", _PRELUDE + script, str(address)]


def _environment() -> dict[str, str]:
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(script: str, address: Address, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a script to its end, whatever end that is."""
    command = _command(script, address)
    return subprocess.run(
        command, env=_environment(), capture_output=True, text=True, timeout=60, check=False, **options
    )


@contextmanager
def running(script: str, address: Address) -> Iterator[subprocess.Popen[str]]:
    """A script that has printed its first line; killed at the end if it still runs."""
    with subprocess.Popen(_command(script, address), env=_environment(), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()
