"""The theorem of docs/mathematics.md, "Drawn from a schedule", by exact enumeration: whoever chooses order and end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

# Randomised response: one bit, true with probability odds/(1 + odds); on the neighbours the true bit is 1, and 0.
ODDS = (Fraction(3, 2), Fraction(2), Fraction(5))
LEVELS = [Fraction(1, 2), Fraction(1), Fraction(4, 3), Fraction(2), Fraction(3), Fraction(7), Fraction(20)]

History = tuple[tuple[int, int], ...]
Rule = Callable[[History], int | None]


def chance(odds: Fraction, bit: int, truth: int) -> Fraction:
    return (odds if bit == truth else 1) / (1 + odds)


def views(
    rule: Rule, odds: tuple[Fraction, ...], history: History = ()
) -> Iterator[tuple[History, Fraction, Fraction]]:
    """Every view that can come out, with its probability on either neighbour: `rule` names the next step, or ends."""
    step = rule(history)
    if step is None:
        yield history, Fraction(1), Fraction(1)
        return
    for bit in (0, 1):
        for view, p, q in views(rule, odds, (*history, (step, bit))):
            yield view, p * chance(odds[step], bit, 1), q * chance(odds[step], bit, 0)


def divergence(laws: list[tuple[Fraction, Fraction]], level: Fraction) -> Fraction:
    return sum((max(p - level * q, Fraction(0)) for p, q in laws), Fraction(0))


def product(odds: tuple[Fraction, ...]) -> list[tuple[Fraction, Fraction]]:
    found = []
    for bits in itertools.product((0, 1), repeat=len(odds)):
        p = q = Fraction(1)
        for one, bit in zip(odds, bits, strict=True):
            p, q = p * chance(one, bit, 1), q * chance(one, bit, 0)
        found.append((p, q))
    return found


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """Any choice of the next open step, or of the end, for every history there can be."""
    chosen: dict[History, int | None] = {}

    def rule(history: History) -> int | None:
        if history not in chosen:
            drawn = {step for step, _ in history}
            left = [step for step in range(len(ODDS)) if step not in drawn]
            chosen[history] = draw(st.sampled_from([*left, *left, None])) if left else None
        return chosen[history]

    for _ in views(rule, ODDS):
        pass
    return rule


@settings(max_examples=200, deadline=None)
@given(rules())
def test_no_choice_of_order_and_end_loses_more_than_the_whole_schedule(rule: Rule) -> None:
    seen = [(p, q) for _, p, q in views(rule, ODDS)]
    assert sum(p for p, _ in seen) == sum(q for _, q in seen) == 1
    whole = product(ODDS)
    for level in LEVELS:
        assert divergence(seen, level) <= divergence(whole, level)
        assert divergence([(q, p) for p, q in seen], level) <= divergence([(q, p) for p, q in whole], level)


def test_all_steps_in_any_order_lose_just_as_much() -> None:
    def rule(history: History) -> int | None:
        """The dearest step comes second if the first answer was 1, else last."""
        drawn = [step for step, _ in history]
        order = (0, 2, 1) if history and history[0][1] else (0, 1, 2)
        return next((step for step in order if step not in drawn), None)

    seen = [(p, q) for _, p, q in views(rule, ODDS)]
    for level in LEVELS:
        assert divergence(seen, level) == divergence(product(ODDS), level)


def test_a_step_drawn_twice_loses_more() -> None:
    """The control: each step has to be drawn once."""
    seen = [(p, q) for _, p, q in views(lambda history: 2 if len(history) < 4 else None, ODDS)]
    assert divergence(seen, Fraction(20)) > divergence(product(ODDS), Fraction(20))


@pytest.mark.parametrize("steps", [8, 10])
def test_the_figure_of_the_steps_that_were_drawn_would_be_false(steps: int) -> None:
    """Why the whole schedule is claimed: whoever ends when the loss is above what the drawn steps would be claimed to
    lose makes the slack larger than stated."""
    odds, delta = Fraction(3, 2), Fraction(1, 20)

    def claimed(drawn: int) -> Fraction:
        """The least power of the odds, in halves, at which so many steps have a divergence of at most delta."""
        laws = product((odds,) * drawn)
        return next(odds**power for power in range(drawn + 1) if divergence(laws, odds**power) <= delta)

    levels = [claimed(drawn) for drawn in range(steps + 1)]

    def rule(history: History) -> int | None:
        ones = sum(bit for _, bit in history)
        over = odds ** (2 * ones - len(history)) > levels[len(history)]
        return None if over or len(history) == steps else len(history)

    slack = sum(
        (max(p - levels[len(view)] * q, Fraction(0)) for view, p, q in views(rule, (odds,) * steps)), Fraction(0)
    )
    assert slack > delta
    whole = levels[steps]
    assert divergence([(p, q) for _, p, q in views(rule, (odds,) * steps)], whole) <= delta
