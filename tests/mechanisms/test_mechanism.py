"""Mechanisms: cost, interval, draw and record, one suite for every family."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import RequestError, VerificationError
from parco.measure import COST_UNIT, Measure
from parco.mechanisms.mechanism import Additive, Gaussian, TwoSidedGeometric, mechanism_of
from parco.noise import intervals
from parco.noise.vector import BLOCK
from parco.privacy import pure
from parco.privacy.sensitivity import Sensitivity
from tests.noise.tapes import Stream

FAMILIES: list[type[Additive]] = [Gaussian, TwoSidedGeometric]
CONFIDENCE = Fraction(95, 100)
SENSITIVITY = Sensitivity(Fraction(3), Fraction(3))


@pytest.mark.parametrize("family", FAMILIES)
class TestEveryFamily:
    """What holds for each mechanism."""

    def test_the_record_reads_back(self, family: type[Additive]) -> None:
        mechanism = family(Fraction(100, 7), Fraction(1, 4))
        assert mechanism.record() == {"kind": family.kind, "scale": [100, 7], "lattice": [1, 4]}
        assert mechanism_of(mechanism.record()) == mechanism
        assert type(mechanism_of(mechanism.record())) is family

    def test_noise_is_added_cell_by_cell(self, family: type[Additive]) -> None:
        mechanism = family(Fraction(100), Fraction(1, 4))
        values = [5, -7, 2**70, 0] * 100
        noise = mechanism.draw([0] * len(values), Stream("noise"))
        assert mechanism.draw(values, Stream("noise")) == [
            value + extra for value, extra in zip(values, noise, strict=True)
        ]
        assert len(set(noise)) > len(noise) // 4

    def test_noise_has_the_scale_in_real_units(self, family: type[Additive]) -> None:
        # 4,000 draws: their mean square is within 20 % of the law's (standard deviations 2.2 % and 3.5 %).
        mechanism = family(Fraction(100), Fraction(1, 4))
        noise = mechanism.draw([0] * 4_000, Stream("noise"))
        expected = 100**2 * (1 if family is Gaussian else 2)
        assert abs(sum(n * n for n in noise) / len(noise) / 16 / expected - 1) < 0.2

    def test_progress_ends_at_the_number_of_cells(self, family: type[Additive]) -> None:
        told: list[int] = []
        family(Fraction(8), Fraction(1)).draw([0] * (2 * BLOCK + 600), Stream("noise"), progress=told.append)
        assert told == [BLOCK, 2 * BLOCK, 2 * BLOCK + 600]

    def test_no_cells_are_no_noise(self, family: type[Additive]) -> None:
        assert family(Fraction(8), Fraction(1)).draw([], Stream("noise")) == []

    def test_the_half_width_is_the_quantile_in_real_units(self, family: type[Additive]) -> None:
        mechanism = family(Fraction(2), Fraction(1, 4))
        steps = intervals.half_width_steps(family.law_type(Fraction(8)), CONFIDENCE)
        assert mechanism.half_width(CONFIDENCE) == Fraction(steps, 4)

    def test_scales_and_lattices_are_positive(self, family: type[Additive]) -> None:
        for scale, lattice in ((0, 1), (1, 0), (-1, 1), (1, -1)):
            with pytest.raises(RequestError):
                family(Fraction(scale), Fraction(lattice))

    @settings(max_examples=50, deadline=None)
    @given(scale=st.fractions(Fraction(1, 50), Fraction(10**6), max_denominator=1000))
    def test_the_charge_is_rounded_up_by_less_than_one_unit(self, family: type[Additive], scale: Fraction) -> None:
        measure = Measure.GDP if family is Gaussian else Measure.PURE
        charge = family(scale, Fraction(1)).cost_units(SENSITIVITY, measure) * COST_UNIT
        exact = SENSITIVITY.l2_squared / scale**2 if family is Gaussian else SENSITIVITY.l1 / scale
        assert exact <= charge < exact + COST_UNIT


def test_a_gaussian_has_no_pure_cost() -> None:
    with pytest.raises(RequestError):
        Gaussian(Fraction(8), Fraction(1)).cost_units(SENSITIVITY, Measure.PURE)


def test_geometric_noise_converts_into_gdp() -> None:
    charge = TwoSidedGeometric(Fraction(6), Fraction(1, 2)).cost_units(SENSITIVITY, Measure.GDP) * COST_UNIT
    assert 0 <= charge - pure.mu_squared_upper(Fraction(1, 2)) < COST_UNIT


def test_geometric_noise_on_a_lattice_that_misses_the_sensitivity_is_refused() -> None:
    with pytest.raises(RequestError):
        TwoSidedGeometric(Fraction(16), Fraction(2)).cost_units(SENSITIVITY, Measure.PURE)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "laplace"}, {"kind": None}, {"scale": [2, 4]}, {"scale": [1, 0]}, {"scale": [-1, 2]},
        {"scale": [1.0, 2]}, {"scale": [True, 2]}, {"scale": "1/2"}, {"lattice": [1]}, {"extra": 1},
    ],
)  # fmt: skip
def test_a_record_that_no_mechanism_wrote_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(VerificationError):
        mechanism_of(Gaussian(Fraction(8), Fraction(1)).record() | change)


def test_an_incomplete_record_is_refused() -> None:
    with pytest.raises(VerificationError):
        mechanism_of({"kind": "gaussian", "scale": [8, 1]})
