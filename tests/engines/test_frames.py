"""Frames are read like the files they could be saved as; their declared types are compared before the charge."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import parco
from parco.engines.duckdb import DuckDBEngine
from parco.errors import DataError
from parco.queries.query import Query
from parco.stores.sqlite import SqliteStore
from tests.shop import open_shop

from . import reference
from .build import SECRET, agreed, ask
from .tables import QUESTIONS, asked, reference_rows, to_parquet, visits


def run_on(frame: Any, query: Query) -> list[int]:
    engine = DuckDBEngine(frame)
    engine.check(query.contract, [*query.by, *([] if query.column is None else [query.column])])
    return engine.run(query, secret=SECRET)


def forms(table: pa.Table) -> dict[str, Any]:
    """One table in each library, as their own readers would make it."""
    return {
        "pyarrow": table,
        "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow(table),
    }


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
@pytest.mark.parametrize("table", range(8))
def test_a_frame_gives_the_integers_of_the_rule(tmp_path: Path, table: int, library: str) -> None:
    from pyarrow import parquet

    question = QUESTIONS[table]
    numbered, doubles = table % 2 == 0, table % 3 == 0
    made = visits(table, numbered=numbered, doubles=doubles)
    stored = parquet.read_table(to_parquet(tmp_path / "a.parquet", made, numbered=numbered, doubles=doubles))
    meant = asked(question, groups=2, rows=2)
    expected = reference.answer(meant, reference_rows(made, question), SECRET)
    assert run_on(forms(stored)[library], ask(agreed(groups=2, rows=2), *question)) == expected


def test_the_usual_types_of_pandas() -> None:
    frame = pd.DataFrame(
        {
            "person": pd.array(["a", "b", "a", None, "c"], dtype="string"),
            "day": pd.to_datetime(
                ["2024-01-31 23:59", "2024-02-29 00:00", None, "2024-01-01 00:00", "2024-06-30 00:00"]
            ),
            "score": [1.5, float("nan"), float("inf"), 2.0, -3.25],
            "age": pd.array([1, None, 2, 3, 0], dtype="Int64"),
            "ward": pd.Categorical(["north", "south", None, "north", "mail"]),
        },
        index=[9, 8, 7, 7, 6],
    )
    contract = agreed(groups=9, rows=9)
    assert run_on(frame, ask(contract, "count", by="month")) == [1, 1, 0, 0, 0, 1]
    assert run_on(frame, ask(contract, "sum", "score")) == [6 + 80 - 13]
    assert run_on(frame, ask(contract, "count", by="age")) == [1, 1, 1, 0]
    assert run_on(frame, ask(contract, "count", by="ward")) == [1, 1, 0]


def test_nan_of_numpy_is_nan_and_no_null() -> None:
    column = '[columns.x]\ntype = "decimal"\nlattice = 1\nlower = 0\nupper = 9\nnan = 5\nnull = 7\n'
    query = ask(agreed(column, rows=9), "sum", "x")
    assert run_on(pd.DataFrame({"person": [1, 1], "x": [1.0, float("nan")]}), query) == [6]
    assert run_on(pd.DataFrame({"person": [1, 1], "x": pd.array([1.0, None], dtype="Float64")}), query) == [8]
    assert run_on(pl.DataFrame({"person": [1, 1, 1], "x": [1.0, float("nan"), None]}), query) == [13]
    assert run_on(pa.table({"person": [1, 1, 1], "x": [1.0, float("nan"), None]}), query) == [13]


def test_moments_and_truth_values_of_each_library() -> None:
    columns = (
        '[columns.day]\ntype = "date"\n[columns.f]\ntype = "boolean"\n'
        '[bins.d]\ncolumn = "day"\nevery = "day"\nfirst = "2024-01-01"\nlast = "2024-01-02"\ntime_zone = "Asia/Tokyo"\n'
    )
    moment = datetime.datetime(2024, 1, 1, 15, 0, tzinfo=datetime.UTC)
    table = pa.table({"person": [1, 2], "day": pa.array([moment, None], pa.timestamp("us", "UTC")), "f": [True, False]})
    for frame in [*forms(table).values(), table.to_pandas()]:
        assert run_on(frame, ask(agreed(columns), "count", by="d")) == [0, 1]
        assert run_on(frame, ask(agreed(columns), "count", by="f")) == [1, 1]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"person": [1], "score": ["x"]}, dtype=object), "stored as another type"),
        (pd.DataFrame({"person": [1], "score": [pd.Timedelta(1)]}), "stored as another type"),
        (pd.DataFrame({"person": [1.0], "score": [1.0]}), "'person' is stored as double"),
        (pd.DataFrame([[1, 2, 3]], columns=["person", "score", "score"]), "cannot be read"),
        (pl.DataFrame({"person": [1], "score": [[1.0]]}), "stored as another type"),
        (pl.DataFrame({"person": [1], "Score": [1.0]}), "no column 'score'"),
        (pl.DataFrame({"person": [1], "score": [1.0]}).lazy(), "data is the path"),
        (pa.table({"person": [1], "score": ["x"]}), "stored as text"),
        (pa.table([[1], [1.0], [2.0]], names=["person", "score", "score"]), "occurs twice"),
        ([{"person": 1, "score": 2}], "data is the path"),
        (5, "data is the path"),
    ],
    ids=range(11),
)
def test_what_does_not_fit_is_refused(frame: Any, words: str) -> None:
    with pytest.raises(DataError) as caught:
        run_on(frame, ask(agreed(), "sum", "score"))
    assert words in str(caught.value)
    assert caught.value.__context__ is None


def test_a_type_comes_from_the_frame_and_not_from_its_values() -> None:
    query = ask(agreed(rows=9), "sum", "score")
    for frame in (
        pl.DataFrame({"person": [None] * 10_000 + [1], "score": [None] * 10_000 + [2.0]}, infer_schema_length=None),
        pa.table({"person": pa.array([], pa.int64()), "score": pa.array([], pa.float64())}),
        pl.DataFrame(schema={"person": pl.String, "score": pl.Int64}),
        pd.DataFrame({"person": pd.Series(dtype="int64"), "score": pd.Series(dtype="float64")}),
    ):
        assert run_on(frame, query) in ([8], [0])


def test_releases_from_frames_and_a_refusal_before_the_charge(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    day = pa.array([datetime.date(2024, 1, 5), datetime.date(2024, 2, 5)])
    table = pa.table(
        {"customer": [1, 2], "date": day, "items": [1, 2], "dollars": [1.0, 2.0], "channel": ["web", "web"]}
    )
    for frame, question in zip(forms(table).values(), ("month", "channel", ()), strict=True):
        release = parco.Session(contract, data=frame).count(by=question, cost="0.1")
        assert release.cost == parco.Cost(10**14)
    before = (tmp_path / "shop.ledger").read_bytes()
    with pytest.raises(DataError):
        parco.Session(contract, data=table.drop(["dollars"])).sum("dollars", cost="0.1")
    assert (tmp_path / "shop.ledger").read_bytes() == before
    assert len(SqliteStore.open(tmp_path / "shop.ledger").history()) == 4


def test_a_frame_needs_no_library_but_its_own() -> None:
    program = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('pandas', 'polars'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import pyarrow as pa\n"
        "from parco.engines.frames import frame_source, is_frame, as_table\n"
        "table = pa.table({'a': [1]})\n"
        "assert is_frame(table) and frame_source(table).names == ('a',) and as_table(table, ['a']).num_rows == 1\n"
        "print('read')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "read"
