"""The threshold of key selection against the law of everything that is published, on neighbours, both ways."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import InternalError, RequestError
from parco.measure import Measure
from parco.mechanisms import design
from parco.mechanisms.mechanism import Additive, Gaussian, TwoSidedGeometric
from parco.mechanisms.selection import Selection, for_delta
from parco.privacy.sensitivity import Sensitivity

ONE = Fraction(1)
Law = dict[tuple[int | None, ...], mpmath.mpf]
# Noise beyond this many scales is one outcome of its own, at either end.
REACH = 9
# What thirty digits may be off.
EXACT = mpmath.mpf("1e-20")


def chance(scale: Fraction, place: int) -> mpmath.mpf:
    ratio = mpmath.exp(-1 / mpmath.mpf(scale.numerator) * scale.denominator)
    return (1 - ratio) / (1 + ratio) * ratio ** abs(place)


def published(selection: Selection, units: int) -> dict[int | None, mpmath.mpf]:
    """The law of what is published of one key: its noisy number, or None where it is not; without units, nothing."""
    if units == 0:
        return {None: mpmath.mpf(1)}
    scale, least = selection.noise.scale, int(selection.threshold)
    top = units + int(REACH * scale)
    found: dict[int | None, mpmath.mpf] = {place: chance(scale, place - units) for place in range(least, top)}
    # All that lies higher is one outcome: merging outcomes can only hide, and here hides next to nothing.
    ratio = mpmath.exp(-1 / mpmath.mpf(scale.numerator) * scale.denominator)
    found[top] = ratio ** (top - units) / (1 + ratio)
    found[None] = 1 - mpmath.fsum(found.values())
    return found


def law(selection: Selection, units: tuple[int, ...]) -> Law:
    each = [published(selection, number) for number in units]
    return {
        outcome: mpmath.fprod(one[place] for one, place in zip(each, outcome, strict=True))
        for outcome in itertools.product(*each)
    }


def slack(first: Law, second: Law, epsilon: Fraction) -> mpmath.mpf:
    """The hockey-stick divergence at epsilon."""
    factor = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    return mpmath.fsum(max(p - factor * second.get(outcome, mpmath.mpf(0)), 0) for outcome, p in first.items())


def worst(selection: Selection, *, held: int) -> mpmath.mpf:
    """The largest slack, over both orders, between tables of which one has a unit more that holds `held` keys.

    Of these any number may be its alone; behind the others one unit more stands, or two.
    """
    epsilon = held / selection.noise.scale
    found = []
    for others in itertools.combinations_with_replacement((0, 1, 2), held):
        without, with_it = law(selection, others), law(selection, tuple(number + 1 for number in others))
        found += [slack(with_it, without, epsilon), slack(without, with_it, epsilon)]
    return max(found)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3, 2)])
@pytest.mark.parametrize("above", [1, 2, 4])
@pytest.mark.parametrize("held", [1, 2])
def test_the_delta_covers_all_that_is_published_and_is_reached(scale: Fraction, above: int, held: int) -> None:
    selection = Selection(TwoSidedGeometric(scale, ONE), above, held, replace=False)
    with mpmath.workdps(30):
        charged = mpmath.mpf(selection.delta_upper.numerator) / selection.delta_upper.denominator
        assert charged * mpmath.mpf("0.999") <= worst(selection, held=held) <= charged * (1 + EXACT)


def test_a_rule_that_publishes_one_step_lower_than_it_is_charged_for_is_noticed() -> None:
    charged = Selection(TwoSidedGeometric(ONE, ONE), 4, 1, replace=False)
    drawn = Selection(TwoSidedGeometric(ONE, ONE), 3, 1, replace=False)
    assert worst(drawn, held=1) > charged.delta_upper


@pytest.mark.parametrize("above", [1, 3])
def test_a_unit_that_is_replaced_by_another_is_covered(above: int) -> None:
    """Keys of the one alone, keys of the other alone, at twice the keys' cost, and the delta is not far too large."""
    selection = Selection(TwoSidedGeometric(ONE, ONE), above, 1, replace=True)
    with mpmath.workdps(30):
        charged = mpmath.mpf(selection.delta_upper.numerator) / selection.delta_upper.denominator
        laws = [(law(selection, (1 + a, b)), law(selection, (a, 1 + b))) for a in range(2) for b in range(2)]
        found = max(max(slack(p, q, Fraction(2)), slack(q, p, Fraction(2))) for p, q in laws)
        assert charged / 2 <= found <= charged * (1 + EXACT)


@settings(max_examples=40, deadline=None)
@given(
    units=st.integers(10**6, 10**17),
    cost=st.integers(10**12, 10**15),
    keys=st.integers(1, 50),
    measure=st.sampled_from((Measure.PURE, Measure.GDP)),
    replace=st.booleans(),
)
def test_the_threshold_is_the_least_and_its_own_delta_finds_it_again(
    units: int, cost: int, keys: int, measure: Measure, replace: bool
) -> None:
    distance = Sensitivity(l1=Fraction(keys), l2_squared=Fraction(keys))
    noise = design.for_cost(measure, distance, step=ONE, units=cost)
    found = for_delta(noise, units=units, keys=keys, replace=replace)
    assert found.delta_units <= units
    if found.above > 1:
        assert Selection(noise, found.above - 1, keys, replace).delta_units > units
    assert for_delta(noise, units=found.delta_units, keys=keys, replace=replace) == found
    least = int(found.threshold / noise.lattice)
    assert found.kept(least)
    assert not found.kept(least - 1)


@pytest.mark.parametrize("noise", [Gaussian(Fraction(20), ONE), TwoSidedGeometric(Fraction(7), ONE / 2)])
def test_the_delta_is_that_of_the_tail(noise: Additive) -> None:
    found = for_delta(noise, units=10**9, keys=3, replace=False)
    steps = found.above
    with mpmath.workdps(40):
        if isinstance(noise, Gaussian):
            tail = mpmath.erfc((mpmath.mpf(steps) - 0.5) / 20 / mpmath.sqrt(2)) / 2
        else:
            ratio = mpmath.exp(mpmath.mpf(-1) / 14)
            tail = ratio**steps / (1 + ratio)
        exact = -mpmath.expm1(3 * mpmath.log1p(-tail)) * 10**18
        assert exact <= found.delta_units < exact + 1


def test_what_no_selection_can_have_is_refused() -> None:
    with pytest.raises(RequestError, match="1e-18"):
        for_delta(Gaussian(Fraction(20), ONE), units=0, keys=1, replace=False)
    with pytest.raises(InternalError):
        Selection(Gaussian(Fraction(20), ONE), 0, 1, replace=False)
    with pytest.raises(InternalError):
        Selection(Gaussian(Fraction(20), Fraction(2)), 1, 1, replace=False)
