"""Schedules: sequences of releases fixed in advance, read from and written to JSON or TOML.

A privacy loss distribution composes what was fixed before the first release. A history whose parameters were chosen
along the way is not a schedule: `fixed` says which of the two this is, and composing refuses the other.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from parco.errors import RequestError
from parco.measure import exact, exact_text
from parco.privacy.facts import Facts, facts_of

__all__ = ["Schedule", "ScheduledRelease"]

_TIMES_MAX = 10**9
_LENGTH_MAX = 10**6


@dataclass(frozen=True)
class ScheduledRelease:
    """A mechanism, by its `facts`, how many `times` it runs, and the `rate` at which units are Poisson-sampled (1: all
    of them).

    The sample is secret, and drawn anew each time; only `add-or-remove` neighbours. 0 < rate <= 1.
    """

    facts: Facts
    times: int = 1
    rate: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if type(self.times) is not int or not 1 <= self.times <= _TIMES_MAX:
            raise RequestError(f"times is a whole number from 1 to {_TIMES_MAX:,}")
        if not 0 < self.rate <= 1:
            raise RequestError("a sampling rate is above 0 and at most 1: expected batch size over the number of units")

    @property
    def sampled(self) -> bool:
        """Whether only a sample of the units takes part."""
        return self.rate.numerator != self.rate.denominator

    @classmethod
    def read(cls, record: object) -> ScheduledRelease:
        """For every record of a schedule, returns the release, or raises RequestError with what to write."""
        if not isinstance(record, Mapping):
            raise RequestError(
                'a release is a table such as {"mechanism": "gaussian", "sensitivity": "1", "scale": "8"}'
            )
        rest = dict(record)
        tag, times, sampling = rest.pop("mechanism", None), rest.pop("times", 1), rest.pop("sampling", None)
        if isinstance(times, str) and times.isdecimal() and len(times) <= len(str(_TIMES_MAX)):
            times = int(times)
        return cls(facts_of(tag, rest), times, _rate(sampling))

    def record(self) -> dict[str, object]:
        """The release as text, in the form that `read` takes."""
        record: dict[str, object] = {"mechanism": self.facts.tag, **self.facts.record()}
        if self.times != 1:
            record["times"] = self.times
        if self.rate != 1:
            record["sampling"] = {"scheme": "poisson", "rate": exact_text(self.rate)}
        return record


@dataclass(frozen=True)
class Schedule:
    """Releases in any order, at least one; `fixed`: mechanisms and parameters were chosen before the first of them."""

    releases: tuple[ScheduledRelease, ...]
    fixed: bool = True

    def __post_init__(self) -> None:
        if not 1 <= len(self.releases) <= _LENGTH_MAX:
            raise RequestError(f"a schedule holds 1 to {_LENGTH_MAX:,} entries")

    @property
    def count(self) -> int:
        """How many releases there are, repetitions counted."""
        return sum(release.times for release in self.releases)

    @property
    def sampled(self) -> bool:
        """Whether any release is made on a sample."""
        return any(release.sampled for release in self.releases)

    @classmethod
    def of(cls, records: Iterable[object]) -> Schedule:
        """For every list of records, returns the schedule fixed in advance, or raises RequestError naming the entry."""
        releases = []
        for place, record in enumerate(records, 1):
            try:
                releases.append(ScheduledRelease.read(record))
            except RequestError as error:
                raise RequestError(f"entry {place}: {error}") from None
        return cls(tuple(releases))

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """For every JSON list of releases, or TOML with [[release]] tables, returns the schedule, or raises
        RequestError.

        Numbers are taken as they are written. Nothing is repaired: unknown keys, cut-off text, NaN are refused.
        """
        if text.lstrip()[:1] in ("[", "{") and not text.lstrip().startswith("[["):
            return cls.of(_json_list(text))
        try:
            tables = tomllib.loads(text, parse_float=str)
        except ValueError as error:
            raise RequestError(
                f"a schedule is a JSON list of releases, or TOML with [[release]] tables: {error}"
            ) from None
        if set(tables) != {"release"} or not isinstance(tables["release"], list):
            raise RequestError("a TOML schedule holds [[release]] tables and nothing else")
        return cls.of(tables["release"])

    def records(self) -> list[dict[str, object]]:
        """The releases as text; `of` reads them back."""
        return [release.record() for release in self.releases]

    def text(self) -> str:
        """The schedule as JSON; `parse` reads it back."""
        return json.dumps(self.records(), indent=1) + "\n"

    def plus(self, release: ScheduledRelease) -> Schedule:
        """For every `release` of times >= 1, returns the schedule with this entry more, or raises RequestError.

        Source: docs/mathematics.md, "Fixed in advance": the entry was chosen before the first release, too.
        """
        return replace(self, releases=(*self.releases, release))

    def with_scale(self, factor: Fraction) -> Schedule:
        """The schedule with `factor` > 0 times the noise in every release, or RequestError.

        Source: docs/mathematics.md, "Calibration".
        """
        scaled = tuple(replace(release, facts=release.facts.with_scale(factor)) for release in self.releases)
        return replace(self, releases=scaled)


def _rate(sampling: object) -> Fraction:
    if sampling is None:
        return Fraction(1)
    if not isinstance(sampling, Mapping) or set(sampling) != {"scheme", "rate"}:
        raise RequestError('sampling is a table such as {"scheme": "poisson", "rate": "0.01"}')
    if sampling["scheme"] != "poisson":
        raise RequestError(
            "sampling scheme: only poisson (each unit by a coin of its own) can be accounted for; fixed-size or "
            "shuffled batches and weighted samplers are different mechanisms"
        )
    return exact(sampling["rate"], "sampling rate")


def _json_list(text: str) -> list[object]:
    def refuse(constant: str) -> object:
        raise RequestError(f"a schedule holds finite numbers, not {constant}")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise RequestError("a release names a key twice")
        return dict(pairs)

    try:
        found = json.loads(text, parse_float=str, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"a schedule is a JSON list of releases: {error}") from None
    if not isinstance(found, list):
        raise RequestError("a schedule is a JSON list of releases")
    return found
