"""How often a stored answer was given again, counted in a file beside the ledger.

A repeat changes no account, so it is no entry, and losing the count loses nothing: every fault here is passed over.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

__all__ = ["count", "record", "repeats_path"]


def repeats_path(ledger: Path) -> Path:
    """`purchases.ledger` has `purchases.ledger.repeats`."""
    return ledger.with_name(f"{ledger.name}.repeats")


def record(ledger: Path, request: int) -> None:
    """Adds one repeat of a request, if the machine lets it; never raises for the machine."""
    with suppress(OSError):
        handle = os.open(repeats_path(ledger), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        with open(handle, "a", encoding="ascii") as file:
            file.write(f"{request}\n")


def count(ledger: Path) -> dict[int, int]:
    """Repeats by request, as far as they were recorded; lines that are no number are passed over."""
    with suppress(OSError, ValueError):
        lines = repeats_path(ledger).read_text(encoding="ascii").split("\n")
        return dict(Counter(int(line) for line in lines if line.isdigit()))
    return {}
