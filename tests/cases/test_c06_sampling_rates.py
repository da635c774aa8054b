"""C06: a rate of 1 divided by zero, a rate above 1 was taken, and schemes that are not Poisson were accounted as
Poisson."""

from __future__ import annotations

import pytest

from parco.errors import RequestError
from parco.privacy.accountants import account
from parco.privacy.schedule import Schedule
from tests.cases.schedules import encloses, epsilon, sampled


def test_a_rate_of_one_is_no_sampling() -> None:
    schedule = Schedule.of([sampled("1", "1.3", 10)])
    assert not schedule.sampled
    assert encloses(epsilon(sampled("1", "1.3", 10), delta="1e-5"), "12.758362803375556")
    claims = {claim.accountant: float(claim.epsilon) for claim in account(schedule, "1e-5").claims}
    assert claims["rdp"] == pytest.approx(13.655433619627733, rel=1e-9)
    assert claims["closed-form"] == pytest.approx(14.631096261542546, rel=1e-12)


@pytest.mark.parametrize("rate", ["1.2", "0", "-0.1", "nan"])
def test_a_rate_that_is_none_is_refused(rate: str) -> None:
    with pytest.raises(RequestError, match="rate"):
        Schedule.of([sampled(rate, "1", 1)])


@pytest.mark.parametrize(
    ("rate", "times", "truth"),
    [("0.125", 1, "1.9210761238918112"), ("0.00016", 1, "0.0005186763970567053"), ("0.125", 8, "3.174674417645836")],
)
def test_the_rate_is_batch_over_units(rate: str, times: int, truth: str) -> None:
    assert encloses(epsilon(sampled(rate, "1", times), delta="1e-5"), truth)


@pytest.mark.parametrize("scheme", ["shuffle", "weighted", "fixed-size", "without-replacement"])
def test_other_schemes_are_refused_by_name(scheme: str) -> None:
    record = sampled("0.1", "1", 1) | {"sampling": {"scheme": scheme, "rate": "0.1"}}
    with pytest.raises(RequestError, match="poisson"):
        Schedule.of([record])
