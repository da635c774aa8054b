"""C03: a fixed list of Renyi orders decided epsilon; the best order was not in it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from parco.privacy.composition import compose
from parco.privacy.schedule import Schedule
from tests.cases.schedules import encloses, epsilon, sampled

CASES = [
    ("1/60", "1.3", 900, "2.0846911814489827", "1.891518511666562"),
    ("0.01", "10", 100, "0.031481697799322", "0.027708623112556924"),
    ("0.004", "4", 1000, "0.111765205649876", "0.10000799711474786"),
]


@pytest.mark.parametrize(("rate", "scale", "times", "renyi", "tight"), CASES)
def test_the_best_of_all_orders_is_reached(rate: str, scale: str, times: int, renyi: str, tight: str) -> None:
    record = sampled(rate, scale, times)
    bound = compose(Schedule.of([record])).renyi_epsilon("1e-5")
    assert Fraction(renyi) * (1 - Fraction(1, 10**11)) <= bound <= Fraction(renyi) * (1 + Fraction(1, 10**9))
    assert encloses(epsilon(record, delta="1e-5"), tight)
