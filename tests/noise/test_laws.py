"""Laws: tails against mpmath, guesses that never fail, scales at a given tail."""

from __future__ import annotations

from fractions import Fraction

import pytest
from mpmath import mp

from parco.balls import lower, precision, upper
from parco.errors import RequestError
from parco.noise.laws import Law, TwoSidedGeometric
from tests.noise import oracle

SCALES = [Fraction(1, 50), Fraction(3, 10), Fraction(8), Fraction(12345, 7), Fraction(10**12)]
SLACK = Fraction(1, 10**12)


def encloses(law: Law, truth: Fraction, magnitude: int) -> bool:
    """Whether the law's tail at 128 bits holds the truth (known to 1e-50), and is tight."""
    with precision(128):
        ball = law.tail(magnitude)
        low, high = lower(ball), upper(ball)
    error = truth / 10**50
    return low <= truth + error and truth - error <= high and high - low <= truth * SLACK


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_tails_enclose_the_truth_and_see_one_per_cent(kind: type[Law], scale: Fraction) -> None:
    for sigmas in (Fraction(1, 100), Fraction(1), Fraction(5)):
        magnitude = max(1, int(sigmas * scale))
        with mp.workdps(60):
            truth = oracle.exact(oracle.tail(kind, scale, magnitude))
        assert encloses(kind(scale), truth, magnitude)
        # A tail of nearly 1/2 hardly depends on the scale; everywhere else one per cent must show.
        assert not encloses(kind(scale * Fraction(99, 100)), truth, magnitude)


def test_the_oracle_agrees_with_the_sum_of_probabilities() -> None:
    with mp.workdps(40):
        for scale, magnitude in [(Fraction(3, 10), 1), (Fraction(8), 3)]:
            closed = oracle.tail(TwoSidedGeometric, scale, magnitude)
            assert abs(oracle.summed_tail(scale, magnitude) / closed - 1) < 1e-30


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", [*SCALES, Fraction(1, 10**6), Fraction(1, 10**400), Fraction(10**400)])
@pytest.mark.parametrize("tail", [0.0, 5e-324, 2.0**-1000, 1e-300, 1e-9, 0.25, 0.5])
def test_a_guess_never_fails(kind: type[Law], scale: Fraction, tail: float) -> None:
    assert kind(scale).guess(tail) >= 0


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("tail", [1e-300, 1e-9, 0.01, 0.4])
def test_a_guess_is_near(kind: type[Law], tail: float) -> None:
    law = kind(Fraction(1000))
    guess = law.guess(tail)
    with precision(128):
        assert law.tail(guess + 2) < tail < law.tail(guess - 1)


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("magnitude", [1, 2, 17, 10**9])
@pytest.mark.parametrize("tail", [Fraction(1, 10**30), Fraction(1, 40), Fraction(49, 100)])
def test_the_scale_at_a_tail_gives_that_tail(kind: type[Law], magnitude: int, tail: Fraction) -> None:
    with precision(192):
        scale = lower(kind.scale_limit(magnitude, tail))
    with mp.workdps(60):
        reached = oracle.exact(oracle.tail(kind, scale, magnitude))
    assert tail * (1 - SLACK) <= reached <= tail


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1)])
def test_scales_are_positive(kind: type[Law], scale: Fraction) -> None:
    with pytest.raises(RequestError):
        kind(scale)
