"""Where a ladder stopped: roots on the right side, the law of its answer, and what cells cost that stand apart."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.measure import Measure
from parco.mechanisms.mechanism import Gaussian, TwoSidedGeometric, root_upper
from parco.mechanisms.stopping import FINER, StoppedGaussian, root_lower, units_apart
from parco.privacy.sensitivity import Sensitivity

POSITIVE = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12).filter(bool)


@given(POSITIVE)
def test_a_root_is_rounded_down_by_next_to_nothing(square: Fraction) -> None:
    root = root_lower(square)
    assert root**2 <= square <= (root * (1 + Fraction(1, 10**15))) ** 2


@given(POSITIVE, st.fractions(min_value=1, max_value=2))
def test_a_scale_that_was_rounded_up_is_no_larger_than_a_root_above_it(square: Fraction, more: Fraction) -> None:
    """What was reserved is such a scale, and a ladder that climbed to its end must not seem sharper than that."""
    scale = root_upper(square)
    assert root_lower(scale**2) >= scale
    assert root_lower(scale**2 * more) >= scale


@pytest.mark.parametrize("steps", [8, 9, 20, 1000])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
def test_its_intervals_cover_the_noise_wherever_the_roundings_fall(steps: int, confidence: str) -> None:
    """Normal noise of the largest variance, all roundings at their worst: by a second library's error function."""
    lattice, level = Fraction(1, 4), Fraction(confidence)
    law = StoppedGaussian(lattice * steps, lattice)
    assert law.slack == lattice / (2 * FINER)
    width = law.half_width(level)
    assert width % lattice == 0
    # Published lies within q steps wherever the estimate lies within q + 1/2, which roundings may have moved.
    with mpmath.workdps(30):
        reach = width + lattice / 2 - law.slack
        covered = mpmath.erf(mpmath.mpf(reach.numerator) / reach.denominator / mpmath.sqrt(2 * float(law.variance)))
        narrower = reach - lattice
        missed = mpmath.erf(
            mpmath.mpf(narrower.numerator) / narrower.denominator / mpmath.sqrt(2 * float(law.variance))
        )
    assert covered >= float(level)
    assert missed < float(level)


@given(
    scales=st.lists(st.fractions(min_value=Fraction(1, 10), max_value=100), min_size=1, max_size=5),
    cells=st.integers(1, 3),
    each=st.integers(1, 5),
    measure=st.sampled_from([Measure.PURE, Measure.GDP, Measure.ZCDP, Measure.renyi(Fraction(3))]),
)
def test_cells_that_stand_apart_cost_what_the_dearest_choice_of_them_does(
    scales: list[Fraction], cells: int, each: int, measure: Measure
) -> None:
    law = TwoSidedGeometric(max(scales), Fraction(1)) if measure == Measure.PURE else Gaussian(max(scales), Fraction(1))
    factor = {Measure.GDP: Fraction(1), Measure.ZCDP: Fraction(1, 2), Measure.renyi(Fraction(3)): Fraction(3, 2)}
    losses = [
        each / scale if measure == Measure.PURE else factor[measure] * Fraction(each) ** 2 / scale**2
        for scale in scales
    ]
    worst = max(sum(some) for some in itertools.combinations(losses, min(cells, len(losses))))
    reach = Sensitivity(Fraction(cells * each), Fraction(cells * each**2))
    assert units_apart(law, scales, reach, measure) == math.ceil(worst * 10**15)


def test_all_at_one_scale_cost_what_the_law_does() -> None:
    reach, law = Sensitivity(Fraction(6), Fraction(18)), StoppedGaussian(Fraction(7), Fraction(1))
    assert units_apart(law, (), reach, Measure.GDP) == Gaussian(Fraction(7), Fraction(1)).cost_units(reach, Measure.GDP)
    assert units_apart(law, (Fraction(7),) * 4, reach, Measure.GDP) == units_apart(law, (), reach, Measure.GDP)


def test_what_has_no_price_is_refused() -> None:
    odd = Sensitivity(Fraction(3), Fraction(5))
    with pytest.raises(RequestError, match="refine them together"):
        units_apart(StoppedGaussian(Fraction(7), Fraction(1)), (Fraction(7), Fraction(6)), odd, Measure.GDP)
    for scales in ((), (Fraction(7), Fraction(6))):
        with pytest.raises(RequestError, match="pure accounts alone"):
            units_apart(TwoSidedGeometric(Fraction(7), Fraction(1)), scales, odd, Measure.ZCDP)
    with pytest.raises(RequestError, match="no cost in the measure pure"):
        units_apart(StoppedGaussian(Fraction(7), Fraction(1)), (), odd, Measure.PURE)
