"""Where a composition may be refused rather than enclosed: docs/accounting.md, "Limits"."""

from __future__ import annotations

from fractions import Fraction

from parco.privacy.facts import Exponential, Laplace
from parco.privacy.schedule import Schedule

__all__ = ["DELTA_LEAST", "DRAWS_LEAST", "SIZE_LEAST", "SIZE_MOST", "may_be_refused"]

# A release on a sample is a rare outlier where a unit is expected to be drawn less often than this.
DRAWS_LEAST = 10
# Noise of less than a thirtieth of the sensitivity (or an epsilon of more than 30) is hardly any.
SIZE_MOST = 30
# Of a sampled mechanism with losses of this size doubles keep few digits.
SIZE_LEAST = 1e-4
# Below this, losses that lie on no lattice may need more nodes than memory should hold.
DELTA_LEAST = Fraction(1, 10**12)


def may_be_refused(schedule: Schedule, delta: Fraction) -> bool:
    """Whether a rare outlier may decide, delta is tiny, or a loss is very large or small: InternalError is an answer.

    Anywhere else it is a fault.
    """
    rare = any(release.sampled and release.rate * release.times < DRAWS_LEAST for release in schedule.releases)
    bare = any(release.facts.size > SIZE_MOST for release in schedule.releases)
    faint = any(
        release.sampled and isinstance(release.facts, Laplace | Exponential) and release.facts.size < SIZE_LEAST
        for release in schedule.releases
    )
    return rare or bare or faint or delta < DELTA_LEAST
