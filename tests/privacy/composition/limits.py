"""Where a composition may be refused rather than enclosed: docs/accounting.md, "Limits"."""

from __future__ import annotations

from parco.privacy.facts import Exponential, Laplace
from parco.privacy.schedule import Schedule

__all__ = ["DRAWS_LEAST", "SIZE_LEAST", "SIZE_MOST", "may_be_refused"]

# A release on a sample is a rare outlier where a unit is expected to be drawn less often than this.
DRAWS_LEAST = 10
# Noise of less than a thirtieth of the sensitivity (or an epsilon of more than 30) is hardly any.
SIZE_MOST = 30
# Of a sampled mechanism with losses of this size doubles keep few digits.
SIZE_LEAST = 1e-4


def may_be_refused(schedule: Schedule) -> bool:
    """Whether a rare outlier may decide, or a loss is very large or very small: there InternalError is an answer.

    Anywhere else it is a fault.
    """
    rare = any(release.sampled and release.rate * release.times < DRAWS_LEAST for release in schedule.releases)
    bare = any(release.facts.size > SIZE_MOST for release in schedule.releases)
    faint = any(
        release.sampled and isinstance(release.facts, Laplace | Exponential) and release.facts.size < SIZE_LEAST
        for release in schedule.releases
    )
    return rare or bare or faint
