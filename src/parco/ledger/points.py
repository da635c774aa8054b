"""The moments of a release, or of a correction, at which a crash is worth testing, each with a name.

Production code calls `points.reach(name)` through the module; a crash test replaces the function in its child process.
"""

from __future__ import annotations

from parco.errors import InternalError

__all__ = ["POINTS", "reach"]

POINTS = (
    "before-reserve",
    "after-reserve",
    "before-settle",
    "after-settle",
    "before-schedule",
    "after-schedule",
    "before-leave",
    "after-leave",
    "before-correction",
    "after-correction",
)


def reach(point: str) -> None:
    """For every point of POINTS, does nothing; raises InternalError for any other name, so that none is misspelt."""
    if point not in POINTS:
        raise InternalError(f"there is no crash point {point!r}")
