"""A run with private validation: refine, fit outside, check inside, until a model passes or the ladder ends.

    with accuracy_first(desk, measurements, ladder=Geometric("0.01"), validation=Validation("0.9", cost="0.01")) as run:
        for attempt in run:
            model = fit(attempt.values)
            attempt.check(lambda rows: model(rows[0]) == rows[0]["label"])
    run.outcome.passed, run.outcome.bound

The model is made of released values alone, wherever it is fitted. Never to pass is an ordinary result, with its full
bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from parco.accuracy.checked import Checks
from parco.accuracy.ladders import Ladder
from parco.accuracy.measurement import Measurement, Released
from parco.accuracy.sessions import SessionDesk, SessionMeasurement
from parco.accuracy.validation import Checker, Correct, Desk, Outcome, Validation, Verdict, check_alone
from parco.errors import RequestError
from parco.measure import Exactable
from parco.session.ask import Ask
from parco.session.session import Session

__all__ = ["Attempt", "Desk", "Outcome", "Run", "accuracy_first"]


class Attempt:
    """One step of the ladder: what is released by now, and the check of the model that is made of it."""

    def __init__(self, number: int, released: Sequence[Released], check: Callable[[Correct], Verdict]) -> None:
        self.number, self.released = number, tuple(released)
        self._check = check
        self.verdict: Verdict | None = None

    @property
    def values(self) -> tuple[tuple[Fraction, ...], ...]:
        """The estimates of each measurement, cell by cell."""
        return tuple(one.estimates for one in self.released)

    def check(self, correct: Correct) -> bool:
        """Whether the model passes on the validation part; once an attempt, RequestError otherwise.

        `correct`: as the desk takes it; of the units nothing else comes back, and no error of `correct` does.
        """
        if self.verdict is not None:
            raise RequestError("an attempt is checked once: the next one is drawn more sharply")
        self.verdict = self._check(correct)
        return self.verdict.passed


class Run(Checks):
    """One climb with checks; a context manager that is iterated once."""

    def __init__(self, measurements: Sequence[Measurement], ladder: Ladder, checker: Checker, *, most: int) -> None:
        super().__init__(checker, measurements)
        self._ladder, self._most, self._steps = ladder, most, ladder.steps(most)
        self._begun = False

    def __iter__(self) -> Iterator[Attempt]:
        """Attempts, each released before it is given; ends after the first that passes."""
        if self._begun:
            raise RequestError("a run is climbed once")
        self._begun = True
        at = 0
        for number in range(1, self._steps + 1):
            at = self._ladder.cost(number, at=at, need=None, most=self._most)
            released = [one.refine([at] * len(one.labels)) for one in self._measurements]
            yield Attempt(number, released, self._check)
            if at >= self._most or (self._verdict is not None and self._verdict.passed):
                return


def accuracy_first(
    desk: Desk | Session,
    measurements: Sequence[Measurement | Ask],
    *,
    ladder: Ladder,
    validation: Validation,
    at_most: Exactable | None = None,
) -> Run:
    """For every list of measurements, a run that brings each of them to the ladder's costs, or raises RequestError.

    desk: a session, measurements then being questions, `parco.Ask("count", by="month", part="fit")`; or another desk.
    ladder: costs of each measurement; one whose steps are known without looking at estimates. at_most: the most that
    each measurement may cost. Refused before anything is charged: a sparse vector on an account that measurements pay
    from as well, since nothing else may run there meanwhile.
    """
    if not measurements:
        raise RequestError("a run has one measurement or more")
    if ladder.predicts:
        raise RequestError("a check says nothing of how far is left: take a geometric or explicit ladder")
    if validation.model is not None:
        raise RequestError("here a model is made between attempts: leave out model, which is for until=")
    most = ladder.cap(at_most)
    found = [_measurement(desk, one) for one in measurements]
    holder = SessionDesk(desk) if isinstance(desk, Session) else desk
    checker = holder.checker(validation, attempts=ladder.steps(most))
    check_alone(validation, checker, (label for one in found for label in one.accounts))
    return Run(found, ladder, checker, most=most)


def _measurement(desk: Desk | Session, one: Measurement | Ask) -> Measurement:
    if not isinstance(one, Ask):
        return one
    if not isinstance(desk, Session):
        raise RequestError("only a session answers questions: give this desk its own measurements")
    return SessionMeasurement(desk, one)
