"""Tallies and squares: the same kept rows as every other question has, value by value."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from parco.engines.duckdb import DuckDBEngine, tallies
from parco.queries.query import Query

from . import reference
from .build import SECRET, agreed, ask, run, write
from .tables import asked, reference_rows, to_csv, to_parquet, visits

BY: tuple[tuple[str, ...], ...] = ((), ("ward",), ("age", "month"))


@pytest.mark.parametrize("table", range(6))
def test_tallies_and_squares_are_those_of_the_rule(tmp_path: Path, table: int) -> None:
    by, doubles, groups, rows = BY[table % 3], table % 2 == 0, 1 + table % 3, 1 + table // 2
    made = visits(600 + table, numbered=False, doubles=doubles)
    path = (
        to_parquet(tmp_path / "a.parquet", made, numbered=False, doubles=doubles)
        if table % 2
        else to_csv(tmp_path / "a.csv", made)
    )
    contract = agreed(groups=groups, rows=rows)
    quantiles = [Query.of(contract, "quantile", column="score", by=by, at=Fraction(at, 4)) for at in (1, 2)]
    squares = ask(contract, "sum_squares", "score", by, centred=True)
    total = ask(contract, "sum", "score", by)
    first, squared, second, added = DuckDBEngine(path).run_all(
        [quantiles[0], squares, quantiles[1], total], secret=SECRET
    )
    question, own = ("sum", "score", by), reference_rows(made, ("sum", "score", by))
    meant = asked(question, groups=groups, rows=rows)
    assert first == second == reference.tallies(meant, own, SECRET)
    centred = replace(meant, statistic="sum_squares", centre=Fraction(5))
    assert squared == reference.answer(centred, own, SECRET)
    assert added == [sum(value * count for value, count in cell.items()) for cell in tallies(first)]
    assert squared == [sum((value - 20) ** 2 * count for value, count in cell.items()) for cell in tallies(first)]


def test_an_empty_table_has_empty_tallies_and_extremes_are_added_exactly(tmp_path: Path) -> None:
    columns = '[columns.x]\ntype = "integer"\nlower = -10000000000000\nupper = 10000000000000\n'
    contract = agreed(columns, rows=2)
    empty = write(tmp_path / "a.csv", "person,x\n")
    asked_for = Query.of(contract, "quantile", column="x", at=Fraction(1))
    assert DuckDBEngine(empty).run_all([asked_for], secret=SECRET) == [[{}]]
    rows = "".join(f"{person},{sign}99999999999999999999\n" for person in range(300) for sign in ("", "-"))
    full = write(tmp_path / "b.csv", "person,x\n" + rows)
    assert run(full, ask(contract, "sum_squares", "x")) == [600 * 10**26]
    assert DuckDBEngine(full).run_all([asked_for], secret=SECRET) == [[{-(10**13): 300, 10**13: 300}]]
