"""One suite for every mechanism: what is charged covers the loss of the very law that is drawn, and hardly more.

Neighbours lie as far apart as the sensitivity says. Divergences are summed over all outcomes at 40 digits. A draw at
less noise than was charged for has to be noticed, or the comparison shows nothing.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from operator import add
from typing import Any

import mpmath
import pytest

from parco.balls import lower, precision
from parco.measure import COST_UNIT, Measure
from parco.mechanisms import design
from parco.mechanisms.mechanism import Exponential, Gaussian, Mechanism, TwoSidedGeometric, mechanism_of
from parco.mechanisms.noisy_max import NoisyMax
from parco.mechanisms.refinement import GaussianPath, GeometricRefinement
from parco.mechanisms.sparse_vector import LaplaceSparseVector, SparseVector
from parco.noise.laws import Law
from parco.noise.refine import Refinement
from parco.privacy.sensitivity import Sensitivity

ORDERS = (Fraction(3, 2), Fraction(2), Fraction(8))
UNITS = 3 * 10**14
STEP, ONE = Fraction(1), Sensitivity(l1=Fraction(1), l2_squared=Fraction(1))
# Mass beyond this many scales is far below what is compared.
REACH = 40


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def renyi(first: Sequence[mpmath.mpf], second: Sequence[mpmath.mpf], order: Fraction) -> mpmath.mpf:
    alpha = real(order)
    total = mpmath.fsum(p**alpha * q ** (1 - alpha) for p, q in zip(first, second, strict=True))
    return mpmath.log(total) / (alpha - 1)


class Charged(ABC):
    """A mechanism whose charge is compared with the loss of its law, both ways between two neighbours."""

    measure: Measure
    slack: float
    """By how much the charge may exceed the loss, relatively."""

    @abstractmethod
    def made(self, units: int) -> Any:
        """What is drawn for this charge, at sensitivity 1."""

    def sharper(self, mechanism: Any) -> Any:
        """The same with less noise than was charged for."""
        return type(mechanism)(mechanism.scale * Fraction(9, 10), mechanism.lattice)

    @abstractmethod
    def laws(self, mechanism: Any) -> list[tuple[list[mpmath.mpf], list[mpmath.mpf]]]:
        """Pairs of laws on the outcomes of neighbours."""

    def charge(self, mechanism: Any) -> int:
        """What is charged, in 10^-15."""
        units: int = mechanism.cost_units(ONE, self.measure)
        return units

    def loss(self, mechanism: Any) -> mpmath.mpf:
        """The largest loss over all pairs, in the account's measure."""
        with mpmath.workdps(40):
            pairs = [pair for first, second in self.laws(mechanism) for pair in ((first, second), (second, first))]
            if self.measure == Measure.PURE:
                return max(mpmath.log(p / q) for first, second in pairs for p, q in zip(first, second, strict=True))
            return max(renyi(first, second, order) / real(order) for first, second in pairs for order in ORDERS)

    def test_the_charge_covers_the_loss_and_hardly_more(self) -> None:
        mechanism = self.made(UNITS)
        charged = real(self.charge(mechanism) * COST_UNIT)
        assert charged * (1 - self.slack) <= self.loss(mechanism) <= charged * (1 + mpmath.mpf("1e-12"))

    def test_less_noise_than_was_charged_for_is_noticed(self) -> None:
        mechanism = self.made(UNITS)
        charged = real(self.charge(mechanism) * COST_UNIT)
        assert self.loss(self.sharper(mechanism)) > charged


class Recorded(Charged):
    """One that a ledger holds."""

    def test_the_record_reads_back(self) -> None:
        mechanism = self.made(UNITS)
        assert mechanism_of(mechanism.record()) == mechanism


class Additive(Charged):
    def made(self, units: int) -> Mechanism:
        return design.for_cost(self.measure, ONE, step=STEP, units=units)

    def laws(self, mechanism: Mechanism) -> list[tuple[list[mpmath.mpf], list[mpmath.mpf]]]:
        apart = int(1 / mechanism.lattice)
        scale = mechanism.scale / mechanism.lattice
        ends = range(-int(REACH * scale), int(REACH * scale) + 1)
        chances = {place: self.chance(place, scale) for place in range(ends[0] - apart, ends[-1] + 1)}
        return [([chances[place] for place in ends], [chances[place - apart] for place in ends])]

    @abstractmethod
    def chance(self, place: int, scale: Fraction) -> mpmath.mpf:
        """The probability of one integer."""


class TestTwoSidedGeometric(Additive, Recorded):
    measure, slack = Measure.PURE, 1e-12

    def chance(self, place: int, scale: Fraction) -> mpmath.mpf:
        ratio = mpmath.exp(-1 / real(scale))
        return (1 - ratio) / (1 + ratio) * ratio ** abs(place)


class GaussianNoise(Additive):
    # Rounding takes away a little: a twelfth of the squared step, at most an eighth of the scale.
    measure, slack = Measure.ZCDP, 2e-3

    def chance(self, place: int, scale: Fraction) -> mpmath.mpf:
        # In the lower tail, where no two numbers near one are taken from each other.
        near, far = ((mpmath.mpf(-abs(place)) + half) / real(scale) for half in (0.5, -0.5))
        return (mpmath.erfc(-near / mpmath.sqrt(2)) - mpmath.erfc(-far / mpmath.sqrt(2))) / 2


class TestGaussian(GaussianNoise, Recorded):
    """One draw."""


class TestExponential(Recorded):
    """Two choices whose scores move by 1 in opposite directions, at all distances that matter."""

    measure, slack = Measure.PURE, 1e-2

    def made(self, units: int) -> Mechanism:
        return design.choice_for_cost(self.measure, ONE, step=STEP, units=units)

    def laws(self, mechanism: Mechanism) -> list[tuple[list[mpmath.mpf], list[mpmath.mpf]]]:
        assert isinstance(mechanism, Exponential)
        gaps = [place * mechanism.scale / 2 for place in range(-20, 21)]
        return [(self.law(mechanism, gap + 1), self.law(mechanism, gap - 1)) for gap in gaps]

    def law(self, mechanism: Mechanism, gap: Fraction) -> list[mpmath.mpf]:
        """Two candidates whose scores are `gap` apart."""
        weights = [mpmath.exp(real(gap / mechanism.scale)), mpmath.mpf(1)]
        return [weight / sum(weights) for weight in weights]


class TestExponentialInZcdp(TestExponential):
    # The largest loss lies between the gaps that are looked at, and orders below those.
    measure, slack = Measure.ZCDP, 0.1


class TestTop(Recorded):
    """Two of three candidates, one after the other, whose scores a unit that comes moves upwards by up to 1."""

    measure, slack = Measure.PURE, 1e-2
    least = 0
    distance = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1, 2))

    def made(self, units: int) -> Mechanism:
        return design.choice_for_cost(self.measure, self.distance, step=STEP, units=units)

    def charge(self, mechanism: Mechanism) -> int:
        return mechanism.cost_units(self.distance, self.measure)

    def laws(self, mechanism: Mechanism) -> list[tuple[list[mpmath.mpf], list[mpmath.mpf]]]:
        assert isinstance(mechanism, Exponential)
        # The worst is a candidate that hardly anybody would choose, against others that a unit moves.
        starts = ((0, 0, 0), (0, 12, 12), (0, 7, 30), (12, 0, 12), (20, 10, 0))
        moves = list(itertools.product((self.least, 1), repeat=3))
        scaled = [tuple(place * mechanism.scale for place in start) for start in starts]
        return [
            (self.law(mechanism, tuple(map(add, start, move))), self.law(mechanism, start))
            for start in scaled
            for move in moves
        ]

    def law(self, mechanism: Mechanism, scores: tuple[Fraction, ...]) -> list[mpmath.mpf]:
        """The chance of each ordered pair: the first among all, the second among those that are left."""
        weights = [mpmath.exp(real(score / mechanism.scale)) for score in scores]
        total = mpmath.fsum(weights)
        return [
            weights[first] / total * weights[second] / (total - weights[first])
            for first, second in itertools.permutations(range(len(weights)), 2)
        ]


class TestTopOfReplacedUnits(TestTop):
    """The same where scores may go up and down at once: twice as much."""

    least = -1
    distance = Sensitivity(l1=Fraction(2), l2_squared=Fraction(2))


class TestTopInZcdp(TestTop):
    measure, slack = Measure.ZCDP, 0.4


class TestNoisyMax(Charged):
    """One of three candidates whose scores a unit that comes moves upwards by up to 1; ties go to the first."""

    measure, slack = Measure.PURE, 1e-3

    def made(self, units: int) -> NoisyMax:
        # Five times the epsilon of the others: fewer places to sum over.
        return NoisyMax(1 / (5 * units * COST_UNIT), STEP)

    def charge(self, mechanism: NoisyMax) -> int:
        return mechanism.cost_units(Fraction(1), self.measure)

    def laws(self, mechanism: NoisyMax) -> list[tuple[list[mpmath.mpf], list[mpmath.mpf]]]:
        starts = ((0, 0, 0), (0, 4, 4), (6, 0, 0), (0, 8, 0))
        moves = list(itertools.product((0, 1), repeat=3))
        return [
            (self.law(mechanism, tuple(map(add, start, move))), self.law(mechanism, start))
            for start in starts
            for move in moves
        ]

    def law(self, mechanism: NoisyMax, scores: tuple[int, ...]) -> list[mpmath.mpf]:
        """Summed over the winner's noisy score: all before it are lower, all behind it no higher."""
        ratio = mpmath.exp(-1 / real(mechanism.scale))
        reach = int(30 * mechanism.scale)
        ends = range(-reach, reach + max(scores) + 1)

        def below(place: int) -> mpmath.mpf:
            return ratio**-place / (1 + ratio) if place < 0 else 1 - ratio ** (place + 1) / (1 + ratio)

        def chance(place: int) -> mpmath.mpf:
            return (1 - ratio) / (1 + ratio) * ratio ** abs(place)

        lower = [{top: below(top - score) for top in range(ends[0] - 1, ends[-1] + 1)} for score in scores]
        return [
            mpmath.fsum(
                chance(top - score)
                * mpmath.fprod(lower[rival][top - (rival < place)] for rival in range(len(scores)) if rival != place)
                for top in ends
            )
            for place, score in enumerate(scores)
        ]


class TestGeometricRefinement(Charged):
    """Two answers, the coarser one and what it was refined to: together they lose what the finer alone does."""

    measure, slack = Measure.PURE, 1e-12

    def made(self, units: int) -> GeometricRefinement:
        fine = design.for_cost(self.measure, ONE, step=STEP, units=units)
        assert isinstance(fine, TwoSidedGeometric)
        return GeometricRefinement(TwoSidedGeometric(fine.scale * 2, fine.lattice), fine)

    def sharper(self, mechanism: GeometricRefinement) -> GeometricRefinement:
        fine = TwoSidedGeometric(mechanism.fine.scale * Fraction(9, 10), mechanism.fine.lattice)
        return GeometricRefinement(mechanism.coarse, fine)

    def charge(self, mechanism: GeometricRefinement) -> int:
        return mechanism.coarse.cost_units(ONE, self.measure) + mechanism.cost_units(ONE, self.measure)

    def laws(self, mechanism: GeometricRefinement) -> list[tuple[list[mpmath.mpf], list[mpmath.mpf]]]:
        step = int(1 / mechanism.fine.lattice)
        places = [(first, second) for first in range(-30, 31, 3) for second in range(-30, 31, 2)]
        return [
            (
                [self.chance(mechanism, first, second) for first, second in places],
                [self.chance(mechanism, first - step, second - step) for first, second in places],
            )
        ]

    def chance(self, mechanism: GeometricRefinement, noise: int, finer: int) -> mpmath.mpf:
        """P(n1) P(n2 given n1), the second as it is drawn: a difference of tails in balls."""
        law = Refinement(mechanism.coarse.law.scale, mechanism.fine.law.scale)
        if noise < 0:
            noise, finer = -noise, -finer
        with precision(300):
            given = law.tail(noise, finer) - law.tail(noise, finer + 1)
            drawn = real(lower(given))
        ratio = mpmath.exp(-1 / real(law.coarse))
        return (1 - ratio) / (1 + ratio) * ratio**noise * drawn


class TestGaussianPath(GaussianNoise):
    """Two draws, the second chosen so that both make the variance of one that would cost as much."""

    # Rounding takes away a little of each.
    slack = 4e-3

    def made(self, units: int) -> Any:
        first = design.for_cost(self.measure, ONE, step=STEP, units=units // 3)
        assert isinstance(first, Gaussian)
        path = GaussianPath((first,))
        whole = design.for_cost(self.measure, ONE, step=STEP, units=units)
        square = path.scale_to(whole.scale**2)
        scale = Fraction(math.isqrt(math.ceil(square * 10**24)) + 1, 10**12)
        return path.refined(Gaussian(scale, first.lattice))

    def sharper(self, mechanism: GaussianPath) -> GaussianPath:
        first, second = mechanism.draws
        return GaussianPath((first, Gaussian(second.scale * Fraction(9, 10), second.lattice)))

    def loss(self, mechanism: GaussianPath) -> mpmath.mpf:
        # Independent draws: divergences of one order add up.
        with mpmath.workdps(40):
            each = [self.laws(draw)[0] for draw in mechanism.draws]
            return max(
                mpmath.fsum(renyi(first, second, order) for first, second in each) / real(order) for order in ORDERS
            )


class TestLaplaceSparseVector(Charged):
    """Streams of many scores at one height and one elsewhere, which all move against the threshold."""

    measure, slack = Measure.PURE, 1e-6
    before, scores = 80, ((6, 3), (3, 3), (-2, -9))

    def made(self, units: int) -> Any:
        # Ten times the epsilon of the others: fewer places to sum over.
        return LaplaceSparseVector(Fraction(1), STEP, 10 * units * COST_UNIT)

    def sharper(self, mechanism: Any) -> Any:
        return _WithLessNoise(mechanism.sensitivity, mechanism.lattice, mechanism.epsilon)

    def charge(self, mechanism: SparseVector) -> int:
        return mechanism.cost_units(self.measure)

    def laws(self, mechanism: SparseVector) -> list[tuple[list[mpmath.mpf], list[mpmath.mpf]]]:
        pairs = []
        for before, last in self.scores:
            there = [before] * self.before + [last]
            moved = [before + 1] * self.before + [last - 1]
            pairs.append((self.law(mechanism, there), self.law(mechanism, moved)))
        return pairs

    def law(self, mechanism: SparseVector, scores: list[int]) -> list[mpmath.mpf]:
        """The chance that the first pass is each of the scores, or none, summed over the noisy threshold."""
        with precision(200):
            reach = int(60 * mechanism.threshold_law.scale)
            waiting = {place: self.chance(mechanism.threshold_law, place) for place in range(-reach, reach + 1)}
            passed = []
            tails = {score: {z: self.tail(mechanism.score_law, z - score) for z in waiting} for score in set(scores)}
            for score in scores:
                passed.append(mpmath.fsum(waiting[z] * tails[score][z] for z in waiting))
                waiting = {z: chance * (1 - tails[score][z]) for z, chance in waiting.items()}
            return [*passed, mpmath.fsum(waiting.values())]

    def tail(self, law: Law, place: int) -> mpmath.mpf:
        return real(lower(law.tail(place))) if place >= 1 else 1 - real(lower(law.tail(1 - place)))

    def chance(self, law: Law, place: int) -> mpmath.mpf:
        return self.tail(law, abs(place)) - self.tail(law, abs(place) + 1)


class _WithLessNoise(LaplaceSparseVector):
    """The fault that was published more than once: a score's noise as small as the threshold's."""

    @property
    def score_law(self) -> Law:
        return self.threshold_law


@pytest.mark.parametrize("choices", [1, 7])
def test_each_choice_that_a_unit_can_move_is_charged(choices: int) -> None:
    mechanism = Exponential(Fraction(4), STEP)
    several = Sensitivity(l1=Fraction(choices), l2_squared=Fraction(choices))
    assert mechanism.cost_units(several, Measure.PURE) == choices * 10**15 // 2
