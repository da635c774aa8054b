"""Cells at different precisions: what they cost together, and the law of what is drawn."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.accuracy.cells import Alike, Cells, GaussianCells, Reach, cells_of, largest_sum
from parco.errors import InternalError, RequestError
from parco.measure import COST_UNIT, Measure
from parco.noise.bits import CipherBits
from parco.privacy.sensitivity import Sensitivity
from tests.noise.tapes import Stream

UNIT = 10**15
MEASURES = [Measure.GDP, Measure.ZCDP, Measure.renyi(Fraction(8)), Measure.PURE]
COSTS = st.lists(st.lists(st.integers(1, 10**15), min_size=3, max_size=3), min_size=1, max_size=4)


def climbed(cells: Cells, rows: list[list[int]], values: list[int]) -> list[Cells]:
    """The cells after each step, each cell as high as any step so far."""
    stages, at = [cells], [0] * len(values)
    for row in rows:
        at = [max(old, new) for old, new in zip(at, row, strict=True)]
        cells = cells.planned(at).draw(values, Stream(str(at)))
        stages.append(cells)
    return stages


@settings(max_examples=25, deadline=None)
@given(rows=COSTS, groups=st.integers(1, 3), measure=st.sampled_from(MEASURES))
def test_the_charge_is_that_of_the_dearest_unit_and_steps_add_up_to_it(
    rows: list[list[int]], groups: int, measure: Measure
) -> None:
    """A unit is in some `groups` cells: by the cost of each choice of them, from the noise that was drawn."""
    each = Fraction(3)
    stages = climbed(cells_of(measure, Reach(groups, each), step=Fraction(1), count=3), rows, [5, -2, 10**6])
    last = stages[-1]
    if isinstance(last, GaussianCells):
        factor = {Measure.GDP: Fraction(1), Measure.ZCDP: Fraction(1, 2)}.get(measure, Fraction(4))
        losses = [factor * each**2 * sum(1 / draw.scale**2 for draw in path.draws) for path in last.paths if path]
    else:
        # As the scale of the last value is l1/cost.
        losses = [cost * COST_UNIT / groups for cost in last.standing]
    worst = max(sum(chosen) for chosen in itertools.combinations(losses, groups))
    assert last.total == math.ceil(worst * UNIT)
    charges = [after.total - before.total for before, after in itertools.pairwise(stages)]
    assert min(charges) >= 0
    assert sum(charges) == last.total
    assert last.total <= max(last.standing)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_where_a_unit_may_move_cells_together_the_sharpest_decides(measure: Measure) -> None:
    """L1 = 3 and L2^2 = 5 come of no number of equal cells; a unit may as well move the sharpest alone."""
    cells = cells_of(measure, Alike(Sensitivity(Fraction(3), Fraction(5))), step=Fraction(1), count=3)
    alike, apart = cells.planned([UNIT // 4] * 3), cells.planned([UNIT // 8, UNIT // 4, 1])
    assert alike.total == apart.total
    assert UNIT // 4 - alike.total in (0, 1)
    assert cells.planned([UNIT // 8] * 3).total < apart.total


def test_draws_lie_on_the_lattice_that_is_named() -> None:
    cells = cells_of(Measure.GDP, Reach(1, Fraction(3)), step=Fraction(1, 2), count=1, lattice=Fraction(1, 512))
    for units in (UNIT // 100, UNIT // 2):
        cells = cells.planned([units]).draw([7], Stream("named"))
    assert isinstance(cells, GaussianCells)
    (path,) = cells.paths
    assert path is not None
    assert [draw.lattice for draw in path.draws] == [Fraction(1, 512)] * 2


def test_cells_that_stay_are_not_drawn_again() -> None:
    cells = cells_of(Measure.GDP, Reach(1, Fraction(1)), step=Fraction(1), count=2)
    cells = cells.planned([UNIT // 100, UNIT // 100]).draw([7, 8], Stream("one"))
    after = cells.planned([UNIT // 100, UNIT // 10]).draw([7, 8], Stream("two"))
    assert after.released.estimates[0] == cells.released.estimates[0]
    assert after.released.estimates[1] != cells.released.estimates[1]
    assert after.released.noises[0] == cells.released.noises[0]
    # What a unit in the other cell loses is what counts.
    assert after.total == after.planned([UNIT // 10, UNIT // 10]).total


def test_one_number_alone_costs_what_one_release_does() -> None:
    for measure in MEASURES:
        cells = cells_of(measure, Reach(2, Fraction(1)), step=Fraction(1), count=4)
        for cost in (UNIT // 1000, UNIT // 10, UNIT // 3):
            cells = cells.planned([cost] * 4).draw([1, 2, 3, 4], Stream("same"))
            assert cost * (1 - 1e-12) <= cells.total <= cost


@pytest.mark.parametrize("measure", [Measure.GDP, Measure.PURE])
def test_what_was_drawn_has_the_variance_of_the_last_step(measure: Measure) -> None:
    """Of many cells; also with each cell's first estimate: Cov(m_1, m_2) = t_2 for a Gaussian path."""
    count, values = 1500, list(range(1500))
    cells = cells_of(measure, Reach(1, Fraction(1)), step=Fraction(1), count=count)
    noise = list[np.ndarray]()
    for cost in (UNIT // 400, UNIT // 100):
        cells = cells.planned([cost] * count).draw(values, CipherBits())
        noise.append(np.array([float(found) for found in cells.released.estimates]) - np.array(values))
    wide, narrow = (400.0, 100.0) if measure == Measure.GDP else (2 * 400.0**2, 2 * 100.0**2)
    # Five standard errors; the fourth moment of Laplace noise is six times the squared variance.
    slack = 5 * math.sqrt((2 if measure == Measure.GDP else 5) / count)
    assert np.mean(noise[0] ** 2) == pytest.approx(wide, rel=slack)
    assert np.mean(noise[1] ** 2) == pytest.approx(narrow, rel=slack)
    assert np.mean(noise[0] * noise[1]) == pytest.approx(narrow, rel=5 * math.sqrt(wide / narrow / count) + slack)


def test_what_cannot_be_is_refused() -> None:
    reach = Reach(1, Fraction(1, 2))
    with pytest.raises(RequestError):
        Reach(0, Fraction(1))
    with pytest.raises(RequestError):
        cells_of(Measure.GDP, reach, step=Fraction(1), count=0)
    with pytest.raises(RequestError):
        cells_of(Measure.PURE, reach, step=Fraction(1), count=1)
    cells = cells_of(Measure.GDP, reach, step=Fraction(1, 2), count=2)
    with pytest.raises(InternalError):
        cells.released  # noqa: B018 - reading it is the test
    stands = cells.planned([UNIT, UNIT]).draw([1, 1], Stream("none"))
    for costs in ([UNIT - 1, UNIT], [UNIT]):
        with pytest.raises(InternalError):
            stands.planned(costs)


@given(values=st.lists(st.fractions(0, 100), min_size=1, max_size=6), count=st.integers(1, 6))
def test_the_largest_sum_is_that_of_every_choice(values: list[Fraction], count: int) -> None:
    chosen = min(count, len(values))
    assert largest_sum(values, count) == max(sum(some) for some in itertools.combinations(values, chosen))
