"""Accuracy first through a session: each step is a release of its own, charged before it runs, and kept by the ledger.

Nothing is reserved for steps that may not come, so that a stop has nothing to give back, and a crash leaves what was
released released and charged: the same run asked again takes it up for nothing and goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypedDict

from parco.accuracy.ladders import Geometric, Ladder, Predictive
from parco.accuracy.loop import Stopped, refine_until
from parco.accuracy.measurement import Key, Released
from parco.accuracy.noises import noise_of
from parco.accuracy.reserved import ReservedMeasurement, as_stored
from parco.accuracy.rules import Predicate, Rule, View
from parco.accuracy.validation import Checker, Correct, Desk, Validation, Verdict, stream_of
from parco.errors import QuestionError, RequestError, SharperError
from parco.measure import COST_UNIT, Exactable, Measure, exact, exact_text
from parco.mechanisms.mechanism import Additive
from parco.mechanisms.refinement import RefinedGaussian
from parco.mechanisms.stopping import StoppedGaussian
from parco.queries.plan import Plan
from parco.session.ask import Ask
from parco.session.checking import Checking, scored
from parco.session.release import Answer, Release
from parco.session.session import Session

__all__ = ["ReleasedUntil", "SessionDesk", "SessionMeasurement", "release_until"]

_NOISES = (Additive, RefinedGaussian, StoppedGaussian)
_PREDICTED_SHARE, _DOUBLED_SHARE = Fraction(1, 1000), Fraction(1, 1024)
"""Of the cap: where a ladder begins that nobody chose."""
_TOGETHER = (
    'step by step a session refines all keys together: take reserve=True (--reserve) for keys="each" (--each), or leave'
    " that out"
)


@dataclass(frozen=True)
class ReleasedUntil:
    """The last answer, its intervals those that hold at the stop, with its receipt; and how the run came to it."""

    release: Release[Answer]
    stopped: Stopped

    def record(self) -> dict[str, object]:
        """As `parco release --within --json` prints it: the release, and the run under "until"."""
        run = self.stopped
        told = {
            "enough": run.enough,
            "steps": len(run.views),
            "steps_most": run.last.steps,
            "cost": str(run.cost),
            "at_most": str(run.cap),
            "confidence": exact_text(run.last.confidence),
            "out_of_budget": run.out_of_budget,
            **({} if run.validation is None else {"validation": run.validation.record()}),
        }
        return self.release.record() | {"until": told}


class SessionMeasurement:
    """For every question with noise on its cells, that question, sharpened in a session, or RequestError.

    ask: without cost, error and fresh, which the loop decides; a mean or variance is several questions, a choice none
    that can be sharpened. What the ledger stores already is where it begins, for nothing.
    """

    def __init__(self, session: Session, ask: Ask) -> None:
        if ask.cost is not None or ask.error is not None or ask.fresh:
            raise QuestionError("what is paid follows from the accuracy: leave out cost, error and fresh")
        plan = session.plan.release([ask])[0]
        if (
            not isinstance(plan, Plan)
            or not isinstance(plan.mechanism, Additive | RefinedGaussian | StoppedGaussian)
            or plan.selection
        ):
            raise QuestionError("counts and sums are sharpened: ask the parts of a mean or variance by themselves")
        self._session, self._ask, self._release = session, ask, None
        self.measure: Measure = session.contract.budget.measure
        self.labels: tuple[Key, ...] = tuple(plan.query.labels())
        self.accounts: tuple[str, ...] = tuple(plan.query.accounts)
        self.charged = 0

    _release: Release[Answer] | None

    @property
    def release(self) -> Release[Answer]:
        """The last answer; RequestError before the first."""
        if self._release is None:
            raise RequestError("nothing was released yet")
        return self._release

    def refine(self, costs: Sequence[int]) -> Released:
        """One release or refinement of all cells together; RequestError for different costs, which no session has."""
        if len(set(costs)) != 1:
            raise RequestError(_TOGETHER)
        cost = costs[0] * COST_UNIT
        is_first = self._release is None
        known = self._first(cost) if self._release is None else self._release
        more = cost - self._paid(known)
        # What a reserved run came to is shown, and not refined: whoever needs more is told so at the next step.
        as_it_is = more < COST_UNIT or (is_first and known.receipt.reserved is not None)
        self._release = known if as_it_is else self._charge(self._session.refine(known, cost=more))
        found = as_stored(self._release)
        stands = (int(self._paid(self._release) / COST_UNIT),) * len(found.estimates)
        return replace(found, standing=stands, earlier=len(self._release.receipt.refines))

    def _first(self, cost: Fraction) -> Release[Answer]:
        """A new answer at this cost, or the stored one, sharper or not."""
        try:
            return self._charge(self._answer(replace(self._ask, cost=cost)))
        except SharperError:
            # Who names no cost takes what is stored.
            return self._charge(self._answer(self._ask))

    def _answer(self, ask: Ask) -> Release[Answer]:
        return _with_cells(self._session.release([ask])[0])

    def _charge(self, release: Release[Answer]) -> Release[Answer]:
        self.charged += release.cost.units
        return release

    def _paid(self, release: Release[Answer]) -> Fraction:
        """What all draws behind an answer cost."""
        receipt = release.receipt
        return receipt.mechanism.cost_units(receipt.sensitivity, self.measure) * COST_UNIT


def release_until(  # noqa: PLR0913 - each option of a run is a parameter
    session: Session,
    ask: Ask,
    until: Rule | Predicate | Validation,
    *,
    at_most: Exactable,
    ladder: Ladder | None = None,
    confidence: Exactable = "0.95",
    simultaneous: bool = False,
    reserve: bool = False,
    keys: Literal["together", "each"] = "together",
) -> ReleasedUntil:
    """For every question and rule, releases and refines until the rule holds, or raises QuestionError or BudgetError.

    until: of a Validation, the model returns a condition on rows, which is checked on a part of the contract. at_most:
    the most that the answer may cost in all, with what was paid for it before; checks cost beside it. ladder: by
    default costs predicted from what was released, and doubled ones on accounts of the measure pure or where the rule
    does not say how far is left. reserve: all of `at_most` is set aside first, the data are read once, and what the
    steps did not need is free again at the stop; without it each step is a release of its own. keys: "each" is refined
    only until it is good enough itself, which takes reserve=True. Otherwise as `refine_until`.
    """
    measure = session.contract.budget.measure
    if exact(at_most, "at_most") <= 0:
        raise RequestError("at_most is a positive cost")
    chosen = _ladder(measure, exact(at_most, "at_most"), until) if ladder is None else ladder
    options: _Options = {
        "ladder": chosen,
        "confidence": confidence,
        "simultaneous": simultaneous,
        "desk": SessionDesk(session),
    }
    if reserve:
        with ReservedMeasurement(session, ask, most=chosen.cap(at_most), each=keys == "each") as whole:
            stopped = refine_until(whole, until, at_most=whole.most * COST_UNIT, keys=keys, **options)
            # A ladder stays a unit or two below what is reserved, which is what its price, rounded up, may come to.
            stopped = replace(stopped, cap=whole.reserved)
            return ReleasedUntil(whole.settled().map(partial(_at_the_stop, stopped.last)), stopped)
    if keys == "each":
        raise RequestError(_TOGETHER)
    measurement = SessionMeasurement(session, ask)
    stopped = refine_until(measurement, until, at_most=at_most, keys=keys, **options)
    return ReleasedUntil(measurement.release.map(partial(_at_the_stop, stopped.last)), stopped)


class _Options(TypedDict):
    ladder: Ladder
    confidence: Exactable
    simultaneous: bool
    desk: Desk


def _at_the_stop(last: View, answer: Answer) -> Answer:
    """The answer with intervals that hold at the stop."""
    # Answer and exact value are on the lattice: so is what lies between them.
    widths = tuple(width // answer.lattice * answer.lattice for width in last.half_widths)
    apart = widths if len(set(widths)) > 1 else ()
    return replace(answer, half_width=max(widths), half_widths=apart, confidence=last.confidence, at_the_stop=True)


class SessionDesk:
    """A session whose contract has a validation part, as a desk for `accuracy_first`.

    `correct` is a condition, as in `where=`, that holds for the rows about which the model is right: no code of the
    caller sees a row. A unit counts as right if one of its rows meets it. gaussian: each attempt is a release of the
    score, at the validation's cost, and free where it is stored. sparse-vector: one request for all attempts, its whole
    cost charged at the first; scores stay inside, and nothing else runs on the part's account meanwhile.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def checker(self, validation: Validation, *, attempts: int) -> Checker:
        """Checks for at most so many attempts; RequestError for a check or a part that the session does not have."""
        if validation.part not in (self._session.contract.parts or {}):
            raise RequestError(f"the contract declares no part {validation.part!r}")
        if validation.check == "sparse-vector":
            if self._session._signed.ancestors:
                raise RequestError(
                    "a sparse vector is the only thing that runs on its accounts, and data that these are derived from"
                    ' pay for measurements, too: take check="gaussian"'
                )
            return _StreamChecker(self._session, validation, attempts=attempts)
        if self._session.contract.budget.measure == Measure.PURE:
            raise RequestError('Gaussian noise has no cost in the measure pure: check="sparse-vector" has one')
        return _SessionChecker(self._session, validation, attempts=attempts)


class _StreamChecker:
    def __init__(self, session: Session, validation: Validation, *, attempts: int) -> None:
        vector, threshold = stream_of(validation)
        part, target = validation.part, validation.accuracy
        self._checking = Checking(
            session, part=part, target=target, vector=vector, threshold=threshold, attempts=attempts
        )

    @property
    def accounts(self) -> tuple[str, ...]:
        """The part's own."""
        return self._checking.accounts

    @property
    def charged(self) -> int:
        """Nothing before the first check, then all."""
        return self._checking.charged

    def check(self, correct: Correct) -> Verdict:
        """Pass or fail, and nothing else."""
        return Verdict(self._checking.check(_condition(correct)))

    def end(self) -> None:
        """Stores the verdicts, and lets the account go."""
        self._checking.end()


class _SessionChecker:
    def __init__(self, session: Session, validation: Validation, *, attempts: int) -> None:
        self._session, self._validation = session, validation
        # Per attempt, so that the interval holds at whichever one stops.
        self._level = 1 - (1 - exact(validation.confidence, "confidence")) / attempts
        self._ended = False
        self.accounts: tuple[str, ...] = (validation.part,)
        self.charged = 0

    def check(self, correct: Correct) -> Verdict:
        """The noisy score against the margin; comparing is post-processing."""
        if self._ended:
            raise RequestError("this run has passed or ended: nothing is checked any more")
        known, condition = self._validation, _condition(correct)
        if known.cost is None:
            raise AssertionError("a Gaussian check has a cost")
        release = scored(self._session, part=known.part, target=known.accuracy, condition=condition, cost=known.cost)
        self.charged += release.cost.units
        (row,) = release.value
        passed = self._ended = row.value >= exact(known.margin, "margin")
        return Verdict(passed, row.value, noise_of(release.receipt.mechanism).half_width(self._level))

    def end(self) -> None:
        """Nothing is held that others wait for."""
        self._ended = True


def _condition(correct: Correct) -> str:
    if not isinstance(correct, str):
        raise RequestError('correct is a condition on rows, as in where=: for example "dollars > 20"')
    return correct


def _with_cells(release: Release[Any]) -> Release[Answer]:
    if not isinstance(release.value, Answer):
        raise AssertionError("a question with noise on its cells has an answer with cells")
    return release


def _ladder(measure: Measure, most: Fraction, until: Rule | Predicate | Validation) -> Ladder:
    tells = isinstance(until, Rule) and type(until).shortfall is not Rule.shortfall
    if measure == Measure.PURE or not tells:
        return Geometric(most * _DOUBLED_SHARE, 2)
    return Predictive(most * _PREDICTED_SHARE)
