"""The questions one can ask, with their options: the same for a session, which answers, and a planner, which prices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, TypedDict, TypeVar, Unpack

from parco.contract.fields import label
from parco.errors import QuestionError
from parco.measure import Exactable, exact
from parco.queries.plan import Spend

__all__ = [
    "JOINT",
    "Asked",
    "How",
    "Questions",
    "Shares",
    "bounds_cover",
    "bounds_parts",
    "joint_parts",
    "mean_parts",
    "quantile_parts",
    "variance_parts",
]

R = TypeVar("R")
M = TypeVar("M")
V = TypeVar("V")
Q = TypeVar("Q")
B = TypeVar("B")

Shares = Exactable | Sequence[Exactable]
"""At which shares of the rows quantiles are asked: one, or several."""

JOINT = ("mean", "variance", "quantile", "suggest_bounds")
"""Answers made of several releases."""

_COVER = Fraction(98, 100)


@dataclass(frozen=True)
class Asked:
    """One call of a question: what is asked, how it is paid, and whether a stored answer will do."""

    statistic: str
    column: str | None
    by: str | Sequence[str]
    spend: Spend
    fresh: bool
    key: str | None
    part: str | None = None
    period: str | Sequence[str] | None = None
    where: str | None = None
    centred: bool = False
    at: Fraction | None = None
    k: int | None = None


class How(TypedDict, total=False):
    """The options of every question; `Questions` says what each means."""

    by: str | Sequence[str]
    where: str | None
    cost: Exactable | None
    error: Exactable | None
    confidence: Exactable | None
    fresh: bool
    key: str | None
    part: str | None
    period: str | Sequence[str] | None
    delta: Exactable | None


class Questions(ABC, Generic[R, M, V, Q, B]):
    """The questions one can ask, each paid by `cost`, by `error` at `confidence`, or by the contract's default share.

    by: the name of one declared grouping, or a list of names. where: a condition on declared columns, such as
    "items >= 2 and channel = 'web'"; other rows do not count. cost: the most to spend, in the account's measure.
    error: the half-width that each cell's interval has to reach, in the statistic's units. confidence: the level of
    the intervals, 0.95 unless given. Numbers are exact: decimal text, p/q text, int, Fraction, or a float, which is
    taken by its shortest decimal text. fresh: pay again, even where an answer is stored. key: an idempotency key; the
    same key never pays twice. part: the declared part of the units to ask; without it all units are asked, and
    every part pays. period: the period or periods to ask, where the contract protects a unit in one period. delta: of
    a selection of keys, the most it may take of the contract's delta for mechanisms; the default share unless given.
    Each raises RequestError for what the contract does not allow, BudgetError for what the account does not hold (then
    nothing was charged), ForfeitedError after a failure behind the charge.
    """

    def count(self, of: str | None = None, **how: Unpack[How]) -> R:
        """The number of rows in each group, `of` a numeric column those with a value; a unit has at most `rows`."""
        return self.ask("count", of, **how)

    def count_units(self, **how: Unpack[How]) -> R:
        """The number of units that have at least one row in each group."""
        return self.ask("count_units", **how)

    def sum(self, column: str, **how: Unpack[How]) -> R:
        """The sum of a column in each group, each value clamped to the declared bounds and put on the lattice."""
        return self.ask("sum", column, **how)

    def count_distinct(self, column: str, **how: Unpack[How]) -> R:
        """The number of different values in each group; each unit brings at most `rows` of its own."""
        return self.ask("count_distinct", column, **how)

    def mean(self, column: str, *, split: Exactable | None = None, **how: Unpack[How]) -> M:
        """The mean of a column in each group: two stored parts, a noisy sum of distances from the middle and a count.

        `split` is the sum's share of the cost, a half unless given. The count is what `count(of=column)` asks, so that
        either is free once the other is stored. `error` is refused: the error depends on the private count.
        """
        return self._mean(self._read("sum", column, how), split)

    def variance(self, column: str, **how: Unpack[How]) -> V:
        """The variance of a column in each group (divisor: the number of rows), in three stored parts.

        Noisy sums of squared distances from the middle and of distances, and a noisy count, a third of the cost each;
        the mean and the count are free afterwards. `error` is refused: the error depends on the private count.
        """
        return self._variance(self._read("sum", column, how))

    def quantile(self, column: str, *, at: Shares, **how: Unpack[How]) -> Q:
        """The quantiles of a column in each group, at one or several shares of its rows: 0.5 is the median.

        Each is chosen among the values on the column's lattice by the exponential mechanism, at an equal part of the
        cost, and stored by itself. Its `error` is by how many rows the rank of what is chosen may miss.
        """
        return self._quantile(self._read("quantile", column, how), at)

    def histogram(self, bins: str, **how: Unpack[How]) -> R:
        """The number of rows in each of the declared bins: `count` grouped by them, and one question with it.

        `bins`: the name of bins, of a column with declared keys, or of a column that has bins of one kind.
        """
        return self.ask("histogram", bins, **how)

    def top(self, bins: str, *, k: int, **how: Unpack[How]) -> R:
        """Those `k` of the declared keys that have the most rows, in their order, drawn by the exponential mechanism.

        `bins`: the name of bins, of a column with declared keys, or of a column that has bins of one kind. Only keys
        are published. `error` is how many rows fewer a key that is named may have than one that is left out.
        """
        return self._ask(replace(self._read("top", bins, how), k=k))

    def select_keys(self, column: str, **how: Unpack[How]) -> R:
        """The keys of a column whose contract declares none, each with its noisy number of units.

        A unit stands behind at most `groups` of them. Published are those whose noisy number reaches a threshold: the
        least at which a key of one unit alone is published with a probability within `delta`, which is charged as well.
        """
        return self.ask("select_keys", column, **how)

    def suggest_bounds(self, column: str | None = None, *, cover: Exactable | None = None, **how: Unpack[How]) -> B:
        """Bounds for the next version of the contract: of a column, if one is named, and of what units contribute.

        Chosen are `lower` and `upper` of the column within those that are declared, the number of `rows` that units
        have in a group, and with `by` of `groups` in which they have some, so that a share `cover` of the rows and of
        the units is left as it is (0.98 unless given). Each is charged and stored by itself, at an equal part of the
        cost. Nothing is changed: write them into the contract and revise it. `error` is that of a quantile's rank.
        """
        return self._bounds(self._read("suggest_bounds", column, how), bounds_cover(cover))

    def ask(self, statistic: str, column: str | None = None, **how: Unpack[How]) -> R:
        """The question whose statistic is named by text: those above that are one release, or "sum_squares"."""
        return self._ask(self._read(statistic, column, how))

    def _read(self, statistic: str, column: str | None, how: How) -> Asked:
        if unknown := sorted(how.keys() - How.__annotations__.keys()):
            raise QuestionError(
                f"unknown option {', '.join(unknown)}: the options are {', '.join(How.__annotations__)}"
            )
        key, fresh = how.get("key"), how.get("fresh", False)
        if not isinstance(fresh, bool):
            raise QuestionError("fresh is True or False")
        paid = {name: how.get(name) for name in ("cost", "error", "confidence", "delta")}
        spend = Spend.of(**paid)  # type: ignore[arg-type]
        key = None if key is None else label(key, "key")
        return Asked(
            statistic,
            column,
            how.get("by", ()),
            spend,
            fresh,
            key,
            how.get("part"),
            how.get("period"),
            how.get("where"),
        )

    @abstractmethod
    def _ask(self, ask: Asked) -> R: ...

    @abstractmethod
    def _mean(self, ask: Asked, split: Exactable | None) -> M: ...

    @abstractmethod
    def _variance(self, ask: Asked) -> V: ...

    @abstractmethod
    def _quantile(self, ask: Asked, at: Shares) -> Q: ...

    @abstractmethod
    def _bounds(self, ask: Asked, cover: Fraction) -> B: ...


def joint_parts(
    statistic: str, ask: Asked, *, split: Exactable | None, at: Shares | None, cover: Exactable | None
) -> list[Asked]:
    """The questions that an answer of JOINT is made of."""
    if statistic == "suggest_bounds":
        return bounds_parts(ask, bounds_cover(cover))
    if statistic == "mean":
        return mean_parts(ask, split)
    if statistic == "variance":
        return variance_parts(ask)
    if at is None:
        raise QuestionError("a quantile is asked at shares of the rows, such as at=0.5 or at=[0.25, 0.5, 0.75]")
    return quantile_parts(ask, at)


def mean_parts(ask: Asked, split: Exactable | None) -> list[Asked]:
    """The two questions of a mean, and what each may cost: shares that add up to the whole exactly."""
    share = Fraction(1, 2) if split is None else exact(split, "split")
    if not 0 < share < 1:
        raise QuestionError("split is the sum's share of a mean's cost: above 0 and below 1")
    _check_no_error(ask, "a mean")
    # Each interval misses with half the probability that the mean's may.
    level = (1 + ask.spend.confidence) / 2
    spend = replace(ask.spend, share=share, confidence=level)
    return [
        replace(ask, statistic="sum", centred=True, spend=spend, key=_key(ask, "sum")),
        replace(ask, statistic="count", spend=replace(spend, share=1 - share, rest=True), key=_key(ask, "count")),
    ]


def variance_parts(ask: Asked) -> list[Asked]:
    """The three questions of a variance, a third of the cost each; the last takes what rounding leaves."""
    _check_no_error(ask, "a variance")
    level = 1 - (1 - ask.spend.confidence) / 3
    spend = replace(ask.spend, share=Fraction(1, 3), confidence=level)
    return [
        replace(ask, statistic="sum_squares", centred=True, spend=spend, key=_key(ask, "squares")),
        replace(ask, statistic="sum", centred=True, spend=spend, key=_key(ask, "sum")),
        replace(ask, statistic="count", spend=replace(spend, rest=True), key=_key(ask, "count")),
    ]


def quantile_parts(ask: Asked, at: Shares) -> list[Asked]:
    """One question for each share, rising, at an equal part of the cost each; the last takes what rounding leaves."""
    listed = [at] if isinstance(at, Exactable) else list(at) if isinstance(at, list | tuple) else []
    shares = sorted({exact(share, "at") for share in listed})
    if not shares or len(shares) < len(listed):
        raise QuestionError("at takes shares of the rows, each once, such as at=0.5 or at=[0.25, 0.5, 0.75]")
    each = Fraction(1, len(shares))
    return [
        replace(
            ask,
            at=share,
            spend=replace(ask.spend, share=each, rest=place == len(shares) and len(shares) > 1),
            key=_key(ask, f"at {share}"),
        )
        for place, share in enumerate(shares, start=1)
    ]


def bounds_cover(cover: Exactable | None) -> Fraction:
    """The share that bounds are to leave as it is, or QuestionError."""
    share = _COVER if cover is None else exact(cover, "cover")
    if not 0 < share < 1:
        raise QuestionError("cover is the share of rows and units that bounds leave as they are, such as 0.98")
    return share


def bounds_parts(ask: Asked, cover: Fraction) -> list[Asked]:
    """The questions of suggested bounds, at an equal part of the cost each; the last takes what rounding leaves."""
    tail, parts = (1 - cover) / 2, list[Asked]()
    if ask.column is not None:
        # A column has one pair of bounds, whatever it is grouped by.
        column = replace(ask, statistic="quantile", by=())
        parts = [replace(column, at=share, key=_key(ask, f"at {share}")) for share in (tail, 1 - tail)]
    units = replace(ask, column=None, at=cover)
    parts.append(replace(units, statistic="unit_rows", key=_key(ask, "rows")))
    if ask.by:
        parts.append(replace(units, statistic="unit_groups", key=_key(ask, "groups")))
    each = Fraction(1, len(parts))
    return [
        replace(part, spend=replace(ask.spend, share=each, rest=place == len(parts) and len(parts) > 1))
        for place, part in enumerate(parts, start=1)
    ]


def _key(ask: Asked, part: str) -> str | None:
    return None if ask.key is None else label(f"{ask.key}/{part}", "key")


def _check_no_error(ask: Asked, what: str) -> None:
    if ask.spend.error is not None:
        raise QuestionError(
            f"{what} takes no error: how wide its interval will be depends on the count, which is private. Name a cost,"
            " or ask for its parts with an error each"
        )
