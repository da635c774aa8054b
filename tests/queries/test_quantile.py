"""The scores of a quantile's candidates: runs against the definition, sensitivity and charge against enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import InternalError, RequestError
from parco.measure import COST_UNIT, Measure
from parco.mechanisms import design
from parco.mechanisms.mechanism import Exponential
from parco.privacy.sensitivity import Sensitivity
from parco.queries.quantile import runs

CANDIDATES = range(-1, 3)
SHARES = [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)]
STEP = Fraction(1)


def score(rows: list[int], candidate: int, share: Fraction) -> Fraction:
    """Minus the distance of the target from the candidate's ranks, by the definition."""
    target = share * len(rows)
    low, high = sum(row < candidate for row in rows), sum(row <= candidate for row in rows)
    return -max(Fraction(0), low - target, target - high)


def spread(rows: list[int], share: Fraction, candidates: range = CANDIDATES) -> list[Fraction]:
    """The score of each candidate, from the runs."""
    found = runs(Counter(rows), at=share, candidates=candidates)
    return [value for value, count in found for _ in range(count)]


@given(rows=st.lists(st.integers(-5, 9), max_size=12), share=st.fractions(0, 1, max_denominator=20))
def test_runs_are_the_scores_of_the_definition(rows: list[int], share: Fraction) -> None:
    candidates = range(-5, 10)
    assert spread(rows, share, candidates) == [score(rows, candidate, share) for candidate in candidates]
    assert max(spread(rows, share, candidates)) == 0


def test_an_empty_group_is_one_run_and_a_wide_lattice_is_few() -> None:
    wide = range(-(10**18), 10**18 + 1)
    for empty in ({}, {7: 0}):
        assert list(runs(empty, at=Fraction(1, 2), candidates=wide)) == [(Fraction(0), 2 * 10**18 + 1)]
    assert sum(count for _, count in runs({7: 10**7}, at=Fraction(1, 2), candidates=wide)) == len(wide)
    with pytest.raises(InternalError):
        list(runs({-2: 1}, at=Fraction(1, 2), candidates=CANDIDATES))


def moved(share: Fraction, *, rows: int, replace: bool) -> Fraction:
    """The most that one unit of at most `rows` rows moves any score, over all small groups."""
    units = [list(one) for size in range(rows + 1) for one in itertools.combinations_with_replacement(CANDIDATES, size)]
    others = [list(one) for size in range(4) for one in itertools.combinations_with_replacement(CANDIDATES, size)]
    pairs = itertools.product(units, units) if replace else ((one, []) for one in units)
    return max(
        abs(first - second)
        for (one, other), rest in itertools.product(list(pairs), others)
        for first, second in zip(spread(rest + one, share), spread(rest + other, share), strict=True)
    )


@pytest.mark.parametrize("share", SHARES)
def test_the_sensitivity_is_attained_and_never_passed(share: Fraction) -> None:
    for rows in (1, 2):
        assert moved(share, rows=rows, replace=False) == rows * max(share, 1 - share)
    # Where a row is replaced, the ends are reached by the extreme values for every share.
    assert moved(share, rows=1, replace=True) == 1


def law(rows: list[int], share: Fraction, scale: Fraction) -> list[mpmath.mpf]:
    weights = [
        mpmath.exp(mpmath.mpf(s.numerator) / s.denominator / mpmath.mpf(float(scale))) for s in spread(rows, share)
    ]
    return [weight / sum(weights) for weight in weights]


def worst_range(share: Fraction, scale: Fraction) -> mpmath.mpf:
    """The widest interval of losses over all pairs of small groups that differ by one row."""
    widest = mpmath.mpf(0)
    for size in range(5):
        for rows in itertools.combinations_with_replacement(CANDIDATES, size):
            before = law(list(rows), share, scale)
            for more in CANDIDATES:
                after = law([*rows, more], share, scale)
                losses = [mpmath.log(p / q) for p, q in zip(before, after, strict=True)]
                widest = max(widest, max(losses) - min(losses), *losses, *(-loss for loss in losses))
    return widest


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(3, 4)])
def test_the_charge_covers_the_exact_loss_and_a_planted_fault_does_not(share: Fraction) -> None:
    each = max(share, 1 - share)
    distance = Sensitivity(l1=each, l2_squared=each**2)
    mechanism = design.choice_for_cost(Measure.PURE, distance, step=STEP, units=10**15)
    charged = float(mechanism.cost_units(distance, Measure.PURE) * COST_UNIT)
    exact = worst_range(share, mechanism.scale)
    assert charged * 0.9 < exact <= charged * (1 + 1e-12)
    # A draw at four fifths of the scale that the charge is for is found out.
    assert worst_range(share, mechanism.scale * Fraction(4, 5)) > charged


@pytest.mark.parametrize("measure", [Measure.PURE, Measure.ZCDP, Measure.GDP, Measure.renyi(Fraction(5))])
@given(
    units=st.integers(1, 10**18),
    choices=st.integers(1, 50),
    each=st.fractions(Fraction(1, 2), 10, max_denominator=50),
)
@settings(max_examples=10, deadline=None)
def test_the_design_spends_what_was_asked_and_hardly_less(
    measure: Measure, units: int, choices: int, each: Fraction
) -> None:
    distance = Sensitivity(l1=choices * each, l2_squared=choices * each**2)
    mechanism = design.choice_for_cost(measure, distance, step=STEP, units=units)
    assert mechanism.cost_units(distance, measure) <= units
    sharper = Exponential(mechanism.scale * (1 - Fraction(1, 10**12)), STEP)
    assert sharper.cost_units(distance, measure) >= units or units < 10**4


@given(error=st.fractions(Fraction(1, 100), 10**6, max_denominator=10**6), candidates=st.integers(2, 10**18))
@settings(max_examples=20, deadline=None)
def test_an_error_of_rank_holds_and_is_hardly_undercut(error: Fraction, candidates: int) -> None:
    distance, level = Sensitivity(l1=Fraction(1, 2), l2_squared=Fraction(1, 4)), Fraction(95, 100)
    try:
        mechanism = design.choice_for_error(
            Measure.ZCDP, distance, step=STEP, error=error, confidence=level, candidates=candidates
        )
    except RequestError:
        assert error < 1
        return
    lost = mechanism.score_lost(level, candidates=candidates)
    assert error * (1 - Fraction(1, 10**12)) < lost <= error


def test_the_rank_error_holds_by_enumeration() -> None:
    level, scale = Fraction(9, 10), Fraction(1, 2)
    lost = Exponential(scale, STEP).score_lost(level, candidates=len(CANDIDATES))
    for size in range(6):
        for rows in itertools.combinations_with_replacement(CANDIDATES, size):
            chances = law(list(rows), Fraction(1, 2), scale)
            good = sum(p for p, s in zip(chances, spread(list(rows), Fraction(1, 2)), strict=True) if -s <= lost)
            assert good >= float(level)
