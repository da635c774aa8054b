"""Ex-post privacy of a mechanism with few outcomes, exactly: what a merging of outcomes does to each definition.

For examples, and for comparison with definitions that are not certified here. Every outcome comes with a bound, given
as its odds e^bound so that all numbers stay rational. Source: docs/mathematics.md, "What does not survive".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from parco.errors import RequestError

__all__ = ["Outcome", "beyond_bound", "merged", "slack"]


@dataclass(frozen=True)
class Outcome:
    """An outcome of chance `first` on one data set and `second` on its neighbour, 0 to 1, with `odds` e^bound >= 1.

    Raises RequestError for other numbers.
    """

    first: Fraction
    second: Fraction
    odds: Fraction

    def __post_init__(self) -> None:
        if not (0 <= self.first <= 1 and 0 <= self.second <= 1 and self.odds >= 1):
            raise RequestError("chances lie between 0 and 1, and odds are 1 or more")


def beyond_bound(outcomes: Iterable[Outcome]) -> Fraction:
    """For every mechanism, returns the chance that its loss exceeds its own bound, in [0, 1]: for comparison only.

    The least delta of delta-probabilistic ex-post privacy for these `outcomes`. Raises nothing. Source:
    docs/mathematics.md, "What does not survive".
    """
    return sum((one.first for one in outcomes if one.first > one.odds * one.second), Fraction(0))


def slack(outcomes: Iterable[Outcome]) -> Fraction:
    """For every mechanism, returns the least delta with P(S) <= integral over S of e^bound dQ + delta, in [0, 1].

    Over all sets S of `outcomes`. Raises nothing. Source: docs/mathematics.md, "Ex-post conversions".
    """
    return sum((max(one.first - one.odds * one.second, Fraction(0)) for one in outcomes), Fraction(0))


def merged(outcomes: Sequence[Outcome], groups: Iterable[Iterable[int]]) -> tuple[Outcome, ...]:
    """For every division of the `outcomes` into `groups` of places >= 0, returns what is left when each is one.

    Raises RequestError for groups that leave out a place or name one twice, and where the odds within a group differ:
    the bound is part of the output, and a map that lost it would be no post-processing. Source: docs/mathematics.md,
    "Ex-post bounds".
    """
    members = [list(group) for group in groups]
    if sorted(place for group in members for place in group) != list(range(len(outcomes))) or [] in members:
        raise RequestError("every outcome is in one group, and no group is empty")
    found = [[outcomes[place] for place in group] for group in members]
    if any(len({one.odds for one in group}) != 1 for group in found):
        raise RequestError("outcomes with different bounds stay apart: the bound is part of the output")
    return tuple(
        Outcome(
            sum((one.first for one in group), Fraction(0)),
            sum((one.second for one in group), Fraction(0)),
            group[0].odds,
        )
        for group in found
    )
