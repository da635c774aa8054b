"""The worked example: Gaussian releases of sensitivity 1, claimed at delta = 1e-6 by a valid and by the tight bound.

k releases with noise of standard deviation s have mu^2 = k/s^2 exactly. The closed form (`privacy/classical.py`) is
valid and never tight; the exact profile (`privacy/gaussian.py`) is tight where k was fixed in advance. A search over
orders in doubles shows that no order does better than the closed form. docs/accounting.md tells it in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from parco.privacy import classical, gaussian
from parco.privacy.sensitivity import Sensitivity

__all__ = [
    "AVERAGED_SCALE",
    "DELTA",
    "RELEASES_MAX",
    "SCALES",
    "SENSITIVITY",
    "Average",
    "Bounds",
    "Witness",
    "averages",
    "bounds",
    "composition",
    "dense_search",
    "witnesses",
]

SENSITIVITY = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1))
DELTA = Fraction(1, 10**6)
RELEASES_MAX = 1000
SCALES = tuple(Fraction(scale) for scale in (2, 4, 8, 16, 32))
AVERAGED_SCALE = Fraction(8)
_WITNESSES = ((1, 4), (10, 8), (100, 16), (1000, 8))

# Orders 1 + 10^-4 to 1 + 10^4, with 25,000 to a decade of alpha - 1. On this grid, with exponents computed in just this
# way, doubles give the published table to its last digit; exactly, its second row would end in ..7064.
_GRID_FIRST, _GRID_STEP, _GRID_STEPS = -4, 8 / 200_000, 200_000


@dataclass(frozen=True)
class Bounds:
    """What may be claimed of `releases` answers with Gaussian noise of `scale`: epsilon, at the delta asked for.

    `valid`: the closed form. `tight`: the exact profile, provided the number of releases was fixed in advance. Both are
    rounded up, and valid > tight.
    """

    releases: int
    scale: Fraction
    mu_squared: Fraction
    valid: Fraction
    tight: Fraction


@dataclass(frozen=True)
class Witness:
    """A row of the published table: bounds, and the least epsilon that a dense grid of orders finds, in doubles."""

    bounds: Bounds
    dense_search: float


@dataclass(frozen=True)
class Average:
    """The mean of as many answers to one question as `bounds` counts: its exact variance, and what they cost."""

    bounds: Bounds
    variance: Fraction

    @property
    def standard_deviation(self) -> float:
        """The root of the variance, in the statistic's units: a description, not a bound, so the nearest double."""
        return math.sqrt(self.variance)


def bounds(
    releases: int, scale: Fraction, *, sensitivity: Sensitivity = SENSITIVITY, delta: Fraction = DELTA
) -> Bounds:
    """For every releases >= 0, scale > 0 and 0 < delta < 1, returns both bounds on epsilon, or raises RequestError.

    `scale`: standard deviation of each answer's noise, in the statistic's units. Source: docs/mathematics.md, "Costs",
    "Closed form", "Gaussian profile".
    """
    total = releases * gaussian.mu_squared(sensitivity, scale)
    return Bounds(
        releases=releases,
        scale=scale,
        mu_squared=total,
        valid=classical.epsilon_upper(total, delta),
        tight=gaussian.epsilon_upper(total, delta),
    )


def dense_search(mu_squared: Fraction, delta: Fraction = DELTA) -> float:
    """For every mu^2 > 0, returns the least alpha a + log(1/delta)/(alpha - 1), a = mu^2/2, on a fixed grid of orders.

    200,001 orders alpha, alpha - 1 = 10^-4 to 10^4 in equal ratios. In doubles, so that no side is proven: it checks
    the closed form and claims nothing. Source: Mironov 2017, proposition 3.
    """
    half, log_slack = float(mu_squared / 2), math.log(1 / delta)
    exponents = (_GRID_FIRST + step * _GRID_STEP for step in range(_GRID_STEPS + 1))
    orders = (1 + math.pow(10, exponent) for exponent in exponents)
    return min(half * order + log_slack / (order - 1) for order in orders)


def witnesses() -> list[Witness]:
    """The four rows of the published table, computed."""
    rows = [bounds(releases, Fraction(scale)) for releases, scale in _WITNESSES]
    return [Witness(row, dense_search(row.mu_squared)) for row in rows]


def composition(most: int = RELEASES_MAX, *, progress: Callable[[int, int], object] | None = None) -> list[Bounds]:
    """For every most >= 1, returns the bounds for 1 to `most` releases at each scale of the example, scale by scale.

    `progress` is told how many rows are done, and of how many.
    """
    places = [(releases, scale) for scale in SCALES for releases in range(1, most + 1)]
    rows = []
    for releases, scale in places:
        rows.append(bounds(releases, scale))
        if progress is not None:
            progress(len(rows), len(places))
    return rows


def averages(rows: Iterable[Bounds]) -> list[Average]:
    """For each row, the mean of that many answers with independent noise of variance s^2: its variance is s^2/r.

    It costs as much as r releases, since it is made of them. Of real-valued noise: rounded to a lattice of step
    g <= s/8, each answer's variance is larger by g^2/12, at most 0.13 %. Source: docs/mathematics.md, "Averaging".
    """
    return [Average(row, row.scale**2 / row.releases) for row in rows]
