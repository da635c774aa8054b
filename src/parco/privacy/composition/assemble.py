"""From a schedule to families of losses, in both orders of the pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from parco.balls import arb, ball, lower, precision, upper
from parco.errors import InternalError, RequestError
from parco.privacy.composition.contour import Moments
from parco.privacy.composition.families import BoundedRange, Family, Floats, GaussianSum, Laplace
from parco.privacy.composition.finite import FiniteLosses
from parco.privacy.composition.groups import Groups, Kind
from parco.privacy.composition.precise import precise_profile
from parco.privacy.composition.rounding import log_rest
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

__all__ = ["Certain", "certain_part", "order_of"]

_BITS = 256
# Balls that become doubles are at most this wide, relatively: then the double is off by what it is rounded by.
_NARROW = 2.0**-60
# What a release may be, so that doubles neither overflow nor vanish on the way.
_SMALLEST, _LARGEST = 1e-9, 1e6
_RATE_SMALLEST = 1e-9
_LATTICE_CELLS_MAX = 1 << 22


def order_of(groups: Groups, *, removal: bool) -> Order:
    """For every sequence of different releases, returns one order of the pair without its infinite losses, or
    RequestError.

    `removal`: P is the law with the unit. D/s and epsilon outside 10^-9 to 10^6, and rates below 10^-9, are refused.
    """
    _check_ranges(groups)
    families = [*_whole(groups), *_noise_on_samples(groups, removal=removal), *_finite(groups, removal=removal)]
    return Order(
        Moments(families),
        lattice=_lattice(groups),
        precise=lambda rough: precise_profile(rough, groups.releases, removal=removal),
    )


def _whole(groups: Groups) -> Iterator[Family]:
    """Noise added to statistics of all units, and exponential mechanisms."""
    found = groups.kinds.get((Gaussian, False))
    if found is not None:
        total = math.fsum(found.sizes**2 * found.times)
        yield GaussianSum(total, float(found.times.sum()))
    for kind, family in ((LaplaceFacts, Laplace), (Exponential, BoundedRange)):
        found = groups.kinds.get((kind, False))
        if found is not None:
            yield family(found.sizes, found.times)


def _noise_on_samples(groups: Groups, *, removal: bool) -> Iterator[Family]:
    found = groups.kinds.get((Gaussian, True))
    if found is not None:
        yield SampledGaussian(found.rates, found.log_rests, 1 / found.sizes, found.times, removal)
    for kind in (LaplaceFacts, Exponential):
        for release in groups.kinds.get((kind, True), Kind(())).releases:
            rate, rest = float(release.rate), log_rest(release.rate)
            atoms = kind is LaplaceFacts
            yield SampledInterval(release.facts.size, rate, rest, float(release.times), atoms, removal)


def _finite(groups: Groups, *, removal: bool) -> Iterator[Family]:
    rows: dict[int, list[tuple[Floats, Floats, float]]] = {}
    for release in groups.of(*_OUTCOMES):
        losses, log_masses = _OUTCOMES[type(release.facts)](release.facts, release.rate, removal)
        rows.setdefault(len(losses), []).append((losses, log_masses, float(release.times)))
    for found in rows.values():
        losses, log_masses, times = (np.array(column) for column in zip(*found, strict=True))
        yield FiniteLosses(losses, log_masses, times)


def _two_outcomes(facts: Facts, rate: Fraction, removal: bool) -> tuple[Floats, Floats]:
    """Randomised response, and what is left of an (epsilon, delta) mechanism without its infinite losses."""
    if rate == 1:
        epsilon = facts.size
        rare, likely = -epsilon - math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(-epsilon))
        return np.array([epsilon, -epsilon]), np.array([likely, rare])
    with precision(_BITS):
        odds = ball(facts.epsilon).exp()  # type: ignore[attr-defined]
        alone = ball(facts.delta) if isinstance(facts, Approximate) else arb(0)
        return _sampled([odds, 1 / odds], [1 / (1 + odds), odds / (1 + odds)], alone, rate, removal)


def _sampled(odds: list[arb], under_q: list[arb], alone: arb, rate: Fraction, removal: bool) -> tuple[Floats, Floats]:
    """For outcomes with the ratio `odds` of P to Q and the mass `under_q` (times 1 - `alone`), losses and masses of the
    mixture.

    `alone` is the mass of what only Q has. The mixture (1-q) Q + q P gives it 1-q times that: a loss like the others.
    What only P has is an infinite loss where the mixture comes first, and where it comes second does not occur.
    """
    share = ball(rate)
    mixed = [1 - share + share * odd for odd in odds]
    masses = [(1 - alone) * mass for mass in under_q]
    if alone > 0:
        mixed.append(1 - share)
        masses.append(alone)
    if not removal:
        return _as_floats([-mix.log() for mix in mixed], masses)
    return _as_floats([mix.log() for mix in mixed], [mix * mass for mix, mass in zip(mixed, masses, strict=True)])


def _profile_outcomes(facts: Facts, rate: Fraction, removal: bool) -> tuple[Floats, Floats]:
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
        # Q has at each corner the change of slope, P that times e^epsilon. The rest of each, the last delta of both as
        # the corners are mirror images, is what the other has not.
        under_q = [slopes[i + 1] - slopes[i] for i in range(len(corners))]
        if rate == 1:
            return _as_floats(
                [odd.log() for odd in odds], [odd * mass for odd, mass in zip(odds, under_q, strict=True)]
            )
        kept = 1 - deltas[-1]
        return _sampled(odds, [mass / kept for mass in under_q], deltas[-1], rate, removal)


def _hull(facts: PrivacyProfile) -> list[tuple[Fraction, arb]]:
    """The corners of the lower convex hull in e^epsilon of the points, their mirror images and (e^epsilon = 0, delta =
    1)."""
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


def _as_floats(losses: Sequence[arb], masses: Sequence[arb]) -> tuple[Floats, Floats]:
    """Doubles of the losses, and of the logarithms of the masses divided by their sum, off by a unit or two."""
    total = sum(masses, arb(0))
    balls = [*losses, *((mass / total).log() for mass in masses)]
    if any(float(value.rad()) > _NARROW * max(abs(float(value.mid())), _NARROW) for value in balls):
        raise InternalError("points of a privacy profile lie so near one chord that 256 bits do not tell them from it")
    values = np.array([float(value.mid()) for value in balls])
    return values[: len(losses)], values[len(losses) :]


_OUTCOMES: dict[type[Facts], Callable[[Facts, Fraction, bool], tuple[Floats, Floats]]] = {
    RandomisedResponse: _two_outcomes,
    Pure: _two_outcomes,
    SparseVector: _two_outcomes,
    Approximate: _two_outcomes,
    PrivacyProfile: _profile_outcomes,
}

_ON_LATTICES = (RandomisedResponse, Pure, SparseVector, Approximate)


@dataclass(frozen=True)
class Certain:
    """Bounds on the probability that some loss is infinite, exact or rounded outward."""

    lower: Fraction
    upper: Fraction


def certain_part(groups: Groups, *, removal: bool) -> Certain:
    """For every sequence of releases, bounds on the mass of infinite losses: 1 - product of (1 - mass) over all of
    them."""
    leaking = list(groups.of(Approximate, PrivacyProfile))
    if not leaking:
        return Certain(Fraction(0), Fraction(0))
    with precision(_BITS):
        log_kept = arb(0)
        for release in leaking:
            log_kept += (-_infinite(release, removal=removal)).log1p() * release.times
        mass = -log_kept.expm1()
        return Certain(max(lower(mass), Fraction(0)), min(upper(mass), Fraction(1)))


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


def _lattice(groups: Groups) -> Fraction | None:
    """The largest step of which every loss is a whole multiple, where there is one that is not too fine."""
    if any(sampled or kind not in _ON_LATTICES for kind, sampled in groups.kinds):
        return None
    losses = [release.facts.epsilon for release in groups]  # type: ignore[attr-defined]
    common = math.lcm(*(loss.denominator for loss in losses))
    whole = math.gcd(*(int(loss * common) for loss in losses))
    if whole == 0 or max(losses) * common / whole > _LATTICE_CELLS_MAX:
        return None
    return Fraction(whole, common)


def _check_ranges(groups: Groups) -> None:
    for (kind, sampled), some in groups.kinds.items():
        sizes = some.sizes[some.sizes != 0] if kind in (Approximate, PrivacyProfile) else some.sizes
        if not ((sizes >= _SMALLEST) & (sizes <= _LARGEST)).all():
            raise RequestError(
                f"{kind.tag}: sensitivity/scale, or epsilon, lies between 1e-9 and 1e6 for a composition; "
                "round what is smaller up, which is on the safe side, and add more noise to what is larger"
            )
        if sampled and (some.rates < _RATE_SMALLEST).any():
            raise RequestError(
                "a sampling rate is at least 1e-9 for a composition: round it up, which is on the safe side"
            )
