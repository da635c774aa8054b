"""A stopping rule that looks at a private part: it holds once the model made of released values is good enough there.

The model is a function of a View, and what it returns is checked where the units are; of them only the verdict comes
back, and each check is charged to their part before it runs. Source: docs/mathematics.md, "Stopping on a private
validation set".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from parco.accuracy.measurement import Measurement
from parco.accuracy.rules import Rule, View
from parco.accuracy.validation import Checker, Correct, Desk, Outcome, Validation, Verdict, check_alone
from parco.errors import RequestError

__all__ = ["Checked", "Checks"]


class Checks:
    """The checks of one run of measurements; a context manager, behind which nothing is checked any more."""

    def __init__(self, checker: Checker, measurements: Sequence[Measurement]) -> None:
        self._checker, self._measurements = checker, tuple(measurements)
        self._before = [one.charged for one in self._measurements]
        self._attempts = 0
        self._verdict: Verdict | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the checks, whatever happened."""
        self._checker.end()

    @property
    def outcome(self) -> Outcome:
        """As it stands: the last verdict, and what this run was charged, measurements and checks."""
        charged: Counter[str] = Counter(dict.fromkeys(self._checker.accounts, self._checker.charged))
        for one, before in zip(self._measurements, self._before, strict=True):
            charged.update(dict.fromkeys(one.accounts, one.charged - before))
        return Outcome.of(self._verdict, self._attempts, charged)

    def _check(self, correct: Correct) -> Verdict:
        self._verdict = self._checker.check(correct)
        self._attempts += 1
        return self._verdict


class Checked(Checks, Rule):
    """One check of the model at each step."""

    def __init__(self, checker: Checker, model: Callable[[View], Correct], measurement: Measurement) -> None:
        super().__init__(checker, (measurement,))
        self._model = model

    @classmethod
    def on(cls, desk: Desk | None, validation: Validation, measurement: Measurement, *, attempts: int) -> Checked:
        """For every desk and validation with a model, the rule; RequestError for others, before anything is charged."""
        if validation.model is None:
            raise RequestError("until=Validation(…) needs model, a function of a View that returns what is checked")
        if desk is None:
            raise RequestError("a validation is checked where its units are: say desk=")
        checker = desk.checker(validation, attempts=attempts)
        check_alone(validation, checker, measurement.accounts)
        return cls(checker, validation.model, measurement)

    def done(self, view: View) -> tuple[bool, ...]:
        """All cells or none: a model is made of all of them. What the model raises is its caller's."""
        return (self._check(self._model(view)).passed,) * len(view.estimates)
