"""C21: a column is called what it is called: no name is cleaned, computed with, or taken for another."""

from __future__ import annotations

import csv
import json
import unicodedata
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import parco
from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.errors import DataError
from parco.queries.query import Query
from parco.session.signing import sign
from tests.shop import contract_text

SECRET = b"c21" * 11
OCCUPATIONS = ["Machine-op-inspct", "Farming-fishing", "Protective-serv", "?"]
TABLE: dict[str, list[Any]] = {
    "person": [1, 2, 3, 4, 5],
    "age": [25, 38, 28, 44, 18],
    "capital-gain": [0, 0, 0, 7688, 0],
    "occupation": ["Machine-op-inspct", "Farming-fishing", "Protective-serv", "Machine-op-inspct", "?"],
    "select": [1, 2, 3, 4, 5],
    "größe": [1, 2, 3, 4, 5],
    "A 1": [1, 1, 1, 1, 1],
    "A_1": [2, 2, 2, 2, 2],
    'a"b': [3, 3, 3, 3, 3],
    "a;--": [4, 4, 4, 4, 4],
}
NUMBERS = [name for name in TABLE if name not in ("person", "occupation")]
SUMS = {"select": 15, "größe": 15, "A 1": 5, "A_1": 10, 'a"b': 15, "a;--": 20, "capital-gain": 7688, "age": 153}


def quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def contract() -> Contract:
    columns = "".join(f'[columns.{quoted(name)}]\ntype = "integer"\nlower = 0\nupper = 10000\n' for name in NUMBERS)
    keys = f'[columns.occupation]\ntype = "text"\nkeys = {json.dumps(OCCUPATIONS)}\n'
    return Contract.parse(contract_text(columns=columns + keys, unit="person", groups=9, rows=9))


def forms(folder: Path, table: dict[str, list[Any]] = TABLE) -> list[Any]:
    """The table as a text file, a typed file, and a frame of each library."""
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([list(table), *zip(*table.values(), strict=True)])
    typed = pa.table(table)
    parquet.write_table(typed, folder / "a.parquet")
    strings = pd.DataFrame(table).astype({name: "string" for name in table if name == "occupation"})
    return [folder / "a.csv", folder / "a.parquet", typed, pl.DataFrame(table), strings]


def exact(data: object, query: Query) -> list[int]:
    engine = DuckDBEngine(data)
    engine.check(query.contract, [*query.by, *([] if query.column is None else [query.column])])
    return engine.run(query, secret=SECRET)


def test_means_by_occupation(tmp_path: Path) -> None:
    agreed = contract()
    for data in forms(tmp_path):
        counts = exact(data, Query.of(agreed, "count", by="occupation"))
        assert counts == [2, 1, 1, 1]
        for name, means in (("age", ["34.5", "38", "28", "18"]), ("capital-gain", ["3844", "0", "0", "0"])):
            sums = exact(data, Query.of(agreed, "sum", column=name, by="occupation"))
            assert [Fraction(total, count) for total, count in zip(sums, counts, strict=True)] == list(
                map(Fraction, means)
            )


def test_each_name_is_its_own_column(tmp_path: Path) -> None:
    agreed = contract()
    for data in forms(tmp_path):
        assert {name: exact(data, Query.of(agreed, "sum", column=name))[0] for name in SUMS} == SUMS


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_name_in_either_unicode_form_is_one_declared_column(tmp_path: Path, form: Any) -> None:
    named = {unicodedata.normalize(form, name): values for name, values in TABLE.items()}
    for data in forms(tmp_path, named):
        assert exact(data, Query.of(contract(), "sum", column=unicodedata.normalize("NFD", "größe"))) == [15]
    both = TABLE | {unicodedata.normalize("NFD", "größe"): [0] * 5}
    assert len(both) == len(TABLE) + 1
    for data in forms(tmp_path, both):
        with pytest.raises(DataError, match="column 6 of the data has a name that occurs twice"):
            exact(data, Query.of(contract(), "sum", column="select"))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ([*TABLE, ""], "column 11 of the data has no name"),
        (["", *TABLE], "column 1 of the data has no name"),
        ([*TABLE, "age"], "column 2 of the data has a name that occurs twice"),
        (["age", *TABLE], "column 1 of the data has a name that occurs twice"),
    ],
    ids=range(4),
)
def test_empty_and_repeated_headers_are_refused_with_their_position(
    tmp_path: Path, header: list[str], words: str
) -> None:
    row = [1] * len(header)
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, row])
    for data in (tmp_path / "a.csv", pa.table([[value] for value in row], names=header)):
        with pytest.raises(DataError, match=words):
            exact(data, Query.of(contract(), "count"))


def test_a_release_and_its_receipt_name_the_column_as_it_is(tmp_path: Path) -> None:
    agreed = contract()
    sign(agreed, ledger=tmp_path / "l", actor="ana")
    session = parco.Session(agreed, data=forms(tmp_path)[0], ledger=tmp_path / "l")
    for name in ("capital-gain", "select", 'a"b', "a;--"):
        release = session.sum(name, cost="0.1")
        assert release.receipt.question == f"sum {name}"
        assert json.loads(session.history()[-1].question or "")["column"]["name"] == name
    assert "a&quot;b" in session.sum('a"b')._repr_html_()
