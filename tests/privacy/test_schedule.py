"""Schedules: what is written is read back, what is not a schedule is refused by name, nothing is repaired."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.measure import decimal_text
from parco.privacy.facts import (
    Approximate,
    Exponential,
    Facts,
    Gaussian,
    Laplace,
    PrivacyProfile,
    Pure,
    RandomisedResponse,
    SparseVector,
)
from parco.privacy.schedule import Schedule, ScheduledRelease

GAUSSIAN = {"mechanism": "gaussian", "sensitivity": "1", "scale": "8"}

positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6).filter(bool)
shares = st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(999_999_999, 10**9), max_denominator=10**9)
profiles = st.lists(st.tuples(positive, shares), min_size=1, max_size=4, unique_by=lambda point: point[0])
facts: st.SearchStrategy[Facts] = st.one_of(
    st.builds(Gaussian, positive, positive),
    st.builds(Laplace, positive, positive),
    *(st.builds(kind, positive) for kind in (RandomisedResponse, Pure, Exponential, SparseVector)),
    st.builds(Approximate, positive, shares),
    st.builds(lambda points: PrivacyProfile(tuple(sorted(points))), profiles),
)
releases = st.builds(ScheduledRelease, facts, st.integers(1, 10**9), st.one_of(st.just(Fraction(1)), shares))
schedules = st.lists(releases, min_size=1, max_size=5).map(lambda found: Schedule(tuple(found)))


def toml(schedule: Schedule) -> str:
    """The records as [[release]] tables."""
    lines: list[str] = []
    for record in schedule.records():
        lines.append("[[release]]")
        for key, value in record.items():
            text = json.dumps(value)
            if isinstance(value, dict):
                text = "{" + ", ".join(f"{name} = {json.dumps(part)}" for name, part in value.items()) + "}"
            lines.append(f"{key} = {text}")
    return "\n".join(lines)


@settings(max_examples=60, deadline=None)
@given(schedules)
def test_what_is_written_is_read_back(schedule: Schedule) -> None:
    assert Schedule.parse(schedule.text()) == schedule
    assert Schedule.parse(toml(schedule)) == schedule
    assert Schedule.of(schedule.records()) == schedule


@settings(max_examples=40, deadline=None)
@given(schedules, releases)
def test_one_more_is_one_more(schedule: Schedule, release: ScheduledRelease) -> None:
    longer = schedule.plus(release)
    assert longer.releases == (*schedule.releases, release)
    assert longer.count == schedule.count + release.times
    assert longer.sampled == (schedule.sampled or release.rate != 1)
    assert longer.fixed


@settings(max_examples=40, deadline=None)
@given(schedules, st.integers(1, 10**6))
def test_noise_is_scaled_in_every_release_or_in_none(schedule: Schedule, thousandths: int) -> None:
    factor = Fraction(thousandths, 1000)
    if any(isinstance(release.facts, Approximate | PrivacyProfile) for release in schedule.releases):
        with pytest.raises(RequestError, match="cannot be scaled"):
            schedule.with_scale(factor)
        return
    scaled = schedule.with_scale(factor)
    for before, after in zip(schedule.releases, scaled.releases, strict=True):
        assert (before.times, before.rate, type(before.facts)) == (after.times, after.rate, type(after.facts))
        if isinstance(before.facts, Gaussian | Laplace):
            assert after.facts == type(before.facts)(before.facts.sensitivity, before.facts.scale * factor)
        else:
            assert vars(after.facts)["epsilon"] == vars(before.facts)["epsilon"] / factor
    assert scaled.with_scale(1 / factor) == schedule


def test_numbers_are_taken_as_they_are_written() -> None:
    text = '[{"mechanism": "laplace", "sensitivity": 0.1, "scale": "1/3", "times": "10"}]'
    (release,) = Schedule.parse(text).releases
    assert release == ScheduledRelease(Laplace(Fraction(1, 10), Fraction(1, 3)), times=10)
    (other,) = Schedule.parse('[[release]]\nmechanism = "pure"\nepsilon = 0.30\ntimes = 2\n').releases
    assert other == ScheduledRelease(Pure(Fraction(3, 10)), times=2)
    # More digits than a double holds are all kept.
    digits = "0.1000000000000000000000000001"
    (exactly,) = Schedule.parse(f'[{{"mechanism": "pure", "epsilon": {digits}}}]').releases
    assert exactly.facts == Pure(Fraction(digits))
    assert digits in decimal_text(Fraction(digits))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"mechanism": "gauss"}, "mechanism"),
        ({"mechanism": None}, "mechanism"),
        ({"sigma": "2"}, "unknown key 'sigma'"),
        ({"scale": "0"}, "positive"),
        ({"scale": "-1"}, "positive"),
        ({"scale": "nan"}, "scale"),
        ({"scale": "inf"}, "scale"),
        ({"scale": "1e401"}, "scale"),
        ({"scale": True}, "scale"),
        ({"scale": None}, "scale"),
        ({"sensitivity": "0"}, "positive"),
        ({"sensitivity": float("nan")}, "sensitivity"),
        ({"times": 0}, "times"),
        ({"times": -1}, "times"),
        ({"times": 1.5}, "times"),
        ({"times": True}, "times"),
        ({"times": "1e3"}, "times"),
        ({"times": 10**9 + 1}, "times"),
        ({"sampling": "0.1"}, "sampling"),
        ({"sampling": {"rate": "0.1"}}, "sampling"),
        ({"sampling": {"scheme": "poisson", "rate": "0.1", "seed": "1"}}, "sampling"),
        ({"sampling": {"scheme": "poisson", "rate": "0"}}, "rate"),
        ({"sampling": {"scheme": "poisson", "rate": "1.2"}}, "rate"),
        ({"sampling": {"scheme": "poisson", "rate": "nan"}}, "rate"),
        ({"sampling": {"scheme": "shuffle", "rate": "0.1"}}, "poisson"),
        ({"sampling": {"scheme": "fixed-size", "rate": "0.1"}}, "poisson"),
    ],
    ids=str,
)
def test_a_record_that_is_none_is_refused_with_its_place(change: dict[str, Any], word: str) -> None:
    with pytest.raises(RequestError) as caught:
        Schedule.of([GAUSSIAN, {**GAUSSIAN, **change}])
    assert str(caught.value).startswith("entry 2: ")
    assert word in str(caught.value)


@pytest.mark.parametrize("missing", list(GAUSSIAN))
def test_a_key_left_out_is_refused_by_name(missing: str) -> None:
    with pytest.raises(RequestError, match=missing):
        Schedule.of([{key: value for key, value in GAUSSIAN.items() if key != missing}])


WHOLE = Schedule.of([GAUSSIAN, {**GAUSSIAN, "times": 3, "sampling": {"scheme": "poisson", "rate": "0.5"}}]).text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "[]",
        "{}",
        "null",
        "[1]",
        '"gaussian"',
        "[" * 100_000,
        '{"release": []}',
        '[{"mechanism": "gaussian", "sensitivity": "1", "scale": NaN}]',
        '[{"mechanism": "gaussian", "sensitivity": "1", "scale": Infinity}]',
        '[{"mechanism": "gaussian", "sensitivity": "1", "scale": "2", "scale": "8"}]',
        "release = 3",
        "[[releases]]\nmechanism = 'pure'\nepsilon = 1",
        "title = 'x'\n[[release]]\nmechanism = 'pure'\nepsilon = 1",
        "[[release]]\nmechanism = 'pure'\nepsilon = nan",
        "[[release]]\nmechanism = 'pure'\nepsilon = 1\nepsilon = 2",
        "\x00",
    ],
    ids=lambda text: text[:40],
)
def test_texts_that_are_no_schedule_are_refused(text: str) -> None:
    with pytest.raises(RequestError):
        Schedule.parse(text)


def test_a_text_cut_off_anywhere_is_refused() -> None:
    assert Schedule.parse(WHOLE).count == 4
    for end in range(len(WHOLE.rstrip())):
        with pytest.raises(RequestError):
            Schedule.parse(WHOLE[:end])


def test_how_many_there_may_be() -> None:
    with pytest.raises(RequestError, match="1 to"):
        Schedule(())
    release = ScheduledRelease.read(GAUSSIAN)
    with pytest.raises(RequestError, match="1 to"):
        Schedule((release,) * (10**6 + 1))
    assert Schedule((release,) * 3).count == 3
