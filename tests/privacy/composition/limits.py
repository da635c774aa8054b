"""Where a composition may be refused rather than enclosed: docs/accounting.md, "Limits"."""

from __future__ import annotations

from parco.privacy.schedule import Schedule

__all__ = ["DRAWS_LEAST", "may_be_refused"]

# A release on a sample is a rare outlier where a unit is expected to be drawn less often than this.
DRAWS_LEAST = 10


# The delta at an epsilon, not the epsilon at a delta, may be refused for losses larger than this.
SIZE_MOST = 30


def may_be_refused(schedule: Schedule, *, of_delta: bool = False) -> bool:
    """Whether a few draws may decide, or the delta of wide losses is asked: InternalError is an
    answer. Anywhere else it is a fault."""
    if of_delta and any(release.facts.size > SIZE_MOST for release in schedule.releases):
        return True
    return any(release.sampled and release.rate * release.times < DRAWS_LEAST for release in schedule.releases)
