"""From a schedule to families of losses, in both orders of the pair."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from parco.balls import arb, ball, lower, precision, upper
from parco.errors import RequestError
from parco.privacy.composition.contour import Moments
from parco.privacy.composition.families import BoundedRange, Family, Floats, GaussianSum, Laplace
from parco.privacy.composition.finite import FiniteLosses
from parco.privacy.composition.precise import precise_profile
from parco.privacy.composition.sampled import SampledGaussian
from parco.privacy.composition.sampled_interval import SampledInterval
from parco.privacy.composition.solve import Order
from parco.privacy.facts import (
    Approximate,
    Exponential,
    Facts,
    Gaussian,
    PrivacyProfile,
    Pure,
    RandomisedResponse,
    SparseVector,
)
from parco.privacy.facts import Laplace as LaplaceFacts
from parco.privacy.schedule import ScheduledRelease

__all__ = ["Certain", "certain_part", "grouped", "order_of"]

_BITS = 128
# What a release may be, so that doubles neither overflow nor vanish on the way.
_SMALLEST, _LARGEST = 1e-9, 1e6
_RATE_SMALLEST = Fraction(1, 10**9)
_LATTICE_CELLS_MAX = 1 << 22


def grouped(releases: Sequence[ScheduledRelease]) -> tuple[ScheduledRelease, ...]:
    """Equal releases made one, their times added."""
    found: dict[tuple[object, ...], ScheduledRelease] = {}
    times: Counter[tuple[object, ...]] = Counter()
    for release in releases:
        rate = release.rate
        key = (type(release.facts), rate.numerator, rate.denominator, *release.facts.key)
        found.setdefault(key, release)
        times[key] += release.times
    return tuple(
        release if release.times == times[key] else replace(release, times=times[key]) for key, release in found.items()
    )


def order_of(groups: Sequence[ScheduledRelease], *, removal: bool) -> Order:
    """For every sequence of different releases, returns one order of the pair without its infinite losses, or RequestError.

    `removal`: P is the law with the unit. D/s and epsilon outside 10^-9 to 10^6, and rates below 10^-9, are refused.
    """
    for release in groups:
        _check_range(release)
    plain = [release for release in groups if not release.sampled]
    sampled = [release for release in groups if release.sampled]
    families = [*_gaussians(plain), *_intervals(plain), *_sampled(sampled, removal=removal)]
    families += _finite(groups, removal=removal)
    return Order(
        Moments(families),
        lattice=_lattice(groups),
        precise=lambda rough: precise_profile(rough, groups, removal=removal),
    )


def _gaussians(plain: Sequence[ScheduledRelease]) -> Iterable[Family]:
    found = [release for release in plain if isinstance(release.facts, Gaussian)]
    if found:
        total = math.fsum(release.facts.size**2 * release.times for release in found)
        yield GaussianSum(total, float(sum(release.times for release in found)))


def _intervals(plain: Sequence[ScheduledRelease]) -> Iterable[Family]:
    for kind, family in ((LaplaceFacts, Laplace), (Exponential, BoundedRange)):
        found = [release for release in plain if isinstance(release.facts, kind)]
        if found:
            yield family(_floats(release.facts.size for release in found), _floats(release.times for release in found))


def _sampled(sampled: Sequence[ScheduledRelease], *, removal: bool) -> Iterable[Family]:
    found = [release for release in sampled if isinstance(release.facts, Gaussian)]
    if found:
        rates, times = (_floats(getattr(release, name) for release in found) for name in ("rate", "times"))
        yield SampledGaussian(rates, 1 / _floats(release.facts.size for release in found), times, removal)
    for release in sampled:
        if isinstance(release.facts, LaplaceFacts | Exponential):
            atoms = isinstance(release.facts, LaplaceFacts)
            yield SampledInterval(release.facts.size, float(release.rate), float(release.times), atoms, removal)


def _finite(groups: Sequence[ScheduledRelease], *, removal: bool) -> Iterable[Family]:
    rows: dict[int, list[tuple[Floats, Floats, int]]] = {}
    for release in groups:
        outcomes = _OUTCOMES.get(type(release.facts))
        if outcomes is not None:
            losses, log_masses = outcomes(release.facts, release.rate, removal)
            rows.setdefault(len(losses), []).append((losses, log_masses, release.times))
    for found in rows.values():
        losses, masses, times = zip(*found, strict=True)
        yield FiniteLosses(np.array(losses), np.array(masses), _floats(times))


def _two_outcomes(facts: Facts, rate: Fraction, removal: bool) -> tuple[Floats, Floats]:  # noqa: FBT001
    """Randomised response: losses and the logarithms of their masses under P, sampled at the rate."""
    epsilon = facts.size
    rare, likely = -epsilon - math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(-epsilon))
    if rate == 1:
        return np.array([epsilon, -epsilon]), np.array([likely, rare])
    # Under Q the outcomes have masses `rare` and `likely`; the mixture is e^loss times that.
    losses = np.array([_log_mixture(rate, epsilon), _log_mixture(rate, -epsilon)])
    masses = np.array([rare, likely])
    return (losses, masses + losses) if removal else (-losses, masses)


def _log_mixture(rate: Fraction, epsilon: float) -> float:
    """log(1 - q + q e^epsilon)."""
    if epsilon < 1:
        return math.log1p(float(rate) * math.expm1(epsilon))
    return float(np.logaddexp(math.log1p(-float(rate)), math.log(rate) + epsilon))


def _three_outcomes(facts: Facts, rate: Fraction, removal: bool) -> tuple[Floats, Floats]:  # noqa: FBT001
    """(epsilon, delta): as randomised response, and outcomes that only one of the laws has; infinite losses left out."""
    if not isinstance(facts, Approximate):
        raise TypeError(type(facts))
    losses, masses = _two_outcomes(facts, rate, removal)
    if rate == 1:
        return losses, masses
    # An outcome of mass delta that only Q has: the mixture gives it (1-q) delta, so that its loss is log(1-q).
    alone = math.log1p(-float(rate))
    kept = math.log1p(-float(facts.delta))
    if removal:
        finite = math.log1p(-float(rate * facts.delta))
        extra = math.log(facts.delta) + alone - finite
        return np.append(losses, alone), np.append(masses + kept - finite, extra)
    return np.append(losses, -alone), np.append(masses + kept, math.log(facts.delta))


def _profile_outcomes(facts: Facts, rate: Fraction, removal: bool) -> tuple[Floats, Floats]:  # noqa: FBT001
    """The pair whose profile is the chords between the points (in e^epsilon), with their mirror images below 0.

    A pair with profile delta at epsilon in both orders has delta(-epsilon) = 1 - e^-epsilon (1 - delta(epsilon)).
    """
    if not isinstance(facts, PrivacyProfile):
        raise TypeError(type(facts))
    with precision(_BITS):
        corners = _hull(facts)
        odds = [ball(epsilon).exp() for epsilon, _ in corners]
        deltas = [delta for _, delta in corners]
        slopes = [(deltas[0] - 1) / odds[0]]
        slopes += [(deltas[i + 1] - deltas[i]) / (odds[i + 1] - odds[i]) for i in range(len(corners) - 1)]
        slopes.append(arb(0))
        # Q has at each corner the change of slope, P that times e^epsilon; both without what P alone has.
        under_q = [_positive(slopes[i + 1] - slopes[i]) for i in range(len(corners))]
        under_p = [odd * mass for odd, mass in zip(odds, under_q, strict=True)]
        if rate == 1:
            return _as_floats([odd.log() for odd in odds], under_p)
        share = ball(rate)
        mixed = [1 - share + share * odd for odd in odds]
        if not removal:
            # What only P has, Q's mixture has with loss minus infinity: it does not count in this order.
            return _as_floats([-mix.log() for mix in mixed], under_q)
        return _as_floats([mix.log() for mix in mixed], [mix * mass for mix, mass in zip(mixed, under_q, strict=True)])


def _hull(facts: PrivacyProfile) -> list[tuple[Fraction, arb]]:
    """The corners of the lower convex hull in e^epsilon of the points, their mirror images and (e^epsilon = 0, delta = 1)."""
    mirrored = [(-epsilon, 1 - ball(-epsilon).exp() * (1 - ball(delta))) for epsilon, delta in facts.points if epsilon]
    points = sorted(mirrored, key=lambda point: point[0]) + [(epsilon, ball(delta)) for epsilon, delta in facts.points]
    hull: list[tuple[Fraction, arb]] = []
    for epsilon, delta in points:
        if hull and delta >= hull[-1][1]:
            continue
        while hull and not _turns(hull[-2:], (epsilon, delta)):
            hull.pop()
        hull.append((epsilon, delta))
    return hull


def _turns(last: list[tuple[Fraction, arb]], point: tuple[Fraction, arb]) -> bool:
    """Whether the chord becomes flatter at the last corner when the point follows it: else the corner is no corner."""
    start = (arb(0), arb(1)) if len(last) == 1 else (ball(last[0][0]).exp(), last[0][1])
    middle, end = (ball(last[-1][0]).exp(), last[-1][1]), (ball(point[0]).exp(), point[1])
    rise = (middle[1] - start[1]) * (end[0] - middle[0])
    return bool(rise < (end[1] - middle[1]) * (middle[0] - start[0]))


def _positive(mass: arb) -> arb:
    return mass if mass > 0 else arb(0)


def _as_floats(losses: Sequence[arb], masses: Sequence[arb]) -> tuple[Floats, Floats]:
    """Doubles of the losses, and of the logarithms of the masses divided by their sum."""
    total = sum(masses, arb(0))
    logs = [float((mass / total).log().mid()) if mass > 0 else -math.inf for mass in masses]
    return np.array([float(loss.mid()) for loss in losses]), np.array(logs)


_OUTCOMES: dict[type[Facts], Callable[[Facts, Fraction, bool], tuple[Floats, Floats]]] = {
    RandomisedResponse: _two_outcomes,
    Pure: _two_outcomes,
    SparseVector: _two_outcomes,
    Approximate: _three_outcomes,
    PrivacyProfile: _profile_outcomes,
}


@dataclass(frozen=True)
class Certain:
    """Bounds on the probability that some loss is infinite, exact or rounded outward."""

    lower: Fraction
    upper: Fraction


def certain_part(releases: Sequence[ScheduledRelease], *, removal: bool) -> Certain:
    """For every sequence of releases, bounds on the mass of infinite losses: 1 - product of (1 - mass) over all of them."""
    leaking = [release for release in releases if isinstance(release.facts, Approximate | PrivacyProfile)]
    if not leaking:
        return Certain(Fraction(0), Fraction(0))
    with precision(_BITS):
        kept = arb(1)
        for release in leaking:
            kept *= (1 - _infinite(release, removal=removal)) ** release.times
        return Certain(max(lower(1 - kept), Fraction(0)), min(upper(1 - kept), Fraction(1)))


def _infinite(release: ScheduledRelease, *, removal: bool) -> arb:
    delta = arb(0)
    if isinstance(release.facts, Approximate):
        delta = ball(release.facts.delta)
    elif isinstance(release.facts, PrivacyProfile):
        delta = _hull(release.facts)[-1][1]
    if not release.sampled:
        return delta
    # Of the mixture only the share q is P; where the mixture comes second, P's own outcomes do not occur.
    return ball(release.rate) * delta if removal else arb(0)


def _lattice(groups: Sequence[ScheduledRelease]) -> Fraction | None:
    """The largest step of which every loss is a whole multiple, where there is one that is not too fine."""
    losses: list[Fraction] = []
    for release in groups:
        facts = release.facts
        if release.sampled or not isinstance(facts, RandomisedResponse | Pure | SparseVector | Approximate):
            return None
        losses.append(facts.epsilon)
    common = math.lcm(*(loss.denominator for loss in losses))
    whole = math.gcd(*(int(loss * common) for loss in losses))
    if whole == 0 or max(losses) * common / whole > _LATTICE_CELLS_MAX:
        return None
    return Fraction(whole, common)


def _check_range(release: ScheduledRelease) -> None:
    size = release.facts.size
    zero_allowed = isinstance(release.facts, Approximate | PrivacyProfile) and size == 0
    if not zero_allowed and not _SMALLEST <= size <= _LARGEST:
        raise RequestError(
            f"{release.facts.tag}: sensitivity/scale, or epsilon, lies between 1e-9 and 1e6 for a composition; "
            "leave out what is smaller, and add more noise to what is larger"
        )
    if release.rate < _RATE_SMALLEST:
        raise RequestError("a sampling rate is at least 1e-9 for a composition: round it up, which is on the safe side")


def _floats(values: Iterable[Fraction | float]) -> Floats:
    return np.array([float(value) for value in values])
