"""Where a composition may be refused rather than enclosed: docs/accounting.md, "Limits"."""

from __future__ import annotations

from fractions import Fraction

from parco.privacy.schedule import Schedule

__all__ = ["DELTA_LEAST", "DRAWS_LEAST", "may_be_refused"]

# A release on a sample is a rare outlier where a unit is expected to be drawn less often than this.
DRAWS_LEAST = 10
DELTA_LEAST = Fraction(1, 10**12)


def may_be_refused(schedule: Schedule, delta: Fraction) -> bool:
    """Whether a rare outlier may decide, or delta is tiny: there InternalError is an answer, elsewhere a fault."""
    rare = any(release.sampled and release.rate * release.times < DRAWS_LEAST for release in schedule.releases)
    return rare or delta < DELTA_LEAST
