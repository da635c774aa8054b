"""Report-noisy-max: the first of the largest noisy scores; costs and refusals."""

from __future__ import annotations

from fractions import Fraction

import pytest

from parco.errors import RequestError
from parco.measure import Measure
from parco.mechanisms.noisy_max import NoisyMax
from parco.noise.laws import TwoSidedGeometric
from parco.noise.vector import draw_array
from parco.privacy import noisy_max, pure
from tests.noise.tapes import Script, Stream

ONE = Fraction(1)


def test_the_first_of_the_largest_wins() -> None:
    chooser, ties = NoisyMax(Fraction(1, 2), ONE), 0
    for seed in range(300):
        scores = [seed % 3, 1, 0, 2]
        noise = draw_array(TwoSidedGeometric(Fraction(1, 2)), len(scores), Stream(str(seed))).tolist()
        noisy = [score + extra for score, extra in zip(scores, noise, strict=True)]
        ties += noisy.count(max(noisy)) > 1
        assert chooser.choose(scores, Stream(str(seed))) == noisy.index(max(noisy))
    assert ties > 20


def test_scores_of_any_size_and_one_alone() -> None:
    chooser = NoisyMax(Fraction(3), ONE / 4)
    assert chooser.choose([7], Stream("one")) == 0
    assert chooser.choose([0, 10**30, 5], Stream("far")) == 1


def test_costs() -> None:
    assert NoisyMax(Fraction(4), ONE).cost_units(Fraction(2), Measure.PURE) == 10**15 // 2
    zcdp = NoisyMax(Fraction(4), ONE).cost_units(ONE, Measure.ZCDP)
    assert zcdp >= pure.cost_upper(Fraction(1, 4), Measure.ZCDP) * 10**15 > zcdp - 1


def test_what_no_cost_holds_for_is_refused() -> None:
    bits = Script()
    with pytest.raises(RequestError, match="one candidate"):
        NoisyMax(ONE, ONE).choose([], bits)
    for scores in ([0.2, 0.9], [1, 2.0], [True, 1]):
        with pytest.raises(RequestError, match="as int"):
            NoisyMax(ONE, ONE).choose(scores, bits)  # type: ignore[arg-type]
    assert bits.asked == []
    for scale, lattice in ((0, 1), (1, 0)):
        with pytest.raises(RequestError):
            NoisyMax(Fraction(scale), Fraction(lattice))
    with pytest.raises(RequestError, match="whole lattice steps"):
        noisy_max.epsilon(Fraction(1, 2), ONE, lattice=ONE)
    with pytest.raises(RequestError):
        noisy_max.epsilon(Fraction(0), ONE, lattice=ONE)
