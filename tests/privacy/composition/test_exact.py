"""Compositions whose profile is known exactly, by going through all outcomes: every truth lies in its interval."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from parco.balls import lower, precision, upper
from parco.errors import InternalError, RequestError
from parco.privacy.composition import Composition
from parco.privacy.facts import PrivacyProfile
from tests.privacy.composition.build import KINDS, composed, record, release
from tests.privacy.composition.exact import BITS, Profile, exactly, faults, profile_of

EPSILONS = ("0", "0.39", "1.1")
DELTAS = ("0.2", "1e-3", "1e-9", "1e-30")
# Few releases off every lattice take long to compose closely, and what these tests ask is where the truth lies.
TOLERANCE = "1e-3"

Entry = dict[str, Any]


def wrong_epsilons(composition: Composition, truth: Profile, deltas: Sequence[str], tolerance: str) -> list[str]:
    """Deltas whose interval misses the truth, is wider than promised, or is refused though there is one."""
    wrong = []
    for delta in deltas:
        try:
            found = composition.epsilon(delta)
        except RequestError:
            # Refused where what is told with certainty reaches delta, and only there.
            with precision(BITS):
                if not upper(truth(Fraction(10**6))) >= Fraction(delta):
                    wrong.append(f"epsilon({delta}) is refused")
            continue
        wrong += [f"at {delta}: {fault}" for fault in faults(found, truth, delta, tolerance)]
    return wrong


def wrong_deltas(composition: Composition, truth: Profile, tolerance: str) -> list[str]:
    """The same for epsilons whose delta is asked."""
    wrong = []
    for epsilon in map(Fraction, EPSILONS):
        found = composition.delta(epsilon)
        with precision(BITS):
            exact = truth(epsilon)
            if not (upper(exact) >= found.lower and lower(exact) <= found.upper):
                wrong.append(f"delta({epsilon}) = {exact} is not in {float(found.lower)} .. {float(found.upper)}")
        if found.upper - found.lower > Fraction(tolerance) * found.upper:
            wrong.append(f"delta({epsilon}) is not known to the tolerance")
    return wrong


# Where one release alone is not composed (InternalError): its loss is too near to its largest.
LIMITS = {("exponential", "0.01"): DELTAS[:2], ("exponential", "0.6"): ()}
ALONE = [(kind, rate) for kind in KINDS if kind != "profile" for rate in (None, "0.01", "0.6")]


@pytest.mark.parametrize(("kind", "rate"), ALONE)
def test_one_release_of_each_kind(kind: str, rate: str | None) -> None:
    entry = record(kind, rate=rate)
    with precision(BITS):
        truth = profile_of([entry])
    found = composed(entry, tolerance=TOLERANCE)
    assert wrong_epsilons(found, truth, LIMITS.get((kind, rate), DELTAS), TOLERANCE) == []
    if (kind, rate) != ("exponential", "0.6"):
        assert wrong_deltas(found, truth, TOLERANCE) == []


MIXTURES: dict[str, list[Entry]] = {
    "response three times": [record("randomised-response", times=3)],
    "two responses off a common lattice": [
        record("randomised-response", epsilon="1/3", times=2),
        record("pure", epsilon="0.5"),
    ],
    "approximate five times": [record("approximate", times=5)],
    "approximate and pure": [record("approximate", delta="1e-12", times=2), record("pure"), record("sparse-vector")],
    "approximate with epsilon 0": [
        record("approximate", epsilon="0", delta="0.01", times=2),
        record("randomised-response"),
    ],
    "all sampled": [record("approximate", rate="0.3", times=2), record("pure", rate="0.05", times=3)],
    "sampled and not": [
        record("randomised-response", rate="0.01", times=4),
        record("randomised-response", epsilon="0.2"),
    ],
    "gaussian and responses": [record("gaussian"), record("randomised-response", times=7)],
    "sampled gaussian and responses": [record("gaussian", rate="0.3"), record("randomised-response", times=7)],
    "gaussian and sampled approximate": [record("gaussian"), record("approximate", rate="0.1", times=4)],
    "laplace and responses": [record("laplace"), record("pure", times=9)],
    "sampled laplace and sampled responses": [record("laplace", rate="0.5"), record("pure", rate="0.1", times=9)],
    "exponential and approximate": [record("exponential"), record("approximate", times=3)],
    "sampled exponential and responses": [record("exponential", rate="0.2"), record("pure", times=12)],
}


@pytest.mark.parametrize("name", MIXTURES)
def test_all_outcomes_of_a_few_releases(name: str) -> None:
    entries = MIXTURES[name]
    with precision(BITS):
        truth = profile_of(entries)
    found = composed(*entries, tolerance=TOLERANCE)
    assert wrong_epsilons(found, truth, DELTAS, TOLERANCE) == []
    assert wrong_deltas(found, truth, TOLERANCE) == []


@pytest.mark.parametrize("tolerance", ["1e-2", "1e-4", "1e-9"])
@pytest.mark.parametrize(
    "entry", [record("randomised-response", times=5), record("approximate")], ids=lambda entry: entry["mechanism"]
)
def test_the_width_asked_for_is_the_width_given(entry: Entry, tolerance: str) -> None:
    with precision(BITS):
        truth = profile_of([entry])
    assert wrong_epsilons(composed(entry, tolerance=tolerance), truth, DELTAS[:3], tolerance) == []


def test_the_oracle_sees_one_part_in_a_thousand() -> None:
    """An interval a thousandth too high or too low is a fault."""
    entries = MIXTURES["gaussian and responses"]
    with precision(BITS):
        truth = profile_of(entries)
    found = composed(*entries).epsilon("1e-9")
    assert faults(found, truth, "1e-9", "1e-6") == []
    for share in (Fraction(999, 1000), Fraction(1001, 1000)):
        moved = type(found)(found.lower * share, found.upper * share)
        assert len(faults(moved, truth, "1e-9", "1e-6")) == 1
