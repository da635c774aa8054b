"""Releases, schedules and families for the tests of this room; the only place that knows how families are obtained."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from parco.privacy.composition import Composition, Interval, compose
from parco.privacy.composition.assemble import order_of
from parco.privacy.composition.families import Family
from parco.privacy.composition.groups import Groups
from parco.privacy.schedule import Schedule, ScheduledRelease

__all__ = ["KINDS", "RATES", "composed", "encloses", "families_of", "family_of", "record", "release", "schedule"]

KINDS: dict[str, dict[str, object]] = {
    "gaussian": {"mechanism": "gaussian", "sensitivity": "1", "scale": "1.5"},
    "laplace": {"mechanism": "laplace", "sensitivity": "1", "scale": "0.8"},
    "randomised-response": {"mechanism": "randomised-response", "epsilon": "1.3"},
    "pure": {"mechanism": "pure", "epsilon": "0.4"},
    "exponential": {"mechanism": "exponential", "epsilon": "2"},
    "sparse-vector": {"mechanism": "sparse-vector", "epsilon": "0.05"},
    "approximate": {"mechanism": "approximate", "epsilon": "0.7", "delta": "1e-3"},
    "profile": {"mechanism": "profile", "points": [["0.2", "0.1"], ["0.5", "0.02"], ["1", "1e-3"], ["3", "0"]]},
}
"""One ordinary mechanism of each kind."""

RATES = (None, "0.01", "0.6")
"""Without sampling, and at two rates."""


def record(kind: str, *, rate: object = None, times: int = 1, **more: object) -> dict[str, object]:
    """The ordinary mechanism of a kind, or one with other numbers, as an entry of a schedule."""
    entry: dict[str, object] = {**KINDS[kind], **more, "times": times}
    if rate is not None:
        entry["sampling"] = {"scheme": "poisson", "rate": rate}
    return entry


def release(kind: str, *, rate: object = None, times: int = 1, **more: object) -> ScheduledRelease:
    """The same as a release."""
    return ScheduledRelease.read(record(kind, rate=rate, times=times, **more))


def schedule(*entries: Mapping[str, object]) -> Schedule:
    """A schedule of these entries."""
    return Schedule.of(entries)


def composed(*entries: Mapping[str, object], tolerance: str = "1e-6") -> Composition:
    """The composition of these entries."""
    return compose(Schedule.of(entries), tolerance)


def families_of(*releases: ScheduledRelease, removal: bool) -> tuple[Family, ...]:
    """The families that one order of a composition is made of."""
    return order_of(Groups(releases), removal=removal).moments.families


def family_of(*releases: ScheduledRelease, removal: bool) -> Family:
    """The family of releases of one kind."""
    (family,) = families_of(*releases, removal=removal)
    return family


def encloses(interval: Interval, truth: Fraction, *, off: Fraction = Fraction(0)) -> bool:
    """Whether a truth known to be off by no more than `off` can lie in the interval."""
    return 0 <= interval.lower <= truth + off and truth - off <= interval.upper
