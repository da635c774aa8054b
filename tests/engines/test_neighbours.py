"""One unit more or less moves the exact integers by at most the sensitivity, and the worst unit by all of it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity

from . import reference
from .build import SECRET, agreed, ask, run, write
from .tables import QUESTIONS, asked, reference_rows, to_csv, visits


def moved(with_unit: list[int], without: list[int], query: Query) -> tuple[Fraction, Fraction]:
    """The L1 distance of two answers and the square of their L2 distance, in the statistic's units."""
    steps = [abs(one - other) * query.step for one, other in zip(with_unit, without, strict=True)]
    return sum(steps, Fraction(0)), sum((step**2 for step in steps), Fraction(0))


@pytest.mark.parametrize("table", range(len(QUESTIONS)))
def test_a_unit_moves_the_answer_by_what_it_keeps_and_by_no_more(tmp_path: Path, table: int) -> None:
    question = QUESTIONS[table % len(QUESTIONS)]
    groups, rows = 1 + table % 3, 1 + table % 2
    made = visits(1000 + table, numbered=False, doubles=True)
    unit = sorted({visit.person for visit in made if visit.person is not None})[table % 12]
    query = ask(agreed(groups=groups, rows=rows), *question)
    whole = run(to_csv(tmp_path / "a.csv", made), query)
    less = run(to_csv(tmp_path / "b.csv", [visit for visit in made if visit.person != unit]), query)

    l1, l2_squared = moved(whole, less, query)
    stated = sensitivity(query)
    assert l1 <= stated.l1
    assert l2_squared <= stated.l2_squared
    # All others keep the rows and cells they kept before: the difference is what this unit alone adds.
    own = [row for row in reference_rows(made, question) if row.unit == unit]
    kept = reference.contribution(asked(question, groups=groups, rows=rows), own, unit, SECRET)
    assert {cell: one - other for cell, (one, other) in enumerate(zip(whole, less, strict=True)) if one != other} == {
        cell: amount for cell, amount in kept.items() if amount
    }


@pytest.mark.parametrize(("statistic", "column"), [("count", None), ("count_units", None), ("sum", "score")])
@pytest.mark.parametrize("by", [(), ("month",), ("age", "month")])
def test_the_worst_unit_reaches_the_sensitivity(
    tmp_path: Path, statistic: str, column: str | None, by: tuple[str, ...]
) -> None:
    query = ask(agreed(groups=4, rows=3), statistic, column, by)
    others = "1,5,2024-01-03,0\n2,-3,2024-02-03,1\n"
    worst = "".join(f"9,{10**9},2024-{month:02d}-01,{age}\n" * 5 for month in range(1, 7) for age in range(4))
    head = "person,score,day,age\n"
    whole = run(write(tmp_path / "a.csv", head + others + worst), query)
    less = run(write(tmp_path / "b.csv", head + others), query)
    stated = sensitivity(query)
    assert moved(whole, less, query) == (stated.l1, stated.l2_squared)


def test_a_unit_with_very_many_rows_moves_no_more_than_another(tmp_path: Path) -> None:
    query = ask(agreed(groups=2, rows=3), "sum", "score", "month")
    others = "1,5,2024-01-03\n" * 2
    many = "".join(f"9,{place % 50},2024-{1 + place % 6:02d}-{1 + place % 28:02d}\n" for place in range(50_000))
    head = "person,score,day\n"
    whole = run(write(tmp_path / "a.csv", head + many + others), query)
    less = run(write(tmp_path / "b.csv", head + others), query)
    l1, l2_squared = moved(whole, less, query)
    assert 0 < l1 <= sensitivity(query).l1
    assert l2_squared <= sensitivity(query).l2_squared
