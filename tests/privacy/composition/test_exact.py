"""Compositions whose profile is known exactly: one release of every kind, and all outcomes of several finite ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from flint import arb

from parco.balls import lower, precision, upper
from parco.errors import RequestError
from parco.privacy.composition import Composition, Interval
from parco.privacy.facts import PrivacyProfile
from parco.privacy.schedule import ScheduledRelease
from tests.privacy.composition.build import KINDS, RATES, composed, record, release
from tests.privacy.composition.laws import BITS, exactly, law_of

EPSILONS = ("0", "0.03", "0.39", "1.1")
DELTAS = ("0.2", "1e-3", "1e-9", "1e-30")
# Few releases whose losses are neither many nor on a lattice take long to compose closely, and the tests' point is the truth.
TOLERANCE = "1e-3"
# Where one release alone is not composed (InternalError): its loss is too near to its largest, or its profile too bent.
LIMITS = {("exponential", "0.01"): DELTAS[:2], ("exponential", "0.6"): DELTAS[:2], ("profile", None): ("0.2", "1e-9", "1e-30")}

Profile = Callable[[Fraction], arb]


def worst(releases: Sequence[ScheduledRelease]) -> Profile:
    """delta(eps) of finite losses, in the worse order, by going through all outcomes; of one release by its law."""
    laws = [[law_of(one, removal=removal) for one in releases for _ in range(one.times)] for removal in (True, False)]

    def delta(epsilon: Fraction) -> arb:
        return max((_delta(order, exactly(epsilon)) for order in laws), key=lambda value: float(value.mid()))

    return delta


def _delta(order: Sequence[Any], epsilon: arb) -> arb:
    if len(order) == 1:
        return order[0].delta(epsilon)
    spread: list[tuple[arb, arb]] = [(arb(0), arb(1))]
    kept = arb(1)
    for law in order:
        assert not law.pieces
        kept *= 1 - law.told
        spread = [(loss + more, mass * part) for (loss, mass), (more, part) in product(spread, law.atoms)]
    above = ((1 - (epsilon - loss).exp()) * mass for loss, mass in spread if loss > epsilon)
    return 1 - kept + sum(above, arb(0))


def faults(composition: Composition, delta: Profile, *, deltas: Sequence[str] = DELTAS) -> list[str]:
    """Deltas and epsilons whose interval misses the truth, or is wider than promised."""
    wrong, tolerance = [], Fraction(composition.tolerance)
    with precision(BITS):
        for epsilon in map(Fraction, EPSILONS):
            found = composition.delta(epsilon)
            truth = delta(epsilon)
            if not (upper(truth) >= found.lower and lower(truth) <= found.upper):
                wrong.append(f"delta({epsilon}) = {truth} is not in {float(found.lower)} .. {float(found.upper)}")
            if found.upper - found.lower > tolerance * found.upper:
                wrong.append(f"delta({epsilon}) is not known to the tolerance")
        for target in map(Fraction, deltas):
            try:
                found = composition.epsilon(target)
            except RequestError:
                # Refused where what is told with certainty reaches delta, and only there.
                if not upper(delta(Fraction(1000))) >= target:
                    wrong.append(f"epsilon({target}) is refused")
                continue
            wrong += _ends(found, delta, target, tolerance)
    return wrong


def _ends(found: Interval, delta: Profile, target: Fraction, tolerance: Fraction) -> list[str]:
    """The profile itself judges both ends: at the upper it is at most delta, at the lower at least delta."""
    wrong = []
    if not lower(delta(found.upper)) <= target:
        wrong.append(f"epsilon({target}) is above {float(found.upper)}")
    if not (found.lower == 0 or upper(delta(found.lower)) >= target):
        wrong.append(f"epsilon({target}) is below {float(found.lower)}")
    if not 0 <= found.upper - found.lower <= tolerance * max(found.upper, Fraction(1, 1000)):
        wrong.append(f"epsilon({target}) is not known to the tolerance")
    return wrong


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_release_of_each_kind(kind: str, rate: str | None) -> None:
    with precision(BITS):
        truth = worst([release(kind, rate=rate)])
    found = composed(record(kind, rate=rate), tolerance=TOLERANCE)
    assert faults(found, truth, deltas=LIMITS.get((kind, rate), DELTAS)) == []


MIXTURES = {
    "response three times": [record("randomised-response", times=3)],
    "two responses off a common lattice": [record("randomised-response", epsilon="1/3", times=2), record("pure", epsilon="0.5")],
    "approximate five times": [record("approximate", times=5)],
    "approximate and pure": [record("approximate", delta="1e-12", times=2), record("pure"), record("sparse-vector")],
    "approximate with epsilon 0": [record("approximate", epsilon="0", delta="0.01", times=2), record("randomised-response")],
    "all sampled": [record("approximate", rate="0.3", times=2), record("pure", rate="0.05", times=3)],
    "sampled and not": [record("randomised-response", rate="0.01", times=4), record("randomised-response", epsilon="0.2")],
    "profiles": [record("profile", times=3)],
    "sampled profiles": [record("profile", rate="0.2", times=2), record("pure", rate="0.9")],
    "profiles that tell": [record("profile", points=[["0.5", "0.01"], ["1", "1e-4"]], times=2)],
    "sampled profiles that tell": [record("profile", points=[["0.5", "0.01"], ["1", "1e-4"]], rate="0.2", times=2)],
}


@pytest.mark.parametrize("name", MIXTURES)
def test_all_outcomes_of_a_few_finite_releases(name: str) -> None:
    entries = MIXTURES[name]
    with precision(BITS):
        truth = worst([ScheduledRelease.read(entry) for entry in entries])
    assert faults(composed(*entries, tolerance=TOLERANCE), truth) == []


@pytest.mark.parametrize("tolerance", ["1e-2", "1e-4", "1e-9"])
@pytest.mark.parametrize(
    "entry", [record("randomised-response", times=5), record("approximate")], ids=lambda entry: entry["mechanism"]
)
def test_the_width_asked_for_is_the_width_given(entry: dict[str, object], tolerance: str) -> None:
    with precision(BITS):
        truth = worst([ScheduledRelease.read(entry)])
        composition = composed(entry, tolerance=tolerance)
        for delta in DELTAS[:3]:
            with contextlib.suppress(RequestError):
                assert _ends(composition.epsilon(delta), truth, Fraction(delta), Fraction(tolerance)) == []


@pytest.mark.parametrize("rate", [None, "0.1"])
def test_a_profile_of_one_point_is_an_approximate_mechanism(rate: str | None) -> None:
    for epsilon, delta in (("1", "1e-3"), ("3", "1e-7")):
        one = composed(record("approximate", epsilon=epsilon, delta=delta, rate=rate, times=2), tolerance=TOLERANCE)
        other = composed(record("profile", points=[[epsilon, delta]], rate=rate, times=2), tolerance=TOLERANCE)
        for at in ("0", "0.5"):
            first, second = one.delta(at), other.delta(at)
            assert first.lower <= second.upper
            assert second.lower <= first.upper


def test_points_that_others_imply_change_nothing() -> None:
    """Above the chord of two others, or said again by the other order of the pair."""
    with precision(BITS):
        y = exactly(Fraction(1)).exp()
        # At e^eps = 1, on the chord between (1, 0.1) and what it says of the other order.
        other = 1 - (1 - exactly(Fraction(1, 10))) / y
        on_chord = upper((other * (y - 1) + (1 - 1 / y) / 10) / (y - 1 / y))
    few = [["1", "0.1"], ["2", "0.01"]]
    more = [["0", f"{float(on_chord) + 1e-15:.15f}"], ["0.7", "0.9"], few[0], ["1.5", "0.2"], few[1], ["5", "0.01"]]
    for rate in (None, "0.3"):
        first, second = (
            composed(record("profile", points=points, rate=rate, times=3), tolerance=TOLERANCE) for points in (few, more)
        )
        for delta in ("0.5", "0.1"):
            a, b = first.epsilon(delta), second.epsilon(delta)
            assert a.lower <= b.upper
            assert b.lower <= a.upper
    assert len(PrivacyProfile.read({"points": more}).points) == len(more)


def test_the_pair_of_the_exponential_mechanism_is_the_worst_of_bounded_range() -> None:
    """Of all pairs with two outcomes whose losses are t - e and t, one for each t in (0, e), none is above it; one meets it."""
    e, steps = Fraction(2), 80
    with precision(BITS):
        whole, truth = exactly(e), worst([release("exponential", epsilon=str(e))])
        for epsilon in (Fraction(0), Fraction(1, 2), Fraction(19, 10)):
            at, best = exactly(epsilon), arb(0)
            for step in range(1, steps):
                t = whole * step / steps
                mass = (1 - (t - whole).exp()) / (1 - (-whole).exp())
                delta = mass * (1 - (at - t).exp()) if t > at else arb(0)
                assert delta <= truth(epsilon) + arb("1e-40")
                best = max(best, delta, key=lambda value: float(value.mid()))
            assert best > truth(epsilon) * (1 - arb("1e-3"))


@pytest.mark.parametrize("utilities", [(1, 0, 0), (1, 1, 0), (0, 1, 1, 1), (1, 0, 1, 0, 0)])
def test_exponential_mechanisms_stay_below_the_claim_for_them(utilities: Sequence[int]) -> None:
    """Utilities, moved by up to 1 for a neighbour, and e^(eps u/2): its profile, three times over, is below what is claimed."""
    e, times = Fraction(2), 3
    claimed = [(exactly(epsilon), composed(record("exponential", epsilon=str(e), times=times)).delta(epsilon).upper) for epsilon in (Fraction(0), Fraction(3), Fraction(11, 2))]
    with precision(BITS):
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
