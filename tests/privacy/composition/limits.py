"""Where a composition may be refused rather than enclosed: docs/accounting.md, "Limits"."""

from __future__ import annotations

from fractions import Fraction

from parco.privacy.schedule import Schedule

__all__ = ["DRAWS_LEAST", "may_be_refused"]

# A release on a sample is a rare outlier where a unit is expected to be drawn less often than this.
DRAWS_LEAST = 10
# Losses that add up to more than this, off every lattice, need too many nodes.
LOSSES_MOST = 1e8
# The delta at an epsilon, not the epsilon at a delta, may be refused for an epsilon above this, and where a release on
# a sample has a loss below that.
EPSILON_MOST, SIZE_LEAST = 30, 1e-3


def may_be_refused(schedule: Schedule, delta: Fraction, epsilon: Fraction | None = None) -> bool:
    """Whether a few draws decide, as delta is not far above the chance of any; losses are enormous; or the delta at a
    large epsilon, or of faint losses on samples, is asked.

    InternalError is an answer then. Anywhere else it is a fault. `epsilon`: where delta is asked, else None.
    """
    seldom = (release.rate * release.times for release in schedule.releases if release.sampled)
    if delta < 2 * sum(draws for draws in seldom if draws < DRAWS_LEAST):
        return True
    if sum(release.facts.size * release.times for release in schedule.releases) > LOSSES_MOST:
        return True
    if epsilon is None:
        return False
    return epsilon > EPSILON_MOST or any(
        release.sampled and release.facts.size < SIZE_LEAST for release in schedule.releases
    )
