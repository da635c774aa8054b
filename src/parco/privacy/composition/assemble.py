"""From a schedule to families of losses, in both orders of the pair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from parco.balls import arb, lower, precision, upper
from parco.errors import RequestError
from parco.privacy.composition.contour import Moments
from parco.privacy.composition.families import BoundedRange, Family, Floats, GaussianSum, Laplace
from parco.privacy.composition.finite import FiniteLosses
from parco.privacy.composition.groups import Groups, Kind
from parco.privacy.composition.outcomes import FINITE, float_outcomes, infinite_mass
from parco.privacy.composition.precise import precise_profile
from parco.privacy.composition.rounding import log_rest
from parco.privacy.composition.sampled import SampledGaussian
from parco.privacy.composition.sampled_interval import SampledInterval, exponential, laplace
from parco.privacy.composition.solve import Order
from parco.privacy.facts import (
    Approximate,
    Exponential,
    Gaussian,
    PrivacyProfile,
    Pure,
    RandomisedResponse,
    SparseVector,
)
from parco.privacy.facts import Laplace as LaplaceFacts

__all__ = ["Certain", "certain_part", "order_of"]

_BITS = 256
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
            density = laplace(release.facts.size) if kind is LaplaceFacts else exponential(release.facts.size)
            yield SampledInterval(density, rate, rest, float(release.times), removal)


def _finite(groups: Groups, *, removal: bool) -> Iterator[Family]:
    rows: dict[int, list[tuple[Floats, Floats, float]]] = {}
    for release in groups.of(*FINITE):
        losses, log_masses = float_outcomes(release.facts, release.rate, removal=removal)
        rows.setdefault(len(losses), []).append((losses, log_masses, float(release.times)))
    for found in rows.values():
        losses, log_masses, times = (np.array(column) for column in zip(*found, strict=True))
        yield FiniteLosses(losses, log_masses, times)


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
            mass = infinite_mass(release.facts, release.rate, removal=removal)
            log_kept += (-mass).log1p() * release.times
        total = -log_kept.expm1()
        return Certain(max(lower(total), Fraction(0)), min(upper(total), Fraction(1)))


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
