"""Outliers set aside: a composition whose rare outcomes no longer decide how it is computed.

Three things may be done to a release's outcomes, and what each does to delta(eps) is known from both sides.

- *Told.* Outcomes that lose at least T are taken out, m the probability (of the first law) that any release has one. Of
  the rest E[e^-S] is hardly above 1, so that they tell nearly all: E[(1 - e^(eps-l-S))+] >= 1 - e^(eps-T) E[e^-S].
- *Dropped.* Outcomes of a probability that does not matter are taken out, or moved: (1 - e^(eps-L))+ lies in [0, 1].
- What is left is a measure of less than 1, whose profile the nodes give as they give any other.

Source: docs/mathematics.md, "Outliers set aside".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from parco.balls import arb, ball, lower, precision, upper
from parco.errors import InternalError
from parco.privacy.composition.bare import Bare
from parco.privacy.composition.contour import Moments
from parco.privacy.composition.families import Family
from parco.privacy.composition.finite import FiniteLosses
from parco.privacy.composition.groups import Groups
from parco.privacy.composition.outcomes import FINITE, infinite_mass, narrow_outcomes
from parco.privacy.composition.rounding import exp_of, log_interval, log_rest
from parco.privacy.composition.sampled_interval import Density, SampledInterval, exponential, gaussian, laplace
from parco.privacy.composition.solve import Order, Solved, is_near, solve, solve_delta
from parco.privacy.facts import Approximate, Gaussian, Laplace
from parco.privacy.schedule import ScheduledRelease

__all__ = ["delta_aside", "epsilon_aside", "is_rare"]

# How far below T an epsilon has to lie: then no more than e^-50 < 2^-72 times the masses' sum over the masses kept is
# not known of what is told, which is below 2^-60 of m where most is neither told nor infinite.
_MARGIN = 50.0
_KNOWN = 1 - Fraction(1, 2**60)
_MOST = Fraction(99, 100)
_THRESHOLDS = (64.0, 256.0, 1024.0, 4096.0, math.inf)
_BUDGETS = tuple(Fraction(1, 10**digits) for digits in (15, 30, 60, 120, 240))
# Of delta, times the tolerance, what may be dropped or moved.
_SHARE = Fraction(1, 100)
_LEAST = Fraction(1, 10**290)

_BITS = 256
_DIFFERENT_MAX = 64
_DRAWS_FEW = 10
# From this D/s on a draw shows. Losses are then moved by less than e^-40 at places that are likely at all.
_BARE, _APART = 40.0, 40
_OFF = math.exp(-_APART) * (1 + 1e-9)
_HALF = 0.5


@dataclass(frozen=True)
class Aside:
    """What is left, m from both sides, at most what was dropped or moved, and by how much the loss may be off."""

    order: Order
    told: tuple[Fraction, Fraction]
    dropped: Fraction
    off: float


@dataclass(frozen=True)
class _Left:
    """Of one release: what is left, the masses told and dropped, and how far a loss is off, each time it is made."""

    family: Family
    told: arb
    dropped: arb
    off: float = 0.0


Others = Callable[[Groups], Order]


def is_rare(groups: Groups) -> bool:
    """Whether outliers are likely to decide: units drawn seldom for Gaussian noise, whose tails are then heavier than
    any line at any c shows well; hardly any noise; or what a sampled approximate mechanism hardly ever tells."""
    found = groups.kinds.get((Gaussian, True))
    if found is not None and len(found.releases) <= _DIFFERENT_MAX:
        return bool(float(found.times @ found.rates) < _DRAWS_FEW or found.sizes.max() >= _BARE)
    return (Approximate, True) in groups.kinds


def epsilon_aside(
    groups: Groups,
    deltas: tuple[Fraction, Fraction],
    tolerance: float,
    *,
    removal: bool,
    ceiling: float,
    others: Others,
) -> Solved:
    """As `solve`, outliers set aside: for `deltas` at most and at least delta, what is told of the releases' own taken
    off."""
    budget = deltas[0] * Fraction(tolerance) * _SHARE
    for threshold in _THRESHOLDS:
        try:
            aside = set_aside(groups, removal=removal, threshold=threshold, budget=budget, others=others)
        except InternalError:
            continue
        least = deltas[0] - aside.told[1] - aside.dropped
        if least <= 0 or (threshold < math.inf and aside.told[1] == 0):
            # Nothing is left of delta; or nothing is told, as with the last threshold.
            continue
        logs = log_interval(least)[0], log_interval(deltas[1] - aside.told[0] * _KNOWN + aside.dropped)[1]
        inner = _moved((ceiling, ceiling), -2 * aside.off)[0]
        try:
            found = solve(aside.order, logs, tolerance, ceiling=inner)
        except InternalError:
            continue
        if found.upper <= threshold - _MARGIN:
            ends = (found.lower, found.upper)
            found = Solved(_moved(ends, -aside.off)[0], _moved(ends, aside.off)[1])
            if found.upper <= ceiling or is_near(found, tolerance):
                return found
    raise InternalError("the composition could not be computed to the tolerance asked for, with outliers set aside")


def delta_aside(
    groups: Groups, epsilons: tuple[float, float], tolerance: float, *, removal: bool, others: Others
) -> tuple[Fraction, Fraction]:
    """As `solve_delta`, outliers set aside: proven ends of delta itself."""
    for budget in _BUDGETS:
        aside = set_aside(groups, removal=removal, threshold=epsilons[1] + _MARGIN, budget=budget, others=others)
        below = solve_delta(aside.order, _moved(epsilons, aside.off), tolerance / 2)[0]
        above = solve_delta(aside.order, _moved(epsilons, -aside.off), tolerance / 2)[1]
        low = aside.told[0] * _KNOWN + exp_of(below, up=False) - aside.dropped
        high = aside.told[1] + exp_of(above, up=True) + aside.dropped
        if epsilons[0] < aside.off:
            # There is no epsilon below 0 to ask at: up to there delta rises by no more than the way is long.
            high += Fraction(aside.off)
        if high - low <= Fraction(tolerance) * high:
            return max(low, Fraction(0)), min(high, Fraction(1))
    raise InternalError("the composition could not be computed to the tolerance asked for, with outliers set aside")


def _moved(epsilons: tuple[float, float], off: float) -> tuple[float, float]:
    """Doubles at most and at least the same moved, and not below 0."""
    if off == 0:
        return epsilons
    low, high = (epsilon + off for epsilon in epsilons)
    return max(low - 4 * math.ulp(low), 0.0), max(high + 4 * math.ulp(high), 0.0)


def set_aside(groups: Groups, *, removal: bool, threshold: float, budget: Fraction, others: Others) -> Aside:
    """For every sequence of releases, returns it without what loses at least `threshold` and what is as rare as the
    budget, or raises InternalError. `others` knows releases that are left as they are."""
    if budget < _LEAST:
        raise InternalError("delta is too small for outliers to be set aside in doubles")
    touched = [release for release in groups if _kind(release) is not None]
    rest = tuple(release for release in groups if _kind(release) is None)
    if not touched or len(touched) > _DIFFERENT_MAX:
        raise InternalError("no outliers can be set aside in this composition")
    families = list(others(Groups(rest)).moments.families) if rest else []
    with precision(_BITS):
        log_kept, dropped, off = arb(0), arb(0), 0.0
        for release in touched:
            share = float(budget / (len(touched) * release.times))
            left = _LEFT[_kind(release)](release, removal, threshold, share)  # type: ignore[index]
            families.append(left.family)
            log_kept += (-left.told).log1p() * release.times
            dropped += left.dropped * release.times
            off += left.off * release.times * (1 + 1e-9)
        told = -log_kept.expm1()
        infinite = -sum(
            ((-infinite_mass(one.facts, one.rate, removal=removal)).log1p() * one.times for one in touched), arb(0)
        ).expm1()
        if not (told < ball(_MOST) and infinite < ball(_MOST)):
            raise InternalError("most of a composition tells all, and cannot be set aside")
        return Aside(Order(Moments(families)), (max(lower(told), Fraction(0)), upper(told)), upper(dropped), off)


def _kind(release: ScheduledRelease) -> str | None:
    kind = type(release.facts)
    if kind in FINITE:
        return "finite"
    if not release.sampled:
        return None
    return "gaussian" if kind is Gaussian else "interval"


def _finite(release: ScheduledRelease, removal: bool, threshold: float, share: float) -> _Left:
    losses, log_masses = narrow_outcomes(release.facts, release.rate, removal=removal)
    kept, told, dropped = [], arb(0), arb(0)
    for loss, log_mass in zip(losses, log_masses, strict=True):
        mass = log_mass.exp()
        if loss > threshold:
            told += mass
        elif loss > 0 and mass * len(losses) < arb(share):
            dropped += mass
        else:
            kept.append((float(loss.mid()), float(log_mass.mid())))
    if not kept:
        raise InternalError("all outcomes of a release were set aside")
    values, logs = (np.array([column]) for column in zip(*kept, strict=True))
    return _Left(FiniteLosses(values, logs, np.array([float(release.times)])), told, dropped)


def _gaussian(release: ScheduledRelease, removal: bool, threshold: float, share: float) -> _Left:
    """The loss l under Q is N(-mu^2/2, mu^2), under P N(mu^2/2, mu^2): what is beyond both ends is dropped or told."""
    mu, rate = release.facts.size, float(release.rate)
    if mu >= _BARE:
        return _bare(release, removal)
    left = _quantile(share / 2)
    right = max(_quantile(share / 4) - mu, _quantile(share / (4 * rate)) if removal else -math.inf)
    density = gaussian(mu, left, max(right, 1 - left - mu))
    # A loss of T is had at l = log((e^T - 1 + q)/q) or a little below.
    most = threshold - math.log(rate) if removal else math.inf
    is_told = density.high > most
    if is_told:
        density = Density(density.low, most, density.log_scale, density.variance)
    size, q = ball(release.facts.mu_squared).sqrt(), ball(release.rate)  # type: ignore[attr-defined]
    share_of_p = q if removal else arb(0)

    def beyond(place: float, sign: int) -> arb:
        under_p, under_q = ((sign * arb(place) / size - sign * way * size / 2) / arb(2).sqrt() for way in (1, -1))
        return (share_of_p * under_p.erfc() + (1 - share_of_p) * under_q.erfc()) / 2

    below, above = beyond(density.low, -1), beyond(density.high, 1)
    told, cut = (above, arb(0)) if is_told else (arb(0), above)
    return _left(release, removal, density, told=told, dropped=below + cut)


def _bare(release: ScheduledRelease, removal: bool) -> _Left:
    """Within 40 of where l = log((1-q)/q) a loss is neither of two; elsewhere it is one of them but for e^-40."""
    q, mu_squared = ball(release.rate), ball(release.facts.mu_squared)  # type: ignore[attr-defined]
    size, even = mu_squared.sqrt(), ((1 - q) / q).log()
    unlike = (((even - _APART) / size + size / 2) / arb(2).sqrt()).erfc() / 2
    if not removal:
        loss = np.array([[-log_rest(release.rate)]])
        times = np.array([float(release.times)])
        return _Left(FiniteLosses(loss, np.zeros((1, 1)), times), arb(0), unlike, _OFF)
    like = ((size / 2 - (even + _APART) / size) / arb(2).sqrt()).erfc() / 2
    variance = float(release.facts.mu_squared)  # type: ignore[attr-defined]
    # Not as a difference of logarithms: those of long integers are off by more than that of a rate near 1 is large.
    rate = math.log(float(release.rate)) if release.rate <= _HALF else math.log1p(-float(1 - release.rate))
    family = Bare(rate, log_rest(release.rate), variance, float(release.times))
    return _Left(family, arb(0), (1 - q) * unlike + q * like, _OFF)


def _interval(release: ScheduledRelease, removal: bool, threshold: float, share: float) -> _Left:
    """Laplace noise and exponential mechanisms: the largest losses may be told."""
    del share
    atoms = isinstance(release.facts, Laplace)
    density = laplace(release.facts.size) if atoms else exponential(release.facts.size)
    most = threshold - math.log(float(release.rate)) if removal else math.inf
    if density.high <= most:
        return _left(release, removal, density, told=arb(0), dropped=arb(0))
    density = Density(density.low, most, density.log_scale, ends=density.ends[:1])
    e, b, q = ball(release.facts.epsilon), arb(most), ball(release.rate)  # type: ignore[attr-defined]
    if atoms:
        under_p, under_q = 1 - ((b - e) / 2).exp() / 2, (-(b + e) / 2).exp() / 2
    else:
        scale = 1 / (2 * (e / 2).sinh())
        under_p, under_q = ((e / 2).exp() - (b / 2).exp()) * scale, ((-b / 2).exp() - (-e / 2).exp()) * scale
    return _left(release, removal, density, told=q * under_p + (1 - q) * under_q, dropped=arb(0))


def _left(release: ScheduledRelease, removal: bool, density: Density, *, told: arb, dropped: arb) -> _Left:
    family = SampledInterval(
        density,
        float(release.rate),
        log_rest(release.rate),
        float(release.times),
        removal,
        told=float(told.mid()),
        aside=float(upper(dropped)) * (1 + 1e-9),
    )
    return _Left(family, told, dropped)


def _quantile(mass: float) -> float:
    """About the place beyond which a standard normal variable is with this probability; 0 where that is large."""
    log_size = -math.log(mass)
    return math.sqrt(max(2 * log_size - math.log(max(4 * math.pi * log_size, 1)), 0)) if mass < 1 else 0.0


_LEFT: dict[str, Callable[[ScheduledRelease, bool, float, float], _Left]] = {
    "finite": _finite,
    "gaussian": _gaussian,
    "interval": _interval,
}
