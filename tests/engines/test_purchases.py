"""The purchases of the demo, shuffled and turned into a typed file: the same integers, and those of the rule."""

from __future__ import annotations

import csv
import datetime
import io
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import parco.cli
from parco.cli.demo import _purchases
from parco.contract.contract import Contract

from . import reference
from .build import SECRET, ask, run, write, write_parquet

CUSTOMERS = 23_570


@pytest.fixture(scope="module")
def purchases() -> tuple[str, list[str]]:
    head, *lines = _purchases().splitlines()
    return head, lines


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.read(Path(parco.cli.__file__).with_name("demo_contract.toml"))


def rows_of(head: str, lines: list[str], contract: Contract) -> list[reference.Row]:
    months = contract.keys("month")
    assert months is not None
    return [
        reference.Row(row["customer"], (row["date"][:7],), Fraction(row["dollars"]))
        for row in csv.DictReader(io.StringIO("\n".join([head, *lines])))
    ]


def test_shuffled_purchases_give_the_integers_of_the_rule(
    tmp_path: Path, purchases: tuple[str, list[str]], contract: Contract
) -> None:
    head, lines = purchases
    mixed = list(lines)
    Random(0).shuffle(mixed)
    table = [line.split(",") for line in mixed[::-1]]
    files = [
        write(tmp_path / "a.csv", "\n".join([head, *lines]) + "\n"),
        write(tmp_path / "b.csv", "\n".join([head, *mixed]) + "\n"),
        write_parquet(
            tmp_path / "c.parquet",
            customer=pa.array([row[0] for row in table]),
            date=pa.array([datetime.date.fromisoformat(row[1]) for row in table]),
            dollars=pa.array([Decimal(row[3]) for row in table], pa.decimal128(12, 2)),
        ),
    ]
    rows, unit = rows_of(head, lines, contract), contract.unit
    dollars: dict[str, Any] = {"lower": Fraction(0), "upper": Fraction(100), "lattice": Fraction(1, 100)}
    for statistic, column in (("count_units", None), ("count", None), ("sum", "dollars")):
        query = ask(contract, statistic, column, "month")
        meant = reference.Asked(
            statistic, tuple(query.keys), unit.groups, unit.rows, **(dollars if statistic == "sum" else {})
        )
        assert reference.exceeded(meant, rows) == (True, True)
        expected = reference.answer(meant, rows, SECRET)
        used = files if statistic == "sum" else files[1:2] if statistic == "count" else files[2:]
        assert [run(path, query) for path in used] == [expected] * len(used)
    assert run(files[0], ask(contract, "count_units")) == [CUSTOMERS]
