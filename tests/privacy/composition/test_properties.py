"""What must hold of every composition, whatever its numbers: growth, order, limits, inverses, and no silent infinity.

Intervals enclose numbers that are not known here. So "smaller" means: the lower end of what must be smaller is not
above the upper end of what must be larger; and as all intervals are narrow, that is nearly all there is to know.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from parco.privacy.composition import Interval, compose
from parco.privacy.schedule import Schedule, ScheduledRelease

few = settings(max_examples=6, deadline=None, derandomize=True)
scales = st.fractions(min_value=Fraction(1, 2), max_value=6, max_denominator=50)
rates = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(9, 10), max_denominator=400)
counts = st.integers(100, 5000)
deltas = st.sampled_from(["0.4", "1e-3", "1e-6", "1e-12"])
kinds = st.sampled_from(["gaussian"])


def noise(kind: str, scale: Fraction, times: int, *, rate: Fraction | None = None) -> dict[str, Any]:
    record: dict[str, Any] = {"mechanism": kind, "sensitivity": "1", "scale": str(scale), "times": times}
    return record if rate is None else record | {"sampling": {"scheme": "poisson", "rate": str(rate)}}


def epsilon(*records: dict[str, Any], delta: str = "1e-6") -> Interval:
    found = compose(Schedule.of(records)).epsilon(delta)
    assert 0 <= found.lower <= found.upper
    assert found.upper - found.lower <= max(found.upper, Fraction(1, 1000)) / 10**6
    return found


@few
@given(kind=kinds, scale=scales, rate=rates, times=counts, delta=deltas)
def test_epsilon_moves_the_right_way_with_every_parameter(
    kind: str, scale: Fraction, rate: Fraction, times: int, delta: str
) -> None:
    here = epsilon(noise(kind, scale, times, rate=rate), delta=delta)
    assert epsilon(noise(kind, scale * Fraction(11, 10), times, rate=rate), delta=delta).lower <= here.upper
    assert epsilon(noise(kind, scale, times + 10, rate=rate), delta=delta).upper >= here.lower
    assert epsilon(noise(kind, scale, times, rate=rate * Fraction(11, 10)), delta=delta).upper >= here.lower
    assert epsilon(noise(kind, scale, times, rate=rate), delta="1e-13").upper >= here.lower
    # Never more than without sampling, never more than everything twice.
    assert here.lower <= epsilon(noise(kind, scale, times), delta=delta).upper


@few
@given(scale=scales, rate=rates, times=counts)
def test_the_order_of_releases_does_not_matter_and_adding_is_composing(
    scale: Fraction, rate: Fraction, times: int
) -> None:
    records = [noise("gaussian", scale, times, rate=rate), noise("laplace", scale + 3, 40), noise("gaussian", scale, 3)]
    first, second = epsilon(*records), epsilon(*reversed(records))
    assert first.lower <= second.upper
    assert second.lower <= first.upper
    grown = compose(Schedule.of(records[:2]))
    before = grown.epsilon("1e-6")
    after = grown.add(ScheduledRelease.read(records[2])).epsilon("1e-6")
    assert after.lower <= first.upper
    assert first.lower <= after.upper
    assert after.upper >= before.lower


@few
@given(scale=scales, rate=rates, times=counts, delta=deltas)
def test_delta_and_epsilon_are_each_others_inverse(scale: Fraction, rate: Fraction, times: int, delta: str) -> None:
    composition = compose(Schedule.of([noise("gaussian", scale, times, rate=rate)]))
    found = composition.epsilon(delta)
    assert composition.delta(found.upper).lower <= Fraction(delta)
    assert found.lower == 0 or composition.delta(found.lower).upper >= Fraction(delta)
    risk = composition.delta(0)
    assert 0 <= risk.lower <= risk.upper <= 1


@few
@given(scale=scales, times=counts)
def test_a_rate_near_one_is_no_sampling(scale: Fraction, times: int) -> None:
    whole = epsilon(noise("gaussian", scale, times))
    nearly = epsilon(noise("gaussian", scale, times, rate=1 - Fraction(1, 10**12)))
    assert nearly.lower <= whole.upper
    assert nearly.upper >= whole.lower * (1 - Fraction(1, 10**5))


def test_a_rate_near_zero_loses_nothing() -> None:
    assert epsilon(noise("gaussian", Fraction(5), 300, rate=Fraction(1, 10**9))).upper == 0
