"""Every type a typed file may state for a column is read as what it says."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from .build import agreed, ask, run, write_parquet

SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
WIDE = agreed(
    '[columns.x]\ntype = "integer"\nlower = "-1e18"\nupper = "1e18"\nkeys = [0, 1, 100]\n'
    '[columns.y]\ntype = "decimal"\nlattice = "0.01"\nlower = -1000\nupper = 1000\n',
    groups=9,
    rows=9,
)
PEOPLE = pa.array([1, 2, 3, 4])


@pytest.mark.parametrize("kind", [*SIGNED, *UNSIGNED], ids=str)
def test_whole_numbers_of_each_width(tmp_path: Path, kind: pa.DataType) -> None:
    bits = int(str(kind).lstrip("uint"))
    low, high = (0, 2**bits - 1) if str(kind).startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    path = write_parquet(tmp_path / "a.parquet", person=PEOPLE, x=pa.array([low, high, None, 1], kind))
    assert run(path, ask(WIDE, "sum", "x")) == [max(low, -(10**18)) + min(high, 10**18) + 1]
    keys, values = pa.array([100, 0, None, 0], kind), pa.array([100, 7, 1, 3], kind)
    path = write_parquet(tmp_path / "b.parquet", person=PEOPLE, x=keys, y=values)
    assert run(path, ask(WIDE, "sum", "y", "x")) == [1000, 0, 10_000]


@pytest.mark.parametrize("kind", [*SIGNED, *UNSIGNED, pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_units_of_each_type(tmp_path: Path, kind: pa.DataType) -> None:
    values = ["1", "1", None, "2"] if "string" in str(kind) else [1, 1, None, 2]
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(values, kind), x=pa.array([5, 5, 5, 5]))
    assert run(path, ask(agreed(groups=1, rows=1), "count")) == [2]


@pytest.mark.parametrize(
    ("kind", "values", "steps"),
    [
        (pa.decimal128(4, 2), ["1.25", "-0.01", None, "99.99"], 10_123),
        (pa.decimal128(9, 9), ["0.005", "0.004999999", None, "-0.005"], 1),
        (pa.decimal128(18, 3), ["1.005", "1.004", None, "-1.005"], 101 + 100 - 100),
        (pa.decimal128(38, 0), ["5", "-7", None, str(10**37)], 99_800),
        (pa.decimal128(38, 12), ["0.005", "0.004999999999", None, "-2000"], 1 - 100_000),
        # More than twelve places: the thirteenth decides how the twelfth is rounded.
        (pa.decimal128(38, 20), ["0.00499999999999999999", "0.00499999999949999999", None, "0"], 1),
        (pa.decimal32(5, 2), ["1.25", "2", None, "0"], 325),
        (pa.decimal64(12, 4), ["1.0050", "2", None, "0"], 301),
        (pa.float16(), [1.5, -2.25, None, math.nan], -75),
        (pa.float32(), [1.5, math.inf, None, -math.inf], 150),
        (pa.float64(), [math.nan, math.inf, None, 0.1], 100_010),
        (pa.int64(), [-5000, 3, None, 1], -100_000 + 400),
    ],
    ids=str,
)
def test_numbers_of_each_type(tmp_path: Path, kind: pa.DataType, values: list[str | float | None], steps: int) -> None:
    given = [Decimal(value) if isinstance(value, str) else value for value in values]
    path = write_parquet(tmp_path / "a.parquet", person=PEOPLE, y=pa.array(given, kind))
    assert run(path, ask(WIDE, "sum", "y")) == [steps]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_of_each_type(tmp_path: Path, kind: pa.DataType) -> None:
    wards = pa.array(["north", None, "", "south", "mail", "north"], kind)
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(6)), ward=wards)
    assert run(path, ask(agreed(), "count", by="ward")) == [2, 1, 0]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_dictionary_of_text_is_text(tmp_path: Path, kind: pa.DataType) -> None:
    wards = pa.array(["north", None, "", "south", "mail", "north"], kind).dictionary_encode()
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(6)), ward=wards)
    assert run(path, ask(agreed(), "count", by="ward")) == [2, 1, 0]


def test_a_dictionary_of_units(tmp_path: Path) -> None:
    units = pa.array(["a", "b", "a", None]).dictionary_encode()
    path = write_parquet(tmp_path / "a.parquet", person=units, ward=pa.array(["north"] * 4))
    assert run(path, ask(agreed(), "count", by="ward")) == [2, 0, 0]


DAYS = [datetime.date(2024, 1, 1), datetime.date(2024, 6, 30), datetime.date(2023, 12, 31), datetime.date(9999, 12, 31)]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("us"), pa.timestamp("ns")], ids=str)
def test_days_of_each_type(tmp_path: Path, kind: pa.DataType) -> None:
    days = DAYS[:3] if kind == pa.timestamp("ns") else DAYS
    path = write_parquet(
        tmp_path / "a.parquet",
        person=pa.array(range(len(days) + 1)),
        day=pa.array([*days, None], pa.date32()).cast(kind),
    )
    assert run(path, ask(agreed(), "count", by="month")) == [1, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_moment_belongs_to_its_day(tmp_path: Path, unit: str) -> None:
    moments = [
        datetime.datetime(2024, 1, 31, 23, 59, 59, 999_999),
        datetime.datetime(2024, 2, 1),
        datetime.datetime(2023, 12, 31, 23, 59),
    ]
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(3)), day=pa.array(moments, pa.timestamp(unit)))
    assert run(path, ask(agreed(), "count", by="month")) == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("ns")], ids=str)
def test_the_ends_of_time_are_no_error(tmp_path: Path, kind: pa.DataType) -> None:
    bits = 32 if kind == pa.date32() else 64
    ends = [2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 2, -(2 ** (bits - 1)) + 1, 0]
    days = pa.array(ends, pa.int32() if bits == 32 else pa.int64()).cast(kind)
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(5)), day=days)
    assert run(path, ask(agreed(), "count", by="month")) == [0] * 6


def test_a_typed_file_without_rows(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", person=pa.array([], pa.int64()), ward=pa.array([], pa.string()))
    assert run(path, ask(agreed(), "count", by="ward")) == [0, 0, 0]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_codecs_and_encodings(tmp_path: Path, codec: str) -> None:
    table = pa.table({"person": range(1000), "ward": ["north", "south"] * 500})
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path, compression=codec, use_dictionary=codec != "none", row_group_size=128)
    assert run(path, ask(agreed(), "count", by="ward")) == [500, 500, 0]
