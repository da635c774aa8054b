"""Quantiles: several releases of one value a group each, shown as one answer; and those read off a noisy histogram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from parco.errors import InternalError, QuestionError
from parco.measure import Exactable, exact, exact_text, significant_text
from parco.session.release import Answer, Cells, Release, joined

__all__ = ["BinRow", "QuantileAnswer", "QuantileRow", "histogram_quantiles", "quantile_release"]


@dataclass(frozen=True)
class QuantileRow:
    """One quantile of one group; no interval of values follows from what was released, so that both ends are None."""

    keys: tuple[str | int, ...]
    value: Fraction
    lower: None = None
    upper: None = None


@dataclass(frozen=True)
class QuantileAnswer(Cells):
    """The quantiles of one question, each on the lattice within the declared bounds; the last of `by` is the share.

    `parts`: the answer at each of the shares `at`, rising. Each is drawn for itself, so that two of them may be the
    wrong way round: to sort them is post-processing. A value's rank misses its target by at most `rank_error` rows with
    probability `confidence` or more, for each alone; in a group without rows any candidate is as good.
    """

    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    at: tuple[Fraction, ...]
    parts: tuple[Answer, ...]
    confidence: Fraction

    @property
    def places(self) -> int:
        """The lattice's decimal places."""
        return self.parts[0].places

    @property
    def rank_error(self) -> Fraction:
        """By how many rows a rank may miss its target: the largest of all shares."""
        return max(part.half_width for part in self.parts)

    @property
    def promise(self) -> str:
        """What holds with which probability, in words."""
        rows, level = significant_text(self.rank_error, 4, up=True), f"{float(self.confidence):.6g}"
        return f"Each rank is within {rows} rows of its target, after bounding, with probability {level} or more."

    def __iter__(self) -> Iterator[QuantileRow]:
        labels = iter(self.labels)
        for steps in zip(*(part.values for part in self.parts), strict=True):
            for step in steps:
                yield QuantileRow(next(labels), step * self.parts[0].lattice)


def quantile_release(at: Sequence[Fraction], parts: Sequence[Release[Answer]]) -> Release[QuantileAnswer]:
    """The quantiles at rising shares, made of a release of each on the same groups."""
    first = parts[0].value
    if len({(part.value.by, part.value.labels) for part in parts}) > 1 or len(at) != len(parts):
        raise InternalError("the parts of a quantile do not belong together")
    shares = [exact_text(share) for share in at]
    answer = QuantileAnswer(
        by=(*first.by, "at"),
        labels=tuple((*keys, share) for keys in first.labels for share in shares),
        at=tuple(at),
        parts=tuple(part.value for part in parts),
        confidence=first.confidence,
    )
    question = parts[0].receipt.question.replace(f" at {shares[0]}", f" at {', '.join(shares)}", 1)
    return joined(answer, question, *parts)


@dataclass(frozen=True)
class BinRow:
    """The bin in which a quantile lies, by a noisy histogram; None where the noisy counts add up to nothing."""

    keys: tuple[str | int, ...]
    at: Fraction
    bin: str | int | None


def histogram_quantiles(
    release: Release[Answer], *, bins: str, at: Exactable | Sequence[Exactable]
) -> Release[tuple[BinRow, ...]]:
    """For every release of counts by `bins`, returns the bin of each quantile in each group, or raises QuestionError.

    Free: it is post-processing of what was released. The first bin with which the noisy counts, added up in the order
    of the bins, reach the share `at` of their total; so it never falls where `at` rises.
    """
    if bins not in release.value.by:
        there = ", ".join(release.value.by) or "nothing"
        raise QuestionError(f"the release is not grouped by {bins}; it is by {there}")
    shares = [exact(share, "at") for share in ([at] if isinstance(at, Exactable) else at)]
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise QuestionError("at takes shares of the rows between 0 and 1, such as at=0.5")
    return release.map(lambda answer: tuple(_bin_rows(answer, answer.by.index(bins), shares)))


def _bin_rows(answer: Answer, place: int, shares: Sequence[Fraction]) -> Iterator[BinRow]:
    groups: dict[tuple[str | int, ...], list[tuple[str | int, int]]] = {}
    for keys, steps in zip(answer.labels, answer.values, strict=True):
        groups.setdefault((*keys[:place], *keys[place + 1 :]), []).append((keys[place], steps))
    for keys, counts in groups.items():
        total = sum(steps for _, steps in counts)
        for share in shares:
            yield BinRow(keys, share, _reached(counts, share * total) if total > 0 else None)


def _reached(counts: Sequence[tuple[str | int, int]], target: Fraction) -> str | int:
    added = 0
    for key, steps in counts:
        added += steps
        if added >= target:
            return key
    raise InternalError("noisy counts do not reach their own total")
