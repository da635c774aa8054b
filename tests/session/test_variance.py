"""A variance is three stored parts: what it is, what its interval covers, what is free afterwards."""

from __future__ import annotations

import statistics
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parco
from parco.session.mean import MeanRow
from parco.session.receipt import JointReceipt
from parco.session.release import Answer
from parco.session.variance import VarianceAnswer
from tests.session.test_mean import spent
from tests.shop import open_shop

LEVEL = Fraction(95, 100)


def variance(parts: tuple[int, int, int], widths: tuple[int, int, int] = (0, 0, 0)) -> VarianceAnswer:
    """The variance of whole numbers between 0 and 100 around 50, from these parts and half-widths."""
    square, total, count = (
        Answer((), ((),), (part,), Fraction(1), Fraction(width), LEVEL)
        for part, width in zip(parts, widths, strict=True)
    )
    return VarianceAnswer((), ((),), square, total, count, Fraction(2500), Fraction(1, 100), LEVEL)


@given(values=st.lists(st.integers(0, 100), min_size=1, max_size=20))
def test_without_noise_it_is_the_variance(values: list[int]) -> None:
    parts = (sum((x - 50) ** 2 for x in values), sum(x - 50 for x in values), len(values))
    (row,) = variance(parts)
    exact = Fraction(statistics.pvariance([Fraction(x) for x in values]))
    assert row.value is not None
    assert abs(row.value - exact) <= Fraction(1, 200)
    assert row.lower <= exact <= row.upper <= row.lower + Fraction(1, 50)


@given(
    values=st.lists(st.integers(0, 100), min_size=1, max_size=12),
    noise=st.tuples(st.integers(-900, 900), st.integers(-90, 90), st.integers(-6, 6)),
)
def test_the_interval_holds_the_variance_while_each_part_is_within_its_own(
    values: list[int], noise: tuple[int, int, int]
) -> None:
    exact = Fraction(statistics.pvariance([Fraction(x) for x in values]))
    parts = (sum((x - 50) ** 2 for x in values), sum(x - 50 for x in values), len(values))
    (square, total, count), (a, b, c) = parts, noise
    (row,) = variance((square + a, total + b, count + c), (abs(a), abs(b), abs(c)))
    assert row.lower <= exact <= row.upper
    if count + c <= abs(c):
        assert row == MeanRow((), None, Fraction(0), Fraction(2500))


@given(
    parts=st.tuples(st.integers(-50, 5000), st.integers(-200, 200), st.integers(3, 12)),
    widths=st.tuples(st.integers(0, 300), st.integers(0, 60), st.integers(0, 2)),
)
def test_the_interval_is_no_wider_than_the_parts_make_it(
    parts: tuple[int, int, int], widths: tuple[int, int, int]
) -> None:
    (row,) = variance(parts, widths)
    (square, total, count), (a, b, c) = parts, widths
    grid = [Fraction(step, 10) for step in range(-10, 11)]
    sums = [total + b * step for step in grid]
    reached = [
        s / n - x**2 / n**2 for s in (square - a, square + a) for x in sums for n in (count + c * step for step in grid)
    ]
    slack = Fraction(1, 50) + (max(reached) - min(reached)) / 10
    assert row.lower <= min(max(min(reached), Fraction(0)), Fraction(2500))
    assert row.upper >= min(max(*reached, Fraction(0)), Fraction(2500))
    assert row.lower >= min(reached) - slack or row.lower == 0
    assert row.upper <= max(*reached, Fraction(0)) + slack


def test_mean_and_count_are_free_after_a_variance(tmp_path: Path) -> None:
    with parco.Session(open_shop(tmp_path)) as session:
        planned = session.plan.variance("dollars", by="channel", cost="0.3")
        release = session.variance("dollars", by="channel", cost="0.3")
        assert planned.cost == release.cost
        assert isinstance(release.receipt, JointReceipt)
        assert spent(session) == release.cost.value == sum(part.cost.value for part in release.receipt.parts)
        assert 0 <= Fraction("0.3") - release.cost.value < Fraction(1, 10**12)
        assert [part.mechanism.kind for part in release.receipt.parts] == ["two-sided-geometric"] * 3
        before = spent(session)
        assert session.mean("dollars", by="channel").repeat
        assert session.count("dollars", by="channel").repeat
        assert session.variance("dollars", by="channel").value.rows() == release.value.rows()
        assert spent(session) == before
        with pytest.raises(parco.QuestionError, match="error"):
            session.variance("dollars", error="5")


def test_with_a_large_budget_it_is_that_of_the_bounded_rows(tmp_path: Path) -> None:
    rows = [(str(place), "2024-01-05", "1", amount, "web") for place, amount in enumerate(("10", "20", "300", "0.5"))]
    contract = open_shop(tmp_path, purchases=rows, budget='measure = "zcdp"\ntotal = "9000"\ndelta = "1e-6"')
    with parco.Session(contract) as session:
        release = session.variance("dollars", by="channel", cost="9000")
    web, *empty = release.value
    exact = Fraction(statistics.pvariance([Fraction(10), Fraction(20), Fraction(100), Fraction(1, 2)]))
    assert web.value is not None
    assert web.lower <= exact <= web.upper
    assert abs(web.value - exact) < 60
    assert len(empty) == 2


def test_squares_that_no_engine_adds_up_are_refused(tmp_path: Path) -> None:
    wide = '[columns.dollars]\ntype = "decimal"\nlattice = "0.000001"\nlower = "0"\nupper = "100000000"\n'
    with parco.Session(open_shop(tmp_path, columns=wide)) as session:
        with pytest.raises(parco.QuestionError, match="narrower"):
            session.variance("dollars")
        assert spent(session) == 0
