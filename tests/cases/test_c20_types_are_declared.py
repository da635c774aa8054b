"""C20: a type comes from the contract, never from the first rows; what does not fit follows a rule, silently."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

import parco
from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.queries.query import Query
from parco.session.signing import sign
from parco.stores.sqlite import SqliteStore
from tests.shop import contract_text

SECRET = b"c20" * 11
A = ["-"] * 10 + ["0,1"] * 100
B = ["-"] * 100 + ["0,1"] * 10


def contract(rules: str = "") -> Contract:
    columns = "".join(
        f'[columns.{name}]\ntype = "decimal"\nlattice = "0.1"\nlower = 0\nupper = 10\n{rules}\n'
        f'[bins.{name}_read]\ncolumn = "{name}"\nedges = [0]\nabove = true\n'
        for name in ("a", "b")
    )
    text = contract_text(columns=columns, unit="person", groups=9, rows=9)
    return Contract.parse(text.replace("[unit]", '[data.csv]\ndecimal = ","\nnulls = ["-"]\n\n[unit]'))


def table(path: Path, change: Callable[[list[str]], list[str]] = list) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(
            [
                ["person", "a", "b"],
                *([str(at), *pair] for at, pair in enumerate(zip(change(A), change(B), strict=True))),
            ]
        )
    return path


def exact(path: Path, agreed: Contract, statistic: str, name: str) -> int:
    query = Query.of(agreed, "sum", column=name) if statistic == "sum" else Query.of(agreed, "count", by=f"{name}_read")
    engine = DuckDBEngine(path)
    engine.check(agreed, [*query.by, *([] if query.column is None else [query.column])])
    (total,) = engine.run(query, secret=SECRET)
    return total


def results(path: Path, agreed: Contract) -> dict[str, tuple[int, int]]:
    """Of each column, the sum in tenths and how many rows are numbers."""
    return {name: (exact(path, agreed, "sum", name), exact(path, agreed, "count", name)) for name in ("a", "b")}


def test_both_columns_are_numbers_whatever_they_begin_with(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv")
    assert '"0,1"' in path.read_text()
    assert results(path, contract()) == {"a": (100, 100), "b": (10, 10)}
    # Ten nulls in one and a hundred in the other: each becomes 1 where the contract says so.
    assert results(path, contract("null = 1")) == {"a": (100 + 10 * 10, 110), "b": (10 + 100 * 10, 110)}


def test_neither_order_nor_length_changes_the_type(tmp_path: Path) -> None:
    for change in (lambda column: column[::-1], lambda column: column[10:] + column[:10]):
        assert results(table(tmp_path / "a.csv", change), contract()) == {"a": (100, 100), "b": (10, 10)}
    long = table(tmp_path / "a.csv", lambda column: ["-"] * 10_000 + column)
    assert results(long, contract()) == {"a": (100, 100), "b": (10, 10)}


@pytest.mark.parametrize("odd", ["x7", "0.1", "1,2,3", "", "\x00", "2024-01-01", "true", "1e999"])
def test_one_odd_field_in_the_last_row_costs_its_own_row(tmp_path: Path, odd: str) -> None:
    path = table(tmp_path / "a.csv", lambda column: [*column[:-1], odd])
    clamped = 100 if odd == "1e999" else 0
    wanted = {"a": (99 + clamped, 99 + bool(clamped)), "b": (9 + clamped, 9 + bool(clamped))}
    assert results(path, contract()) == wanted


def test_a_declared_rule_counts_it_instead(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", lambda column: [*column[:-1], "x7"])
    assert results(path, contract('unparsed = "0.5"')) == {"a": (99 + 5, 100), "b": (9 + 5, 10)}


def test_a_release_of_either_table_looks_the_same(tmp_path: Path) -> None:
    shown = []
    changes: list[Callable[[list[str]], list[str]]] = [
        list,
        lambda column: [*column[:-1], "x7"],
        lambda column: ["-"] * len(column),
    ]
    for place, change in enumerate(changes):
        folder = tmp_path / str(place)
        folder.mkdir()
        agreed = contract()
        sign(agreed, ledger=folder / "l", actor="ana")
        session = parco.Session(agreed, data=table(folder / "a.csv", change), ledger=folder / "l")
        release = session.sum("b", cost="0.5")
        states = [row.state for row in SqliteStore.open(folder / "l").history()]
        shown.append((release.table().column_names, len(release.value), release.cost, states))
    assert shown[0] == shown[1] == shown[2]
