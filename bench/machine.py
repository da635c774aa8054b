"""What a figure was measured on, and how a time is written."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

__all__ = ["duration", "machine"]


def machine(*packages: str) -> str:
    """Processor, cores, Python and package versions, in a few lines."""
    found = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    processor = found[0] if found else platform.processor() or platform.machine()
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}; {versions}"


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
