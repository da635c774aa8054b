"""Intervals: least quantiles by the oracle, coverage on both sides, and the largest scale that keeps a half-width."""

from __future__ import annotations

from fractions import Fraction

import pytest
from mpmath import mp

from parco.errors import RequestError
from parco.noise import intervals
from parco.noise.laws import Law, RoundedGaussian
from tests.noise import oracle

SCALES = [Fraction(1, 100), Fraction(3, 10), Fraction(8), Fraction(20), Fraction(123456, 7)]
CONFIDENCES = [Fraction(1, 100), Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**12)]


def inside(kind: type[Law], scale: Fraction, steps: int) -> Fraction:
    """P(|N| <= steps), by the oracle at 60 digits."""
    with mp.workdps(60):
        return oracle.exact(1 - 2 * oracle.tail(kind, scale, steps + 1))


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_half_width_is_the_least_that_covers(kind: type[Law], scale: Fraction, confidence: Fraction) -> None:
    steps = intervals.half_width_steps(kind(scale), confidence)
    assert inside(kind, scale, steps) >= confidence
    assert steps == 0 or inside(kind, scale, steps - 1) < confidence


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_coverage_encloses_the_truth(kind: type[Law], scale: Fraction) -> None:
    for steps in (0, 1, int(2 * scale), int(40 * scale)):
        low, high = intervals.coverage(kind(scale), steps)
        truth, error = inside(kind, scale, steps), Fraction(1, 10**40)
        assert 0 <= low <= truth + error
        assert truth - error <= high <= 1
        assert high - low < Fraction(1, 10**30)


def test_the_rounded_gaussian_covers_between_95_and_96_3_per_cent_from_eight_steps_on() -> None:
    for tenths in range(80, 200, 3):
        law = RoundedGaussian(Fraction(tenths, 10))
        low, high = intervals.coverage(law, intervals.half_width_steps(law, Fraction(95, 100)))
        assert Fraction(95, 100) <= low < high < Fraction(963, 1000)


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("steps", [0, 1, 16, 10**9])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_largest_scale_keeps_the_half_width(kind: type[Law], steps: int, confidence: Fraction) -> None:
    scale = intervals.largest_scale(kind, steps, confidence=confidence)
    assert inside(kind, scale, steps) >= confidence
    assert inside(kind, scale * (1 + Fraction(2, 10**12)), steps) < confidence
    assert intervals.half_width_steps(kind(scale), confidence) <= steps


@pytest.mark.parametrize("confidence", [Fraction(0), Fraction(1), Fraction(-1), Fraction(2)])
def test_a_confidence_outside_its_range_is_refused(confidence: Fraction) -> None:
    with pytest.raises(RequestError):
        intervals.half_width_steps(RoundedGaussian(Fraction(8)), confidence)
    with pytest.raises(RequestError):
        intervals.largest_scale(RoundedGaussian, 3, confidence=confidence)


def test_negative_half_widths_are_refused() -> None:
    with pytest.raises(RequestError):
        intervals.coverage(RoundedGaussian(Fraction(8)), -1)
    with pytest.raises(RequestError):
        intervals.largest_scale(RoundedGaussian, -1, confidence=Fraction(1, 2))
