"""The releases of a schedule, equal ones made one, sorted by kind, with their numbers as arrays: looked at once for
both orders of the pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from parco.privacy.composition.families import Floats
from parco.privacy.composition.rounding import log_rest
from parco.privacy.facts import Facts
from parco.privacy.schedule import ScheduledRelease

__all__ = ["Groups", "Kind", "grouped"]

# Below this a double's log1p(-q) is as good as that of the rate itself.
_RATE_PLAIN = 0.5


@dataclass(frozen=True)
class Kind:
    """Releases of one mechanism's kind, either all on samples or none; arrays of shape (releases,)."""

    releases: tuple[ScheduledRelease, ...]

    @cached_property
    def sizes(self) -> Floats:
        """D/s, or epsilon."""
        return np.array([release.facts.size for release in self.releases])

    @cached_property
    def times(self) -> Floats:
        """How often each occurs."""
        return np.array([float(release.times) for release in self.releases])

    @cached_property
    def rates(self) -> Floats:
        """Sampling rates q."""
        return np.array([_nearest(release.rate) for release in self.releases])

    @cached_property
    def log_rests(self) -> Floats:
        """log(1 - q), each off by at most 2 ELEMENTARY units of itself."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log1p(-self.rates)
        for place in np.flatnonzero(self.rates >= _RATE_PLAIN):
            logs[place] = log_rest(self.releases[place].rate)
        return logs


@dataclass(frozen=True)
class Groups:
    """Different releases, in any order."""

    releases: tuple[ScheduledRelease, ...]

    def __iter__(self) -> Iterator[ScheduledRelease]:
        return iter(self.releases)

    @cached_property
    def kinds(self) -> dict[tuple[type[Facts], bool], Kind]:
        """The releases by the class of their facts, and by whether they are made on samples."""
        found: dict[tuple[type[Facts], bool], list[ScheduledRelease]] = {}
        for release in self.releases:
            found.setdefault((type(release.facts), release.sampled), []).append(release)
        return {key: Kind(tuple(some)) for key, some in found.items()}

    def of(self, *kinds: type[Facts]) -> Iterator[ScheduledRelease]:
        """The releases of these kinds."""
        for (kind, _), some in self.kinds.items():
            if kind in kinds:
                yield from some.releases

    def plus(self, release: ScheduledRelease) -> Groups:
        """With one more, even if it is like another."""
        return Groups((*self.releases, release))


def grouped(releases: Iterable[ScheduledRelease]) -> Groups:
    """For every sequence of releases, returns them with equal ones made one, their times added."""
    alike: dict[tuple[object, ...], list[ScheduledRelease]] = {}
    for release in releases:
        # Doubles are quick to compare, and almost always tell.
        alike.setdefault((type(release.facts), release.facts.size, _nearest(release.rate)), []).append(release)
    return Groups(tuple(one for some in alike.values() for one in (some if len(some) == 1 else _merged(some))))


def _merged(releases: Sequence[ScheduledRelease]) -> Iterator[ScheduledRelease]:
    times: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], ScheduledRelease] = {}
    for release in releases:
        key = (release.rate, *release.facts.key)
        first.setdefault(key, release)
        times[key] = times.get(key, 0) + release.times
    for key, release in first.items():
        yield release if release.times == times[key] else replace(release, times=times[key])


def _nearest(rate: Fraction) -> float:
    """The nearest double: what float() gives, without its detour."""
    return rate.numerator / rate.denominator
