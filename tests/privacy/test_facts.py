"""Facts of mechanisms: ranges, records, and what a point of a profile may be."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import pytest

from parco.errors import RequestError
from parco.privacy.facts import Approximate, Gaussian, Laplace, PrivacyProfile, Pure, facts_of
from tests.privacy.composition.build import KINDS


def own(kind: str) -> dict[str, Any]:
    """A record's own keys."""
    return {key: value for key, value in KINDS[kind].items() if key != "mechanism"}


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_read_as_they_are_written(kind: str) -> None:
    facts = facts_of(kind, own(kind))
    assert facts.tag == kind
    assert facts_of(kind, facts.record()) == facts
    assert hash(facts_of(kind, facts.record())) == hash(facts)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_missing_or_unknown_are_refused_by_name(kind: str) -> None:
    for key in own(kind):
        with pytest.raises(RequestError, match=key):
            facts_of(kind, {name: value for name, value in own(kind).items() if name != key})
    with pytest.raises(RequestError, match="unknown key 'noise'"):
        facts_of(kind, {**own(kind), "noise": "1"})


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "", "1e", "1/0", None, True, [], float("nan")])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "profile"])
def test_numbers_outside_their_range_are_refused(kind: str, value: Any) -> None:
    for key in own(kind):
        if (kind, key, value) == ("approximate", "epsilon", "0"):
            continue
        with pytest.raises(RequestError, match=kind):
            facts_of(kind, {**own(kind), key: value})


@pytest.mark.parametrize("tag", ["", "Gaussian", "gaussian ", None, 3, ["gaussian"]])
def test_mechanisms_that_nobody_knows_are_refused_with_those_that_are(tag: Any) -> None:
    with pytest.raises(RequestError, match="randomised-response"):
        facts_of(tag, own("gaussian"))


def test_sizes_are_exact() -> None:
    assert Gaussian(Fraction("0.1"), Fraction("0.3")).mu_squared == Fraction(1, 9)
    assert Laplace(Fraction("0.1"), Fraction("0.3")).epsilon == Fraction(1, 3)


def test_facts_do_not_change() -> None:
    facts = Pure(Fraction(1))
    with pytest.raises(FrozenInstanceError):
        facts.epsilon = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(2)])
def test_approximate_has_a_delta_strictly_between_0_and_1(delta: Fraction) -> None:
    with pytest.raises(RequestError, match="delta"):
        Approximate(Fraction(1), delta)


@pytest.mark.parametrize(
    "points",
    [
        [],
        "0.5",
        [["0.5"]],
        [["0.5", "0.1", "0.2"]],
        [["0.5", "1"]],
        [["0.5", "-0.1"]],
        [["-0.5", "0.1"]],
        [["0.5", "0.1"], ["0.5", "0.05"]],
        [["1", "0.1"], ["0.5", "0.2"]],
        [["nan", "0.1"]],
        [["0.5", "nan"]],
    ],
    ids=str,
)
def test_points_that_are_no_profile_are_refused(points: Any) -> None:
    with pytest.raises(RequestError, match="profile"):
        facts_of("profile", {"points": points})


def test_how_many_points_there_may_be() -> None:
    point = (Fraction(1), Fraction(0))
    with pytest.raises(RequestError, match="10,000"):
        PrivacyProfile(tuple((Fraction(k), Fraction(0)) for k in range(10_001)))
    assert PrivacyProfile((point,)).points == (point,)
