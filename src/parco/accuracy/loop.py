"""The loop: climb a ladder until what was released is good enough, or the cap is reached."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from parco.accuracy.bands import Adaptive, Band, PerStep
from parco.accuracy.checked import Checked
from parco.accuracy.ladders import Ladder
from parco.accuracy.measurement import Measurement, Released
from parco.accuracy.rules import Predicate, Rule, View, rule_of
from parco.accuracy.validation import Desk, Outcome, Validation
from parco.errors import BudgetError, RequestError
from parco.measure import Cost, Exactable, Measure, exact

__all__ = ["Stopped", "refine_until"]

DOUBT, DOUBT_LAST = Fraction(1, 6), Fraction(1)
"""In half-widths: by how much an estimate may mislead the next step, and the last one."""


@dataclass(frozen=True)
class Stopped:
    """What a run has published: a view of each step, and which cells are good enough, by the last of them.

    Not to reach it is an ordinary result. `cap`: the most that the run could have cost; `out_of_budget`: the account
    held less, and refused a further step.
    """

    views: tuple[View, ...]
    reached: tuple[bool, ...]
    cap: Cost
    out_of_budget: bool = False
    validation: Outcome | None = None
    """Of a run that was stopped by checks on a private part: what they came to, and what all of it cost."""

    @property
    def last(self) -> View:
        """Estimates and intervals at the stop."""
        return self.views[-1]

    @property
    def cost(self) -> Cost:
        """What the steps that ran were charged in all."""
        return Cost(self.last.charged)

    @property
    def enough(self) -> bool:
        """Whether every cell is good enough."""
        return all(self.reached)

    def __str__(self) -> str:
        """In words: whether it was reached, by how many steps, at what cost, and what the intervals mean."""
        end = (
            "Good enough"
            if self.enough
            else f"Not yet good enough in {self.reached.count(False)} of {len(self.reached)} cells"
        )
        why = "; the account held no further step" if self.out_of_budget else ""
        checks = "" if self.validation is None else f" {self.validation}"
        return (
            f"{end} after {len(self.views)} of at most {self.last.steps} steps{why}. This run was charged {self.cost}; "
            f"it was allowed to go on until the answer had cost {self.cap} in all. Each interval holds at the stop, "
            f"however it was chosen, with probability {float(self.last.confidence):.6g} or more.{checks}"
        )


def refine_until(  # noqa: PLR0913 - each option of a run is a parameter
    measurement: Measurement,
    until: Rule | Predicate | Validation,
    *,
    ladder: Ladder,
    at_most: Exactable | None = None,
    confidence: Exactable = "0.95",
    keys: Literal["together", "each"] = "together",
    simultaneous: bool = False,
    band: Band | None = None,
    desk: Desk | None = None,
) -> Stopped:
    """For every measurement and rule, refines step by step until the rule holds, or raises BudgetError or RequestError.

    at_most: the most it may cost, an amount of the account's measure; rounded down. confidence: with at least this
    probability the interval of a cell covers its exact value at the stop; with `simultaneous` those of all cells do.
    keys: all cells are refined "together" until all are good enough at one step, or "each" only until itself is. band:
    intervals that hold at all steps at once with the confidence stated, instead of those of `PerStep` (on a predictive
    ladder of `Adaptive`). desk: who holds the units of a Validation. BudgetError where the account does not hold the
    first step, or its check; if it does not hold a later one, the run stops with what was released. Source:
    docs/mathematics.md, "Intervals at a stop".
    """
    most, miss = ladder.cap(at_most), _miss(confidence) / (len(measurement.labels) if simultaneous else 1)
    if isinstance(until, Validation):
        checked = Checked.on(desk, until, measurement, attempts=ladder.steps(most))
        run = _Run.of(measurement, checked, ladder, most=most, each=_is_each(keys))
        with checked:
            stopped = _climb(run, band, miss)
        return replace(stopped, validation=checked.outcome)
    run = _Run.of(measurement, rule_of(until), ladder, most=most, each=_is_each(keys))
    return _climb(run, band, miss)


def _climb(run: _Run, band: Band | None, miss: Fraction) -> Stopped:
    before, views = run.measurement.charged, list[View]()
    costs, is_open = [0] * len(run.measurement.labels), [True] * len(run.measurement.labels)
    stands, made = costs, 0
    for step in range(1, run.steps + 1):
        needs = run.needs(views[-1], costs, stands, step=step) if views else (None,) * len(costs)
        costs = run.next_costs(needs, costs, is_open, step=step)
        if band is None:
            # What has no interval is refused before it is charged.
            run.band(miss, step=step, earlier=made, is_stored=False)
        try:
            released = run.measurement.refine(costs)
        except BudgetError:
            if not views:
                raise
            return run.stopped(views, is_open, out_of_budget=True)
        stands, made = list(released.standing or costs), released.earlier + 1
        charged = run.measurement.charged - before
        held = band or run.band(miss, step=step, earlier=released.earlier, is_stored=charged == 0)
        views.append(_view(released, held, run, step, charged=charged, miss=miss))
        try:
            is_open = run.still_open(views[-1], is_open)
        except BudgetError as error:  # of a check on a private part, which charges an account, too
            if len(views) == 1:
                error.add_note("That is about the check: the step before it was released, and stands with its charge.")
                raise
            return run.stopped(views, is_open, out_of_budget=True)
        if not any(is_open) or min(itertools.compress(costs, is_open)) >= run.most:
            break
    return run.stopped(views, is_open)


@dataclass(frozen=True)
class _Run:
    """What is fixed before the first step."""

    measurement: Measurement
    rule: Rule
    ladder: Ladder
    most: int
    steps: int
    each: bool

    @classmethod
    def of(cls, measurement: Measurement, rule: Rule, ladder: Ladder, *, most: int, each: bool) -> _Run:
        """With the number of steps under the cap; RequestError where ladder and rule do not go together."""
        if ladder.predicts and type(rule).shortfall is Rule.shortfall:
            raise RequestError("a predictive ladder needs a rule that says how far is left, such as a relative error")
        if ladder.predicts and measurement.measure == Measure.PURE:
            raise RequestError("no interval is proven for geometric noise at scales chosen on the way: take Geometric")
        return cls(measurement, rule, ladder, most, ladder.steps(most), each)

    def band(self, miss: Fraction, *, step: int, earlier: int, is_stored: bool) -> Band:
        """Intervals that hold for the choices that a ladder makes, and made: `earlier` answers were there before.

        What is stored has the one that this run would have given it, so that the same run is good enough for nothing.
        """
        if not self.ladder.predicts:
            return PerStep(miss, self.steps)
        return Adaptive(miss, max(self.steps, earlier + 1 + (0 if is_stored else self.steps - step)))

    def next_costs(
        self, needs: Sequence[Fraction | None], costs: Sequence[int], is_open: Sequence[bool], *, step: int
    ) -> list[int]:
        """Where each cell shall stand after the step: all alike, or only the open ones higher than before."""
        wanted = [
            self.ladder.cost(step, at=at, need=need, most=self.most) if open_cell and at < self.most else at
            for at, need, open_cell in zip(costs, needs, is_open, strict=True)
        ]
        return wanted if self.each else [max(wanted)] * len(wanted)

    def still_open(self, view: View, before: Sequence[bool]) -> list[bool]:
        """Cells that are refined for themselves stay good enough; together, all are judged at the same step."""
        found = self.rule.done(view)
        if self.each:
            return [was and not done for was, done in zip(before, found, strict=True)]
        return [not done for done in found]

    def stopped(self, views: Sequence[View], is_open: Sequence[bool], *, out_of_budget: bool = False) -> Stopped:
        """The run, ended here."""
        return Stopped(tuple(views), tuple(not cell for cell in is_open), Cost(self.most), out_of_budget)

    def needs(self, view: View, costs: Sequence[int], stands: Sequence[int], *, step: int) -> Sequence[Fraction | None]:
        """By which factor the cost of each cell would have to grow; estimates may be those of what it stands at."""
        doubt = DOUBT_LAST if step == self.steps else DOUBT
        found = self.rule.shortfall(view, doubt=doubt)
        if found is None:
            return (None,) * len(view.estimates)
        # The width of Gaussian noise falls with the root of its cost.
        return [
            None if far is None else far**2 * max(Fraction(1), Fraction(stand, at))
            for far, at, stand in zip(found, costs, stands, strict=True)
        ]


def _view(released: Released, band: Band, run: _Run, step: int, *, charged: int, miss: Fraction) -> View:
    return View(
        step=step,
        steps=run.steps,
        labels=run.measurement.labels,
        estimates=released.estimates,
        half_widths=tuple(band.half_width(noise) for noise in released.noises),
        confidence=1 - miss,
        charged=charged,
    )


def _miss(confidence: Exactable) -> Fraction:
    level = exact(confidence, "confidence")
    if not 0 < level < 1:
        raise RequestError("a confidence lies strictly between 0 and 1")
    return 1 - level


def _is_each(keys: str) -> bool:
    if keys not in ("together", "each"):
        raise RequestError('keys are refined "together", or "each" for itself')
    return keys == "each"
