"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

__all__ = ["machine"]


def machine(*packages: str) -> str:
    """Processor, cores, Python and package versions, in a few lines."""
    found = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    processor = found[0] if found else platform.processor() or platform.machine()
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}; {versions}"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
