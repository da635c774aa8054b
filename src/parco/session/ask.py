"""One of several questions that are released together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parco.measure import Exactable

__all__ = ["Ask"]


@dataclass(frozen=True)
class Ask:
    """A question for `Session.release([...])`: what the methods of a session take, as one record.

    `statistic` is "count", "count_units", "sum", "sum_squares", "count_distinct", "histogram", "top", "select_keys",
    "mean", "variance", "quantile" or "suggest_bounds"; `split` is a mean's alone, `at` a quantile's, `k` a top's,
    `delta` that of a selection of keys, `cover` that of suggested bounds. `key` is an idempotency key.
    """

    statistic: str
    column: str | None = None
    by: str | Sequence[str] = ()
    where: str | None = None
    cost: Exactable | None = None
    error: Exactable | None = None
    confidence: Exactable | None = None
    split: Exactable | None = None
    at: Exactable | Sequence[Exactable] | None = None
    fresh: bool = False
    part: str | None = None
    period: str | Sequence[str] | None = None
    delta: Exactable | None = None
    k: int | None = None
    cover: Exactable | None = None
    key: str | None = None
