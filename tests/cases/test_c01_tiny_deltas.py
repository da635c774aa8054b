"""C01: two deltas near 10^-18 that differ by a few per cent gave epsilons that differed by a factor of sixty."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.cases.schedules import encloses, epsilon, sampled


@pytest.mark.parametrize(
    ("rate", "delta", "truth"),
    [
        ("0.00033", "1.1e-18", "0.06721361410591916"),
        ("0.00033", "1.13e-18", "0.06718544584381441"),
        ("0.00038", "1.13e-18", "0.07754087851216258"),
        ("0.00038", "1.11e-18", "0.07756236370387129"),
    ],
)
def test_tiny_deltas_are_told_apart(rate: str, delta: str, truth: str) -> None:
    assert encloses(epsilon(sampled(rate, "4", 10_000), delta=delta), truth)


def test_epsilon_falls_as_delta_grows_and_is_never_negative() -> None:
    """For the whole class: however small the deltas, larger ones never ask for more."""
    found = [epsilon(sampled("0.01", "1", 1000), delta=f"1e-{digits}") for digits in (30, 25, 18, 12, 6, 1)]
    for smaller, larger in pairwise(found):
        assert larger.upper < smaller.lower or larger.upper == 0
    assert all(interval.lower >= 0 for interval in found)
