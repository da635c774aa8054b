"""How often the data were read, for what, and how often an answer was given without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parco.stores.records import HistoryRow

__all__ = ["Accesses", "kind_of"]

_KINDS = ("first", "fresh", "refinement")
_ENDED = ("settled", "forfeited")


def kind_of(row: HistoryRow) -> str | None:
    """What a request reads the data for: `first`, `fresh` (paid again in full) or `refinement`; None for another act.

    A question that is asked anew without `fresh` is a `first`: nothing was stored that would have served.
    """
    if row.mechanism is None:
        return None
    if row.parent is not None:
        return "refinement"
    return "fresh" if row.fresh else "first"


@dataclass(frozen=True)
class Accesses:
    """Answers by what the data were read for, readings that came to nothing, and repeats.

    `repeats` are those that were counted beside the ledger, which changes nothing and may lose some.
    """

    first: int = 0
    fresh: int = 0
    refinement: int = 0
    forfeited: int = 0
    repeats: int = 0

    @classmethod
    def of(cls, history: Iterable[HistoryRow], repeats: Mapping[int, int]) -> Accesses:
        """The counts of a ledger's history."""
        rows = [row for row in history if kind_of(row) is not None and row.state in _ENDED]
        settled = [kind_of(row) for row in rows if row.state == "settled"]
        counts = {kind: settled.count(kind) for kind in _KINDS}
        return cls(**counts, forfeited=len(rows) - len(settled), repeats=sum(repeats.values()))

    def record(self) -> dict[str, int]:
        """The counts as `parco budget --json` prints them."""
        return asdict(self)

    def __str__(self) -> str:
        read = self.first + self.fresh + self.refinement + self.forfeited
        return (
            f"The data were read for {read} charged requests: {self.first} first answers, {self.fresh} fresh ones (paid"
            f" again in full), {self.refinement} refinements (paid for by the difference), {self.forfeited} forfeited."
            f" {self.repeats} repeats of stored answers were counted; repeats and all that is computed from answers"
            " (post-processing) read no data, cost nothing and change no claim."
        )
