"""C18: sums of days leave 32 bits and stay exact; days before 1970 are negative; the mean date is where it belongs."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.errors import ContractError, DataError, QuestionError
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from tests.shop import contract_text

SECRET = b"c18" * 11
DAY = datetime.date(2024, 1, 1)
# Rows and their sum: 32 bits end between the two, at 2,147,483,647.
FEWER, MORE = (108_882, 2_147_479_686), (108_883, 2_147_499_409)


def contract(lower: str = "2000-01-01", upper: str = "2025-12-31", *, rows: int = 1) -> Contract:
    column = f'[columns.day]\ntype = "date"\nlower = "{lower}"\nupper = "{upper}"\n'
    return Contract.parse(contract_text(columns=column, unit="person", groups=1, rows=rows))


def exact(data: object, query: Query) -> int:
    engine = DuckDBEngine(data)
    engine.check(query.contract, ["day"] if query.column else [])
    (total,) = engine.run(query, secret=SECRET)
    return total


def tables(folder: Path, days: list[datetime.date], *, person: int | None = None) -> list[object]:
    people = [person] * len(days) if person is not None else list(range(len(days)))
    table = pa.table({"person": people, "day": pa.array(days, pa.date32())})
    parquet.write_table(table, folder / "a.parquet")
    lines = "".join(f"{who},{day}\n" for who, day in zip(people, days, strict=True))
    (folder / "a.csv").write_text("person,day\n" + lines)
    moments = table.set_column(1, "day", table["day"].cast(pa.timestamp("us")))
    return [folder / "a.parquet", folder / "a.csv", table, moments]


@pytest.mark.parametrize(("rows", "total"), [FEWER, MORE])
def test_a_sum_of_days_beyond_32_bits_is_exact(tmp_path: Path, rows: int, total: int) -> None:
    query = Query.of(contract(), "sum", column="day")
    for data in tables(tmp_path, [DAY] * rows):
        assert exact(data, query) == total


def test_the_mean_of_both_tables_is_the_day_itself(tmp_path: Path) -> None:
    agreed = contract()
    for rows, _ in (FEWER, MORE):
        data = tables(tmp_path, [DAY] * rows)[0]
        mean = Fraction(exact(data, Query.of(agreed, "sum", column="day")), exact(data, Query.of(agreed, "count")))
        assert mean == 19_723
        assert datetime.date(1970, 1, 1) + datetime.timedelta(int(mean)) == DAY


def test_a_row_moves_the_sum_by_at_most_the_larger_bound(tmp_path: Path) -> None:
    query = Query.of(contract(), "sum", column="day")
    assert sensitivity(query).l1 == 20_453
    for day, moved in ((DAY, 19_723), (datetime.date(9999, 12, 31), 20_453), (datetime.date(1, 1, 1), 10_957)):
        more, less = ([exact(data, query) for data in tables(tmp_path, days)] for days in ([DAY, DAY, day], [DAY, DAY]))
        assert [one - other for one, other in zip(more, less, strict=True)] == [moved] * 4


def test_days_before_1970_are_negative(tmp_path: Path) -> None:
    query = Query.of(contract("1900-01-01", "1999-12-31", rows=9), "sum", column="day")
    days = [
        datetime.date(1969, 12, 31),
        datetime.date(1970, 1, 1),
        datetime.date(1970, 1, 2),
        datetime.date(1968, 2, 29),
    ]
    for data in tables(tmp_path, days, person=1):
        assert exact(data, query) == -1 + 0 + 1 - 672
    assert sensitivity(query).l1 == 9 * 25_567


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("2024-02-30", "2025-01-01"),
        ("20240101", "2025-01-01"),
        ("2025-01-02", "2025-01-01"),
        ("19723", "20000"),
        ("", ""),
    ],
)
def test_bounds_are_days_in_their_order(lower: str, upper: str) -> None:
    with pytest.raises(ContractError, match=r"columns\.day"):
        contract(lower, upper)


def test_days_without_bounds_and_moments_are_not_summed(tmp_path: Path) -> None:
    column = '[columns.day]\ntype = "date"\n'
    agreed = Contract.parse(contract_text(columns=column, unit="person"))
    with pytest.raises(QuestionError, match="declared bounds"):
        Query.of(agreed, "sum", column="day")
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    moments = pa.table({"person": [1], "day": pa.array([moment], pa.timestamp("us", "UTC"))})
    with pytest.raises(DataError, match="a timestamp with a time zone"):
        exact(moments, Query.of(contract(), "sum", column="day"))
