"""Compositions whose profile is known exactly, by going through all outcomes: every truth lies in its interval."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from flint import arb
from hypothesis import strategies as st

from parco.balls import lower, precision, upper
from parco.errors import RequestError
from parco.privacy.composition import Composition, single
from parco.privacy.facts import Gaussian, PrivacyProfile
from tests.privacy.composition.build import KINDS, composed, record, release
from tests.privacy.composition.exact import BITS, Profile, exactly, faults, profile_of
from tests.privacy.composition.test_range import Asked, deltas, held, often, powers, sizes

EPSILONS = ("0", "0.39", "1.1")
DELTAS = ("0.2", "1e-3", "1e-9", "1e-30")
# Few releases off every lattice take long to compose closely, and what these tests ask is where the truth lies.
TOLERANCE = "1e-3"

Entry = dict[str, Any]

pytestmark = pytest.mark.usefixtures("by_nodes")


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


ALONE = [(kind, rate) for kind in KINDS if kind != "profile" for rate in (None, "0.01", "0.6")]


@pytest.mark.parametrize(("kind", "rate"), ALONE)
def test_one_release_of_each_kind(kind: str, rate: str | None) -> None:
    entry = record(kind, rate=rate)
    with precision(BITS):
        truth = profile_of([entry])
    found = composed(entry, tolerance=TOLERANCE)
    assert wrong_epsilons(found, truth, DELTAS, TOLERANCE) == []
    assert wrong_deltas(found, truth, TOLERANCE) == []


def test_an_edge_that_few_digits_do_not_show_takes_more() -> None:
    """The loss of addition is at most -log(1-q): 1 + 10^-100 here, so that at epsilon 1 a little of delta is left."""
    with precision(BITS):
        rate = upper(1 - exactly("-1").exp() + exactly(Fraction(1, 10**100)))
    low, high = single.delta_interval(Gaussian(Fraction(60), Fraction(1)), rate, Fraction(1), 1e-6, removal=False)
    assert 0 < low <= high < Fraction(1, 10**98)


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
    bounded = any("sampling" in entry and entry["mechanism"] in ("laplace", "exponential") for entry in entries)
    assert wrong_epsilons(found, truth, DELTAS[1:2] if bounded else DELTAS, TOLERANCE) == []
    assert bounded or wrong_deltas(found, truth, TOLERANCE) == []


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


ATOMIC = ("randomised-response", "pure", "sparse-vector", "approximate")


@st.composite
def small(draw: st.DrawFn) -> list[Entry]:
    """At most one release with a density, and one or two kinds of a few finite ones, over the whole range."""
    found: list[Entry] = []
    rates = st.none() | powers(1e-9, 1)
    if draw(st.booleans()):
        kind = draw(st.sampled_from(("gaussian", "laplace", "exponential")))
        more: dict[str, Any] = (
            {"epsilon": draw(sizes)} if kind == "exponential" else {"sensitivity": draw(sizes), "scale": "1"}
        )
        found.append(record(kind, rate=draw(rates), **more))
    for most in draw(st.sampled_from([(40,), (3, 4)])):
        kind = draw(st.sampled_from(ATOMIC))
        own: dict[str, Any] = {"delta": draw(powers(1e-40, 1e-3))} if kind == "approximate" else {}
        times = draw(st.integers(1, min(most, 8) if kind == "approximate" else most))
        found.append(record(kind, rate=draw(rates), times=times, epsilon=draw(sizes), **own))
    return found


@often
@pytest.mark.parametrize("tolerance", ["1e-3", "1e-6"])
def test_the_truth_lies_in_the_interval_over_the_whole_range(examples: int, tolerance: str) -> None:
    def enclosed(asked: Asked, several: list[Entry], delta: str) -> None:
        composition = composed(*several, tolerance=tolerance)
        try:
            found = asked.ask(composition, delta, composition.epsilon)
        except RequestError:
            # What is told with certainty reaches delta.
            assert composition.infinite[True].upper >= Fraction(delta)
            return
        with precision(BITS):
            truth = profile_of(several)
        assert faults(found, truth, delta, tolerance) == []

    held(enclosed, examples=examples, several=small(), delta=deltas)


def test_points_that_others_imply_change_nothing() -> None:
    """Above the chord of two others, or said again by the other order of the pair."""
    with precision(BITS):
        y = exactly("1").exp()
        # At e^eps = 1, on the chord between (1, 0.1) and what it says of the other order.
        other = 1 - (1 - exactly("0.1")) / y
        on_chord = upper((other * (y - 1) + (1 - 1 / y) / 10) / (y - 1 / y))
    few = [["1", "0.1"], ["2", "0.01"]]
    more = [["0", f"{float(on_chord) + 1e-15:.15f}"], ["0.7", "0.9"], few[0], ["1.5", "0.2"], few[1], ["5", "0.011"]]
    for rate in (None, "0.3"):
        first, second = (
            composed(record("profile", points=points, rate=rate, times=3), tolerance=TOLERANCE)
            for points in (few, more)
        )
        for delta in ("0.5", "0.1"):
            a, b = first.epsilon(delta), second.epsilon(delta)
            assert a.lower <= b.upper
            assert b.lower <= a.upper
    assert len(PrivacyProfile.read({"points": more}).points) == len(more)


def test_a_point_with_the_delta_of_the_one_before_changes_nothing() -> None:
    first, second = (
        composed(record("profile", points=points)) for points in ([["2", "0.01"]], [["2", "0.01"], ["5", "0.01"]])
    )
    assert first.epsilon("0.2").lower <= second.renyi_epsilon("0.2")
    assert second.epsilon("0.2").lower <= first.epsilon("0.2").upper


@pytest.mark.parametrize("rate", [None, "0.1"])
def test_a_profile_of_one_point_is_an_approximate_mechanism(rate: str | None) -> None:
    """So that what is known of the one by its outcomes holds for the other."""
    entry = record("approximate", epsilon="1", delta="1e-3", rate=rate, times=2)
    with precision(BITS):
        truth = profile_of([entry])
    tabulated = record("profile", points=[["1", "1e-3"]], rate=rate, times=2)
    assert wrong_epsilons(composed(tabulated, tolerance=TOLERANCE), truth, DELTAS[:2], TOLERANCE) == []
    assert wrong_deltas(composed(tabulated, tolerance=TOLERANCE), truth, TOLERANCE) == []


def test_the_pair_of_the_exponential_mechanism_is_the_worst_of_bounded_range() -> None:
    """Of the pairs with two outcomes, of losses t - e and t for a t in (0, e), none is above it, and one meets it."""
    e, steps = Fraction(2), 80
    with precision(BITS):
        whole, truth = exactly(e), profile_of([record("exponential", epsilon=str(e))])
        for epsilon in (Fraction(0), Fraction(1, 2), Fraction(19, 10)):
            at, best = exactly(epsilon), arb(0)
            for step in range(1, steps):
                t = whole * step / steps
                mass = (1 - (t - whole).exp()) / (1 - (-whole).exp())
                delta = mass * (1 - (at - t).exp()) if t > at else arb(0)
                assert delta <= truth(epsilon) + arb("1e-40")
                best = max(best, delta, key=lambda value: float(value.mid()))
            assert best > truth(epsilon) * (1 - arb("1e-3"))


@pytest.mark.parametrize("utilities", [(1, 0, 0), (1, 1, 0), (0, 1, 1, 1)])
def test_exponential_mechanisms_stay_below_the_claim_for_them(utilities: Sequence[int]) -> None:
    """Choices by e^(eps u/2), u moved by up to 1 for a neighbour: three of them lose no more than is claimed."""
    e, times = Fraction(2), 3
    claimed = [
        (exactly(epsilon), composed(record("exponential", epsilon=str(e), times=times)).delta(epsilon).upper)
        for epsilon in (Fraction(0), Fraction(3), Fraction(11, 2))
    ]
    with precision(192):
        for moved in product((-1, 0, 1), repeat=len(utilities)):
            after = [u + m for u, m in zip(utilities, moved, strict=True)]
            p, q = (_choice(scores, exactly(e)) for scores in (utilities, after))
            atoms = [((a / b).log(), a) for a, b in zip(p, q, strict=True)]
            spread = [(arb(0), arb(1))]
            for _ in range(times):
                spread = [(loss + more, mass * part) for (loss, mass), (more, part) in product(spread, atoms)]
            for at, bound in claimed:
                delta = sum(((1 - (at - loss).exp()) * mass for loss, mass in spread if loss > at), arb(0))
                assert lower(delta) <= bound


def _choice(utilities: Sequence[int], epsilon: arb) -> list[arb]:
    weights = [(epsilon * u / 2).exp() for u in utilities]
    total = sum(weights, arb(0))
    return [weight / total for weight in weights]


def test_only_mechanisms_that_attain_their_pair_are_tight() -> None:
    attained = {kind: composed(record(kind)).tight for kind in KINDS}
    assert {kind for kind, tight in attained.items() if not tight} == {"exponential", "sparse-vector", "profile"}
    assert not composed(record("gaussian"), record("exponential")).tight
    assert not composed(record("gaussian")).add(release("profile")).tight
