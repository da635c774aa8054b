"""The mean of r answers: its variance by algebra and with parco's own noise, and what it costs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from mpmath import mp
from scipy.stats import chi2

from parco.mechanisms.mechanism import Gaussian
from parco.noise.bits import CipherBits
from parco.noise.laws import RoundedGaussian
from parco.reports import example
from parco.reports.example import Average, averages, bounds
from tests.noise import oracle as law_oracle

SCALE = Fraction(8)
COUNTS = (1, 10, 100, 1000)
# The simulation: 50,000 draws, in means of 1, 10, 100 and 1000 of them. Means of noise are normal as nearly as can be
# seen, so that their sum of squares over the variance is chi-square; both sides together, and all four counts, are
# tested at level 1e-6 in all. One scale off by three per cent moves the sum of 50,000 squares by 9 of its standard
# deviations (the limit is about 5); one per cent needs more draws than fit here, and is caught on the words of a draw
# (tests/noise/test_draw.py).
DRAWS = 50_000
LEVEL = 1e-6 / (2 * len(COUNTS))


def mean_of(answers: int) -> Average:
    (row,) = averages([bounds(answers, SCALE)])
    return row


@pytest.mark.parametrize("answers", COUNTS)
def test_the_variance_of_the_mean_by_algebra(answers: int) -> None:
    # Weights 1/r, no covariances: the sum of squared weights times the variance.
    assert mean_of(answers).variance == sum(Fraction(1, answers) ** 2 * SCALE**2 for _ in range(answers))
    assert mean_of(answers).standard_deviation ** 2 == pytest.approx(float(SCALE**2 / answers), rel=1e-15)


@pytest.mark.parametrize("answers", [1, 2, 5])
def test_the_rule_by_counting_every_outcome(answers: int) -> None:
    # A coin that adds or takes away the scale has its variance; all outcomes of r coins are equally likely.
    outcomes = list(product((-SCALE, SCALE), repeat=answers))
    counted = sum((sum(outcome) / answers) ** 2 for outcome in outcomes) / len(outcomes)
    assert counted == mean_of(answers).variance


def rounded_variance(scale: Fraction) -> float:
    """Of round(scale Z), summed from the oracle's tails: E N^2 = 2 sum over m >= 1 of (2m - 1) P(N >= m)."""
    with mp.workdps(30):
        terms = ((2 * m - 1) * law_oracle.tail(RoundedGaussian, scale, m) for m in range(1, int(20 * scale)))
        return float(2 * mp.fsum(terms))


def fits(means: list[Fraction], variance: float) -> bool:
    """Whether the squares of these independent means of noise agree with a variance, at the level above."""
    statistic = float(sum(mean**2 for mean in means)) / variance
    return bool(chi2.ppf(LEVEL, len(means)) <= statistic <= chi2.isf(LEVEL, len(means)))


@pytest.fixture(scope="module")
def noise() -> list[int]:
    """What the exact mechanism adds to zero at scale 8 on the lattice of whole numbers."""
    return Gaussian(SCALE, Fraction(1)).draw([0] * DRAWS, CipherBits())


def means(noise: list[int], answers: int) -> list[Fraction]:
    return [Fraction(sum(noise[begin : begin + answers]), answers) for begin in range(0, len(noise), answers)]


@pytest.mark.parametrize("answers", COUNTS)
def test_the_variance_of_the_mean_by_simulation(noise: list[int], answers: int) -> None:
    drawn = means(noise, answers)
    assert len(drawn) == DRAWS // answers
    assert fits(drawn, rounded_variance(SCALE) / answers)


def test_the_simulation_sees_a_wrong_variance(noise: list[int]) -> None:
    for factor in (Fraction(97, 100), Fraction(103, 100)):
        assert not fits(means(noise, 1), rounded_variance(SCALE * factor))
    for answers in COUNTS[1:]:
        # As if nothing were gained, or the error itself fell as 1/r.
        assert not fits(means(noise, answers), rounded_variance(SCALE))
        assert not fits(means(noise, answers), rounded_variance(SCALE) / answers**2)


def test_an_answer_that_is_repeated_is_no_sharper(noise: list[int]) -> None:
    # The mean of ten copies of one stored answer is that answer.
    copies = [Fraction(sum([value] * 10), 10) for value in noise[:10_000]]
    assert fits(copies, rounded_variance(SCALE))
    assert not fits(copies, rounded_variance(SCALE) / 10)


def test_rounding_adds_what_is_said() -> None:
    rounded = rounded_variance(SCALE)
    assert rounded == pytest.approx(float(SCALE**2 + Fraction(1, 12)), rel=1e-12)
    assert 1 < rounded / float(SCALE**2) < 1.0013 + 1e-4


@pytest.mark.parametrize(("answers", "share"), [(100, 10), (400, 20)])
def test_averaging_costs_what_one_answer_as_sharp_costs(answers: int, share: int) -> None:
    once = bounds(1, SCALE / share)
    averaged = mean_of(answers)
    assert averaged.variance == once.scale**2
    assert (averaged.bounds.mu_squared, averaged.bounds.tight) == (once.mu_squared, once.tight)


def test_the_example_averages_at_the_scale_of_its_picture() -> None:
    assert example.AVERAGED_SCALE == SCALE
    assert example.AVERAGED_SCALE in example.SCALES
