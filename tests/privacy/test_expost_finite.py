"""What survives a merging of outcomes: 2,000 random mechanisms, the counter-example, and a bound that is dropped."""

from __future__ import annotations

import doctest
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from parco.errors import RequestError
from parco.privacy import expost
from parco.privacy.expost_finite import Outcome, beyond_bound, merged, slack

Array = NDArray[np.float64]
MECHANISMS, BOUNDS, ALIKE = 2000, 3, 4
ROUNDING = 1e-12
DELTA = Fraction(1, 20)

# The first two outcomes are merged; all three come with the bound log 2.
COUNTER_EXAMPLE = tuple(
    Outcome(Fraction(first, 100), Fraction(second, 100), Fraction(2)) for first, second in ((1, 0), (50, 25), (49, 75))
)


@dataclass(frozen=True)
class Mechanisms:
    """Laws of shape (mechanisms, bounds, outcomes with that bound), and the bounds, shape (mechanisms, bounds)."""

    first: Array
    second: Array
    bounds: Array
    order: Array

    def functional(self) -> Array:
        """E_P[e^((alpha-1)(L-bound))], the larger of both orders of the pair."""
        alpha = self.order[:, None, None]
        weight = np.exp((1 - alpha) * self.bounds[:, :, None])
        pairs = ((self.first, self.second), (self.second, self.first))
        one, other = ((weight * p**alpha * q ** (1 - alpha)).sum(axis=(1, 2)) for p, q in pairs)
        return np.asarray(np.maximum(one, other), float)

    def slack(self, more: Array) -> Array:
        """The least delta at bounds raised by `more`, the larger of both orders."""
        odds = np.exp(self.bounds + more[:, None])[:, :, None]
        pairs = ((self.first, self.second), (self.second, self.first))
        one, other = (np.maximum(p - odds * q, 0).sum(axis=(1, 2)) for p, q in pairs)
        return np.asarray(np.maximum(one, other), float)

    def beyond(self) -> Array:
        """The chance that the loss exceeds the bound."""
        odds = np.exp(self.bounds)[:, :, None]
        return np.asarray(np.where(self.first > odds * self.second, self.first, 0).sum(axis=(1, 2)), float)


@pytest.fixture(scope="module")
def mechanisms() -> Mechanisms:
    """Random laws with random bounds, moved so that the Renyi functional is exactly 1 (or the bounds are 0)."""
    draws = np.random.default_rng(1)
    shape = (MECHANISMS, BOUNDS, ALIKE)
    first, second = (draws.gamma(0.7, size=shape) + 1e-9 for _ in range(2))
    first, second = (one / one.sum(axis=(1, 2), keepdims=True) for one in (first, second))
    order = draws.choice([1.2, 1.5, 2.0, 3.0, 8.0], MECHANISMS)
    free = Mechanisms(first, second, draws.uniform(0, 3, (MECHANISMS, BOUNDS)), order)
    moved = free.bounds + (np.log(free.functional()) / (order - 1))[:, None]
    return Mechanisms(first, second, np.maximum(moved, 0), order)


def processed(given: Mechanisms) -> Mechanisms:
    """After a random map of the outcomes, with coins of its own, among those that came with one bound."""
    draws = np.random.default_rng(2)
    kernel = draws.gamma(0.3, size=(MECHANISMS, BOUNDS, ALIKE, 3))
    kernel /= kernel.sum(axis=3, keepdims=True)
    first, second = (np.einsum("mbi,mbij->mbj", one, kernel) for one in (given.first, given.second))
    return Mechanisms(first, second, given.bounds, given.order)


def conversions(given: Mechanisms) -> Array:
    """What the hockey-stick conversion of each mechanism's order adds to its bound at DELTA."""
    added = {
        order: float(expost.hockey_stick_epsilon_upper(Fraction(9), order=Fraction(order), delta=DELTA)) - 9
        for order in set(given.order)
    }
    return np.array([added[order] for order in given.order])


def test_post_processing_never_raises_the_functional_or_the_slack(mechanisms: Mechanisms) -> None:
    after = processed(mechanisms)
    assert (mechanisms.functional() > 1 - 1e-9).mean() > 0.9
    assert (mechanisms.functional() <= 1 + ROUNDING).all()
    assert (after.functional() <= 1 + ROUNDING).all()
    assert (after.functional() <= mechanisms.functional() + ROUNDING).all()
    more = conversions(mechanisms)
    assert (mechanisms.slack(more) > 0).any()
    assert (mechanisms.slack(more) <= float(DELTA)).all()
    assert (after.slack(more) <= mechanisms.slack(more) + ROUNDING).all()


def test_a_raised_bound_stays_one(mechanisms: Mechanisms) -> None:
    """Raised by a random function of the outcome's own bound."""
    higher = mechanisms.bounds * np.random.default_rng(3).uniform(1, 2, mechanisms.bounds.shape)
    raised = Mechanisms(mechanisms.first, mechanisms.second, higher, mechanisms.order)
    assert (raised.functional() <= 1 + ROUNDING).all()


def test_the_probabilistic_promise_is_lost_by_the_same_maps(mechanisms: Mechanisms) -> None:
    before, after = mechanisms.beyond(), processed(mechanisms).beyond()
    assert (after > before + 0.01).mean() > 0.01


def test_a_bound_that_is_dropped_promises_nothing(mechanisms: Mechanisms) -> None:
    """The outcomes are kept, and each shown with the least bound that there was: the functional exceeds 1."""
    least = np.broadcast_to(mechanisms.bounds.min(axis=1, keepdims=True), mechanisms.bounds.shape)
    dropped = Mechanisms(mechanisms.first, mechanisms.second, least, mechanisms.order)
    assert (dropped.functional() > 1.01).mean() > 0.5


def test_the_counter_example_goes_from_a_hundredth_to_a_half() -> None:
    after = merged(COUNTER_EXAMPLE, [[0, 1], [2]])
    assert (beyond_bound(COUNTER_EXAMPLE), beyond_bound(after)) == (Fraction(1, 100), Fraction(51, 100))
    # What is certified stays: no set of outcomes exceeds its bound by more than before.
    assert slack(COUNTER_EXAMPLE) == slack(after) == Fraction(1, 100)


@pytest.mark.parametrize(("name", "lines"), [("mathematics.md", 5), ("accuracy-first.md", 4)])
def test_the_pages_show_what_is_computed(name: str, lines: int) -> None:
    page = Path(__file__).parents[2] / "docs" / name
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (failed, tried) == (0, lines)


def test_outcomes_with_different_bounds_are_not_merged() -> None:
    other = (*COUNTER_EXAMPLE[:2], Outcome(Fraction(49, 100), Fraction(75, 100), Fraction(3)))
    with pytest.raises(RequestError, match="part of the output"):
        merged(other, [[0, 2], [1]])
    assert merged(other, [[1, 0], [2]])[1] == other[2]


@pytest.mark.parametrize("groups", [[[0, 1]], [[0, 1], [1, 2]], [[0, 1, 2], []], [[0, 1, 3]]])
def test_every_outcome_goes_somewhere_once(groups: list[list[int]]) -> None:
    with pytest.raises(RequestError, match="one group"):
        merged(COUNTER_EXAMPLE, groups)


@pytest.mark.parametrize("numbers", [(-1, 0, 1), (2, 0, 1), (0, 2, 1), (0, 0, Fraction(1, 2))])
def test_chances_and_odds_have_their_ranges(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(RequestError):
        Outcome(*map(Fraction, numbers))
