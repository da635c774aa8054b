"""Distinct values, centred sums, and several questions in one statement: the integers of the rule."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from parco.engines.duckdb import DuckDBEngine

from . import reference
from .build import SECRET, agreed, ask, run, write
from .reference import Asked, Row
from .tables import KEYS, MONTHS, QUESTIONS, Visit, asked, reference_rows, to_csv, to_parquet, visits

BY: tuple[tuple[str, ...], ...] = ((), ("ward",), ("age", "month"), ("age", "month", "ward"))


def keyed(visit: Visit, name: str) -> Fraction | None:
    """The place of a row's key among the declared ones."""
    key = {"ward": visit.ward, "month": None if visit.day is None else f"{visit.day:%Y-%m}"}[name]
    return Fraction(KEYS[name].index(key)) if key in KEYS[name] else None


@pytest.mark.parametrize("table", range(24))
def test_distinct_values_are_those_of_the_rule(tmp_path: Path, table: int) -> None:
    column, by = ("score", "age", "ward", "month")[table % 4], BY[table // 4 % 4]
    doubles, groups, rows = table % 3 == 0, 1 + table % 3, 1 + table // 2 % 3
    made = visits(300 + table, numbered=True, doubles=doubles)
    meant = replace(asked(("sum", column, by), groups=groups, rows=rows), statistic="count_distinct")
    own = reference_rows(made, ("sum", column, by))
    if column in KEYS and column != "age":
        meant = replace(meant, lower=Fraction(0), upper=Fraction(99), lattice=Fraction(1))
        own = [replace(row, value=keyed(visit, column)) for row, visit in zip(own, made, strict=True)]
    path = (
        to_csv(tmp_path / "a.csv", made)
        if table % 2
        else to_parquet(tmp_path / "a.parquet", made, numbered=True, doubles=doubles)
    )
    query = ask(agreed(groups=groups, rows=rows), "count_distinct", column, by)
    expected = reference.answer(meant, own, SECRET)
    assert run(path, query) == expected
    if column == "score":
        assert expected != reference.answer(replace(meant, groups=99, rows=99), own, SECRET)


@pytest.mark.parametrize("table", range(8))
def test_centred_sums_and_counts_of_the_same_rows(tmp_path: Path, table: int) -> None:
    by, made = BY[table % 4], visits(400 + table, numbered=False, doubles=table % 2 == 0)
    contract, path = agreed(groups=2, rows=2), to_csv(tmp_path / "a.csv", made)
    own = reference_rows(made, ("sum", "score", by))
    meant = asked(("sum", "score", by), groups=2, rows=2)
    middle = ask(contract, "sum", "score", by, centred=True)
    assert middle.centre == 5
    sums = reference.answer(replace(meant, centre=Fraction(5)), own, SECRET)
    counts = reference.answer(replace(meant, statistic="count"), own, SECRET)
    assert run(path, middle) == sums
    assert run(path, ask(contract, "count", "score", by)) == counts
    # The same rows: 20 steps of a quarter lie between the two sums for each row that counts.
    plain = run(path, ask(contract, "sum", "score", by))
    assert [one - 20 * count for one, count in zip(plain, counts, strict=True)] == sums


@pytest.mark.parametrize("typed", [False, True])
def test_one_statement_gives_each_question_what_it_gets_alone(tmp_path: Path, typed: bool) -> None:
    made = visits(77, numbered=True, doubles=True)
    path = (
        to_parquet(tmp_path / "a.parquet", made, numbered=True, doubles=True)
        if typed
        else to_csv(tmp_path / "a.csv", made)
    )
    contract = agreed(groups=2, rows=2)
    queries = [ask(contract, *question) for question in QUESTIONS]
    queries += [ask(contract, *question, where="ward <> 'north' or age is null") for question in QUESTIONS[:4]]
    queries += [ask(contract, "count_distinct", "month", "ward"), ask(contract, "sum", "score", centred=True)]
    engine = DuckDBEngine(path)
    assert engine.run_all(queries, secret=SECRET) == [run(path, query) for query in queries]


LINES = [
    b"x,9,sou\xffth", b"x,\xff,south", b"\xff,9,south", b"x,9", b"x", b"x,9,\x00", b'x,9,"so"uth', b"x,9,south,more",
    b'x,"9,south', b"x," + b"9" * 17_000_000 + b",south",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda line: repr(line[:20]))
def test_no_answer_depends_on_what_else_is_asked(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path / "a.csv", b"person,score,ward\ns1,1,north\n" + line + b"\ns3,3,north\n")
    contract = agreed(groups=3, rows=5)
    queries = [
        ask(contract, "count"),
        ask(contract, "count", by="ward"),
        ask(contract, "sum", "score", centred=True),
        ask(contract, "count", "score"),
        ask(contract, "count_units", where="ward = 'north'"),
    ]
    assert DuckDBEngine(path).run_all(queries, secret=SECRET) == [run(path, query) for query in queries]


def test_values_are_bounded_before_they_are_made_distinct(tmp_path: Path) -> None:
    # One unit has every month and another each, of which it may keep one: whoever is left out is not missed.
    rows = "".join(f"0,{month}-01\n" for month in MONTHS) + "".join(
        f"{place},{month}-01\n" for place, month in enumerate(MONTHS, start=1)
    )
    path = write(tmp_path / "a.csv", "person,day\n" + rows)
    assert run(path, ask(agreed(), "count_distinct", "month")) == [len(MONTHS)]
    alone = write(tmp_path / "b.csv", "person,day\n" + rows[: 6 * len("0,2024-01-01\n")])
    assert run(alone, ask(agreed(rows=4), "count_distinct", "month")) == [4]


def test_undeclared_and_unread_values_are_not_counted(tmp_path: Path) -> None:
    rows = [Row(str(place), (), value) for place, value in enumerate([Fraction(1), None, Fraction(1)])]
    assert reference.answer(Asked("count_distinct", (), 1, 1), rows, SECRET) == [1]
    path = write(tmp_path / "a.csv", "person,ward,age\n1,north,1\n2,mail,x\n3,,\n4,south,9\n5,north,3\n,south,2\n")
    assert run(path, ask(agreed(), "count_distinct", "ward")) == [2]
    # 9 is clamped to 3.
    assert run(path, ask(agreed(), "count_distinct", "age")) == [2]
    assert run(path, ask(agreed(), "count", "age")) == [3]
