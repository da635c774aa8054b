"""The scores of a quantile's candidates, from the tally of one group: what the exponential mechanism chooses by.

Candidates are all values on the contract's lattice within the bounds, whatever the data. A candidate v stands for the
ranks from #{x < v} to #{x <= v}; its score is minus the distance of q n from them, and 0 is always reached. Between two
values of the data all candidates have one score, so that there are runs of candidates, however many there are of them.
Source: docs/mathematics.md, "Quantiles".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from parco.errors import InternalError

__all__ = ["Tally", "runs"]

Tally = dict[int, int]
"""How many rows of a group have each value, in lattice steps; a value without rows may be absent."""


def runs(tally: Mapping[int, int], *, at: Fraction, candidates: range) -> Iterator[tuple[Fraction, int]]:
    """For every tally of clamped values, yields score <= 0 and number of each run of candidates, from the lowest on.

    The numbers add up to all candidates; an empty tally is one run of score 0. Raises InternalError for a value that
    is no candidate.
    """
    present = sorted(value for value, count in tally.items() if count)
    if present and (present[0] < candidates[0] or present[-1] > candidates[-1]):
        raise InternalError("a value was counted that lies outside the bounds")
    target, below, next_candidate = at * sum(tally.values()), 0, candidates[0]
    for value in present:
        if value > next_candidate:
            yield _score(target, below, below), value - next_candidate
        yield _score(target, below, below + tally[value]), 1
        below, next_candidate = below + tally[value], value + 1
    if next_candidate <= candidates[-1]:
        yield _score(target, below, below), candidates[-1] + 1 - next_candidate


def _score(target: Fraction, low: int, high: int) -> Fraction:
    return -max(Fraction(0), low - target, target - high)
