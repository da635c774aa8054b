"""Sets of whole numbers between a first and a last one: sorted intervals that neither overlap nor touch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Places"]


@dataclass(frozen=True)
class Places:
    """For every set of places from `first` to `last`, its only list of closed intervals; make one with `Places.of`."""

    first: int
    last: int
    intervals: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, first: int, last: int, intervals: Iterable[tuple[int, int]]) -> Places:
        """The union of these intervals, cut to what lies between first and last."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted((max(low, first), min(high, last)) for low, high in intervals):
            if low > high:
                continue
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(first, last, tuple(merged))

    @property
    def empty(self) -> bool:
        """Whether no place is in the set."""
        return not self.intervals

    @property
    def full(self) -> bool:
        """Whether all places are."""
        return self.intervals == ((self.first, self.last),)

    @property
    def complement(self) -> Places:
        """The places that are not in the set."""
        lows = [self.first, *(high + 1 for _, high in self.intervals)]
        highs = [*(low - 1 for low, _ in self.intervals), self.last]
        return Places.of(self.first, self.last, zip(lows, highs, strict=True))

    def __or__(self, other: Places) -> Places:
        return Places.of(self.first, self.last, (*self.intervals, *other.intervals))

    def __and__(self, other: Places) -> Places:
        return (self.complement | other.complement).complement
