"""Runs the real command line in a real process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["parco", "parco_json"]

_RUN = "from parco.cli.main import run; run()"
SECONDS = 120


def parco(
    *arguments: object, cwd: Path | None = None, before: str = "", code: int | None = 0, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """`parco` with these arguments; `before` is Python that the child runs first, `given` its standard input.

    Checks the exit code.
    """
    command = [sys.executable, "-c", f"{before}\n{_RUN}", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False, input=given)
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def parco_json(*arguments: object, cwd: Path | None = None) -> Any:
    """What `parco … --json` printed."""
    return json.loads(parco(*arguments, "--json", cwd=cwd).stdout)
