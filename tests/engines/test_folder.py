"""A folder of files is one table, if all of them have the same columns; what does not fit is refused by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import parco
from parco.errors import DataError
from parco.stores.sqlite import SqliteStore
from tests.shop import HEADER, open_shop, write_csv

from .build import agreed, ask, run, write, write_parquet

SUM = ask(agreed(groups=3, rows=5), "sum", "score", "ward")
HEAD = "person,score,ward\n"


def folder(path: Path, **files: str) -> Path:
    path.mkdir()
    for name, content in files.items():
        write(path / f"{name}.csv", content)
    return path


def part(path: Path, name: str, **changes: pa.Array) -> None:
    columns = {"person": pa.array([1, 2]), "score": pa.array([1.0, 2.0]), "ward": pa.array(["north", "south"])}
    write_parquet(path / f"{name}.parquet", **(columns | changes))


def test_csv_files_are_one_table(tmp_path: Path) -> None:
    path = folder(
        tmp_path / "d", b=HEAD + "u,1,north\n", a=HEAD + "u,2,north", c=HEAD, d="\ufeff" + HEAD + "v,1,south\r\n"
    )
    write(path / "_SUCCESS", "")
    write(path / ".a.csv.crc", "x")
    assert run(path, SUM) == [12, 4, 0]
    # One unit is one unit in all of them.
    assert run(path, ask(agreed(groups=1, rows=1), "count")) == [2]


def test_typed_files_are_one_table(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.mkdir()
    part(path, "a")
    part(path, "b", extra=pa.array([True, False]), person=pa.array([1, 3]))
    assert run(path, SUM) == [8, 16, 0]
    assert run(path, ask(agreed(groups=1, rows=1), "count_units")) == [3]


@pytest.mark.parametrize(
    "change",
    [
        {"score": pa.array([1, 2])},
        {"score": pa.array([1.0, 2.0], pa.float32())},
        {"person": pa.array([1, 2], pa.int32())},
        {"person": pa.array(["1", "2"])},
    ],
    ids=["int64", "float", "int32", "string"],
)
def test_types_that_differ_are_refused_by_name(tmp_path: Path, change: dict[str, pa.Array]) -> None:
    path = tmp_path / "d"
    path.mkdir()
    part(path, "a")
    part(path, "b", **change)
    with pytest.raises(DataError, match=f"column '{next(iter(change))}' has two types.* a.parquet and b.parquet"):
        run(path, SUM)
    # Only the columns of a question have to agree.
    if "score" in change:
        assert run(path, ask(agreed(groups=3, rows=5), "count", by="ward")) == [2, 2, 0]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no data file at"),
        ({"a.csv": HEAD, "b.csv": "score,person,ward\n"}, "the same columns in the same order"),
        ({"a.csv": HEAD, "b.csv": "person,score,ward,more\n"}, "the same columns in the same order"),
        ({"a.csv": HEAD, "b.csv": ""}, "zero bytes"),
        ({"a.csv": HEAD, "notes.txt": "x"}, "neither|no .csv and no .parquet"),
        ({"a.csv": HEAD, "b.parquet": HEAD}, ""),
        ({"a.csv": HEAD, "b*.csv": HEAD}, "must not contain any of"),
    ],
    ids=range(7),
)
def test_other_folders_are_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    path = tmp_path / "d"
    path.mkdir()
    for name, content in files.items():
        write(path / name, content)
    if not words:
        # A suffix says what is looked at, the content what it is.
        assert run(path, SUM) == [0, 0, 0]
        return
    with pytest.raises(DataError, match=words):
        run(path, SUM)


def test_files_of_two_formats_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", a=HEAD)
    part(path, "b")
    with pytest.raises(DataError, match="two formats"):
        run(path, SUM)


def test_a_release_from_a_folder_and_a_refusal_before_the_charge(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    months = tmp_path / "months"
    months.mkdir()
    write_csv(months / "1.csv", [("1", "2024-01-05", "2", "10.50", "web")])
    write_csv(months / "2.csv", [("2", "2024-02-05", "2", "10.50", "web")])
    session = parco.Session(contract, data=months)
    assert len(session.count(by="month", cost="0.1").value) == 4
    write_csv(months / "3.csv", [], header=HEADER[1:])
    before = (tmp_path / "shop.ledger").read_bytes()
    with pytest.raises(DataError):
        session.count(by="channel", cost="0.1")
    assert (tmp_path / "shop.ledger").read_bytes() == before
    assert len(SqliteStore.open(tmp_path / "shop.ledger").history()) == 2
