"""The largest bounds a contract may name, on more rows than one: nothing overflows, wraps or rounds."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from parco.queries.query import Query

from .build import agreed, ask, run, write, write_parquet

LARGE = 10**18
MOST = 10**9


def total(lattice: str, lower: str, upper: str, kind: str = "decimal") -> Query:
    """The sum of a column of these bounds, with the widest limits on groups and rows."""
    column = f'[columns.x]\ntype = "{kind}"\nlower = "{lower}"\nupper = "{upper}"\n'
    lattice = f'lattice = "{lattice}"\n' if kind == "decimal" else ""
    return ask(agreed(column + lattice, groups=MOST, rows=MOST), "sum", "x")


@pytest.mark.parametrize(
    ("lattice", "lower", "upper", "low", "high"),
    [
        ("1", "-1e18", "1e18", -LARGE, LARGE),
        ("1e-12", "-1e6", "1e6", -LARGE, LARGE),
        ("1e18", "-1e18", "1e18", -1, 1),
        ("1000", "-1e18", "1e18", -(10**15), 10**15),
        ("0.25", "-2.5e17", "2.5e17", -LARGE, LARGE),
        ("0.7", "-7e17", "7", -LARGE, 10),
        ("1", "1e18", "1e18", LARGE, LARGE),
        ("1", "-1e18", "-1e18", -LARGE, -LARGE),
        ("1e-12", "999999.999999999999", "1e6", LARGE - 1, LARGE),
    ],
)
def test_many_rows_at_either_bound(tmp_path: Path, lattice: str, lower: str, upper: str, low: int, high: int) -> None:
    steps = {"9e30": high, "-9e30": low, "inf": high, "-inf": low, str(2**63): high, upper: high, lower: low}
    keys = f'[columns.k]\ntype = "integer"\nlower = 0\nupper = 0\nkeys = {list(range(len(steps)))}\n'
    column = f'[columns.x]\ntype = "decimal"\nlattice = "{lattice}"\nlower = "{lower}"\nupper = "{upper}"\n'
    query = ask(agreed(keys + column, groups=MOST, rows=MOST), "sum", "x", "k")
    lines = "".join(f"{row % 2},{text},{key}\n" for row in range(1000) for key, text in enumerate(steps))
    assert run(write(tmp_path / "a.csv", "person,x,k\n" + lines), query) == [1000 * amount for amount in steps.values()]


def test_the_values_next_to_a_bound_are_exact(tmp_path: Path) -> None:
    near = [LARGE - 1, LARGE - 2, -LARGE + 1, 2**53 + 1, -(2**53) - 1, 2**59 + 1, 0, -1]
    lines = "".join(f"{place},{value}\n" for place, value in enumerate(near))
    path = write(tmp_path / "a.csv", "person,x\n" + lines)
    assert run(path, total("1", "-1e18", "1e18")) == [sum(near)]
    assert run(path, total("1", "-1e18", "1e18", "integer")) == [sum(near)]
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(len(near))), x=pa.array(near, pa.int64()))
    assert run(path, total("1", "-1e18", "1e18", "integer")) == [sum(near)]


def test_a_thousand_persons_at_the_bound_add_up_beyond_64_bits(tmp_path: Path) -> None:
    lines = "".join(f"{place},{LARGE}\n" for place in range(5000))
    path = write(tmp_path / "a.csv", "person,x\n" + lines)
    assert run(path, total("1", "-1e18", "1e18", "integer")) == [5000 * LARGE]
    assert 5000 * LARGE > 2**63


@pytest.mark.parametrize("value", [Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal("99999999999999999999999999.5")])
def test_decimals_that_fill_38_digits(tmp_path: Path, value: Decimal) -> None:
    kind = pa.decimal128(38, 0) if value == value.to_integral_value() else pa.decimal128(38, 12)
    path = write_parquet(tmp_path / "a.parquet", person=pa.array([1, 2]), x=pa.array([value, value], kind))
    assert run(path, total("1e-12", "-1e6", "1e6")) == [2 * LARGE * (1 if value > 0 else -1)]


def test_doubles_at_the_bound(tmp_path: Path) -> None:
    values = [1e300, -1e300, 1e18, float("inf"), 9.3e18, -9.3e18]
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(6)), x=pa.array(values))
    assert run(path, total("1", "-1e18", "1e18")) == [2 * LARGE]
    assert run(path, total("1e-12", "-1e6", "1e6")) == [2 * LARGE]


def test_counts_under_the_widest_limits(tmp_path: Path) -> None:
    query = ask(agreed(groups=MOST, rows=MOST), "count", by=["ward", "age"])
    path = write(tmp_path / "a.csv", "person,ward,age\n" + "1,north,0\n" * 1000)
    assert run(path, query) == [1000 if label == (0, "north") else 0 for label in query.labels()]


def test_keys_at_the_ends_of_64_bits(tmp_path: Path) -> None:
    column = f'[columns.x]\ntype = "integer"\nlower = 0\nupper = 0\nkeys = [{-LARGE}, {LARGE}, {LARGE - 1}]\n'
    lines = "".join(
        f"{place},{text}\n" for place, text in enumerate([-LARGE, LARGE, LARGE - 1, LARGE + 1, 2**63, 2**64, "1e18"])
    )
    query = ask(agreed(column, groups=3), "count", by="x")
    assert run(write(tmp_path / "a.csv", "person,x\n" + lines), query) == [1, 2, 1]


def test_a_question_with_a_hundred_thousand_cells(tmp_path: Path) -> None:
    keys = "".join(
        f'[columns.k{place}]\ntype = "integer"\nlower = 0\nupper = 0\nkeys = {list(range(size))}\n'
        for place, size in enumerate((100, 100, 10))
    )
    query = ask(agreed(keys, groups=3, rows=2), "count", by=["k0", "k1", "k2"])
    found = run(write(tmp_path / "a.csv", "person,k0,k1,k2\n1,99,99,9\n1,99,99,9\n1,0,0,0\n2,12,34,5\n"), query)
    assert len(found) == 100_000
    assert {cell: amount for cell, amount in enumerate(found) if amount} == {99_999: 2, 0: 1, 12_345: 1}


@pytest.mark.parametrize("value", ["-99999999999999999999999999.5", "-99999999999999999999999999.1"])
def test_a_number_whose_floor_leaves_the_digits_is_dropped_and_raises_nothing(tmp_path: Path, value: str) -> None:
    """One such row made the whole statement fail: anybody could have seen whether it is there."""
    data = write(tmp_path / "x.csv", f"person,x\na,5\nb,{value}\n")
    assert run(data, total("1", "0", "10", kind="integer")) == [5]
    keyed = '[columns.x]\ntype = "integer"\nlower = 0\nupper = 10\nkeys = [5]\n'
    assert run(data, ask(agreed(keyed), "count", by="x")) == [1]
