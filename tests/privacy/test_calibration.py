"""Calibration: what comes back meets the target, and a little less noise does not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.privacy.calibration import calibrate, calibrate_advantage, runs_within
from parco.privacy.composition import compose
from parco.privacy.schedule import Schedule

MILLIONTH = Fraction(1, 10**6)


def gaussian(scale: object = "1", times: int = 1, rate: object = None) -> dict[str, Any]:
    record: dict[str, Any] = {"mechanism": "gaussian", "sensitivity": "1", "scale": str(scale), "times": times}
    return record if rate is None else record | {"sampling": {"scheme": "poisson", "rate": str(rate)}}


LAPLACE = {"mechanism": "laplace", "sensitivity": "1", "scale": "3", "times": 5}
PURE = {"mechanism": "pure", "epsilon": "0.3", "times": 4}
EXPONENTIAL = {"mechanism": "exponential", "epsilon": "0.3", "times": 4}


@pytest.mark.parametrize(
    "records",
    [
        [gaussian("4", 10)],
        [gaussian("0.7", 400, "0.02")],
        [LAPLACE, gaussian("9", 20)],
        [PURE],
        [EXPONENTIAL, gaussian("2", 50, "0.05")],
    ],
    ids=["gaussian", "sampled", "mixture", "pure", "sampled mixture"],
)
@pytest.mark.parametrize("target", ["0.4", "3"])
def test_the_factor_suffices_and_one_a_little_smaller_does_not(records: list[object], target: str) -> None:
    schedule = Schedule.of(records)
    found = calibrate(schedule, epsilon=target, delta="1e-6")
    assert found.schedule == schedule.with_scale(found.scale_factor)
    assert found.reached.upper <= Fraction(target)
    less = schedule.with_scale(found.scale_factor * (1 - 2 * MILLIONTH))
    assert compose(less, "1e-8").epsilon("1e-6").lower > Fraction(target)


@settings(max_examples=20, deadline=None)
@given(
    scale=st.fractions(min_value=Fraction(1, 2), max_value=50, max_denominator=100),
    times=st.integers(1, 10**6),
    epsilon=st.fractions(min_value=Fraction(1, 1000), max_value=100, max_denominator=1000),
)
def test_gaussian_releases_are_calibrated_in_closed_form(scale: Fraction, times: int, epsilon: Fraction) -> None:
    schedule = Schedule.of([gaussian(scale, times)])
    found = calibrate(schedule, epsilon=epsilon, delta="1e-7")
    assert found.reached.upper <= epsilon
    less = schedule.with_scale(found.scale_factor * (1 - MILLIONTH / 1000))
    assert compose(less).epsilon("1e-7").lower > epsilon


@pytest.mark.parametrize("risk", ["0.3", "0.01"])
def test_an_attack_risk_is_met_and_not_by_much_less_noise(risk: str) -> None:
    schedule = Schedule.of([gaussian("1", 1000, "0.01"), LAPLACE])
    found = calibrate_advantage(schedule, advantage=risk)
    assert found.reached.upper <= Fraction(risk)
    less = schedule.with_scale(found.scale_factor * (1 - 2 * MILLIONTH))
    assert compose(less, "1e-8").delta(0).lower > Fraction(risk)


def test_as_many_runs_as_fit_and_not_one_more() -> None:
    schedule = Schedule.of([gaussian("1", 10, "0.01"), PURE])
    runs = runs_within(schedule, epsilon="6", delta="1e-6")
    longer = [
        Schedule.of([gaussian("1", 10 * times, "0.01"), PURE | {"times": 4 * times}]) for times in (runs, runs + 1)
    ]
    within, beyond = (compose(schedule).epsilon("1e-6").upper for schedule in longer)
    assert within <= 6 < beyond
    assert runs_within(schedule, epsilon="0.01", delta="1e-6") == 0


def test_a_target_that_cannot_be_met_is_refused_with_the_reason() -> None:
    tabulated = {"mechanism": "profile", "points": [["1", "1e-9"]]}
    with pytest.raises(RequestError, match="privacy profile"):
        calibrate(Schedule.of([tabulated]), epsilon="0.5", delta="1e-6")
    with pytest.raises(RequestError, match="1e-9"):
        calibrate(Schedule.of([LAPLACE]), epsilon="1e-12", delta="1e-30")
    for epsilon in ("0", "-1", "nan"):
        with pytest.raises(RequestError):
            calibrate(Schedule.of([PURE]), epsilon=epsilon, delta="1e-6")


def test_a_tiny_target_ends_in_a_finite_scale() -> None:
    found = calibrate(Schedule.of([gaussian("1", 10**6)]), epsilon="1e-9", delta="1e-5")
    assert found.reached.upper <= Fraction(1, 10**9)
    assert 10**7 < found.scale_factor < 10**8
