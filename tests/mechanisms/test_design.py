"""Designs: the charge fits what was asked, the error holds, and no other scale does better."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.measure import COST_UNIT, UNITS_MAX, Measure, units_ceil
from parco.mechanisms.design import for_cost, for_error
from parco.mechanisms.mechanism import Additive, Gaussian, TwoSidedGeometric
from parco.privacy.sensitivity import Sensitivity

RENYI = Measure.renyi(Fraction(5))
FAMILIES: dict[Measure, type[Additive]] = {
    Measure.GDP: Gaussian,
    Measure.ZCDP: Gaussian,
    RENYI: Gaussian,
    Measure.PURE: TwoSidedGeometric,
}
# What a Gaussian release costs over D^2/s^2 (Bun & Steinke 2016; Mironov 2017).
FACTORS = {Measure.GDP: Fraction(1), Measure.ZCDP: Fraction(1, 2), RENYI: Fraction(5, 2)}
CONFIDENCE = Fraction(95, 100)
OPTIMAL = Fraction(1, 10**6)

measures = st.sampled_from(list(FAMILIES))
steps = st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(3)])
multiples = st.integers(1, 500)


def sensitivity(step: Fraction, multiple: int) -> Sensitivity:
    """One unit in three cells, each moved by `multiple` steps."""
    return Sensitivity(3 * multiple * step, 3 * (multiple * step) ** 2)


def lattice(step: Fraction, scale: Fraction) -> Fraction:
    """h/2^k, smallest k >= 0 with h/2^k <= scale/8: a second way to find it."""
    ratio = 8 * step / scale
    return step / (1 << max(0, (-(-ratio.numerator // ratio.denominator) - 1).bit_length()))


@settings(max_examples=80, deadline=None)
@given(
    measure=measures, step=steps, multiple=multiples, units=st.one_of(st.integers(1, UNITS_MAX), st.integers(1, 10**16))
)
def test_the_charge_fits_and_the_noise_is_the_least(
    measure: Measure, step: Fraction, multiple: int, units: int
) -> None:
    moved = sensitivity(step, multiple)
    mechanism = for_cost(measure, moved, step=step, units=units)
    assert type(mechanism) is FAMILIES[measure]
    assert mechanism.cost_units(moved, measure) <= units
    less = FAMILIES[measure](mechanism.scale * (1 - Fraction(1, 10**14)), mechanism.lattice)
    gaussian = FACTORS.get(measure)
    exact = moved.l1 / less.scale if gaussian is None else gaussian * moved.l2_squared / less.scale**2
    assert exact > units * COST_UNIT


@settings(max_examples=80, deadline=None)
@given(measure=measures, step=steps, multiple=multiples, units=st.integers(1, UNITS_MAX))
def test_the_lattice_is_the_coarsest_with_eight_steps(
    measure: Measure, step: Fraction, multiple: int, units: int
) -> None:
    mechanism = for_cost(measure, sensitivity(step, multiple), step=step, units=units)
    assert mechanism.lattice == lattice(step, mechanism.scale)
    assert mechanism.scale >= 8 * mechanism.lattice
    assert mechanism.lattice == step or mechanism.scale < 16 * mechanism.lattice
    assert (step / mechanism.lattice).denominator == 1


def test_exact_costs_have_exact_scales() -> None:
    one = Sensitivity(Fraction(1), Fraction(1))
    assert for_cost(Measure.GDP, one, step=Fraction(1), units=4 * 10**13).scale == 5
    assert for_cost(Measure.PURE, one, step=Fraction(1), units=10**14).scale == 10
    third = for_cost(Measure.PURE, one, step=Fraction(1), units=10**15 // 3)
    assert third.cost_units(one, Measure.PURE) == 10**15 // 3


def wide_enough(mechanism: Additive, error: Fraction) -> bool:
    return mechanism.half_width(CONFIDENCE) <= error


@settings(max_examples=60, deadline=None)
@given(
    measure=measures,
    step=steps,
    multiple=st.integers(1, 20),
    error_steps=st.fractions(Fraction(1, 20), Fraction(3000), max_denominator=1000),
)
def test_the_error_holds_and_no_scale_on_a_dense_grid_is_cheaper(
    measure: Measure, step: Fraction, multiple: int, error_steps: Fraction
) -> None:
    moved, error = sensitivity(step, multiple), error_steps * step
    try:
        mechanism = for_error(measure, moved, step=step, error=error, confidence=CONFIDENCE)
    except RequestError:
        # Only an error that even the dearest account cannot buy may be refused.
        assert not wide_enough(for_cost(measure, moved, step=step, units=UNITS_MAX), error * Fraction(1, 2))
        return
    assert wide_enough(mechanism, error)
    charge = mechanism.cost_units(moved, measure)
    # Scales from just above the one chosen (where the charge would be less) to four times it.
    for i in range(1, 60):
        scale = mechanism.scale * (1 + OPTIMAL) * (1 + Fraction(i - 1, 20))
        other = FAMILIES[measure](scale, lattice(step, scale))
        assert not wide_enough(other, error) or other.cost_units(moved, measure) >= charge
    assert units_ceil(charge * COST_UNIT) == charge


@pytest.mark.parametrize("measure", list(FAMILIES))
def test_just_below_a_change_of_lattice_the_scale_is_capped(measure: Measure) -> None:
    # Errors in steps of 1/64 around the one where the scale is 8: the mechanism sits on the coarser lattice, or on the
    # finer one below the change, and holds its error in each case.
    one, seen = Sensitivity(Fraction(1), Fraction(1)), set()
    for sixty_fourths in range(900, 2200, 7):
        error = Fraction(sixty_fourths, 64)
        mechanism = for_error(measure, one, step=Fraction(1), error=error, confidence=CONFIDENCE)
        assert wide_enough(mechanism, error)
        assert mechanism.lattice == lattice(Fraction(1), mechanism.scale)
        seen.add(mechanism.lattice)
    assert seen == {Fraction(1), Fraction(1, 2)}


@pytest.mark.parametrize("units", [0, -1, UNITS_MAX + 1])
@pytest.mark.parametrize("measure", list(FAMILIES))
def test_costs_out_of_range_are_refused_with_advice(measure: Measure, units: int) -> None:
    with pytest.raises(RequestError, match="ask for a cost in that range"):
        for_cost(measure, Sensitivity(Fraction(1), Fraction(1)), step=Fraction(1), units=units)


@pytest.mark.parametrize("measure", list(FAMILIES))
def test_errors_out_of_range_are_refused_with_advice(measure: Measure) -> None:
    one = Sensitivity(Fraction(1), Fraction(1))
    with pytest.raises(RequestError, match="ask for a larger one"):
        for_error(measure, one, step=Fraction(1), error=Fraction(1, 10**9), confidence=CONFIDENCE)
    for error, confidence in ((0, CONFIDENCE), (-1, CONFIDENCE), (10, Fraction(1))):
        with pytest.raises(RequestError):
            for_error(measure, one, step=Fraction(1), error=Fraction(error), confidence=confidence)


def test_a_step_that_is_not_positive_is_refused() -> None:
    with pytest.raises(RequestError):
        for_cost(Measure.GDP, Sensitivity(Fraction(1), Fraction(1)), step=Fraction(0), units=1)


def test_a_sensitivity_off_the_lattice_is_refused_in_pure() -> None:
    with pytest.raises(RequestError):
        for_cost(Measure.PURE, Sensitivity(Fraction(1, 3), Fraction(1, 9)), step=Fraction(1, 2), units=10**15)


def test_a_huge_error_costs_the_least_charge() -> None:
    one = Sensitivity(Fraction(1), Fraction(1))
    for measure in FAMILIES:
        mechanism = for_error(measure, one, step=Fraction(1), error=Fraction(10**30), confidence=CONFIDENCE)
        assert mechanism.cost_units(one, measure) == 1
