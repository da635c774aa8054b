"""What is made of several releases, before it runs: the plans of its parts, each a question of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from parco.measure import Cost, decimal_text, exact_text
from parco.queries.plan import Plan
from parco.queries.query import Query

__all__ = ["BoundsPlan", "JointPlan", "MeanPlan", "QuantilePlan", "VariancePlan", "bounds_question"]


class JointPlan(ABC):
    """What an answer made of several releases would cost."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Plan, ...]:
        """The parts, as they would be charged."""

    @property
    @abstractmethod
    def question(self) -> str:
        """The question in a few words."""

    @property
    def cost(self) -> Cost:
        """What all would be charged together."""
        return Cost(sum(part.cost.units for part in self.parts))

    @property
    def remaining(self) -> Fraction | None:
        """What the account would hold after all, where a session has told."""
        first, *others = self.parts
        return None if first.remaining is None else first.remaining - sum(part.cost.value for part in others)

    @property
    def repeat(self) -> bool:
        """Whether all are stored, and the answer free."""
        return all(part.repeat for part in self.parts)

    @property
    def fits(self) -> bool:
        """Whether the account, and those that its data descend from, hold what all would cost."""
        others = dict[str, Fraction]()
        for part in self.parts:
            for one in part.also:
                others[one.account] = others.get(one.account, one.remaining + one.cost.value) - one.cost.value
        return all(left >= 0 for left in others.values()) and (self.remaining is None or self.remaining >= 0)

    def record(self) -> dict[str, object]:
        """The plan as `parco release --dry-run --json` prints it; numbers as exact text."""
        return {
            "question": self.question,
            "cost": str(self.cost),
            "remaining": None if self.remaining is None else decimal_text(self.remaining),
            "repeat": self.repeat,
            "fits": self.fits,
            "parts": [part.record() for part in self.parts],
        }

    def __str__(self) -> str:
        measure, count = self.parts[0].query.contract.budget.measure, len(self.parts)
        parts = f"{_WORDS.get(count, count)} part{'s' if count > 1 else ''}"
        lines = [f"{self.question}: costs {self.cost} of {measure}, in {parts}"]
        if self.repeat:
            stored = {1: "stored", 2: "both parts are stored"}.get(count, "all parts are stored")
            lines = [f"{self.question}: free, {stored}"]
        elif self.remaining is not None:
            lines[0] += f", leaves {decimal_text(self.remaining)}" if self.fits else "; it would be refused"
        for part in self.parts:
            price = "free, already stored" if part.repeat else f"costs {part.cost}"
            lines.append(f"  {part.query}: {price}, {part.accuracy}")
        return "\n".join(lines)


_WORDS = {1: "one", 2: "two", 3: "three", 4: "four"}


@dataclass(frozen=True)
class MeanPlan(JointPlan):
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
    def question(self) -> str:
        """The question in a few words, after the one that counts its rows."""
        return f"mean{str(self.count.query).removeprefix('count')}"


@dataclass(frozen=True)
class VariancePlan(JointPlan):
    """What a variance would cost: the sums of squared distances from the middle and of distances, and the count."""

    squares: Plan
    total: Plan
    count: Plan

    @property
    def parts(self) -> tuple[Plan, Plan, Plan]:
        """The three parts, as they would be charged."""
        return self.squares, self.total, self.count

    @property
    def question(self) -> str:
        """The question in a few words, after the one that counts its rows."""
        return f"variance{str(self.count.query).removeprefix('count')}"


@dataclass(frozen=True)
class _Several(JointPlan):
    """As many parts as are asked for, alike."""

    each: tuple[Plan, ...]

    @property
    def parts(self) -> tuple[Plan, ...]:
        """The plan of each."""
        return self.each


@dataclass(frozen=True)
class QuantilePlan(_Several):
    """What quantiles would cost: one choice a group at each share, `each` of them a part."""

    @property
    def question(self) -> str:
        """The question in a few words."""
        first, *others = (exact_text(part.query.at or Fraction(0)) for part in self.each)
        return str(self.each[0].query).replace(f" at {first}", f" at {', '.join((first, *others))}", 1)


@dataclass(frozen=True)
class BoundsPlan(_Several):
    """What suggested bounds would cost: a choice for each of them, `each` a line of its own in the ledger."""

    @property
    def question(self) -> str:
        """The question in a few words."""
        return bounds_question([plan.query for plan in self.each])


def bounds_question(queries: Sequence[Query]) -> str:
    """Suggested bounds in a few words, from the questions they are made of."""
    column, by = queries[0].column, queries[-1].by
    return " ".join(["suggest_bounds", *([column] if column else []), *(["by", ", ".join(by)] if by else [])])
