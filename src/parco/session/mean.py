"""A mean made of two releases, and nothing else: post-processing, so that it costs what its parts did."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from parco.errors import InternalError
from parco.measure import decimal_text
from parco.queries.query import Query
from parco.session.release import Answer, Cells, Release, joined

__all__ = ["MeanAnswer", "MeanRow", "mean_release"]

# The ratio is shown with this many more digits than the column's lattice has.
_MORE_DIGITS = 2


@dataclass(frozen=True)
class MeanRow:
    """One cell: its mean or variance, None where none can be told, and the interval that covers the exact one."""

    keys: tuple[str | int, ...]
    value: Fraction | None
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class MeanAnswer(Cells):
    """The means of one question, each between the declared bounds `lower` and `upper`.

    A cell's mean is centre + sum/count, rounded to the nearest multiple of `step`, halves upwards, and clipped to the
    bounds. Its interval holds every ratio of a sum and a count within the intervals of both parts, rounded outwards:
    Fieller's set with each part at half the error, so that it covers the exact mean of a cell that has rows with at
    least the stated confidence. Where the count's interval reaches 0 there is no mean: None, and the bounds.
    """

    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    sums: Answer
    counts: Answer
    centre: Fraction
    lower: Fraction
    upper: Fraction
    step: Fraction
    confidence: Fraction

    @property
    def places(self) -> int:
        """The decimal places to which means are rounded."""
        return len(decimal_text(self.step).partition(".")[2])

    def __iter__(self) -> Iterator[MeanRow]:
        for keys, total, count in zip(self.labels, self.sums.values, self.counts.values, strict=True):
            yield self._row(keys, total * self.sums.lattice, count * self.counts.lattice)

    def _row(self, keys: tuple[str | int, ...], total: Fraction, count: Fraction) -> MeanRow:
        width, reach = self.sums.half_width, self.counts.half_width
        if count <= reach:
            return MeanRow(keys, None, self.lower, self.upper)
        low, high = total - width, total + width
        lower = low / (count + reach if low >= 0 else count - reach)
        upper = high / (count - reach if high >= 0 else count + reach)
        value = math.floor(total / count / self.step + Fraction(1, 2))
        ends = (value, math.floor(lower / self.step), math.ceil(upper / self.step))
        middle, below, above = (self._clipped(self.centre + end * self.step) for end in ends)
        return MeanRow(keys, middle, below, above)

    def _clipped(self, value: Fraction) -> Fraction:
        return min(max(value, self.lower), self.upper)


def mean_release(query: Query, total: Release[Answer], count: Release[Answer]) -> Release[MeanAnswer]:
    """The mean whose sum is `query`, made of its two parts on the same cells, with a receipt of both."""
    sums, counts, numeric = total.value, count.value, query.contract.numeric(query.column or "")
    if (sums.by, sums.labels) != (counts.by, counts.labels) or numeric is None:
        raise InternalError("the parts of a mean do not belong together")
    answer = MeanAnswer(
        by=sums.by,
        labels=sums.labels,
        sums=sums,
        counts=counts,
        centre=query.centre,
        lower=numeric.lower,
        upper=numeric.upper,
        step=_step(numeric.lattice),
        confidence=2 * sums.confidence - 1,
    )
    question = f"mean{count.receipt.question.removeprefix('count')}"
    return joined(answer, question, total, count)


def _step(lattice: Fraction) -> Fraction:
    """A power of ten that divides the lattice, and two digits more."""
    places = len(decimal_text(lattice).partition(".")[2])
    return Fraction(1, 10 ** (places + _MORE_DIGITS))
