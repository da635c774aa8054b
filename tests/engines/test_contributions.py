"""What units contribute: one number of each, by all of its rows, none of which is left out."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from parco.engines.duckdb import DuckDBEngine
from parco.queries.query import Query

from .build import SECRET, agreed, write
from .tables import reference_rows, to_csv, visits

BY: tuple[tuple[str, ...], ...] = ((), ("ward",), ("age", "month"))
HALF = Fraction(1, 2)


@pytest.mark.parametrize("table", range(6))
def test_each_unit_has_one_number_whatever_the_contract_bounds(tmp_path: Path, table: int) -> None:
    by = BY[table % 3]
    made = visits(700 + table, numbered=False, doubles=True)
    path, contract = to_csv(tmp_path / "a.csv", made), agreed(groups=1, rows=1)
    rows = reference_rows(made, ("count", None, by))
    cells = Counter(
        (row.unit, row.keys) for row in rows if row.unit is not None and declared(contract_keys(by), row.keys)
    )
    units = {unit for unit, _ in cells}
    most = Counter(max(count for (own, _), count in cells.items() if own == unit) for unit in units)
    number = Counter(sum(own == unit for own, _ in cells) for unit in units)
    queries = [Query.of(contract, "unit_rows", by=by, at=HALF)]
    if by:
        queries.append(Query.of(contract, "unit_groups", by=by, at=HALF))
    found = DuckDBEngine(path).run_all(queries, secret=SECRET)
    assert found == [[dict(most)], [dict(number)]][: len(queries)]
    assert max(most) > 1


def contract_keys(by: tuple[str, ...]) -> list[tuple[str | int, ...]]:
    return [agreed().keys(name) or () for name in by]


def declared(keys: list[tuple[str | int, ...]], row: tuple[str | int | None, ...]) -> bool:
    return all(key in own for key, own in zip(row, keys, strict=True))


def test_more_rows_than_count_are_so_many(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "person\n" + "p\n" * 10_007 + "q\n" * 3)
    query = Query.of(agreed(rows=2), "unit_rows", at=HALF)
    assert DuckDBEngine(path).run_all([query], secret=SECRET) == [[{10_000: 1, 3: 1}]]
    assert query.candidates == range(1, 10_001)


def test_an_empty_table_has_an_empty_tally(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "person\n")
    query = Query.of(agreed(), "unit_rows", at=HALF)
    assert DuckDBEngine(path).run_all([query], secret=SECRET) == [[{}]]
