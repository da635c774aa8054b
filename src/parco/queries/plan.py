"""One release before it runs: its mechanism, what it costs, how wide its intervals will be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from parco.contract.contract import Contract
from parco.errors import QuestionError
from parco.measure import (
    COST_UNIT,
    DELTA_UNIT,
    Cost,
    Exactable,
    Measure,
    decimal_text,
    delta_units_floor,
    exact,
    exact_text,
    units_floor,
)
from parco.mechanisms import design
from parco.mechanisms.mechanism import Additive, Exponential, Mechanism
from parco.mechanisms.refinement import RefinedGaussian
from parco.mechanisms.selection import Selection, for_delta
from parco.mechanisms.stopping import StoppedGaussian
from parco.privacy.sensitivity import Sensitivity
from parco.queries.query import Query, Statistic
from parco.queries.sensitivity import sensitivity

__all__ = ["CONFIDENCE", "Also", "Plan", "Refines", "Spend"]

CONFIDENCE = Fraction(95, 100)
"""The level of intervals where the asker names none."""


@dataclass(frozen=True)
class Spend:
    """How a release is paid: by a ceiling on its cost, by the accuracy it must reach, or by the contract's share.

    One of several parts pays `share` of it, rounded down, or with `rest` what is left by a part that pays 1 - share.
    """

    cost: Fraction | None = None
    error: Fraction | None = None
    confidence: Fraction = CONFIDENCE
    share: Fraction = Fraction(1)
    rest: bool = False
    delta: Fraction | None = None
    """Of a selection of keys: the most it may take of the contract's delta for mechanisms, beside its cost."""

    @classmethod
    def of(
        cls,
        *,
        cost: Exactable | None = None,
        error: Exactable | None = None,
        confidence: Exactable | None = None,
        delta: Exactable | None = None,
    ) -> Spend:
        """For every pair with at most one of cost and error, returns it exactly, or raises QuestionError."""
        if cost is not None and error is not None:
            raise QuestionError("give cost or error, not both: one follows from the other")
        level = CONFIDENCE if confidence is None else exact(confidence, "confidence")
        if not 0 < level <= 1 - Fraction(1, 10**12):
            raise QuestionError("confidence lies above 0 and at most 1 - 1e-12, such as 0.95")
        amount = None if cost is None else _positive(cost, "cost")
        width = None if error is None else _positive(error, "error")
        return cls(amount, width, level, delta=None if delta is None else _positive(delta, "delta"))


@dataclass(frozen=True)
class Refines:
    """The stored answer that a release makes sharper: its request, its law, and what was drawn up to it, draw by draw.

    Of Gaussian noise all draws on its path, each in the steps of its own lattice; of geometric noise its cells.
    """

    request: int
    mechanism: Mechanism
    drawn: tuple[tuple[int, ...], ...] = field(repr=False)


@dataclass(frozen=True)
class Also:
    """What another account pays for a release on data derived from its own, and what it would hold afterwards."""

    account: str
    measure: Measure
    cost: Cost
    remaining: Fraction
    delta_remaining: Fraction

    @property
    def lefts(self) -> tuple[Fraction, Fraction]:
        """What would be left of its cap and of its delta, negative where it has no room."""
        return self.remaining, self.delta_remaining

    def record(self) -> dict[str, str]:
        """The same as exact text."""
        left = decimal_text(self.remaining)
        return {"account": self.account, "measure": str(self.measure), "cost": str(self.cost), "remaining": left}


@dataclass(frozen=True)
class Plan:
    """What one release would be; computed from contract and question, without data and without spending.

    `cost` is what it is charged, `half_width` the half-width of each cell's interval at `confidence`, both exact. Of a
    quantile it is by how many rows its rank may miss; of a top, how many rows fewer a key that it names may have than
    one that it leaves out.
    `remaining` is what the account would hold afterwards, negative where it does not fit, `delta_remaining` the same of
    its delta for mechanisms, and `repeat` says that the answer is already stored and free; a session fills them in.
    """

    query: Query
    version: str
    mechanism: Mechanism
    sensitivity: Sensitivity
    cost: Cost
    half_width: Fraction
    confidence: Fraction
    selection: Selection | None = None
    """Of a selection of keys, and of nothing else: its threshold, and the delta that is charged beside the cost."""
    remaining: Fraction | None = None
    delta_remaining: Fraction | None = None
    repeat: bool = False
    refines: Refines | None = None
    """The answer that it makes sharper; `cost` is then what that takes beyond what was paid, `mechanism` the law of
    what comes of it."""
    asker: str | None = None
    """Who asks, where a session says so."""
    also: tuple[Also, ...] = ()
    """What the accounts pay that a derived data set descends from; a session fills them in."""

    @classmethod
    def of(cls, query: Query, *, version: str, spend: Spend, asker: str | None = None) -> Plan:
        """For every question and spend, returns the plan that the contract's measure prescribes."""
        mechanism, distance = _designed(query, spend), sensitivity(query)
        cost = Cost(mechanism.cost_units(distance, query.contract.budget.measure))
        width = _half_width(query, mechanism, spend.confidence)
        plan = cls(query, version, mechanism, distance, cost, width, spend.confidence, asker=asker)
        if query.finds_keys:
            return replace(plan, selection=plan.selection_of(mechanism, units=_delta_units(query.contract, spend)))
        if spend.delta is not None:
            raise QuestionError("only a selection of keys takes a delta of its own: leave out delta")
        return plan

    def half_width_of(self, mechanism: Mechanism) -> Fraction:
        """What `half_width` would be under a mechanism for the same question."""
        return _half_width(self.query, mechanism, self.confidence)

    def selection_of(self, mechanism: Mechanism, *, units: int) -> Selection | None:
        """The selection by the noise of a mechanism at a delta of `units` (10^-18); None where no keys are selected."""
        if not self.query.finds_keys or not isinstance(mechanism, Additive):
            return None
        replaced = self.query.contract.unit.neighbours == "replace"
        return for_delta(mechanism, units=units, keys=self.query.groups, replace=replaced)

    def with_mechanism(self, mechanism: Mechanism) -> Plan:
        """The same question answered by another mechanism: what it costs then, and how near it is."""
        cost = Cost(mechanism.cost_units(self.sensitivity, self.query.contract.budget.measure))
        return replace(self, mechanism=mechanism, cost=cost, half_width=self.half_width_of(mechanism))

    def at_scale(self, scale: Exactable) -> Plan:
        """The same question answered with noise of this scale, in the statistic's units; QuestionError unless > 0."""
        family, exact_scale = type(self.mechanism), _positive(scale, "scale")
        if family is Exponential:
            return self.with_mechanism(Exponential(exact_scale, self.query.step))
        return self.with_mechanism(family(exact_scale, design.lattice_of(self.query.step, exact_scale)))

    @property
    def delta_units(self) -> int:
        """What it is charged of the account's delta for mechanisms, in 10^-18."""
        return 0 if self.selection is None or self.repeat else self.selection.delta_units

    @property
    def question(self) -> str:
        """The canonical text of the question this plan answers."""
        return self.query.question(self.version, asker=self.asker)

    def record(self) -> dict[str, object]:
        """The plan as `parco release --dry-run --json` prints it; numbers as exact text."""
        return {
            "question": str(self.query),
            "version": self.version,
            "cells": self.query.published,
            "measure": str(self.query.contract.budget.measure),
            "mechanism": self.mechanism.kind,
            "scale": exact_text(self.mechanism.scale),
            "lattice": exact_text(self.mechanism.lattice),
            "cost": str(self.cost),
            "half_width": decimal_text(self.half_width),
            "confidence": exact_text(self.confidence),
            "remaining": None if self.remaining is None else decimal_text(self.remaining),
            "repeat": self.repeat,
            "fits": self.fits,
            **({} if self.refines is None else {"refines": self.refines.request}),
            **({"also": [one.record() for one in self.also]} if self.also else {}),
            **({} if self.selection is None else self._record_of(self.selection)),
        }

    def _record_of(self, selection: Selection) -> dict[str, object]:
        left = self.delta_remaining
        return {
            "threshold": decimal_text(selection.threshold),
            "delta": decimal_text(self.delta_units * DELTA_UNIT),
            "delta_remaining": None if left is None else decimal_text(left),
        }

    @property
    def accuracy(self) -> str:
        """How near the answer will be, in words."""
        if self.query.statistic is Statistic.TOP:
            short = decimal_text(self.half_width)
            return f"at most {short} rows fewer than a key left out at {float(self.confidence):.6g}"
        rows = " rows of rank" if self.query.statistic is Statistic.QUANTILE else ""
        rows = " units of rank" if self.query.of_units else rows
        keys = "" if self.selection is None else f", keys from {decimal_text(self.selection.threshold)} units on"
        return f"± {decimal_text(self.half_width)}{rows} at {float(self.confidence):.6g}{keys}"

    @property
    def fits(self) -> bool:
        """Whether the account holds what it would cost, as far as a session has told what would remain."""
        lefts = (self.remaining, self.delta_remaining, *(left for one in self.also for left in one.lefts))
        return all(left is None or left >= 0 for left in lefts)

    def __str__(self) -> str:
        measure = self.query.contract.budget.measure
        if self.repeat:
            return f"{self.query}: free, already stored, {self.accuracy}"
        delta = f" and delta {decimal_text(self.delta_units * DELTA_UNIT)}" if self.selection is not None else ""
        more = "" if self.refines is None else f" more than release {self.refines.request} did"
        price = f"{self.query}: costs {self.cost} of {measure}{delta}{more}, {self.accuracy}"
        for one in self.also:
            price += f", and {one.cost} of {one.measure} on {one.account!r}"
        if self.remaining is None:
            return price
        if self.delta_remaining is not None and self.delta_remaining < 0:
            left = decimal_text(self.delta_remaining + self.delta_units * DELTA_UNIT)
            return f"{price}; it would be refused: only delta {left} is left"
        if self.remaining < 0:
            return f"{price}; it would be refused: only {decimal_text(self.remaining + self.cost.value)} is left"
        if not self.fits:
            short = next(one for one in self.also if min(one.lefts) < 0)
            return f"{price}; it would be refused: {short.account!r}, from which the data are derived, has no room"
        return f"{price}, leaves {decimal_text(self.remaining)}"


def _designed(query: Query, spend: Spend) -> Mechanism:
    """The mechanism that the contract's measure prescribes for a question and what may be spent on it."""
    measure, distance, step = query.contract.budget.measure, sensitivity(query), query.step
    if query.statistic in (Statistic.QUANTILE, Statistic.TOP) or query.of_units:
        if spend.error is None:
            return design.choice_for_cost(measure, distance, step=step, units=_units(query.contract, spend))
        wanted = {"error": spend.error, "confidence": _of_each(query, spend.confidence)}
        return design.choice_for_error(measure, distance, step=step, candidates=len(query.candidates), **wanted)
    if spend.error is None:
        return design.for_cost(measure, distance, step=step, units=_units(query.contract, spend))
    return design.for_error(measure, distance, step=step, error=spend.error, confidence=spend.confidence)


def _half_width(query: Query, mechanism: Mechanism, confidence: Fraction) -> Fraction:
    match mechanism:
        case Exponential():
            return mechanism.score_lost(_of_each(query, confidence), candidates=len(query.candidates))
        case Additive() | RefinedGaussian() | StoppedGaussian():
            return mechanism.half_width(confidence)
    raise AssertionError("a mechanism that is neither noise nor a choice")


def _of_each(query: Query, confidence: Fraction) -> Fraction:
    """The confidence of each choice with which all choices of one answer have `confidence` together."""
    return 1 - (1 - confidence) / (query.k or 1)


def _units(contract: Contract, spend: Spend) -> int:
    """The ceiling in 10^-15, rounded down: what the user asks, or the contract's share of the cap."""
    budget = contract.budget
    if spend.cost is None:
        whole = units_floor(budget.default_share * budget.cap_units * COST_UNIT)
    elif (whole := units_floor(spend.cost)) == 0:
        raise QuestionError("the cost asked is below 1e-15, the least an account can count: ask for more")
    units = whole - int((1 - spend.share) * whole) if spend.rest else int(spend.share * whole)
    if units == 0 and spend.share < 1:
        raise QuestionError(
            f"a part's share of the cost, {spend.share} of {whole} times 1e-15, is nothing: ask for more"
        )
    return units


def _delta_units(contract: Contract, spend: Spend) -> int:
    """The ceiling in 10^-18, rounded down: what the user asks, or the contract's share of its delta for mechanisms."""
    budget = contract.budget
    if spend.delta is None:
        units = int(budget.default_share * budget.delta_cap_units)
    else:
        units = delta_units_floor(spend.delta)
    if units == 0:
        raise QuestionError("the delta of a selection is below 1e-18, the least an account can count: ask for more")
    return units


def _positive(value: Exactable, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise QuestionError(f"{name} must be above 0")
    return number
