"""C07: calibration stopped at two digits and overshot its target, or was 15 % too noisy, or ran away."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from parco.privacy.calibration import calibrate
from parco.privacy.schedule import Schedule
from tests.cases.schedules import sampled

GAUSSIAN = {"mechanism": "gaussian", "sensitivity": "1", "scale": "1", "times": 60}
LAPLACE = {"mechanism": "laplace", "sensitivity": "1", "scale": "1"}


@pytest.mark.parametrize(
    ("record", "epsilon", "delta", "least"),
    [
        (GAUSSIAN, "0.1", "1e-5", "238.18511506450456"),
        (GAUSSIAN, "1", "1e-5", "28.897348384953385"),
        (GAUSSIAN, "8", "1e-5", "4.6493544010721373"),
        (sampled("0.004", "1", 2500), "1", "1e-5", "1.0295737052907"),
        (sampled("0.004", "1", 2500), "8", "1e-5", "0.5196880799481"),
        (sampled("0.004", "1", 2500), "50", "1e-5", "0.3120065862737"),
        (LAPLACE, "1.01", "1e-30", "0.9900990099009901"),
    ],
)
def test_the_least_noise_and_never_less(record: dict[str, Any], epsilon: str, delta: str, least: str) -> None:
    found = calibrate(Schedule.of([record]), epsilon=epsilon, delta=delta)
    assert found.reached.upper <= Fraction(epsilon)
    assert (
        Fraction(least) * (1 - Fraction(1, 10**12)) <= found.scale_factor <= Fraction(least) * (1 + Fraction(1, 10**6))
    )
