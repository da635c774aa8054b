"""Where a composition may be refused rather than enclosed: docs/accounting.md, "Limits"."""

from __future__ import annotations

from parco.privacy.facts import Gaussian
from parco.privacy.schedule import Schedule

__all__ = ["DRAWS_LEAST", "may_be_refused"]

# A release on a sample is a rare outlier where a unit is expected to be drawn less often than this.
DRAWS_LEAST = 10


def may_be_refused(schedule: Schedule) -> bool:
    """Whether a few draws of Gaussian noise may decide: InternalError is an answer. Anywhere else it is a fault."""
    return any(
        isinstance(release.facts, Gaussian) and release.sampled and release.rate * release.times < DRAWS_LEAST
        for release in schedule.releases
    )
