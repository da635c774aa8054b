"""C02: settings that a practitioner would call normal were refused, or hung, or lost orders without a word."""

from __future__ import annotations

from fractions import Fraction

import pytest

from parco.privacy.composition import compose
from parco.privacy.schedule import Schedule
from tests.cases.schedules import encloses, epsilon, sampled


@pytest.mark.parametrize(
    ("rate", "scale", "times", "delta", "truth"),
    [
        ("0.125", "0.8", 1000, "1e-6", "56.72594997765154"),
        ("0.2", "1", 10, "1e-5", "4.984213398691348"),
        ("0.2", "1", 500, "1e-5", "38.17024720648783"),
        ("0.001", "1", 1_000_000, "1e-6", "6.694272659721021"),
    ],
)
def test_ordinary_settings_have_an_answer(rate: str, scale: str, times: int, delta: str, truth: str) -> None:
    assert encloses(epsilon(sampled(rate, scale, times), delta=delta), truth)


def test_no_order_is_dropped_from_the_renyi_bound() -> None:
    """The best continuous order lies where a peer's list had lost its orders, at 1.5907."""
    best = Fraction("60.293802164460066")
    bound = compose(Schedule.of([sampled("0.125", "0.8", 1000)])).renyi_epsilon("1e-6")
    assert best * (1 - Fraction(1, 10**12)) <= bound <= best * (1 + Fraction(1, 10**8))
