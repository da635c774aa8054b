"""Certified composition: what a schedule loses, from below and from above."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TypeVar

from parco.balls import ball, lower, precision, upper
from parco.errors import AdaptiveHistoryError, InternalError, RequestError
from parco.measure import Exactable, exact
from parco.privacy import gaussian
from parco.privacy.composition import single
from parco.privacy.composition.aside import delta_aside, epsilon_aside, is_rare
from parco.privacy.composition.assemble import Certain, certain_part, order_of
from parco.privacy.composition.contour import Profile
from parco.privacy.composition.few import Few, few_outcomes
from parco.privacy.composition.groups import Groups, grouped
from parco.privacy.composition.rounding import doubles_around, exp_of, log_interval
from parco.privacy.composition.solve import Solved, best_order, enclose, is_near, solve, solve_delta
from parco.privacy.facts import Gaussian
from parco.privacy.schedule import Schedule, ScheduledRelease

__all__ = ["Composition", "Interval", "compose"]

_DELTA_LEAST, _EPSILON_MOST = Fraction(1, 10**300), Fraction(10**300)
_TOLERANCE_LEAST, _TOLERANCE_MOST = Fraction(1, 10**11), Fraction(1, 10)
_BITS = 192
_EXACT_MAX = 64
# How near, in log(order - 1), the best order is sought: the bound is flat there.
_FINE = 1e-5
# Outcomes that take a few hundredths of a second to go through, and some seconds.
_OUTCOMES_FEW, _OUTCOMES_MAX = 1 << 11, 1 << 18

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Interval:
    """Two proven ends: lower <= truth <= upper."""

    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class Composition:
    """The privacy loss of all releases of a schedule together; `compose` makes it, `add` makes it longer.

    Every figure is for the composition of the dominating pairs, in the worse of both orders. `tight`: mechanisms of
    these kinds attain the pairs, so that no smaller epsilon holds; else the figure is valid only. `mu_squared`: the
    total, where all releases are Gaussian on all units, and then everything is exact. `groups`: the schedule, equal
    releases made one; `tolerance`: the width promised; `infinite`: bounds on the mass of infinite losses; `solved`:
    what the last epsilon was proven by, for the next one.
    """

    schedule: Schedule
    groups: Groups = field(repr=False, compare=False)
    tolerance: float
    tight: bool
    mu_squared: Interval | None
    infinite: dict[bool, Certain]
    solved: dict[bool, Solved] = field(default_factory=dict, compare=False, repr=False)

    def epsilon(self, delta: Exactable) -> Interval:
        """For every 1e-300 <= delta < 1, returns proven ends of the least epsilon >= 0 that holds, or raises
        RequestError.

        upper - lower <= tolerance * max(upper, 0.001). Refused where the releases' own delta is not below delta: no
        epsilon holds then. InternalError where the tolerance cannot be reached. Source: docs/mathematics.md,
        "Composition by a contour".
        """
        target = exact(delta, "delta")
        if not _DELTA_LEAST <= target < 1:
            raise RequestError("delta is at least 1e-300 and below 1")
        if self.mu_squared is not None:
            total = self.mu_squared
            return Interval(gaussian.epsilon_lower(total.lower, target), gaussian.epsilon_upper(total.upper, target))
        alone = self._single()
        if alone is not None:
            return _worse(
                single.epsilon_interval(alone.facts, alone.rate, target, removal=order) for order in (True, False)
            )
        if self._touched() <= target:
            return Interval(Fraction(0), Fraction(0))
        low = high = 0.0
        for removal in self._orders():
            found = self._solve(removal, self._finite_deltas(target, removal), ceiling=high)
            low, high = max(low, found.lower), max(high, found.upper)
        return Interval(Fraction(low), Fraction(high))

    def delta(self, epsilon: Exactable) -> Interval:
        """For every 0 <= epsilon <= 1e300, returns proven ends of the least delta that holds, or raises RequestError.

        upper - lower <= tolerance * upper. InternalError where the tolerance cannot be reached. Source:
        docs/mathematics.md, "Composition by a contour".
        """
        at = exact(epsilon, "epsilon")
        if not 0 <= at <= _EPSILON_MOST:
            raise RequestError("epsilon is not negative, and at most 1e300")
        if self.mu_squared is not None:
            total = self.mu_squared
            return Interval(gaussian.delta_lower(total.lower, at), gaussian.delta_upper(total.upper, at))
        alone = self._single()
        if alone is not None:
            return _worse(
                single.delta_interval(alone.facts, alone.rate, at, self.tolerance, removal=order)
                for order in (True, False)
            )
        low = high = Fraction(0)
        for removal in self._orders():
            below, above = self._finite_delta(removal, at)
            certain = self.infinite[removal]
            low = max(low, certain.lower + (1 - certain.lower) * below)
            high = max(high, certain.upper + (1 - certain.upper) * above)
        return Interval(low, high)

    def renyi_epsilon(self, delta: Exactable) -> Fraction:
        """For every 1e-300 <= delta < 1, returns an epsilon by the improved Renyi conversion, or raises RequestError.

        At the best of all orders, found to nine digits, in the worse of both orders of the pair; rounded up. Source:
        docs/mathematics.md, "Renyi conversions".
        """
        target = exact(delta, "delta")
        if not _DELTA_LEAST <= target < 1:
            raise RequestError("delta is at least 1e-300 and below 1")
        bounds = [
            best_order(
                order_of(self.groups, removal=removal).moments, self._log_deltas(target, removal)[0], accuracy=_FINE
            )[1]
            for removal in self._orders()
        ]
        return Fraction(max(0.0, *bounds))

    def add(self, release: ScheduledRelease) -> Composition:
        """For every `release`, chosen before the first of them all, returns the longer composition, or raises
        RequestError.

        1 <= times <= 10^9 of it count. Nodes that were computed are kept, so that the next epsilon is quick. Source:
        docs/mathematics.md, "Composition by a contour".
        """
        total = self.mu_squared
        if total is not None:
            more = _mu_squared(Groups((release,)))
            total = None if more is None else Interval(total.lower + more.lower, total.upper + more.upper)
        infinite = {
            removal: _either(certain, certain_part(Groups((release,)), removal=removal))
            for removal, certain in self.infinite.items()
        }
        solved = {} if total is not None else self._extended(release)
        return replace(
            self,
            schedule=self.schedule.plus(release),
            groups=self.groups.plus(release),
            tight=self.tight and release.facts.attained,
            mu_squared=total,
            infinite=infinite,
            solved=solved,
        )

    def _extended(self, release: ScheduledRelease) -> dict[bool, Solved]:
        """The profiles at hand, with one release more; none where one of them does not take it, or a second order has
        become necessary."""
        if release.sampled and not self.schedule.sampled:
            return {}
        extended = {}
        for removal, found in self.solved.items():
            order = order_of(Groups((release,)), removal=removal)
            if found.profile is None or not found.profile.takes(order.lattice):
                return {}
            [family] = order.moments.families
            try:
                extended[removal] = replace(found, profile=found.profile.with_more(family))
            except InternalError:
                # A line for much smaller losses: not for this one.
                return {}
        return extended

    def _single(self) -> ScheduledRelease | None:
        """The one sampled release with a density, if there is nothing else: it is known in closed form."""
        if len(self.groups.releases) != 1:
            return None
        [release] = self.groups
        return release if release.times == 1 and release.sampled and single.is_known(release.facts) else None

    def _touched(self) -> Fraction:
        """At least the chance that some release draws the unit: where none does, both laws are the same. 1 where a
        release is on all units."""
        if any(not sampled for _, sampled in self.groups.kinds):
            return Fraction(1)
        with precision(_BITS):
            return upper(-sum(((-ball(one.rate)).log1p() * one.times for one in self.groups), ball(0)).expm1())

    def _orders(self) -> tuple[bool, ...]:
        """Both orders of the pair, or one where they are alike."""
        return (True, False) if self.schedule.sampled else (True,)

    def _finite_deltas(self, target: Fraction, removal: bool) -> tuple[Fraction, Fraction]:
        """What is left of delta for finite losses, from below and from above."""
        certain = self.infinite[removal]
        if certain.upper >= target:
            raise RequestError(
                "the releases' own deltas reach the delta of the claim, and leave nothing of it: ask for a larger one"
            )
        low, high = ((target - mass) / (1 - mass) for mass in (certain.upper, certain.lower))
        return low, high

    def _log_deltas(self, target: Fraction, removal: bool) -> tuple[float, float]:
        """The same as logarithms."""
        low, high = self._finite_deltas(target, removal)
        return log_interval(low)[0], log_interval(high)[1]

    def _solve(self, removal: bool, deltas: tuple[Fraction, Fraction], *, ceiling: float) -> Solved:
        """By nodes that were computed before where they suffice, else anew."""
        log_deltas = log_interval(deltas[0])[0], log_interval(deltas[1])[1]
        before = self.solved.get(removal)
        if before is not None and before.profile is not None:
            made = before.profile
            if ceiling > 0 and made.log_delta_bounds(ceiling)[1] <= log_deltas[0]:
                return Solved(0.0, ceiling, made)
            if isinstance(made, Profile):
                found = enclose(made, log_deltas, top=math.inf, start=before.upper)
                if is_near(found, self.tolerance):
                    self.solved[removal] = replace(found, profile=made)
                    return found
        order = order_of(self.groups, removal=removal)

        def by_outcomes(few: Few) -> Solved:
            low, high = few.epsilon(deltas)
            return Solved(doubles_around(low)[0], doubles_around(high)[1])

        self.solved[removal] = self._by_some_way(
            removal,
            by_outcomes,
            lambda: solve(order, log_deltas, self.tolerance, ceiling=ceiling),
            lambda: epsilon_aside(
                self.groups,
                deltas,
                self.tolerance,
                removal=removal,
                ceiling=ceiling,
                others=partial(order_of, removal=removal),
            ),
        )
        return self.solved[removal]

    def _finite_delta(self, removal: bool, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Proven ends of delta(eps) of finite losses, in one order of the pair."""
        order, epsilons = order_of(self.groups, removal=removal), doubles_around(epsilon)

        def plainly() -> tuple[Fraction, Fraction]:
            below, above = solve_delta(order, epsilons, self.tolerance / 2)
            return exp_of(below, up=False), exp_of(above, up=True)

        return self._by_some_way(
            removal,
            lambda few: few.delta(epsilon),
            plainly,
            lambda: delta_aside(
                self.groups, epsilons, self.tolerance / 2, removal=removal, others=partial(order_of, removal=removal)
            ),
        )

    def _by_some_way(
        self,
        removal: bool,
        by_outcomes: Callable[[Few], _Found],
        nodes: Callable[[], _Found],
        aside: Callable[[], _Found],
    ) -> _Found:
        """Outcome by outcome where these are few; else by nodes or with outliers set aside, likelier first; else
        outcome by outcome where memory holds them."""
        few = few_outcomes(self.groups, removal=removal, most=_OUTCOMES_FEW)
        if few is not None:
            return by_outcomes(few)
        ways = (aside, nodes) if is_rare(self.groups) else (nodes, aside)
        for way in ways:
            try:
                return way()
            except InternalError as error:
                refused = error
        few = few_outcomes(self.groups, removal=removal, most=_OUTCOMES_MAX)
        if few is None:
            raise refused
        return by_outcomes(few)


def compose(schedule: Schedule, tolerance: Exactable = "1e-6", *, assume_fixed: bool = False) -> Composition:
    """For every `schedule` of >= 1 releases, fixed in advance, returns its composition, or raises RequestError.

    `tolerance`: the relative width of the intervals, from 1e-11 to 0.1. A history whose mechanisms or parameters were
    chosen along the way is refused: its privacy loss is not that of a composition of fixed pairs, and only the amounts
    of an account's measure add up. Source: docs/mathematics.md, "Fixed in advance". With `assume_fixed` the figure is
    that which would hold had everything been fixed; say so beside it.
    """
    if not schedule.fixed and not assume_fixed:
        raise AdaptiveHistoryError(
            "this history's parameters were chosen along the way: a composition holds for schedules fixed in advance. "
            "Claim the total of the account's measure, or pass assume_fixed=True for the figure with that label"
        )
    width = exact(tolerance, "tolerance")
    if not _TOLERANCE_LEAST <= width <= _TOLERANCE_MOST:
        raise RequestError("a tolerance lies between 1e-11 and 0.1")
    groups = grouped(schedule.releases)
    return Composition(
        schedule=schedule,
        groups=groups,
        tolerance=float(width),
        tight=all(kind.attained for kind, _ in groups.kinds),
        mu_squared=_mu_squared(groups),
        infinite={removal: certain_part(groups, removal=removal) for removal in (True, False)},
    )


def _mu_squared(groups: Groups) -> Interval | None:
    """The total mu squared where all releases are Gaussian on all units: exact, or in balls where there are many."""
    if set(groups.kinds) != {(Gaussian, False)}:
        return None
    found = [(release.facts, release.times) for release in groups if isinstance(release.facts, Gaussian)]
    amounts = [(facts.mu_squared, times) for facts, times in found]
    if len(amounts) <= _EXACT_MAX:
        # A sum of many fractions would grow their common denominator without end.
        total = sum((amount * times for amount, times in amounts), Fraction(0))
        return Interval(total, total)
    with precision(_BITS):
        ball_total = sum((ball(amount) * times for amount, times in amounts), ball(0))
        return Interval(lower(ball_total), upper(ball_total))


def _worse(orders: Iterable[tuple[Fraction, Fraction]]) -> Interval:
    """The larger of both orders' figures, from their ends."""
    lows, highs = zip(*orders, strict=True)
    return Interval(max(lows), max(highs))


def _either(first: Certain, second: Certain) -> Certain:
    """The probability that one of two independent events happens."""
    low, high = (a + b - a * b for a, b in ((first.lower, second.lower), (first.upper, second.upper)))
    return Certain(low, high)
