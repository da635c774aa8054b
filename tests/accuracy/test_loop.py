"""The loop on a desk in memory: what it stops at, charges and says."""

from __future__ import annotations

from fractions import Fraction

import pytest

from parco.accuracy.bands import PerStep, TimeUniform
from parco.accuracy.cells import Reach
from parco.accuracy.ladders import Explicit, Geometric, Predictive
from parco.accuracy.loop import refine_until
from parco.accuracy.memory import Account, Held
from parco.accuracy.noises import GaussianNoise
from parco.accuracy.rules import AbsoluteError, RelativeError
from parco.errors import BudgetError, RequestError
from parco.measure import COST_UNIT, Measure
from tests.noise.tapes import Stream

ONE = Fraction(1)
VALUES = [400, 3000, 100_000]


def held(*values: int, measure: Measure = Measure.GDP, cap: str = "1000", name: str = "loop") -> tuple[Held, Account]:
    account = Account(measure, cap)
    return Held(values, account, reach=Reach(2, ONE) if len(values) > 1 else Reach(1, ONE), bits=Stream(name)), account


@pytest.mark.parametrize("keys", ["together", "each"])
@pytest.mark.parametrize("ladder", [Geometric("0.00001", 2), Predictive("0.00001")])
def test_it_stops_at_the_first_step_that_is_good_enough(ladder: Geometric | Predictive, keys: str) -> None:
    measurement, account = held(*VALUES)
    rule = RelativeError("5%")
    found = refine_until(measurement, rule, ladder=ladder, at_most="50", keys=keys)  # type: ignore[arg-type]
    assert found.enough
    assert all(width <= Fraction(1, 20) * abs(estimate) for estimate, width in found.last)
    assert not any(all(rule.done(view)) for view in found.views[:-1])
    assert found.cost.units == measurement.charged == account.spent == found.last.charged
    assert found.cap.value == 50
    assert [view.step for view in found.views] == list(range(1, len(found.views) + 1))
    assert all(abs(estimate - value) <= 5 * width for (estimate, width), value in zip(found.last, VALUES, strict=True))


def test_keys_that_are_good_enough_stay_as_they_are_and_cost_less() -> None:
    together = refine_until(held(*VALUES)[0], RelativeError("5%"), ladder=Geometric("0.00001", 2), at_most="50")
    each = refine_until(
        held(*VALUES)[0], RelativeError("5%"), ladder=Geometric("0.00001", 2), at_most="50", keys="each"
    )
    assert len(set(together.last.half_widths)) == 1
    assert list(each.last.half_widths) == sorted(each.last.half_widths)
    assert each.last.half_widths[2] > 50 * each.last.half_widths[0]
    # A unit is in two cells: with one of them far coarser, nearly half is saved.
    assert each.cost.units < 0.6 * together.cost.units
    first = next(view for view in each.views if RelativeError("5%").done(view)[2])
    assert each.last.estimates[2] == first.estimates[2]


def test_never_to_get_there_is_an_ordinary_result() -> None:
    found = refine_until(held(0)[0], RelativeError("5%"), ladder=Geometric("0.001", 2), at_most="0.01")
    assert found.reached == (False,)
    assert not found.enough
    assert found.cap.units * (1 - 1e-12) <= found.cost.units <= found.cap.units
    assert not found.out_of_budget


def test_the_account_refuses_the_first_step_and_ends_the_run_at_a_later_one() -> None:
    measurement, account = held(100, cap="0.005")
    with pytest.raises(BudgetError):
        refine_until(measurement, RelativeError("5%"), ladder=Explicit(("0.006",)))
    assert account.spent == 0
    found = refine_until(measurement, RelativeError("5%"), ladder=Geometric("0.002", 2), at_most="1")
    assert found.out_of_budget
    assert len(found.views) == 2
    assert found.cost.units == account.spent


@pytest.mark.parametrize("ladder", [Geometric("0.001", 2), Predictive("0.001")])
def test_a_second_run_goes_on_from_the_first(ladder: Geometric | Predictive) -> None:
    measurement, account = held(100)
    first = refine_until(measurement, RelativeError("20%"), ladder=ladder, at_most="5")
    again = refine_until(measurement, RelativeError("20%"), ladder=ladder, at_most="5")
    assert again.enough
    assert again.cost.units == 0
    assert again.last.estimates == first.last.estimates
    finer = refine_until(measurement, RelativeError("5%"), ladder=ladder, at_most="5")
    assert finer.enough
    assert account.spent == first.cost.units + finer.cost.units > first.cost.units


def test_levels_are_those_of_the_steps_that_there_may_be() -> None:
    found = refine_until(held(100)[0], AbsoluteError(40), ladder=Geometric("0.001", 2, count=7), confidence="0.9")
    assert {view.steps for view in found.views} == {7}
    noise = found.last.half_widths[0] ** 2 * found.cost.value
    z = PerStep(Fraction(1, 10), 7).half_width(GaussianNoise(ONE, Fraction(0)))
    assert float(noise) == pytest.approx(float(z) ** 2, rel=0.02)
    both = refine_until(
        held(*VALUES)[0], AbsoluteError(40), ladder=Geometric("0.001", 2, count=7), confidence="0.9", simultaneous=True
    )
    assert both.last.confidence == 1 - Fraction(1, 30)


def test_other_bands_can_be_given() -> None:
    band = TimeUniform(Fraction(1, 20), Fraction(100))
    found = refine_until(held(1000)[0], RelativeError("5%"), ladder=Geometric("0.001", "1.05"), at_most="5", band=band)
    assert found.enough
    assert found.last.steps > 150


@pytest.mark.parametrize("cost", ["0.1", "0.4"])
def test_in_pure_accounts_geometric_noise_is_refined(cost: str) -> None:
    measurement, account = held(50, 700, measure=Measure.PURE)
    found = refine_until(measurement, RelativeError("10%"), ladder=Geometric(cost, 2), at_most="20", keys="each")
    assert found.enough
    assert all(estimate.denominator == 1 for estimate in found.last.estimates)
    assert account.spent * COST_UNIT <= 20
    with pytest.raises(RequestError, match="take Geometric"):
        refine_until(measurement, RelativeError("10%"), ladder=Predictive(cost), at_most="20")


def test_what_does_not_go_together_is_refused_before_anything_is_charged() -> None:
    measurement, account = held(100)
    ladder = Geometric("0.001", 2)
    for wrong in (
        lambda: refine_until(measurement, lambda _: True, ladder=Predictive("0.001"), at_most=1),
        lambda: refine_until(measurement, RelativeError("5%"), ladder=ladder),
        lambda: refine_until(measurement, RelativeError("5%"), ladder=Predictive("0.001", 41), at_most=1),
        lambda: refine_until(
            measurement, RelativeError("5%"), ladder=Predictive("0.001"), at_most=1, confidence="0.9999999"
        ),
        lambda: refine_until(measurement, RelativeError("5%"), ladder=ladder, at_most=1, confidence=1),
        lambda: refine_until(measurement, RelativeError("5%"), ladder=ladder, at_most=1, keys="all"),  # type: ignore[arg-type]
        lambda: Held([1.5], Account(Measure.GDP, 1), reach=Reach(1, ONE)),  # type: ignore[list-item]
        lambda: Held([1], reach=Reach(1, ONE)),
        lambda: Held([1], Account(Measure.GDP, 1), Account(Measure.ZCDP, 1), reach=Reach(1, ONE)),
    ):
        with pytest.raises(RequestError):
            wrong()
    assert account.spent == 0
