"""Numbers at the door: exact, finite, and refused by name where they are not."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from parco.errors import RequestError
from parco.measure import (
    UNITS_MAX,
    Cost,
    Measure,
    decimal_text,
    exact,
    exact_text,
    significant_text,
    units_ceil,
    units_floor,
)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("0.5/0.25", Fraction(2)),
        (" 1e-6 ", Fraction(1, 10**6)),
        ("1e-400", Fraction(1, 10**400)),
        (".5", Fraction(1, 2)),
        ("-0.0", Fraction(0)),
        ("0e99", Fraction(0)),
        (Decimal("1.10"), Fraction(11, 10)),
        (10**4000, Fraction(10**4000)),
        (Fraction(2, 7), Fraction(2, 7)),
    ],
)
def test_what_it_shows_is_what_it_is(value: Any, number: Fraction) -> None:
    assert exact(value, "cost") == number


@pytest.mark.parametrize(
    "value",
    ["nan", "inf", "-inf", float("nan"), float("inf"), True, None, "", "1_000", "٣", "1e401", "1e-401", "1/0", "1/2/3",
     "1e99999999999999999999", "1e-99999999999999999999", "1" * 65, "0x10", b"1", Decimal("NaN"), [1]],
)  # fmt: skip
def test_what_is_no_number_is_refused_naming_the_field(value: Any) -> None:
    with pytest.raises(RequestError, match=r"^cost: "):
        exact(value, "cost")


def test_costs_are_rounded_to_their_side() -> None:
    third = Fraction(1, 3)
    assert units_floor(third) + 1 == units_ceil(third) == 333333333333334
    assert str(Cost(units_floor(third))) == "0.333333333333333"
    for units in (-1, UNITS_MAX + 1):
        with pytest.raises(RequestError):
            Cost(units)


def test_text_is_exact_or_rounded_to_its_side() -> None:
    assert decimal_text(Fraction(-5, 4)) == "-1.25"
    assert exact_text(Fraction(1, 3)) == "1/3"
    assert significant_text(Fraction(2, 3), 4, up=True) == "0.6667"
    assert significant_text(Fraction(2, 3), 4, up=False) == "0.6666"
    assert Fraction(significant_text(Fraction(1, 3 * 10**40), 5, up=True)) > Fraction(1, 3 * 10**40)
    with pytest.raises(RequestError):
        decimal_text(Fraction(1, 3))


def test_a_measure_and_its_text_are_each_others_inverse() -> None:
    for measure in (Measure.PURE, Measure.GDP, Measure.ZCDP, Measure.renyi(Fraction(8)), Measure.renyi(Fraction(4, 3))):
        assert Measure.parse(str(measure)) == measure
    for text in ("laplace", "renyi", "renyi(1)", "gdp(8)", "renyi(8.0)", "renyi(8"):
        with pytest.raises(RequestError):
            Measure.parse(text)
