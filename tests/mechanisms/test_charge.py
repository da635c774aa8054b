"""One suite for every mechanism: what is charged covers the loss of the very law that is drawn, and hardly more.

Neighbours lie as far apart as the sensitivity says. Divergences are summed over all outcomes at 40 digits. A draw at
less noise than was charged for has to be noticed, or the comparison shows nothing.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from operator import add

import mpmath
import pytest

from parco.measure import COST_UNIT, Measure
from parco.mechanisms import design
from parco.mechanisms.mechanism import Exponential, Mechanism, mechanism_of
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
    def made(self, units: int) -> Mechanism:
        """What is drawn for this charge, at sensitivity 1."""

    @abstractmethod
    def laws(self, mechanism: Mechanism) -> list[tuple[list[mpmath.mpf], list[mpmath.mpf]]]:
        """Pairs of laws on the outcomes of neighbours."""

    def charge(self, mechanism: Mechanism) -> int:
        """What is charged, in 10^-15."""
        return mechanism.cost_units(ONE, self.measure)

    def loss(self, mechanism: Mechanism) -> mpmath.mpf:
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
        fault = type(mechanism)(mechanism.scale * Fraction(9, 10), mechanism.lattice)
        assert self.loss(fault) > charged

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


class TestTwoSidedGeometric(Additive):
    measure, slack = Measure.PURE, 1e-12

    def chance(self, place: int, scale: Fraction) -> mpmath.mpf:
        ratio = mpmath.exp(-1 / real(scale))
        return (1 - ratio) / (1 + ratio) * ratio ** abs(place)


class TestGaussian(Additive):
    # Rounding takes away a little: a twelfth of the squared step, at most an eighth of the scale.
    measure, slack = Measure.ZCDP, 2e-3

    def chance(self, place: int, scale: Fraction) -> mpmath.mpf:
        # In the lower tail, where no two numbers near one are taken from each other.
        near, far = ((mpmath.mpf(-abs(place)) + half) / real(scale) for half in (0.5, -0.5))
        return (mpmath.erfc(-near / mpmath.sqrt(2)) - mpmath.erfc(-far / mpmath.sqrt(2))) / 2


class TestExponential(Charged):
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


class TestTop(Charged):
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


@pytest.mark.parametrize("choices", [1, 7])
def test_each_choice_that_a_unit_can_move_is_charged(choices: int) -> None:
    mechanism = Exponential(Fraction(4), STEP)
    several = Sensitivity(l1=Fraction(choices), l2_squared=Fraction(choices))
    assert mechanism.cost_units(several, Measure.PURE) == choices * 10**15 // 2
