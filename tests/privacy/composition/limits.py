"""Where a composition may be refused rather than enclosed: docs/accounting.md, "Limits"."""

from __future__ import annotations

from parco.privacy.schedule import Schedule

__all__ = ["DRAWS_LEAST", "SIZE_MOST", "may_be_refused"]

# A release on a sample is a rare outlier where a unit is expected to be drawn less often than this.
DRAWS_LEAST = 10
# Noise of less than a thirtieth of the sensitivity (or an epsilon of more than 30) is hardly any.
SIZE_MOST = 30


def may_be_refused(schedule: Schedule) -> bool:
    """Whether a rare outlier may decide, or there is hardly any noise: there InternalError is an answer.

    Anywhere else it is a fault.
    """
    rare = any(release.sampled and release.rate * release.times < DRAWS_LEAST for release in schedule.releases)
    bare = any(release.facts.size > SIZE_MOST for release in schedule.releases)
    return rare or bare
