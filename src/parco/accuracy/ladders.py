"""Ladders: which costs are tried, one after the other. The number of steps is known before the first.

A cost is what the statistic costs *in all* once the step is done: a ladder 1, 2, 4 spends 4 at its end and not 7. The
next cost may depend on released values and on nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from parco.errors import RequestError
from parco.measure import COST_UNIT, Exactable, exact, units_floor

__all__ = ["Explicit", "Geometric", "Ladder", "Predictive"]

_STEPS_MAX = 1000


class Ladder(ABC):
    """For every cap, a number of steps and their costs; all in 10^-15 of the account's measure."""

    predicts = False
    """Whether the next cost is computed from how far the last estimates are from being good enough."""

    @property
    @abstractmethod
    def top(self) -> int | None:
        """The largest cost it would try without a cap, or None where only a cap ends it."""

    @abstractmethod
    def steps(self, most: int) -> int:
        """How many steps it has at most under the cap `most` > 0."""

    @abstractmethod
    def cost(self, step: int, *, at: int, need: Fraction | None, most: int) -> int:
        """The cost of step 1, 2, ...: above `at`, that of the step before, and at most `most` > `at`.

        `need`: the factor by which costs would have to grow if the last estimates were the truth, None where nobody
        can tell; without effect unless the ladder predicts.
        """

    def cap(self, at_most: Exactable | None) -> int:
        """The cap in force: `at_most` rounded down, or the ladder's own top; RequestError where there is neither."""
        if at_most is None:
            if self.top is None:
                raise RequestError("this ladder ends nowhere by itself: say at_most=")
            return self.top
        most = units_floor(exact(at_most, "at_most"))
        if most < 1:
            raise RequestError("at_most is a positive cost")
        return most if self.top is None else min(most, self.top)


@dataclass(frozen=True)
class Explicit(Ladder):
    """The costs that are listed, rising."""

    costs: tuple[Exactable, ...]
    _units: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        units = tuple(_units(cost) for cost in self.costs)
        if not units or any(after <= before for before, after in pairwise(units)):
            raise RequestError("a ladder has one cost or more, each above the one before")
        object.__setattr__(self, "_units", units)

    @property
    def top(self) -> int:
        """The last of them."""
        return self._units[-1]

    def steps(self, most: int) -> int:
        """Up to the first that reaches the cap."""
        return sum(cost < most for cost in self._units[:-1]) + 1

    def cost(self, step: int, *, at: int, need: Fraction | None, most: int) -> int:
        """As listed, and the cap in place of more."""
        del at, need
        return min(self._units[step - 1], most)


@dataclass(frozen=True)
class Geometric(Ladder):
    """Costs that begin with `first` and grow by the factor `ratio` > 1 at each step; without `count`, up to the cap.

    What was spent at the stop is less than `ratio` times what would have sufficed, but for the noise in the estimates.
    """

    first: Exactable
    ratio: Exactable = 2
    count: int | None = None

    def __post_init__(self) -> None:
        _units(self.first)
        if exact(self.ratio, "ratio") <= 1:
            raise RequestError("the ratio of a ladder is above 1")
        if self.count is not None and not 1 <= self.count <= _STEPS_MAX:
            raise RequestError(f"a ladder has between 1 and {_STEPS_MAX} steps")

    @property
    def top(self) -> int | None:
        """The last of `count` costs."""
        return None if self.count is None else self._at(self.count)

    def steps(self, most: int) -> int:
        """Up to the first that reaches the cap."""
        step = 1
        while self._at(step) < most:
            step += 1
            if step > _STEPS_MAX:
                raise RequestError(f"this ladder needs more than {_STEPS_MAX} steps: take a larger ratio or first cost")
        return step

    def cost(self, step: int, *, at: int, need: Fraction | None, most: int) -> int:
        """The cost of this step, and the cap in place of more."""
        del need
        return min(max(self._at(step), at + 1), most)

    def _at(self, step: int) -> int:
        return units_floor(exact(self.first, "first") * exact(self.ratio, "ratio") ** (step - 1))


@dataclass(frozen=True)
class Predictive(Ladder):
    """Costs that begin with `first`, each chosen from released values so that one more step probably suffices.

    As long as released values do not tell, or tell of a long way, the cost grows by the factor that would reach the cap
    in the steps that are left. Few steps: so each interval may have more of the confidence than on a long ladder.
    """

    first: Exactable
    count: int = 5

    predicts = True

    def __post_init__(self) -> None:
        _units(self.first)
        if not 1 <= self.count <= _STEPS_MAX:
            raise RequestError(f"a ladder has between 1 and {_STEPS_MAX} steps")

    @property
    def top(self) -> None:
        """None: only the cap ends it."""

    def steps(self, most: int) -> int:
        """`count`, or one where the first cost reaches the cap."""
        return 1 if _units(self.first) >= most else self.count

    def cost(self, step: int, *, at: int, need: Fraction | None, most: int) -> int:
        """What is needed, but at most the even way to the cap and at least a twentieth more than before."""
        if step == 1:
            return min(most if self.count == 1 else _units(self.first), most)
        left = self.count - step + 1
        # A cost is public: that the root is a double harms nothing. The last step may go all the way.
        even = Fraction((most / at) ** (1 / left)) if left > 1 else Fraction(most, at)
        factor = even if need is None else min(even, max(need, _GROWTH_MIN))
        return max(at + 1, min(most, math.ceil(at * factor)))


_GROWTH_MIN = Fraction(21, 20)


def _units(cost: Exactable) -> int:
    units = units_floor(exact(cost, "cost"))
    if units < 1:
        raise RequestError(f"a step of a ladder costs at least {float(COST_UNIT):g}")
    return units
