"""DuckDB computes the documented rule, cell by cell, whatever the order of the rows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from parco.engines.duckdb import DuckDBEngine

from . import reference
from .build import SECRET, agreed, ask, run, write
from .tables import QUESTIONS, Visit, asked, reference_rows, to_csv, to_parquet, visits

TABLES = 50


def shuffled(made: list[Visit], seed: int) -> list[Visit]:
    other = list(made)
    Random(seed).shuffle(other)
    assert other != made
    return other


@pytest.mark.parametrize("table", range(TABLES))
def test_fifty_tables_give_the_integers_of_the_rule(tmp_path: Path, table: int) -> None:
    question = QUESTIONS[table % len(QUESTIONS)]
    numbered, doubles = table % 3 != 0, table % 4 < 2
    groups, rows = 1 + table % 2, 1 + table // 2 % 3
    made = visits(table, numbered=numbered, doubles=doubles)
    meant = asked(question, groups=groups, rows=rows)
    assert reference.exceeded(meant, reference_rows(made, question)) == (True, True)
    expected = reference.answer(meant, reference_rows(made, question), SECRET)
    query = ask(agreed(groups=groups, rows=rows), question[0], question[1], question[2])
    # Each table as text or with types, as it was made and shuffled.
    for name, order in (("made", made), ("shuffled", shuffled(made, table))):
        if table // len(QUESTIONS) % 2:
            path = to_parquet(tmp_path / f"{name}.parquet", order, numbered=numbered, doubles=doubles)
        else:
            path = to_csv(tmp_path / f"{name}.csv", order)
        assert run(path, query) == expected
    loose = asked(question, groups=99, rows=99)
    assert expected != reference.answer(loose, reference_rows(made, question), SECRET)


@pytest.mark.parametrize("question", [("count", None, ()), ("count_units", None, ()), ("sum", "score", ())], ids=str)
def test_without_groups_only_rows_are_bounded(
    tmp_path: Path, question: tuple[str, str | None, tuple[str, ...]]
) -> None:
    made = visits(99, numbered=False, doubles=True)
    meant = asked(question, groups=5, rows=2)
    assert reference.exceeded(meant, reference_rows(made, question)) == (False, True)
    query = ask(agreed(groups=5, rows=2), *question)
    assert run(to_csv(tmp_path / "a.csv", made), query) == reference.answer(
        meant, reference_rows(made, question), SECRET
    )


def test_rows_of_several_groups_and_blocks_of_a_parquet_file(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    question = QUESTIONS[8]
    made = visits(7, numbered=True, doubles=True)
    path = to_parquet(tmp_path / "a.parquet", made, numbered=True, doubles=True)
    small = tmp_path / "b.parquet"
    parquet.write_table(pa.concat_tables([parquet.read_table(path)] * 3), small, row_group_size=17, compression="zstd")
    meant = asked(question, groups=2, rows=3)
    expected = reference.answer(meant, reference_rows(made * 3, question), SECRET)
    assert run(small, ask(agreed(groups=2, rows=3), *question)) == expected


def test_which_rows_and_cells_are_kept_depends_on_the_secret(tmp_path: Path) -> None:
    question = QUESTIONS[8]
    made = visits(3, numbered=True, doubles=False)
    path = to_csv(tmp_path / "a.csv", made)
    query, meant = ask(agreed(groups=1, rows=1), *question), asked(question, groups=1, rows=1)
    secrets = [bytes([number]) * 32 for number in range(4)]
    answers = [run(path, query, secret=secret) for secret in secrets]
    assert answers == [reference.answer(meant, reference_rows(made, question), secret) for secret in secrets]
    assert len({tuple(found) for found in answers}) == len(secrets)


def test_within_its_bounds_a_table_is_added_up_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "person,score,age\n1,0.5,0\n1,-3,1\n2,20,0\n2,21,3\n3,0.125,9\n")
    wide = agreed(groups=4, rows=9)
    assert run(path, ask(wide, "sum", "score", "age")) == [82, -12, 0, 80]
    assert run(path, ask(wide, "sum", "score")) == [2 - 12 + 80 + 80 + 1]
    assert run(path, ask(wide, "count")) == [5]
    assert run(path, ask(wide, "count_units", by="age")) == [2, 1, 0, 1]


def test_an_engine_reads_what_its_check_saw_or_looks_for_itself(tmp_path: Path) -> None:
    query = ask(agreed(rows=2), "count")
    path = write(tmp_path / "a.csv", "person\n1\n1\n1\n2\n")
    assert DuckDBEngine(path).run(query, secret=SECRET) == [3]
