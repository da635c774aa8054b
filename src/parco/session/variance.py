"""A variance made of three releases, and nothing else: post-processing, so that it costs what its parts did."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from parco.errors import InternalError
from parco.measure import decimal_text
from parco.queries.query import Query
from parco.session.mean import MeanRow
from parco.session.release import Answer, Cells, Release, joined

__all__ = ["VarianceAnswer", "variance_release"]

# The ratio is shown with this many more digits than the squared lattice has.
_MORE_DIGITS = 2


@dataclass(frozen=True)
class VarianceAnswer(Cells):
    """The variances of one question, divisor n, each between 0 and `most`, the largest that the bounds allow.

    A cell's variance is squares/count - (sum/count)^2 around the middle of the bounds, rounded to the nearest multiple
    of `step`, halves upwards, and clipped. Its interval holds that of every triple within the intervals of the three
    parts, each at a third of the error, rounded outwards: so it covers the exact variance of a cell that has rows with
    at least the stated confidence. Where the count's interval reaches 0 there is none: None, 0 and `most`.
    """

    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    squares: Answer
    sums: Answer
    counts: Answer
    most: Fraction
    step: Fraction
    confidence: Fraction

    @property
    def places(self) -> int:
        """The decimal places that variances and their largest value need."""
        return max(len(decimal_text(value).partition(".")[2]) for value in (self.step, self.most))

    def __iter__(self) -> Iterator[MeanRow]:
        parts = (self.squares, self.sums, self.counts)
        for keys, *steps in zip(self.labels, *(part.values for part in parts), strict=True):
            square, total, count = (part.lattice * step for part, step in zip(parts, steps, strict=True))
            yield self._row(keys, square, total, count)

    def _row(self, keys: tuple[str | int, ...], square: Fraction, total: Fraction, count: Fraction) -> MeanRow:
        reach = self.counts.half_width
        if count <= reach:
            return MeanRow(keys, None, Fraction(0), self.most)
        low, high = total - self.sums.half_width, total + self.sums.half_width
        nearest = max(Fraction(0), low, -high) ** 2
        farthest = max(-low, high) ** 2
        upper = _largest(square + self.squares.half_width, nearest, count - reach, count + reach)
        lower = _least(square - self.squares.half_width, farthest, count - reach, count + reach)
        value = math.floor(_at(square, total**2, count) / self.step + Fraction(1, 2))
        ends = (value, math.floor(lower / self.step), math.ceil(upper / self.step))
        middle, below, above = (min(max(end * self.step, Fraction(0)), self.most) for end in ends)
        return MeanRow(keys, middle, below, above)


def variance_release(
    query: Query, square: Release[Answer], total: Release[Answer], count: Release[Answer]
) -> Release[VarianceAnswer]:
    """The variance whose sum of squares is `query`, made of its three parts on the same cells."""
    parts, numeric = (square, total, count), query.contract.numeric(query.column or "")
    if len({(part.value.by, part.value.labels) for part in parts}) > 1 or numeric is None:
        raise InternalError("the parts of a variance do not belong together")
    answer = VarianceAnswer(
        by=square.value.by,
        labels=square.value.labels,
        squares=square.value,
        sums=total.value,
        counts=count.value,
        # Half of the rows at either bound (Popoviciu 1935).
        most=(numeric.upper - numeric.lower) ** 2 / 4,
        step=Fraction(1, 10 ** (len(decimal_text(query.step).partition(".")[2]) + _MORE_DIGITS)),
        confidence=3 * square.value.confidence - 2,
    )
    question = f"variance{count.receipt.question.removeprefix('count')}"
    return joined(answer, question, *parts)


def _at(square: Fraction, total_squared: Fraction, count: Fraction) -> Fraction:
    return square / count - total_squared / count**2


def _largest(square: Fraction, total_squared: Fraction, fewest: Fraction, most: Fraction) -> Fraction:
    """The largest variance over all counts between these: it rises up to 2 total^2/square and falls from there."""
    counts = [fewest, most]
    if square > 0:
        counts.append(min(max(2 * total_squared / square, fewest), most))
    return max(_at(square, total_squared, count) for count in counts)


def _least(square: Fraction, total_squared: Fraction, fewest: Fraction, most: Fraction) -> Fraction:
    """The least: what rises and then falls is least at an end, and so is what only rises."""
    return min(_at(square, total_squared, count) for count in (fewest, most))
