"""Mechanisms: noise added on a lattice, or a choice among candidates, with cost, accuracy and record."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from parco.balls import ball, precision, upper
from parco.errors import InternalError, RequestError, VerificationError
from parco.measure import Measure, significant_text, units_ceil
from parco.noise import choice, intervals, laws
from parco.noise.bits import BitSource
from parco.privacy import exponential, gaussian, geometric, pure, sparse_vector
from parco.privacy.sensitivity import Sensitivity

__all__ = [
    "AboveThreshold",
    "Additive",
    "Exponential",
    "Gaussian",
    "Mechanism",
    "TwoSidedGeometric",
    "check_steps",
    "mechanism_of",
    "root_upper",
]

_BITS, _DIGITS = 128, 15


def root_upper(square: Fraction) -> Fraction:
    """The least decimal of sixteen significant digits whose square is at least `square` > 0; exact integers only."""
    magnitude = math.floor((math.log10(square.numerator) - math.log10(square.denominator)) / 2)
    unit = Fraction(10) ** (magnitude - _DIGITS)
    return unit * (math.isqrt(math.ceil(square / unit**2) - 1) + 1)


def check_steps(scores: Iterable[object]) -> None:
    """RequestError unless every score is an int: no cost is proven for a float, which is rounded as data have it."""
    if not all(type(score) is int for score in scores):
        raise RequestError("scores are whole numbers of lattice steps, as int: round them to the lattice first")


@dataclass(frozen=True)
class Mechanism(ABC):
    """For every positive `scale` and `lattice`, one way to draw; RequestError for other numbers.

    The smaller the scale, the sharper and the dearer. `lattice` is the step of what comes out.
    """

    scale: Fraction
    lattice: Fraction

    kind: ClassVar[str]
    """The tag in a stored record; its meaning never changes."""

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.lattice <= 0:
            raise RequestError("scale and lattice step of noise are positive numbers")

    @abstractmethod
    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """What a release is charged: 10^-15 of the measure, rounded up; RequestError when it has no cost there."""

    def record(self) -> dict[str, object]:
        """The mechanism as a tag and integers, for storing; `mechanism_of` reads it back."""
        return {
            "kind": self.kind,
            "scale": [self.scale.numerator, self.scale.denominator],
            "lattice": [self.lattice.numerator, self.lattice.denominator],
        }


@dataclass(frozen=True)
class Additive(Mechanism):
    """For every statistic on the lattice, adds independent noise of one law to each cell, or raises RequestError.

    `scale` and `lattice` (the output step g) are in the statistic's units. The statistic must be a multiple of the
    lattice step in every cell: then rounding the ideal mechanism's output to the lattice is what is drawn here. Source:
    docs/mathematics.md, "Noise on a lattice".
    """

    law_type: ClassVar[type[laws.Law]]

    @property
    @abstractmethod
    def law(self) -> laws.Law:
        """The law of the noise in lattice steps."""

    def half_width(self, confidence: Fraction) -> Fraction:
        """The least half-width, in the statistic's units, that covers a cell's noise with at least this probability.

        An exact quantile of the law drawn, at every scale; it describes the noise only. 0 < confidence < 1.
        """
        return self.lattice * intervals.half_width_steps(self.law, confidence)

    def draw(
        self, values: Sequence[int], bits: BitSource, *, progress: Callable[[int], object] | None = None
    ) -> list[int]:
        """Each value plus its own noise; values and result in lattice steps. `progress` is told how many are done."""
        from parco.noise.vector import add_noise

        noisy: list[int] = []
        for block in add_noise(values, self.law, bits):
            noisy += block
            if progress is not None:
                progress(len(noisy))
        return noisy


@dataclass(frozen=True)
class Gaussian(Additive):
    """For every L2 sensitivity D and scale s, mu = D/s in gdp (facts: `privacy/gaussian.py`); no pure cost."""

    kind = "gaussian"
    law_type = laws.RoundedGaussian

    @property
    def law(self) -> laws.RoundedGaussian:
        """The law of round(s Z) in lattice steps."""
        return laws.RoundedGaussian(self.scale / self.lattice)

    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """D^2/s^2 times the measure's factor, rounded up; raises RequestError for the measure pure."""
        return units_ceil(gaussian.cost_factor(measure) * gaussian.mu_squared(sensitivity, self.scale))


@dataclass(frozen=True)
class TwoSidedGeometric(Additive):
    """For every L1 sensitivity D of whole steps and scale b, epsilon = D/b (facts: `privacy/geometric.py`)."""

    kind = "two-sided-geometric"
    law_type = laws.TwoSidedGeometric

    @property
    def law(self) -> laws.TwoSidedGeometric:
        """The two-sided geometric law in lattice steps."""
        return laws.TwoSidedGeometric(self.scale / self.lattice)

    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """Epsilon in pure; elsewhere what covers every mechanism of that epsilon. Rounded up."""
        return units_ceil(pure.cost_upper(geometric.epsilon(sensitivity, self.scale, lattice=self.lattice), measure))


@dataclass(frozen=True)
class Exponential(Mechanism):
    """For every sensitivity D and scale b, a choice with weights e^(score/b) (facts: `privacy/exponential.py`).

    One choice has bounded range epsilon = 2 D/b. `scale` is in the scores' units, `lattice` is the candidates' step.
    """

    kind = "exponential"

    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """The cost of all choices that one unit can move, rounded up.

        `sensitivity` is that of m scores, one of each choice, which a unit moves by at most D each: m = l1^2/l2^2 and
        D = l2^2/l1.
        """
        choices = sensitivity.l1**2 / sensitivity.l2_squared
        if choices.denominator != 1:
            raise InternalError("the sensitivity of scores is that of a whole number of choices")
        each = exponential.cost_upper(2 * sensitivity.l2_squared / sensitivity.l1 / self.scale, measure)
        return units_ceil(choices * each)

    def score_lost(self, confidence: Fraction, *, candidates: int) -> Fraction:
        """What one choice's score lies below the best with at most probability 1 - `confidence`, in scores' units.

        b ln(n/(1 - confidence)) for n candidates, rounded up. Source: McSherry & Talwar 2007, theorem 6.
        """
        with precision(_BITS):
            lost = upper(ball(self.scale) * (ball(candidates) / ball(1 - confidence)).log())
        return Fraction(significant_text(lost, _DIGITS, up=True))

    def choose_several(self, scores: Sequence[int], number: int, bits: BitSource) -> list[int]:
        """The places of `number` candidates, each chosen by `choose` among those that are left, in the order chosen.

        At most as many as there are scores, which are ints; RequestError otherwise. Each choice is charged.
        """
        if not 1 <= number <= len(scores):
            raise RequestError("candidates are chosen from a list that has so many")
        check_steps(scores)
        places: dict[int, list[int]] = {}
        for place, score in enumerate(scores):
            places.setdefault(score, []).append(place)
        # Candidates of one score are alike, so that they may stand side by side.
        ordered = sorted(places.items())
        left = choice.Choices([choice.Group(score / self.scale, len(own)) for score, own in ordered])
        taken = (left.take(bits) for _ in range(number))
        return [ordered[group][1].pop(place) for group, place in taken]

    def choose(self, runs: Iterable[tuple[Fraction, int]], bits: BitSource) -> int:
        """The place of one candidate among all; each run is the score and the number of candidates side by side."""
        return choice.choose([choice.Group(score / self.scale, count) for score, count in runs], bits)


@dataclass(frozen=True)
class AboveThreshold(Mechanism):
    """For every sensitivity D of scores on the lattice, a stream that stops at its first pass (`sparse_vector.py`).

    `scale` is that of the threshold's Laplace noise, half of each score's; epsilon = 2 D/scale in all.
    """

    kind = "sparse-vector"

    def epsilon(self, sensitivity: Sensitivity) -> Fraction:
        """Of the whole stream; InternalError for more than one score at a time, or for a D off the lattice."""
        distance = sensitivity.l1
        if sensitivity.l2_squared != distance**2 or (distance / self.lattice).denominator != 1:
            raise InternalError(
                "a stream has one score at a time, whose sensitivity is a whole number of lattice steps"
            )
        return 2 * distance / self.scale

    def cost_units(self, sensitivity: Sensitivity, measure: Measure) -> int:
        """What the whole stream is charged, however many scores there are and however soon one passes, rounded up."""
        return units_ceil(sparse_vector.cost_upper(self.epsilon(sensitivity), measure))


_KINDS: dict[str, type[Mechanism]] = {
    kind.kind: kind for kind in (Gaussian, TwoSidedGeometric, Exponential, AboveThreshold)
}


def mechanism_of(record: Mapping[str, object]) -> Mechanism:
    """For every record that a mechanism wrote, returns that mechanism, or raises VerificationError."""
    if set(record) != {"kind", "scale", "lattice"}:
        raise VerificationError("a mechanism's record holds kind, scale and lattice")
    kind = record["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise VerificationError("a mechanism of a kind that this version does not know")
    return _KINDS[kind](_positive(record["scale"]), _positive(record["lattice"]))


def _positive(pair: object) -> Fraction:
    """The fraction of a stored pair: two positive integers in lowest terms, so that one value has one record."""
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(type(part) is int and part > 0 for part in pair):
        raise VerificationError("scale and lattice of a mechanism are stored as two positive integers")
    if math.gcd(*pair) != 1:
        raise VerificationError("scale and lattice of a mechanism are stored in lowest terms")
    return Fraction(pair[0], pair[1])
