"""Where a composition may be refused rather than enclosed."""

from __future__ import annotations

from fractions import Fraction

from parco.privacy.schedule import Schedule

__all__ = ["may_be_refused"]


def may_be_refused(schedule: Schedule, delta: Fraction) -> bool:
    del schedule, delta
    return True
