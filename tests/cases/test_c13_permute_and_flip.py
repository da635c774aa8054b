"""C13: a bound belongs to the mechanism it was proven for. Permute-and-flip is not the exponential mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from parco.measure import Measure
from parco.privacy import exponential, pure

Law = list[Any]

# Two candidates, sensitivity 1, epsilon 2: scores (0, 0) and (1, -1).
EPSILON = Fraction(2)
EVEN, APART = (0, 0), (1, -1)


def permute_and_flip(scores: Sequence[int], epsilon: Fraction) -> Law:
    """McKenna & Sheldon 2020: in random order, take a candidate with probability e^(epsilon (score - best)/2)."""
    rate, best = mpf(epsilon.numerator) / epsilon.denominator / 2, max(scores)
    law, orders = [mpf(0)] * len(scores), list(permutations(range(len(scores))))
    for order in orders:
        left = mpf(1)
        for place in order:
            heads = mpmath.exp(rate * (scores[place] - best))
            law[place] += left * heads / len(orders)
            left *= 1 - heads
    return law


def exponential_mechanism(scores: Sequence[int], epsilon: Fraction) -> Law:
    weights = [mpmath.exp(mpf(epsilon.numerator) / epsilon.denominator / 2 * score) for score in scores]
    return [weight / sum(weights) for weight in weights]


def per_order(first: Law, second: Law, order: Any) -> Any:
    """D_alpha/alpha, which zero-concentrated privacy bounds by rho."""
    moments = sum(p**order * q ** (1 - order) for p, q in zip(first, second, strict=True))
    return mpmath.log(moments) / (order - 1) / order


def rho(facts: Any) -> Any:
    cost = facts.cost_upper(EPSILON, Measure.ZCDP)
    return mpf(cost.numerator) / cost.denominator


def test_the_figures_of_the_report() -> None:
    with mpmath.workdps(40):
        even, apart = permute_and_flip(EVEN, EPSILON), permute_and_flip(APART, EPSILON)
        assert even == [mpf("0.5")] * 2
        assert mpmath.almosteq(apart[0], mpf("0.93233235838169365"), 1e-16)
        assert mpmath.almosteq(2 * per_order(even, apart, mpf(2)), mpf("1.3769187396003361"), 1e-15)
        worst = per_order(even, apart, mpf("1.455884631"))
        assert mpmath.almosteq(worst, mpf("0.72753033210589838"), 1e-15)
        assert per_order(even, apart, mpf("1.45")) < worst > per_order(even, apart, mpf("1.46"))
        # Half of epsilon^2/4, the exponential mechanism's line, is false here; that of a pure mechanism is not.
        assert worst > mpf(1) / 2 > rho(exponential)
        assert worst <= rho(pure) <= 2
        choice = exponential_mechanism(EVEN, EPSILON), exponential_mechanism(APART, EPSILON)
        assert mpmath.almosteq(choice[1][0], mpf("0.880797078"), 1e-9)
        assert mpmath.almosteq(per_order(*choice, mpf(2)), mpf("0.4338"), 1e-4)
        largest = max(per_order(*choice, mpf(step) / 100) for step in range(101, 2000))
        assert mpf("0.4338") < largest < rho(exponential)


@pytest.mark.parametrize("measure", [Measure.ZCDP, Measure.GDP, Measure.renyi(Fraction(3, 2))], ids=str)
def test_the_two_are_not_charged_alike(measure: Measure) -> None:
    assert exponential.cost_upper(EPSILON, measure) < pure.cost_upper(EPSILON, measure)
    assert exponential.cost_upper(EPSILON, Measure.PURE) == pure.cost_upper(EPSILON, Measure.PURE)


SCORES = st.lists(st.tuples(st.integers(-3, 3), st.integers(-1, 1)), min_size=2, max_size=4)


@settings(max_examples=40, deadline=None)
@given(moves=SCORES, epsilon=st.sampled_from([Fraction(1, 2), Fraction(2), Fraction(6)]))
def test_each_stays_below_its_own_line(moves: list[tuple[int, int]], epsilon: Fraction) -> None:
    """The class of fault: a line that fits the figures at hand, of a mechanism that is another one."""
    with mpmath.workdps(30):
        scores, moved = [score for score, _ in moves], [score + move for score, move in moves]
        tiny = mpf(10) ** -20
        for mechanism, facts in ((permute_and_flip, pure), (exponential_mechanism, exponential)):
            pair = mechanism(scores, epsilon), mechanism(moved, epsilon)
            for order in (Fraction(11, 10), Fraction(3, 2), Fraction(4)):
                exact = per_order(*pair, mpf(order.numerator) / order.denominator)
                for line in (facts.cost_upper(epsilon, Measure.ZCDP), facts.renyi_upper(epsilon, order) / order):
                    assert exact <= mpf(line.numerator) / line.denominator + tiny
