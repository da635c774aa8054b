"""Each value, however odd, is dropped, clamped, or put on the lattice exactly; none of them raises."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from .build import agreed, ask, run, write, write_parquet

# The lower bound is above zero, so that a value that was dropped and one that was clamped can be told apart.
DECIMALS: list[tuple[str, str | None]] = [
    ("5", "5"),
    ("5.00", "5"),
    ("5.004999999999", "5"),
    ("5.005", "5.01"),
    ("5.015", "5.02"),
    ("5.025", "5.03"),
    ("1.004999999999", "1"),
    ("1.005", "1.01"),
    ("0.285", "1"),
    ("+7", "7"),
    (" 7 ", "7"),
    ("7.", "7"),
    ("1e1", "10"),
    ("1E+1", "10"),
    ("1e-1", "1"),
    ("99.994999999999", "99.99"),
    ("99.995", "100"),
    ("100.004", "100"),
    ("101", "100"),
    ("-3", "1"),
    ("-0", "1"),
    ("1e-400", "1"),
    ("-1e-300", "1"),
    ("1e30", "100"),
    ("-1e30", "1"),
    ("1e400", "100"),
    ("-1e400", "1"),
    ("1e99999999999999999999", "100"),
    ("9" * 50, "100"),
    ("-" + "9" * 50, "1"),
    ("9" * 400, "100"),
    ("0." + "9" * 60, "1"),
    ("2." + "0" * 60 + "1", "2"),
    # Written with too many digits before the point: it does not parse, whatever the bounds are.
    ("1" + "0" * 27 + "e-26", None),
    ("1" + "0" * 27 + "e-20", None),
    ("1" + "0" * 27 + "e-400", None),
    ("inf", "100"),
    ("+inf", "100"),
    ("-inf", "1"),
    ("Infinity", "100"),
    ("-INFINITY", "1"),
    ("nan", None),
    ("NaN", None),
    ("-nan", None),
    ("", None),
    (" ", None),
    ("abc", None),
    ("NULL", None),
    ("true", None),
    ("5,0", None),
    ("5 000", None),
    ("5%", None),
    ("$5", None),
    ("1/2", None),
    ("--5", None),
    ("5e", None),
    ("1e1.5", None),
    ("2024-01-01", None),
    ("\u0665", None),
    ("5\x00", None),
    ("5\nx", None),
    ("'5'", None),
    ("5); DROP TABLE x; --", None),
]

INTEGERS: list[tuple[str, int | None]] = [
    ("7", 7),
    ("7.0", 7),
    ("7.000", 7),
    ("7e3", 7000),
    ("70e-1", 7),
    ("7.5", None),
    ("7.000000000001", None),
    ("0.5", None),
    ("-0.5", None),
    ("9007199254740992", 2**53),
    ("9007199254740993", 2**53 + 1),
    ("9007199254740995", 2**53 + 3),
    ("9007199254740993.0", 2**53 + 1),
    ("999999999999999999", 10**18 - 1),
    ("1000000000000000000", 10**18),
    ("1000000000000000001", 10**18),
    ("9223372036854775807", 10**18),
    ("9223372036854775808", 10**18),
    ("18446744073709551616", 10**18),
    ("1" * 50, 10**18),
    ("-" + "1" * 50, 1),
    ("-9223372036854775809", 1),
    ("1e400", 10**18),
    ("-1e400", 1),
    ("inf", 10**18),
    ("-inf", 1),
    ("nan", None),
    ("", None),
    ("seven", None),
]


def columns(number: str, cells: int) -> str:
    """A summed column, and a key of its own for each row."""
    keys = ", ".join(map(str, range(cells)))
    return f"[columns.x]\n{number}\n[columns.place]\ntype = 'integer'\nlower = 0\nupper = 0\nkeys = [{keys}]\n"


def csv_of(path: Path, texts: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["person", "x", "place"])
        writer.writerows([f"p{place}", text, place] for place, text in enumerate(texts))
    return path


def test_decimals_as_text(tmp_path: Path) -> None:
    texts = [text for text, _ in DECIMALS]
    contract = agreed(columns('type = "decimal"\nlattice = "0.01"\nlower = 1\nupper = 100', len(texts)))
    found = run(csv_of(tmp_path / "a.csv", texts), ask(contract, "sum", "x", "place"))
    wanted = [0 if value is None else int(Fraction(value) * 100) for _, value in DECIMALS]
    assert dict(zip(texts, found, strict=True)) == dict(zip(texts, wanted, strict=True))
    # A count does not look at the value, so none of these rows is lost there.
    assert run(tmp_path / "a.csv", ask(contract, "count", by="place")) == [1] * len(texts)


def test_integers_as_text(tmp_path: Path) -> None:
    texts = [text for text, _ in INTEGERS]
    contract = agreed(columns('type = "integer"\nlower = 1\nupper = "1e18"', len(texts)))
    found = run(csv_of(tmp_path / "a.csv", texts), ask(contract, "sum", "x", "place"))
    assert dict(zip(texts, found, strict=True)) == {text: value or 0 for text, value in INTEGERS}


def test_halves_go_up_below_zero_as_well(tmp_path: Path) -> None:
    texts = ["-2.5", "-1.5", "-0.5", "0.5", "1.5", "2.5", "-2.500000000001", "2.499999999999"]
    contract = agreed(columns('type = "decimal"\nlattice = 1\nlower = -10\nupper = 10', len(texts)))
    found = run(csv_of(tmp_path / "a.csv", texts), ask(contract, "sum", "x", "place"))
    assert found == [-2, -1, 0, 1, 2, 3, -3, 2]


@pytest.mark.parametrize(
    ("lattice", "lower", "upper", "values"),
    [
        ("0.7", "-7", "7", {"0.34": 0, "0.35": 1, "-0.35": 0, "-0.36": -1, "6.99": 10, "7.1": 10, "-7.1": -10}),
        ("3", "-9", "12", {"1.4": 0, "1.5": 1, "4.5": 2, "-1.5": 0, "-1.6": -1, "11": 4, "99": 4}),
        ("0.000000000001", "0", "1", {"0.1234567890123": 123456789012, "0.1234567890125": 123456789013, "9": 10**12}),
        ("1000", "-5000", "5000", {"499.999": 0, "500": 1, "-500": 0, "-500.001": -1, "1e9": 5}),
        ("0.25", "0.5", "1.25", {"0": 2, "0.62": 2, "0.625": 3, "1.2": 5, "inf": 5, "-inf": 2}),
        ("0.5", "-3", "-1", {"0": -2, "-1.25": -2, "-1.26": -3, "-9": -6}),
    ],
)
def test_lattices_of_any_step(tmp_path: Path, lattice: str, lower: str, upper: str, values: dict[str, int]) -> None:
    number = f'type = "decimal"\nlattice = "{lattice}"\nlower = "{lower}"\nupper = "{upper}"'
    contract = agreed(columns(number, len(values)))
    found = run(csv_of(tmp_path / "a.csv", list(values)), ask(contract, "sum", "x", "place"))
    assert dict(zip(values, found, strict=True)) == values


def test_doubles_as_they_are_stored(tmp_path: Path) -> None:
    values = {
        5.0: 500,
        5.125: 513,
        0.1 + 0.2: 100,
        99.996: 10000,
        101.0: 10000,
        -3.0: 100,
        -0.0: 100,
        5e-324: 100,
        1.7976931348623157e308: 10000,
        -1.7976931348623157e308: 100,
        2.0**63: 10000,
        math.inf: 10000,
        -math.inf: 100,
    }
    given: list[float | None] = [*values, math.nan, None]
    contract = agreed(columns('type = "decimal"\nlattice = "0.01"\nlower = 1\nupper = 100', len(given)))
    for kind in (pa.float64(), pa.float32()):
        path = write_parquet(
            tmp_path / f"{kind}.parquet",
            person=pa.array(range(len(given))),
            x=pa.array(given, pa.float64()).cast(kind, safe=False),
            place=pa.array(range(len(given))),
        )
        assert run(path, ask(contract, "sum", "x", "place")) == [*values.values(), 0, 0]


DAYS: list[tuple[str, int | None]] = [
    ("2024-01-05", 0),
    ("2024-02-29", 1),
    ("2024-06-30", 5),
    (" 2024-03-01 ", 2),
    ("2024-03-31 23:59:59", 2),
    ("2023-12-31", None),
    ("2024-07-01", None),
    ("2023-02-29", None),
    ("2024-13-01", None),
    ("2024-00-10", None),
    ("2024-01", None),
    ("20240105", None),
    ("05/01/2024", None),
    ("January", None),
    ("infinity", None),
    ("-infinity", None),
    ("epoch", None),
    ("99999999-01-01", None),
    ("2024-01-01 (BC)", None),
    ("", None),
    ("nan", None),
]


def test_days_as_text(tmp_path: Path) -> None:
    day = '[columns.day]\ntype = "date"\n'
    bins = '[bins.month]\ncolumn = "day"\nevery = "month"\nfirst = "2024-01"\nlast = "2024-06"\n'
    contract = agreed(columns('type = "integer"\nlower = 0\nupper = 1', len(DAYS)) + day + bins)
    lines = "".join(f"p{place},{text},{place}\n" for place, (text, _) in enumerate(DAYS))
    query = ask(contract, "count", by=["month", "place"])
    found = run(write(tmp_path / "a.csv", "person,day,place\n" + lines), query)
    shown = [label for label, amount in zip(query.labels(), found, strict=True) if amount]
    wanted = [(f"2024-{month + 1:02d}", place) for place, (_, month) in enumerate(DAYS) if month is not None]
    assert (shown, sum(found)) == (sorted(wanted), len(wanted))


def test_keys_are_compared_exactly(tmp_path: Path) -> None:
    texts = [
        "north",
        "North",
        " north",
        "north ",
        "nörth",
        "north\x00",
        "",
        "south",
        "'north'",
        "nor",
        "%",
        "north' OR '1'='1",
    ]
    rows = [[f"p{place}", text] for place, text in enumerate(texts)]
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["person", "ward"], *rows])
    assert run(tmp_path / "a.csv", ask(agreed(), "count", by="ward")) == [1, 1, 0]


def test_number_keys_are_compared_as_numbers(tmp_path: Path) -> None:
    texts = [
        "0",
        "00",
        "0.0",
        "-0",
        "1",
        "1.5",
        "01",
        "1e0",
        "4",
        "nan",
        "inf",
        "",
        "x",
        "1e400",
        "99999999999999999999",
    ]
    lines = "".join(f"p{place},{text}\n" for place, text in enumerate(texts))
    assert run(write(tmp_path / "a.csv", "person,age\n" + lines), ask(agreed(), "count", by="age")) == [4, 3, 0, 0]


@pytest.mark.parametrize(
    "units", [pa.array([None, None, None], pa.int64()), pa.array([None, None, None], pa.string())], ids=["int", "text"]
)
def test_rows_without_a_unit_count_nowhere(tmp_path: Path, units: Any) -> None:
    contract = agreed(groups=2, rows=5)
    path = write_parquet(tmp_path / "a.parquet", person=units, ward=pa.array(["north"] * 3))
    lines = write(tmp_path / "a.csv", 'person,ward\n,north\n,south\n"",north\n')
    for file in (path, lines):
        assert run(file, ask(contract, "count", by="ward")) == [0, 0, 0]
        assert run(file, ask(contract, "count_units")) == [0]
