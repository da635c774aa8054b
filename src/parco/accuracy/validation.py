"""Private validation: is a model good enough on units that it was not fitted to? Only that goes out.

The score is the sum over the part's units of (den correct - num), num/den the target accuracy: whole numbers, and one
unit moves it by at most D = max(num, den - num), being correct or not. Source: docs/mathematics.md, "Stopping on a
private validation set".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from parco.accuracy.rules import View
from parco.errors import RequestError
from parco.measure import COST_UNIT, Cost, Exactable, Measure, exact, exact_text, units_floor
from parco.mechanisms import design
from parco.mechanisms.mechanism import Additive
from parco.mechanisms.sparse_vector import LaplaceSparseVector, Stream
from parco.noise.bits import BitSource
from parco.privacy.sensitivity import Sensitivity

__all__ = [
    "Check",
    "Checker",
    "Correct",
    "Desk",
    "GaussianCheck",
    "Outcome",
    "SparseVectorCheck",
    "Validation",
    "Verdict",
    "check_alone",
    "check_of",
    "stream_of",
]

Correct = Callable[..., object] | str
"""What says about which rows, or of which unit, a model is right; whoever holds the units says which of both."""

_DENOMINATOR_MAX = 10**6
_STEPS_PER_SCALE = 8


@dataclass(frozen=True)
class Validation:
    """For every target accuracy in (0, 1), how a model is checked on a part of the contract, or RequestError.

    check: "gaussian", one noisy score an attempt, each at `cost` in the account's measure, and the score is told; or
    "sparse-vector", any number of attempts for `epsilon` in all, of which only the first pass is told. margin: a pass
    needs a noisy score of at least this, in units of the score (den for a unit); 0 passes half of all models that just
    meet the target. model: where it is a stopping rule (`until=`), a function of a View, from which neither session nor
    data can be reached; it returns what `Attempt.check` takes.
    """

    target: Exactable
    check: Literal["gaussian", "sparse-vector"] = "gaussian"
    cost: Exactable | None = None
    epsilon: Exactable | None = None
    part: str = "validation"
    margin: Exactable = 0
    confidence: Exactable = "0.95"
    model: Callable[[View], Correct] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.accuracy < 1 or self.accuracy.denominator > _DENOMINATOR_MAX:
            raise RequestError("a target accuracy lies between 0 and 1, such as 0.9, and has six decimals or fewer")
        if self.check not in ("gaussian", "sparse-vector"):
            raise RequestError('a model is checked by "gaussian" or "sparse-vector"')
        paid, other = (self.cost, self.epsilon) if self.check == "gaussian" else (self.epsilon, self.cost)
        if paid is None or other is not None:
            raise RequestError("a gaussian check has a cost an attempt, a sparse-vector an epsilon in all")
        if exact(paid, "cost") < COST_UNIT:
            raise RequestError("a check costs more than nothing")
        if not 0 < exact(self.confidence, "confidence") < 1:
            raise RequestError("a confidence lies strictly between 0 and 1")
        exact(self.margin, "margin")

    @property
    def accuracy(self) -> Fraction:
        """num/den."""
        return exact(self.target, "target")

    @property
    def reach(self) -> int:
        """D: the most that one unit moves the score."""
        num, den = self.accuracy.as_integer_ratio()
        return max(num, den - num)

    def score(self, correct: int, units: int) -> int:
        """The exact score of so many correct units among all `units`: private."""
        num, den = self.accuracy.as_integer_ratio()
        return den * correct - num * units


@dataclass(frozen=True)
class Verdict:
    """What is told of a check: whether it passed, and with the Gaussian check the noisy score, exact in its units.

    The interval score +- half_width covers the exact score with the validation's confidence at whichever attempt one
    stops. It is about these units: a pass does not certify accuracy on new data.
    """

    passed: bool
    score: Fraction | None = None
    half_width: Fraction | None = None

    def record(self) -> dict[str, str]:
        """The score as exact text, nothing where there is none."""
        if self.score is None or self.half_width is None:
            return {}
        return {"score": exact_text(self.score), "score_half_width": exact_text(self.half_width)}

    @property
    def in_words(self) -> str:
        """A sentence about the score, nothing where there is none."""
        if self.score is None or self.half_width is None:
            return ""
        return (
            f" With the validation's confidence, its last score lies within {float(self.half_width):.6g} of"
            f" {float(self.score):.6g} (0 where the target is just met): that is about these units, and no promise"
            " about others."
        )


@dataclass(frozen=True)
class Outcome:
    """What a run has cost and come to. `bound`: the most that any account was charged in it.

    Each unit is in one part, and an account has what the releases on its part cost: so the maximum over the accounts
    bounds what any unit of these data loses. Data that they are derived from have units of their own, whose account
    pays for all parts, and is not among these. `by_account`: label and charge of each, sorted.
    """

    passed: bool
    attempts: int
    """Those that were checked."""
    bound: Cost
    by_account: tuple[tuple[str, Cost], ...]
    verdict: Verdict | None
    """The last one."""

    @classmethod
    def of(cls, verdict: Verdict | None, attempts: int, charged: Mapping[str, int]) -> Outcome:
        """`charged`: what each account was charged, 10^-15 of the measure, by its label."""
        by_account = tuple((label, Cost(units)) for label, units in sorted(charged.items()))
        passed = verdict is not None and verdict.passed
        return cls(passed, attempts, Cost(max(charged.values())), by_account, verdict)

    def record(self) -> dict[str, object]:
        """The same as text, integers and booleans."""
        return {
            "passed": self.passed,
            "attempts": self.attempts,
            "bound": str(self.bound),
            "by_account": {label: str(cost) for label, cost in self.by_account},
            **({} if self.verdict is None else self.verdict.record()),
        }

    def __str__(self) -> str:
        """In words: how often a model was checked, whether one passed, and what all of it cost each account."""
        end = "passed" if self.passed else "did not pass"
        times = "once" if self.attempts == 1 else f"{self.attempts} times"
        costs = ", ".join(f"{label} {cost}" for label, cost in self.by_account)
        return (
            f"The model was checked {times} on units it was not fitted to, and {end}. With the checks,"
            f" accounts were charged: {costs}; no unit is in two parts, so that {self.bound} bounds what any unit of"
            " these data lost."
            f"{'' if self.verdict is None else self.verdict.in_words}"
        )


class Checker(Protocol):
    """Checks one model after the other on private units; ends for good at the first pass."""

    @property
    def accounts(self) -> tuple[str, ...]:
        """The labels of those that pay, each of them all."""
        ...

    @property
    def charged(self) -> int:
        """What each was charged so far, 10^-15 of the measure."""
        ...

    def check(self, correct: Correct) -> Verdict:
        """Whether the model passes; what `correct` may be depends on who holds the units."""
        ...

    def end(self) -> None:
        """Nothing is checked any more; may be called twice."""
        ...


class Desk(Protocol):
    """Who holds the validation part: a session, or what stands in for one."""

    def checker(self, validation: Validation, *, attempts: int) -> Checker:
        """Checks on the part that `validation` names, at most so many; RequestError where that cannot be."""
        ...


def check_alone(validation: Validation, checker: Checker, accounts: Iterable[str]) -> None:
    """RequestError for a sparse vector on one of the `accounts`, which measurements pay from while it runs."""
    if validation.check == "sparse-vector" and set(accounts) & set(checker.accounts):
        raise RequestError(
            "a sparse vector is the only thing that runs on its account: ask the measurements on another part, or take "
            'check="gaussian"'
        )


class Check(ABC):
    """One way to compare exact scores with the threshold, in a `measure`, for at most so many attempts."""

    @property
    @abstractmethod
    def first_units(self) -> int:
        """What the first attempt is charged, 10^-15 of the measure."""

    @property
    @abstractmethod
    def next_units(self) -> int:
        """What each attempt after it is charged."""

    @property
    def interactive(self) -> bool:
        """Whether it keeps a secret between attempts, so that nothing else may run on the account meanwhile."""
        return False

    @abstractmethod
    def verdict(self, score: int, bits: BitSource) -> Verdict:
        """Draws, once the charge is made."""


class GaussianCheck(Check):
    """One Gaussian release of the score an attempt; costs add up over the attempts made."""

    def __init__(self, validation: Validation, measure: Measure, attempts: int) -> None:
        if measure == Measure.PURE:
            raise RequestError('Gaussian noise has no cost in the measure pure: check="sparse-vector" has one')
        reach = Fraction(validation.reach)
        self._sensitivity, self._measure = Sensitivity(reach, reach**2), measure
        units = units_floor(exact(validation.cost, "cost"))
        self._noise: Additive = design.for_cost(measure, self._sensitivity, step=Fraction(1), units=units)
        self._margin = exact(validation.margin, "margin")
        # Per attempt, so that the interval holds at whichever one stops.
        miss = (1 - exact(validation.confidence, "confidence")) / attempts
        self._half_width = self._noise.half_width(1 - miss)

    @property
    def first_units(self) -> int:
        """That of one noisy score."""
        return self._noise.cost_units(self._sensitivity, self._measure)

    @property
    def next_units(self) -> int:
        """The same."""
        return self.first_units

    def verdict(self, score: int, bits: BitSource) -> Verdict:
        """The noisy score against the margin; comparing is post-processing."""
        lattice = self._noise.lattice
        noisy = lattice * self._noise.draw([score * int(1 / lattice)], bits)[0]
        return Verdict(noisy >= self._margin, noisy, self._half_width)


class SparseVectorCheck(Check):
    """A stream of scores that stops at its first pass: epsilon in all, charged at the first attempt.

    The noisy threshold is kept here between attempts, secret and in memory only: a run that is broken off is over, and
    another one pays again. One interactive mechanism: nothing else runs on the account until it has ended.
    """

    def __init__(self, validation: Validation, measure: Measure) -> None:
        self._vector, self._threshold = stream_of(validation)
        self._units = self._vector.cost_units(measure)
        self._stream: Stream | None = None

    @property
    def first_units(self) -> int:
        """That of the whole stream."""
        return self._units

    @property
    def next_units(self) -> int:
        """0: paid with the first."""
        return 0

    @property
    def interactive(self) -> bool:
        """True: the noisy threshold."""
        return True

    def verdict(self, score: int, bits: BitSource) -> Verdict:
        """Whether the noisy score reaches the noisy threshold."""
        if self._stream is None:
            self._stream = self._vector.stream(self._threshold, bits)
        return Verdict(self._stream.passes(score * int(1 / self._vector.lattice)))


def check_of(validation: Validation, measure: Measure, *, attempts: int) -> Check:
    """For every validation and measure, the check it names; RequestError where it has no cost there."""
    if validation.check == "gaussian":
        return GaussianCheck(validation, measure, attempts)
    return SparseVectorCheck(validation, measure)


def stream_of(validation: Validation) -> tuple[LaplaceSparseVector, int]:
    """The noise of a sparse-vector check, and its threshold in lattice steps."""
    reach, epsilon = Fraction(validation.reach), exact(validation.epsilon, "epsilon")
    vector = LaplaceSparseVector(reach, _lattice(2 * reach / epsilon), epsilon)
    # Rounded up to the lattice: a threshold off it would void the proof.
    return vector, -int(-exact(validation.margin, "margin") // vector.lattice)


def _lattice(scale: Fraction) -> Fraction:
    """2^-j, j >= 0 the smallest that leaves eight steps or more to the scale."""
    lattice = Fraction(1)
    while _STEPS_PER_SCALE * lattice > scale:
        lattice /= 2
    return lattice
