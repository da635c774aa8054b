"""Real processes for the cases: a script, run from its beginning, that may fork children of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "answers_of"]

ROOT = Path(__file__).parents[2]
SECONDS = 120


def answers_of(script: str, *arguments: object, **environment: str) -> list[Any]:
    """The lines of JSON that a script printed; `sys.argv[1:]` are the arguments."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]
