"""Compositions of few outcomes, summed outcome by outcome: exact, also where a profile has a kink.

delta(eps) is the largest P(S) - e^eps Q(S) of all sets S of outcomes, and reached by a set of those that lose most. So
each set proves a lower end, eps(delta) is the largest log((P(S) - delta)/Q(S)), and the sum over all outcomes of what
each adds proves the upper one. Source: docs/mathematics.md, "Few outcomes".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from parco.balls import arb, ball, lower, precision, upper
from parco.errors import InternalError
from parco.privacy.composition.groups import Groups
from parco.privacy.composition.outcomes import FINITE, Balls, largest_loss, narrow_outcomes

__all__ = ["Few", "few_outcomes"]

_BITS = 256
# How far above its guess an upper end is looked for first, relatively, and how often that is doubled.
_NUDGE, _DOUBLINGS = Fraction(1, 2**160), 160


@dataclass(frozen=True)
class Few:
    """All outcomes of a composition, those that lose most first: the loss, and the mass under P and under Q. `largest`:
    the first loss, where it is rational."""

    largest: Fraction | None
    losses: Sequence[arb]
    under_p: Sequence[arb]
    under_q: Sequence[arb]

    def epsilon(self, deltas: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """For `deltas` at most and at least delta, both above 0, proven ends of eps(delta) >= 0."""
        with precision(_BITS):
            low, guess = self._best(deltas[1]), self._best(deltas[0])
            step = guess * _NUDGE
            for _ in range(_DOUBLINGS):
                if self._delta(guess + step) <= ball(deltas[0]):
                    return low, guess + step
                step = max(2 * step, _NUDGE**2)
        raise InternalError("no epsilon was found for a composition of few outcomes")

    def delta(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """For every epsilon >= 0, proven ends of delta(epsilon)."""
        if self.largest is not None and epsilon >= self.largest:
            # A ball around nothing would leave open whether it is nothing.
            return Fraction(0), Fraction(0)
        with precision(_BITS):
            found = self._delta(epsilon)
            return max(lower(found), Fraction(0)), min(upper(found), Fraction(1))

    def _best(self, delta: Fraction) -> Fraction:
        """An epsilon that some set of outcomes proves to be at most eps(delta); 0 where none does."""
        best, p, q, target = Fraction(0), arb(0), arb(0), ball(delta)
        for more_p, more_q in zip(self.under_p, self.under_q, strict=True):
            p, q = p + more_p, q + more_q
            if p > target:
                best = max(best, lower(((p - target) / q).log()))
        return best

    def _delta(self, epsilon: Fraction) -> arb:
        """The ball of delta(epsilon), infinite losses left out."""
        at, total = ball(epsilon), arb(0)
        for loss, mass in zip(self.losses, self.under_p, strict=True):
            share = -mass * (at - loss).expm1()
            if share > 0:
                total += share
            elif not share < 0:
                # A loss that is epsilon, as far as can be told.
                total += arb(0).union(arb(share.upper()))
        return total


def few_outcomes(groups: Groups, *, removal: bool, most: int) -> Few | None:
    """For every sequence of releases, all their outcomes together, infinite losses left out; None where there are more
    than `most` of them, or not finitely many."""
    if any(kind not in FINITE for kind, _ in groups.kinds) or math.prod(one.times + 1 for one in groups) > most:
        return None
    spreads, count = [], 1
    with precision(_BITS):
        for release in groups:
            losses, log_masses = narrow_outcomes(release.facts, release.rate, removal=removal)
            count *= math.comb(release.times + len(losses) - 1, len(losses) - 1)
            if count > most:
                return None
            spreads.append(_repeated(losses, [mass.exp() for mass in log_masses], release.times))
        outcomes = [(arb(0), arb(1))]
        for spread in spreads:
            outcomes = [(loss + more, mass * part) for loss, mass in outcomes for more, part in spread]
        whole = all(one.rate == 1 for one in groups)
        largest = sum((largest_loss(one.facts) * one.times for one in groups), Fraction(0)) if whole else None
        outcomes.sort(key=lambda outcome: -float(outcome[0].mid()))
        return Few(largest, *zip(*((loss, mass, mass * (-loss).exp()) for loss, mass in outcomes), strict=True))


def _repeated(losses: Balls, masses: Balls, times: int) -> list[tuple[arb, arb]]:
    """What so many equal releases lose together, and how likely that is: the multinomial law."""
    # p^k/k! for each outcome and number of times.
    parts = []
    for mass in masses:
        row = [arb(1)]
        for k in range(1, times + 1):
            row.append(row[-1] * mass / k)
        parts.append(row)
    orders = arb(times + 1).gamma()
    return [(loss, mass * orders) for loss, mass in _ways(losses, parts, times)]


def _ways(losses: Balls, parts: Sequence[Balls], times: int) -> Iterator[tuple[arb, arb]]:
    """Every way in which the releases fall on the outcomes."""
    loss, part = losses[0], parts[0]
    if len(losses) == 1:
        yield times * loss, part[times]
        return
    for k in range(times + 1):
        for more, rest in _ways(losses[1:], parts[1:], times - k):
            yield k * loss + more, part[k] * rest
