"""What one unit can have lost in all, by every release so far: the figure that periods and parts must not hide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parco.contract.contract import Contract
from parco.measure import Cost, Measure

if TYPE_CHECKING:
    from parco.stores.records import AccountRow

__all__ = ["Lifetime", "lifetime_of"]


@dataclass(frozen=True)
class Lifetime:
    """A data set's lifetime loss: `lost` of `measure`, what is reserved included; `scope` says of what it is the sum.

    It is about this data set alone: somebody whose rows are in others, too, loses what is lost there besides.
    """

    dataset: str
    unit: str
    measure: Measure
    lost: Cost
    scope: str

    def record(self) -> dict[str, str]:
        """The same as text."""
        facts = {"account": self.dataset, "unit": self.unit, "measure": str(self.measure)}
        return {**facts, "lost": str(self.lost), "scope": self.scope}

    def __str__(self) -> str:
        return f"Lifetime loss: one {self.unit} lost at most {self.lost} of {self.measure} so far, {self.scope}."


def lifetime_of(contract: Contract, accounts: Sequence[AccountRow]) -> Lifetime:
    """What one unit of a contract's data set can have lost by all that its accounts have spent or reserved.

    A unit is in one part, so of parts the largest counts; it may be in every period, so that periods add up.
    """
    used, period = [row.spent + row.reserved for row in accounts], contract.unit.period
    lost = max(used) if period is None else sum(used)
    scope = "by all releases" if contract.parts is None else "by all releases on its part"
    if period is not None:
        scope = f"by all releases, if in every {period}"
    return Lifetime(contract.data.name, contract.unit.column, contract.budget.measure, Cost(lost), scope)
