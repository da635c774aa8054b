"""The least Gaussian that dominates a privacy profile: profile(eps) <= delta_mu(eps) + delta for every eps >= 0.

Proven over continuous epsilon from finitely many values. In t = e^eps a profile is convex and falls, and so is that of
the Gaussian. Between two mesh points the one lies below its chord, hence below the chord of any upper bounds at these
points; the other lies above its tangent at a point between. Chord and tangent are straight in t, so that comparing them
at the two ends is enough. Beyond the last point the profile is at most delta. Where the comparison fails the interval
is halved, and mu is raised only where a single point demands it (docs/mathematics.md, "Dominating Gaussians").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from parco.balls import ball, precision
from parco.errors import RequestError
from parco.privacy import gaussian
from parco.privacy.tradeoff import Profile

__all__ = ["SLACK", "mu_squared_upper"]

SLACK = Fraction(1, 10**6)
"""How far above the least mu the one returned may be, relatively, unless another slack is asked for."""

_BITS = 192
# A point that demands it raises mu^2 by this many slacks: two would be all that mu is allowed, without its rounding.
_WHOLE = Fraction(19, 10)
# The number of points grows as one over the root of the slack: with less than this it would be many millions.
_SLACK_MIN = Fraction(1, 10**12)
_FIRST_POINTS = 16
_EPSILON_MIN, _EPSILON_MAX = Fraction(1, 2**40), Fraction(2**30)


def mu_squared_upper(
    profile: Profile, *, delta: Fraction, reverse: Profile | None = None, slack: Fraction = SLACK
) -> Fraction:
    """For every profile, returns mu^2 whose Gaussian profile plus delta lies above it for all epsilon >= 0.

    `profile` returns upper bounds on one order of the pair, `reverse` on the other (the same where it is not given).
    `delta`, 0 <= delta < 1, is what the mechanism spends beside this mu; with 0 the profile must reach 0. mu is at most
    (1 + `slack`) times the least that lies above the bounds at the points looked at, 1e-12 <= slack <= 1; it is 0 where
    the profile is never above delta. Raises RequestError where there is no such mu. Source: docs/mathematics.md,
    "Dominating Gaussians".
    """
    if not 0 <= delta < 1:
        raise RequestError("a stated delta is at least 0 and less than 1")
    if not _SLACK_MIN <= slack <= 1:
        raise RequestError("the slack of mu lies between 1e-12 and 1")
    search = _Search([profile, reverse] if reverse else [profile], delta, slack)
    if search.excess(Fraction(0)) == 0:
        return Fraction(0)
    last = _last_epsilon(search)
    for step in range(_FIRST_POINTS):
        search.demand(last * step / _FIRST_POINTS)
    search.cover(Fraction(0), last)
    return search.mu_squared


@dataclass
class _Search:
    """A profile less delta, asked once a point; and the mu reached so far, which covers every interval passed."""

    profiles: list[Profile]
    delta: Fraction
    slack: Fraction
    mu_squared: Fraction = Fraction(0)
    _known: dict[Fraction, Fraction] = field(default_factory=dict)

    def excess(self, epsilon: Fraction) -> Fraction:
        """How far the profile, the larger of both orders, is above delta; at least 0."""
        if epsilon not in self._known:
            value = min(max(profile(epsilon) for profile in self.profiles), Fraction(1)) - self.delta
            if value == 1:
                raise RequestError("a profile of 1 has no Gaussian above it: state a delta above 0")
            self._known[epsilon] = max(value, Fraction(0))
        return self._known[epsilon]

    def demand(self, epsilon: Fraction) -> None:
        """Raises mu by the whole slack above what this point needs, unless half of the slack is left there."""
        excess = self.excess(epsilon)
        kept = self.mu_squared / (1 + self.slack)
        if excess and not (kept and gaussian.delta_lower(kept, epsilon) >= excess):
            self.mu_squared = gaussian.mu_squared_upper(epsilon, excess) * (1 + self.slack * _WHOLE)

    def cover(self, low: Fraction, high: Fraction) -> None:
        """Proves mu, raised where points demand it, over every epsilon from `low` to `high`.

        It ends: at every point asked half of the slack is left; over a short interval tangent and chord differ by less.
        """
        waiting = [(low, high)]
        while waiting:
            left, right = waiting.pop()
            middle = (left + right) / 2
            if not self._covered(left, middle, right):
                self.demand(middle)
                waiting += [(middle, right), (left, middle)]

    def _covered(self, left: Fraction, middle: Fraction, right: Fraction) -> bool:
        """Whether the tangent to the Gaussian profile in the middle is proven to lie above the chord at both ends.

        Along t = e^eps the tangent falls at the rate e^-eps times the slope in eps.
        """
        with precision(_BITS):
            value, slope = gaussian.profile_and_slope(self.mu_squared, middle)
            at_left = value - slope * ball(left - middle).expm1()
            at_right = value - slope * ball(right - middle).expm1()
            return bool(at_left >= ball(self.excess(left)) and at_right >= ball(self.excess(right)))


def _last_epsilon(search: _Search) -> Fraction:
    """An epsilon, at most twice the least that is known, from which on the profile is at most delta."""
    last = _EPSILON_MIN
    while search.excess(last) > 0:
        last *= 2
        if last > _EPSILON_MAX:
            raise RequestError("this profile never falls to the delta stated: state a larger one")
    return last
