"""C23: values were made distinct over all users first and users bounded afterwards: one user could swallow the rest."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import pytest

from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from tests.shop import contract_text

HOLDERS = [*(("A", value) for value in "abcde"), ("B", "a"), ("C", "b"), ("D", "c"), ("E", "d"), ("F", "e")]
COLUMNS = '[columns.value]\ntype = "text"\nkeys = ["a", "b", "c", "d", "e"]\n'
COLUMNS += '[columns.ward]\ntype = "text"\nkeys = ["u", "v"]\n'


def query(neighbours: str = "add-or-remove", by: tuple[str, ...] = (), rows: int = 2) -> Query:
    text = contract_text(columns=COLUMNS, rows=rows, groups=1).replace("add-or-remove", neighbours)
    return Query.of(Contract.parse(text), "count_distinct", column="value", by=by)


def distinct(path: Path, asked: Query, rows: list[tuple[str, ...]], *, secret: bytes = bytes(32)) -> list[int]:
    lines = ["customer,value,ward", *(",".join((*row, "u")[:3]) for row in rows), ""]
    path.write_text("\n".join(lines))
    engine = DuckDBEngine(path)
    engine.check(asked.contract, asked.names)
    return engine.run(asked, secret=secret)


@pytest.mark.parametrize("order", range(5))
def test_five_values_with_the_outlier_and_five_without(tmp_path: Path, order: int) -> None:
    rows: list[tuple[str, ...]] = list(HOLDERS)
    Random(order).shuffle(rows)
    asked = query()
    secret = bytes([order]) * 32
    assert distinct(tmp_path / "a.csv", asked, rows, secret=secret) == [5]
    assert distinct(tmp_path / "a.csv", asked, [row for row in rows if row[0] != "A"], secret=secret) == [5]
    # Alone, the outlier has two.
    assert distinct(tmp_path / "a.csv", asked, [row for row in rows if row[0] == "A"], secret=secret) == [2]
    assert sensitivity(asked).l1 == sensitivity(query("replace")).l1 == 2


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_no_unit_moves_the_count_by_more_than_it_may_keep(tmp_path: Path, neighbours: str) -> None:
    asked = query(neighbours, by=("ward",))
    stated = sensitivity(asked)
    assert stated.l1 == (2 if neighbours == "add-or-remove" else 4)
    random, farthest = Random(23), 0
    for _ in range(25):
        others = [(f"o{random.randint(1, 3)}", random.choice("abcde"), random.choice("uv")) for _ in range(4)]
        wards = random.sample(["u", "v", "uv"], 2)
        own, new = ([("x", value, ward) for value in "abcde" for ward in chosen] for chosen in wards)
        before = distinct(tmp_path / "a.csv", asked, [*others, *own])
        after = distinct(tmp_path / "a.csv", asked, [*others, *(new if neighbours == "replace" else [])])
        moved = sum(abs(one - other) for one, other in zip(before, after, strict=True))
        assert moved <= stated.l1
        farthest = max(farthest, moved)
    assert farthest >= 2


def test_repeated_values_of_a_unit_take_no_place(tmp_path: Path) -> None:
    rows: list[tuple[str, ...]] = [("A", value) for value in itertools.chain("a" * 50, "b")]
    assert distinct(tmp_path / "a.csv", query(), rows) == [2]
