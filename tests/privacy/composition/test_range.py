"""What must hold of every composition over the whole range of parameters, all kinds, mixed, sampled or not.

Loss from 10^-6 to 1000 times what noise hides (scales of 10^-3 to 10^6 sensitivities), rates from 10^-9 to 1, 1 to 10^6
releases, deltas from 10^-30 to 0.5. Intervals enclose numbers that are not known here: "smaller" means that the lower
end of what must be smaller is not above the upper end of what must be larger; and as all intervals are narrow, that is
nearly all there is to know.

A composition may refuse what it cannot enclose (InternalError), and where it may is `limits.py`; anywhere else that
is a fault. What takes longer than a test's patience is passed over. A property counts how often either happened: one
that was hardly ever tried would show nothing. Rare outliers have a property of their own.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from parco.errors import InternalError, RequestError
from parco.privacy import dominating, gaussian
from parco.privacy.composition import Composition, Interval
from parco.privacy.schedule import ScheduledRelease
from tests.privacy.composition.build import KINDS, composed, record
from tests.privacy.composition.limits import DRAWS_LEAST, may_be_refused

Entry = dict[str, Any]

# Narrow enough to see what is wrong by one part in ten thousand.
TOLERANCE = "1e-4"
WIDTH = Fraction(TOLERANCE)
# How many of the examples of a property may have been refused.
REFUSED_MOST = Fraction(1, 3)
# CI sees the same few in each run; with `long`, many and others each time.
FEW, MANY = 20, 200
# Seconds of CPU for one composition.
PATIENCE = {FEW: 1.0, MANY: 20.0}
# A failing example is reported as it is: to make it smaller takes longer than the test.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)

KEYS = {"gaussian": "sensitivity", "laplace": "sensitivity"}


def powers(low: float, high: float) -> st.SearchStrategy[str]:
    """Numbers as text, of three digits, evenly spread in their logarithms."""
    return st.floats(math.log10(low), math.log10(high)).map(lambda power: f"{10**power:.3g}")


sizes, deltas = powers(1e-6, 1e3), powers(1e-30, 0.5)
times = powers(1, 1e6).map(lambda text: int(float(text)))
factors = st.sampled_from([Fraction(1001, 1000), Fraction(3, 2), Fraction(30)])


@st.composite
def entries(draw: st.DrawFn, kinds: Sequence[str] = tuple(KINDS)) -> Entry:
    """Releases of one kind, with any size, any number of times, sampled or not, but not so seldom as to be outliers."""
    kind, size, count = draw(st.sampled_from(kinds)), draw(sizes), draw(times)
    often = count > DRAWS_LEAST and draw(st.booleans())
    return _entry(kind, size, count, draw(powers(min(1.01 * DRAWS_LEAST / count, 1), 1)) if often else None)


@st.composite
def outliers(draw: st.DrawFn) -> Entry:
    """Releases on samples in which a unit hardly ever is."""
    count = draw(times)
    return _entry(draw(st.sampled_from(tuple(KINDS))), draw(sizes), count, draw(powers(1e-9, DRAWS_LEAST / 10**6)))


def _entry(kind: str, size: str, count: int, rate: str | None) -> Entry:
    if kind == "profile":
        points = [[size, "1e-2"], [str(2 * Fraction(size)), "1e-4"], [str(3 * Fraction(size)), "0"]]
        return record(kind, points=points, rate=rate, times=count)
    more = {"scale": "1"} if kind in KEYS else {"delta": "1e-40"} if kind == "approximate" else {}
    return record(kind, rate=rate, times=count, **{KEYS.get(kind, "epsilon"): size}, **more)


def mixtures() -> st.SearchStrategy[list[Entry]]:
    return st.lists(entries(), min_size=1, max_size=3)


@dataclass
class Asked:
    """What a property has asked so far, and how much of it was refused."""

    patience: float
    answered: int = 0
    refused: int = 0

    def epsilon(self, found: Sequence[Mapping[str, Any]], delta: str | Fraction) -> Interval:
        """Sound in itself, or refused where it may be."""
        return self.of(composed(*found, tolerance=TOLERANCE), delta)

    def of(self, composition: Composition, delta: str | Fraction) -> Interval:
        interval = self.ask(composition, delta, composition.epsilon)
        assert 0 <= interval.lower <= interval.upper
        assert interval.upper - interval.lower <= WIDTH * max(interval.upper, Fraction(1, 1000))
        return interval

    def ask(
        self, composition: Composition, delta: str | Fraction, figure: Callable[[Any], Interval], at: Any = None
    ) -> Interval:
        """The figure at delta, or at another number."""
        try:
            with _patience(self.patience):
                interval = figure(delta if at is None else at)
        except InternalError:
            if not may_be_refused(composition.schedule, Fraction(delta), at):
                raise
            self.refused += 1
            raise _PassedOverError from None
        except _PassedOverError:
            self.refused += 1
            raise
        self.answered += 1
        return interval


class _PassedOverError(Exception):
    """The example was refused where it may be, or took too long."""


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    """Raises _PassedOverError in its block after so many seconds of CPU."""

    def stop(*_: object) -> None:
        raise _PassedOverError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


Property = Callable[..., None]


def held(property_of: Property, *, examples: int, **strategies: st.SearchStrategy[Any]) -> None:
    """Tries a property on so many examples, and whether it was tried at all."""
    asked = Asked(PATIENCE[examples])

    @settings(max_examples=examples, deadline=None, derandomize=examples == FEW, database=None, phases=PHASES)
    @given(**strategies)
    def tried(**drawn: Any) -> None:
        try:
            property_of(asked, **drawn)
        except _PassedOverError:
            return

    tried()
    assert asked.refused <= REFUSED_MOST * (asked.refused + asked.answered)


often = pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.long)])


def not_above(first: Interval, second: Interval) -> bool:
    """Whether the truth in the first may be at most the truth in the second."""
    return first.lower <= second.upper


def alike(first: Interval, second: Interval) -> bool:
    return not_above(first, second) and not_above(second, first)


def larger(entry: Entry, factor: Fraction) -> dict[str, Entry]:
    """The same with more loss: one for each parameter that it has."""
    found: dict[str, Entry] = {"times": {**entry, "times": min(math.ceil(entry["times"] * factor), 10**9)}}
    for key in ("sensitivity", "epsilon"):
        if key in entry:
            found[key] = {**entry, key: str(Fraction(entry[key]) * factor)}
    if "scale" in entry:
        found["scale"] = {**entry, "scale": str(1 / factor)}
    if "points" in entry:
        found["points"] = {**entry, "points": [[str(Fraction(e) * factor), d] for e, d in entry["points"]]}
    if "sampling" in entry:
        rate = min(Fraction(entry["sampling"]["rate"]) * factor, Fraction(1))
        found["rate"] = {**entry, "sampling": {"scheme": "poisson", "rate": str(rate)}}
        found["all"] = {key: value for key, value in entry.items() if key != "sampling"}
    return found


@often
def test_intervals_are_narrow_and_never_above_what_is_known_without_composing(examples: int) -> None:
    """No more than all epsilons added up, no more than the Renyi bound; and no more than is told at all."""

    def sound(asked: Asked, several: list[Entry], delta: str) -> None:
        found = asked.epsilon(several, delta)
        composition = composed(*several, tolerance=TOLERANCE)
        assert found.lower <= composition.renyi_epsilon(delta)
        sizes = [(release.facts.size, release.times) for release in composition.groups]
        if not any(entry["mechanism"] == "gaussian" for entry in several):
            assert found.upper <= sum(Fraction(size) * count for size, count in sizes) * (1 + WIDTH)

    held(sound, examples=examples, several=mixtures(), delta=deltas)


@often
def test_more_of_any_parameter_never_costs_less(examples: int) -> None:
    def grows(asked: Asked, entry: Entry, delta: str, factor: Fraction, place: int) -> None:
        more = list(larger(entry, factor).values())
        least = asked.epsilon([entry], delta)
        most = asked.epsilon([more[place % len(more)]], delta)
        assert not_above(least, most)
        # Each is known to a part in 10^4, so that epsilon cannot have fallen by more than that.
        assert least.upper <= most.upper * (1 + 2 * WIDTH) + WIDTH / 1000

    held(grows, examples=examples, entry=entries(), delta=deltas, factor=factors, place=st.integers(0, 3))


@often
def test_a_smaller_delta_never_costs_less(examples: int) -> None:
    def grows(asked: Asked, several: list[Entry], delta: str, factor: Fraction) -> None:
        assert not_above(asked.epsilon(several, delta), asked.epsilon(several, Fraction(delta) / factor))

    held(grows, examples=examples, several=mixtures(), delta=deltas, factor=factors)


@often
def test_the_order_of_releases_does_not_matter_nor_how_they_are_counted(examples: int) -> None:
    def free(asked: Asked, several: list[Entry], delta: str) -> None:
        first, *rest = several
        half = first["times"] // 2
        halves = [{**first, "times": first["times"] - half}, *([{**first, "times": half}] if half else [])]
        assert alike(asked.epsilon(several, delta), asked.epsilon([halves[0], *reversed(rest), *halves[1:]], delta))

    held(free, examples=examples, several=mixtures(), delta=deltas)


@often
def test_one_release_more_never_costs_less_and_adding_is_composing_anew(examples: int) -> None:
    def grows(asked: Asked, several: list[Entry], more: Entry, delta: str) -> None:
        composition = composed(*several, tolerance=TOLERANCE)
        before = asked.of(composition, delta)
        longer = composition.add(ScheduledRelease.read({**more, "times": 1}))
        after = asked.of(longer, delta)
        assert not_above(before, after)
        assert alike(after, asked.epsilon([*several, {**more, "times": 1}], delta))
        assert alike(asked.of(composition, delta), before)

    held(grows, examples=examples, several=mixtures(), more=entries(), delta=deltas)


@often
def test_sampling_nearly_everybody_is_sampling_everybody(examples: int) -> None:
    def near(asked: Asked, entry: Entry, delta: str) -> None:
        whole = {key: value for key, value in entry.items() if key != "sampling"}
        nearly = {**whole, "sampling": {"scheme": "poisson", "rate": str(1 - Fraction(1, 10**18))}}
        all_of_them, most_of_them = asked.epsilon([whole], delta), asked.epsilon([nearly], delta)
        # Whoever is left out once in 10^18 moves delta by no more than 10^6 times that.
        spared = asked.epsilon([whole], min(Fraction(delta) + Fraction(entry["times"], 10**18), Fraction(1, 2)))
        assert not_above(most_of_them, all_of_them)
        assert not_above(spared, most_of_them)

    held(near, examples=examples, entry=entries(), delta=powers(1e-8, 0.4))


@often
def test_sampling_hardly_anybody_costs_nothing_below_the_chance_to_be_sampled(examples: int) -> None:
    """With a rate q whoever is never sampled loses nothing: delta >= 1 - (1-q)^k is had for epsilon 0."""

    def nothing(asked: Asked, entry: Entry, rate: str, share: Fraction) -> None:
        sampled = {**entry, "sampling": {"scheme": "poisson", "rate": rate}}
        chance = Fraction(rate) * entry["times"]
        if chance * (1 + share) < Fraction(1, 2):
            found = asked.epsilon([sampled], chance * (1 + share))
            assert found.lower == 0
            assert found.upper <= WIDTH / 1000

    held(nothing, examples=examples, entry=entries(), rate=powers(1e-9, 1e-3), share=factors)


@often
def test_rare_outliers_are_enclosed_or_refused(examples: int) -> None:
    """Below the chance to be drawn at all epsilon is 0; above it, it is no larger than with everybody drawn."""

    def sound(asked: Asked, entry: Entry, delta: str) -> None:
        found = asked.epsilon([entry], delta)
        whole = {key: value for key, value in entry.items() if key != "sampling"}
        assert not_above(found, asked.epsilon([whole], delta))

    held(sound, examples=examples, entry=outliers(), delta=powers(1e-9, 0.5))


@often
def test_epsilon_and_delta_are_each_others_inverse(examples: int) -> None:
    def inverse(asked: Asked, several: list[Entry], delta: str) -> None:
        found = asked.epsilon(several, delta)
        composition = composed(*several, tolerance=TOLERANCE)
        above = asked.ask(composition, delta, composition.delta, found.upper)
        below = asked.ask(composition, delta, composition.delta, found.lower)
        assert 0 <= above.lower <= above.upper <= 1
        assert above.lower <= Fraction(delta)
        assert found.lower == 0 or below.upper >= Fraction(delta)
        assert above.lower <= below.upper

    held(inverse, examples=examples, several=mixtures(), delta=deltas)


@often
def test_deltas_of_the_releases_own_are_never_forgotten(examples: int) -> None:
    """At or below what is told with certainty there is no epsilon; above it there is one."""

    def told(asked: Asked, entry: Entry, own: str, share: Fraction) -> None:
        count = min(entry["times"], 1000)
        leaking = {**record("approximate"), "epsilon": "0.1", "delta": own, "times": count}
        certain = 1 - (1 - Fraction(own)) ** count
        for delta in (certain, certain / share):
            with pytest.raises(RequestError, match="own deltas"):
                composed(leaking, entry).epsilon(delta)
        if certain * share < Fraction(1, 2):
            assert asked.epsilon([leaking], certain * share).upper > 0

    held(told, examples=examples, entry=entries(), own=powers(1e-20, 1e-4), share=factors)


@often
def test_a_gaussian_that_dominates_a_gaussian_is_never_smaller(examples: int) -> None:
    """A stated delta allows a mu less by at most sqrt(2 pi) delta."""

    @settings(max_examples=examples // 4, deadline=None, derandomize=examples == FEW, database=None)
    @given(size=sizes, delta=powers(1e-30, 1e-2))
    def never_smaller(size: str, delta: str) -> None:
        mu, slack = Fraction(size), Fraction(1, 100)
        found = dominating.mu_squared_upper(
            lambda at: gaussian.delta_upper(mu**2, at), delta=Fraction(delta), slack=slack
        )
        least = max(mu - Fraction(2507, 1000) * Fraction(delta), Fraction(0))
        assert least**2 <= found <= (mu * (1 + slack)) ** 2

    never_smaller()


@often
def test_gaussians_are_never_refused_and_read_back(examples: int) -> None:
    """Alone they are exact: both ends within 10^-11, and delta comes back."""

    @settings(max_examples=5 * examples, deadline=None, derandomize=examples == FEW, database=None)
    @given(several=st.lists(st.tuples(sizes, times), min_size=1, max_size=4), delta=deltas)
    def exact(several: list[tuple[str, int]], delta: str) -> None:
        composition = composed(
            *(record("gaussian", sensitivity=size, scale="1", times=count) for size, count in several)
        )
        found = composition.epsilon(delta)
        assert 0 <= found.lower <= found.upper <= found.lower * (1 + Fraction(1, 10**11)) + Fraction(1, 10**30)
        assert composition.delta(found.upper).lower <= Fraction(delta)
        assert found.lower == 0 or composition.delta(found.lower).upper >= Fraction(delta)

    exact()
