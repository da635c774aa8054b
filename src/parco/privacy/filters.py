"""Filters and odometers: what may still be spent, and what was spent, when each step is chosen after seeing the last.

A filter has a cap and refuses the step that would pass it: then the cap is the bound, whatever is chosen and whenever
it stops. An odometer has no cap and says at any time what the run so far has cost; its orders, weights and delta are
fixed before the run. Both hold for steps whose mechanism and parameters depend on all that was released before, and
both keep the deltas that mechanisms spend themselves apart from the one that a conversion adds. The exact profile of a
running total is neither: an analyst who stops at the right moment breaks it (docs/mathematics.md, "Filters and
odometers"). Sources: basic composition (pure); Feldman & Zrnic 2021 and Whitehouse, Ramdas, Rogers & Wu 2023 (zcdp,
renyi); Smith & Thakurta 2022 and Koskela, Tobaben & Honkela 2023 (gdp); Raisa, Koskela & Honkela (arXiv 2509.22213) for
odometers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from parco.errors import BudgetError, RequestError
from parco.measure import COST_UNIT, DELTA_UNIT, UNITS_MAX, Measure, decimal_text
from parco.privacy import conversion, expost
from parco.privacy.expost import Bound, Weights

__all__ = ["Bound", "Filter", "Odometer"]


@dataclass(frozen=True)
class Filter:
    """For every sequence of steps chosen adaptively, admits those that fit the caps, or raises RequestError when made.

    `cap` and `spent` count 10^-15 of the `measure`, `delta_cap` and `delta_spent` 10^-18; 0 <= spent <= cap < 2^63, and
    the same for delta. Source: docs/mathematics.md, "Filters and odometers".
    """

    measure: Measure
    cap: int
    delta_cap: int = 0
    spent: int = 0
    delta_spent: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.spent <= self.cap <= UNITS_MAX and 0 <= self.delta_spent <= self.delta_cap <= UNITS_MAX):
            raise RequestError("what is spent lies between 0 and its cap, and a cap below 2^63 units")

    @property
    def remaining(self) -> int:
        """What is left of the cap, in 10^-15 of the measure."""
        return self.cap - self.spent

    @property
    def delta_remaining(self) -> int:
        """What is left of the mechanisms' delta, in 10^-18."""
        return self.delta_cap - self.delta_spent

    def admit(self, cost: int, *, delta: int = 0) -> Filter:
        """For every charge >= 0 that fits, returns the filter after it; raises BudgetError for one that does not.

        `cost` in 10^-15 of the measure, `delta` (the mechanism's own) in 10^-18, both rounded up by who charges.
        Nothing changes when it is refused; the error says what is left. Raises RequestError for a negative charge.
        Source: docs/mathematics.md, "Filters and odometers".
        """
        _check_charge(cost, delta)
        if cost > self.remaining:
            raise _no_room(cost, self.remaining, self.cap, COST_UNIT, str(self.measure))
        if delta > self.delta_remaining:
            raise _no_room(delta, self.delta_remaining, self.delta_cap, DELTA_UNIT, "delta")
        return replace(self, spent=self.spent + cost, delta_spent=self.delta_spent + delta)

    def bound(self, delta: Fraction) -> Bound:
        """For every conversion's `delta` in (0, 1) (unused for pure), returns what holds of any run, or RequestError.

        By the sharpest conversion of the cap, rounded up, at delta and the mechanisms' cap together; however the steps
        are chosen and whenever it stops. Source: `conversion.epsilon_upper`; docs/mathematics.md, "What may be
        claimed".
        """
        epsilon = conversion.epsilon_upper(self.measure, self.cap * COST_UNIT, delta)
        own = Fraction(0) if self.measure == Measure.PURE else delta
        return Bound(epsilon, own + self.delta_cap * DELTA_UNIT, self.measure.order)


@dataclass(frozen=True)
class Odometer:
    """For every sequence of steps chosen adaptively, says what it has cost so far, or raises RequestError when made.

    Fixed before the run: the `measure`; the conversion's `delta`; `weights`, pairs of a Renyi order > 1 and a weight >
    0, weights adding up to at most 1: the bound is the least over the orders, each at its weight of delta. renyi has
    its own order alone; pure has neither delta (0) nor weights. `spent` counts 10^-15 of the measure, `delta_spent`
    10^-18. Source: docs/mathematics.md, "Filters and odometers".
    """

    measure: Measure
    delta: Fraction
    weights: Weights
    spent: int = 0
    delta_spent: int = 0

    def __post_init__(self) -> None:
        _check_charge(self.spent, self.delta_spent)
        if self.measure == Measure.PURE:
            if self.delta or self.weights:
                raise RequestError("an odometer of the measure pure has delta 0 and no orders")
            return
        if not 0 < self.delta < 1:
            raise RequestError("delta lies strictly between 0 and 1")
        expost.check_weights(self.measure, self.weights)

    def admit(self, cost: int, *, delta: int = 0) -> Odometer:
        """For every charge >= 0, returns the odometer after it; raises RequestError for a negative one.

        `cost` in 10^-15 of the measure, `delta` (the mechanism's own) in 10^-18, both rounded up by who charges.
        Source: docs/mathematics.md, "Filters and odometers".
        """
        _check_charge(cost, delta)
        return replace(self, spent=self.spent + cost, delta_spent=self.delta_spent + delta)

    def hockey_stick(self) -> Bound:
        """Returns what holds of the run so far when it stops here, for every rule that reads released output only.

        For every set S of outcomes, P(S) <= integral over S of e^epsilon dQ + delta, epsilon being what this returns at
        the end of each outcome; rounded up. The mechanisms' deltas are added to delta. Survives post-processing that
        keeps the bound. Raises nothing: what could fail was checked when it was made. Source:
        `expost.hockey_stick_epsilon_upper`; docs/mathematics.md, "Filters and odometers".
        """
        return self._least(expost.hockey_stick_epsilon_upper)

    def probabilistic(self) -> Bound:
        """Returns a bound on the privacy loss at all times simultaneously, except with probability delta.

        Rounded up. Raises RequestError where a mechanism has spent a delta of its own: the loss then has no such bound.
        Source: `expost.probabilistic_epsilon_upper` (Ville 1939); docs/mathematics.md, "Filters and odometers".
        """
        if self.delta_spent:
            raise RequestError("a mechanism has spent a delta of its own: only the hockey-stick bound holds")
        return self._least(expost.probabilistic_epsilon_upper)

    def _least(self, convert: expost.Conversion) -> Bound:
        total, own = self.spent * COST_UNIT, self.delta_spent * DELTA_UNIT
        if self.measure == Measure.PURE:
            return Bound(total, own)
        least = expost.least_upper(self.measure, total, weights=self.weights, delta=self.delta, convert=convert)
        return replace(least, delta=least.delta + own)


def _check_charge(cost: int, delta: int) -> None:
    if cost < 0 or delta < 0:
        raise RequestError("a charge is not negative")


def _no_room(asked: int, left: int, cap: int, unit: Fraction, name: str) -> BudgetError:
    texts = {
        "asked": decimal_text(asked * unit),
        "remaining": decimal_text(left * unit),
        "cap": decimal_text(cap * unit),
    }
    text = f"this would be charged as {texts['asked']} {name}, and {texts['remaining']} of {texts['cap']} is left"
    return BudgetError(f"{text}; nothing was charged", measure=name, **texts)
