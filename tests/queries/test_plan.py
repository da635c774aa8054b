"""A plan costs at most what was asked, exactly; it is made from contract and question alone."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest

from parco.contract.contract import Contract
from parco.errors import QuestionError, RequestError
from parco.measure import Measure
from parco.mechanisms.mechanism import Additive
from parco.queries.plan import CONFIDENCE, Plan, Spend
from parco.queries.query import Query
from tests.contract.document import parse

UNIT = Fraction(1, 10**15)
MEASURES = (Measure.GDP, Measure.PURE)
GDP = 'measure = "gdp"\nepsilon = "1"\ndelta = "1e-6"'
ASKED = [("count", None, ()), ("count_units", None, ("month",)), ("sum", "cost", ("ward", "month"))]


def contract(measure: Measure, total: str = "1", share: str = "0.05") -> Contract:
    budget = f'measure = "{measure}"\ntotal = "{total}"' + ('\ndelta = "1e-6"' if measure == Measure.GDP else "")
    return parse((GDP, budget), ('default_share = "0.05"', f'default_share = "{share}"'))


def plan(agreed: Contract, asked: tuple[str, str | None, tuple[str, ...]] = ASKED[0], **spend: Any) -> Plan:
    statistic, column, by = asked
    return Plan.of(Query.of(agreed, statistic, column=column, by=by), version="1", spend=Spend.of(**spend))


def charge(made: Plan, measure: Measure) -> Fraction:
    """What the noise of a plan costs, from its scale and the sensitivity: nothing is rounded."""
    scale = made.mechanism.scale
    return made.sensitivity.l2_squared / scale**2 if measure == Measure.GDP else made.sensitivity.l1 / scale


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize(
    "cost", ["1/3", "0.1", "1/7", "1e-3", "2/3", "1e-9", "0.0123456789012345678", "123.456", "1e-15"]
)
def test_a_cost_is_a_ceiling_rounded_down(
    measure: Measure, asked: tuple[str, str | None, tuple[str, ...]], cost: str
) -> None:
    made = plan(contract(measure), asked, cost=cost)
    ceiling = floor(Fraction(cost) / UNIT)
    exact = charge(made, measure)
    assert made.cost.units == ceil(exact / UNIT) <= ceiling
    # Nothing is wasted either: the noise is the least that the ceiling buys, up to the digits of a scale.
    assert exact >= ceiling * UNIT * (1 - Fraction(1, 10**14))
    if measure == Measure.PURE:
        assert made.cost.units == ceiling


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("parts", [3, 7, 9, 10, 11])
def test_equal_parts_of_a_budget_fit_it(measure: Measure, parts: int) -> None:
    agreed = contract(measure)
    for spend in ({"cost": f"1/{parts}"}, {"cost": Fraction(1, parts)}, {"cost": 1 / parts}):
        assert parts * plan(agreed, **spend).cost.units <= agreed.budget.cap_units == 10**15
    share = plan(contract(measure, share=f"1/{parts}"))
    assert share.cost.units == plan(agreed, cost=f"1/{parts}").cost.units


def test_three_times_a_third_of_a_pure_budget_leaves_one_unit() -> None:
    assert 3 * plan(contract(Measure.PURE), cost="1/3").cost.units == 10**15 - 1


def test_a_float_is_taken_by_its_shortest_text() -> None:
    agreed = contract(Measure.PURE)
    for cost in (0.1, "0.1", "1/10", Decimal("0.1"), Fraction(1, 10), "1e-1", " .1 "):
        assert plan(agreed, cost=cost).cost.units == 10**14
    assert plan(agreed, cost=1).cost.units == plan(agreed, cost="1").cost.units == 10**15


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("error", ["500", "37.25", "20", "13/2"])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
def test_an_error_is_reached(
    measure: Measure, asked: tuple[str, str | None, tuple[str, ...]], error: str, confidence: str
) -> None:
    made = plan(contract(measure), asked, error=error, confidence=confidence)
    assert made.half_width <= Fraction(error)
    assert isinstance(made.mechanism, Additive)
    assert made.half_width == made.mechanism.half_width(Fraction(confidence))
    assert made.confidence == Fraction(confidence)
    assert made.cost.units == ceil(charge(made, measure) / UNIT) > 0


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_confidence_widens_an_interval_and_not_its_cost(measure: Measure) -> None:
    agreed = contract(measure)
    narrow, usual, wide = (plan(agreed, cost="0.05", confidence=level) for level in ("0.5", None, "0.999"))
    assert narrow.mechanism == usual.mechanism == wide.mechanism
    assert narrow.half_width < usual.half_width < wide.half_width
    assert usual.confidence == CONFIDENCE == Fraction(95, 100)
    dear, cheap = (plan(agreed, error="100", confidence=level) for level in ("0.999", "0.5"))
    assert dear.cost.units > cheap.cost.units


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize(("total", "share"), [("1", "0.05"), ("0.3", "1/3"), ("5", "1"), ("1e-12", "0.5")])
def test_who_names_neither_pays_the_contracts_share(measure: Measure, total: str, share: str) -> None:
    agreed = contract(measure, total, share)
    made = plan(agreed)
    assert made.cost.units <= floor(Fraction(share) * agreed.budget.cap_units)
    assert made.cost.units >= floor(Fraction(share) * agreed.budget.cap_units * (1 - Fraction(1, 10**14)))


def test_a_share_that_no_account_can_count_is_refused() -> None:
    with pytest.raises(RequestError, match="ask for a cost in that range"):
        plan(contract(Measure.PURE, "1e-15", "0.5"))


def test_cost_and_error_exclude_each_other() -> None:
    with pytest.raises(QuestionError, match="cost or error, not both"):
        Spend.of(cost="0.1", error="5")


@pytest.mark.parametrize("name", ["cost", "error", "confidence"])
@pytest.mark.parametrize(
    "value",
    [
        0,
        "0",
        -1,
        "-0.5",
        float("nan"),
        float("inf"),
        float("-inf"),
        "nan",
        "inf",
        True,
        False,
        "",
        "abc",
        "1/0",
        "0.5%",
        [],
        b"1",
    ],
    ids=repr,
)
def test_amounts_are_positive_finite_numbers(name: str, value: Any) -> None:
    with pytest.raises(RequestError, match=name):
        Spend.of(**{name: value})


@pytest.mark.parametrize("level", ["1", "2", "0.9999999999999", 1.0])
def test_a_confidence_of_one_would_need_an_interval_without_end(level: Any) -> None:
    with pytest.raises(QuestionError, match="confidence lies above 0 and at most"):
        Spend.of(confidence=level)
    assert Spend.of(confidence="0.999999999999").confidence == 1 - Fraction(1, 10**12)


@pytest.mark.parametrize("cost", ["1e-16", "9.99e-16", "1e-300"])
def test_a_cost_below_the_least_unit_is_refused_and_never_free(cost: str) -> None:
    with pytest.raises(QuestionError, match="below 1e-15"):
        plan(contract(Measure.PURE), cost=cost)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_cost_that_no_account_holds_is_refused(measure: Measure) -> None:
    with pytest.raises(RequestError, match="at most 9223"):
        plan(contract(measure), cost="9224")
    with pytest.raises(RequestError, match="costs more than 9223"):
        plan(contract(measure), ASKED[2], error="1e-6")


def test_a_plan_says_what_it_is() -> None:
    made = plan(contract(Measure.PURE), ASKED[2], cost="0.1")
    # Three groups of two rows of at most 20 each.
    stated = {
        "question": "sum cost by month, ward",
        "version": "1",
        "cells": 12,
        "measure": "pure",
        "mechanism": "two-sided-geometric",
        "scale": "1200",
        "lattice": "0.05",
        "cost": "0.1",
        "half_width": str(float(made.half_width)),
        "confidence": "0.95",
        "remaining": None,
        "repeat": False,
    }
    assert {name: made.record()[name] for name in stated} == stated
    assert made.half_width % Fraction("0.05") == 0
    assert made.question == made.query.question("1")
    gaussian = plan(contract(Measure.GDP), ASKED[2], cost="0.1").record()
    assert (gaussian["mechanism"], gaussian["measure"]) == ("gaussian", "gdp")
