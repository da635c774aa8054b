"""A mean before it runs: the plans of its two parts, each a question of its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from parco.measure import Cost, decimal_text
from parco.queries.plan import Plan

__all__ = ["MeanPlan", "mean_text"]


@dataclass(frozen=True)
class MeanPlan:
    """What a mean would cost: the sum of distances from the middle of the bounds, and the count of the same rows.

    How wide its intervals will be is not known before: it depends on the count, which is private.
    """

    total: Plan
    count: Plan

    @property
    def parts(self) -> tuple[Plan, Plan]:
        """Both parts, as they would be charged."""
        return self.total, self.count

    @property
    def cost(self) -> Cost:
        """What both would be charged together."""
        return Cost(sum(part.cost.units for part in self.parts))

    @property
    def remaining(self) -> Fraction | None:
        """What the account would hold after both, where a session has told."""
        if self.total.remaining is None:
            return None
        return self.total.remaining - self.count.cost.value

    @property
    def repeat(self) -> bool:
        """Whether both are stored, and the mean free."""
        return all(part.repeat for part in self.parts)

    @property
    def fits(self) -> bool:
        """Whether the account holds what both would cost."""
        return self.remaining is None or self.remaining >= 0

    def record(self) -> dict[str, object]:
        """The plan as `parco release --dry-run --json` prints it; numbers as exact text."""
        return {
            "question": mean_text(self.count),
            "cost": str(self.cost),
            "remaining": None if self.remaining is None else decimal_text(self.remaining),
            "repeat": self.repeat,
            "fits": self.fits,
            "parts": [part.record() for part in self.parts],
        }

    def __str__(self) -> str:
        measure = self.total.query.contract.budget.measure
        lines = [f"{mean_text(self.count)}: costs {self.cost} of {measure}, in two parts"]
        if self.repeat:
            lines = [f"{mean_text(self.count)}: free, both parts are stored"]
        elif self.remaining is not None:
            lines[0] += f", leaves {decimal_text(self.remaining)}" if self.fits else "; it would be refused"
        for part in self.parts:
            price = "free, already stored" if part.repeat else f"costs {part.cost}"
            lines.append(f"  {part.query}: {price}, ± {decimal_text(part.half_width)} at {float(part.confidence):.6g}")
        return "\n".join(lines)


def mean_text(count: Plan) -> str:
    """The mean in a few words, after the question that counts its rows."""
    return f"mean{str(count.query).removeprefix('count')}"
