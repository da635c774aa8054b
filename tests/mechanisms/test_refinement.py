"""Refinements: exact estimates and draws, costs by difference, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.measure import Measure
from parco.mechanisms.mechanism import Gaussian, TwoSidedGeometric
from parco.mechanisms.refinement import GaussianPath, GeometricRefinement
from parco.noise import refine
from parco.privacy.sensitivity import Sensitivity
from tests.noise.tapes import Stream

ONE = Fraction(1)
UNIT = Sensitivity(l1=ONE, l2_squared=ONE)
SCALES = st.lists(st.fractions(Fraction(1), Fraction(100), max_denominator=50), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(scales=SCALES, seed=st.integers(0, 10**6))
def test_the_estimate_is_that_of_the_steps_one_by_one(scales: list[Fraction], seed: int) -> None:
    """m_k = (t_k/t_(k-1)) m_(k-1) + (1 - t_k/t_(k-1)) y_k, and variances as if the noises were independent."""
    draws = tuple(Gaussian(scale, ONE / 2 ** (place % 3)) for place, scale in enumerate(scales))
    released = [[(seed + 37 * place) % 101, -(seed // 7) % 53] for place in range(len(draws))]
    path = GaussianPath(draws[:1])
    estimate = [draws[0].lattice * steps for steps in released[0]]
    for place, draw in enumerate(draws[1:], start=1):
        longer = path.refined(draw)
        share = longer.variance / path.variance
        estimate = [
            share * old + (1 - share) * draw.lattice * steps
            for old, steps in zip(estimate, released[place], strict=True)
        ]
        path = longer
    assert path.estimates(released) == estimate
    weights = [path.variance / draw.scale**2 for draw in draws]
    assert sum(weights) == 1
    assert sum(weight**2 * draw.scale**2 for weight, draw in zip(weights, draws, strict=True)) == path.variance


@settings(max_examples=25, deadline=None)
@given(scales=SCALES, share=st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100))
def test_the_next_draw_reaches_the_variance_that_is_asked(scales: list[Fraction], share: Fraction) -> None:
    path = GaussianPath(tuple(Gaussian(scale, ONE) for scale in scales))
    square = path.scale_to(path.variance * share)
    assert 1 / (1 / path.variance + 1 / square) == path.variance * share


def test_a_path_costs_what_one_draw_of_its_variance_would() -> None:
    path = GaussianPath((Gaussian(Fraction(4), ONE), Gaussian(Fraction(4), ONE)))
    assert path.variance == 8
    assert path.cost_units(UNIT, Measure.GDP) == 10**15 // 8
    assert path.cost_units(UNIT, Measure.ZCDP) == 10**15 // 16
    with pytest.raises(RequestError):
        path.cost_units(UNIT, Measure.PURE)


def test_a_path_without_draws_and_cells_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RequestError):
        GaussianPath(())
    path = GaussianPath((Gaussian(Fraction(4), ONE),))
    for released in ([], [[1], [2]]):
        with pytest.raises(RequestError):
            path.estimates(released)
    with pytest.raises(RequestError):
        path.refined(Gaussian(ONE, ONE)).estimates([[1], [2, 3]])
    for variance in (16, 17, 0):
        with pytest.raises(RequestError):
            path.scale_to(Fraction(variance))


def test_finer_geometric_answers_are_the_exact_ones_plus_refined_noise() -> None:
    pair = GeometricRefinement(TwoSidedGeometric(Fraction(3), ONE / 2), TwoSidedGeometric(ONE, ONE / 2))
    values, released = [5, -7, 10**20], [9, -12, 10**20]
    bits = Stream("refine")
    law = refine.Refinement(Fraction(6), Fraction(2))
    expected = [exact + refine.refine(law, noisy - exact, bits) for exact, noisy in zip(values, released, strict=True)]
    assert pair.draw(values, released, Stream("refine")) == expected


def test_a_refinement_costs_the_difference_on_pure_accounts() -> None:
    coarse, fine = TwoSidedGeometric(Fraction(10), ONE), TwoSidedGeometric(Fraction(4), ONE)
    pair = GeometricRefinement(coarse, fine)
    assert pair.cost_units(UNIT, Measure.PURE) == 10**15 // 4 - 10**15 // 10
    for measure in (Measure.GDP, Measure.ZCDP, Measure.renyi(Fraction(4))):
        with pytest.raises(RequestError, match="pure"):
            pair.cost_units(UNIT, measure)


@pytest.mark.parametrize(("fine", "lattice"), [(3, 1), (4, 1), (2, 2)])
def test_scales_only_shrink_and_lattices_stay(fine: int, lattice: int) -> None:
    with pytest.raises(RequestError):
        GeometricRefinement(TwoSidedGeometric(Fraction(3), ONE), TwoSidedGeometric(Fraction(fine), Fraction(lattice)))


def test_cells_that_are_not_there_are_refused() -> None:
    pair = GeometricRefinement(TwoSidedGeometric(Fraction(3), ONE), TwoSidedGeometric(ONE, ONE))
    with pytest.raises(RequestError):
        pair.draw([1, 2], [1], Stream("none"))


def test_a_path_that_forks_loses_more_than_it_is_charged() -> None:
    """Why an answer is refined once: what two refinements of one coarse answer tell, for neighbours one step apart."""
    wide, narrow = (math.exp(-1 / scale) for scale in (3.0, 1.5))
    stays = narrow / wide * ((1 - wide) / (1 - narrow)) ** 2

    def law(ratio: float, noise: int) -> float:
        return (1 - ratio) / (1 + ratio) * ratio ** abs(noise)

    def finer(noise: int, coarse: int) -> float:
        step = (stays if noise == coarse else 0) + (1 - stays) * law(wide, coarse - noise)
        return law(narrow, noise) * step / law(wide, coarse)

    def log_law(coarse: int, *fine: int, exact: int) -> float:
        chances = [law(wide, coarse - exact), *(finer(one - exact, coarse - exact) for one in fine)]
        return math.fsum(map(math.log, chances))

    places = range(-12, 13)
    along = [(coarse, fine) for coarse in places for fine in places]
    forked = [(coarse, first, second) for coarse, first in along for second in places]
    loss = {
        name: max(log_law(*shown, exact=0) - log_law(*shown, exact=1) for shown in transcripts)
        for name, transcripts in (("along", along), ("forked", forked))
    }
    assert loss["along"] == pytest.approx(1 / 1.5)
    assert loss["forked"] == pytest.approx(2 / 1.5 + 1 / 3)
    charged = 1 / 3 + 2 * (1 / 1.5 - 1 / 3)
    assert loss["forked"] > charged + 0.5
