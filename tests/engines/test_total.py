"""No value raises, whatever rules and bins a contract declares: each odd one is dropped, clamped, or has its place."""

from __future__ import annotations

import csv
import math
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from .build import agreed, ask, run, write_parquet
from .odd_tables import HEADER, odd

ALPHABETS = (
    "0123456789.-+eE",
    "0123456789-/.: TZ+",
    "infatyINFATY+- ",
    "0,.;'\"|_x%\\ \t",
    "\u0660\u00b2\u2212\u00a0½∞\ufeff\x00\x7f",
)
CHUNKS = (
    *(
        "inf",
        "nan",
        "e",
        "-",
        ".",
        "9" * 30,
        "0" * 30,
        "1e-400",
        "9e999",
        "e99999999999",
        "1e38",
        "-99999999999999999999999999.5",
    ),
    *(
        "2024-02-29",
        "T",
        "23:59:60",
        "+99:99",
        "Z",
        "epoch",
        "infinity",
        "99999999",
        "-290308-12-21",
        "0000-00-00",
        "(BC)",
    ),
)
QUESTIONS = (
    ("sum", "x", ()),
    ("sum", "n", ("xe",)),
    ("count", None, ("n", "xe")),
    ("count", None, ("nr", "flag")),
    ("count", None, ("week", "ward")),
    ("count_units", None, ("quarter",)),
    ("count", None, ("single",)),
)


def odd_text(random: Random) -> str:
    if random.random() < 0.5:
        return "".join(random.choice(CHUNKS) for _ in range(random.randint(1, 3)))
    letters = random.choice(ALPHABETS)
    return "".join(random.choice(letters) for _ in range(random.randint(0, 24)))


@pytest.mark.parametrize("seed", range(12))
def test_no_text_is_an_error(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    made = odd(seed)
    dialect = made.dialect
    encoding = str(dialect.get("encoding", "utf-8"))
    with (tmp_path / "a.csv").open("w", encoding=encoding, errors="replace", newline="") as stream:
        writer = csv.writer(
            stream, delimiter=str(dialect.get("delimiter", ",")), quotechar=str(dialect.get("quote", '"'))
        )
        if dialect.get("header", True):
            writer.writerow(HEADER)
        writer.writerows([odd_text(random) for _ in HEADER] for _ in range(2000))
    for question in QUESTIONS:
        found = run(tmp_path / "a.csv", ask(made.contract, *question))
        assert len(found) == ask(made.contract, *question).cells


RULES = ("", 'null = 1\nnan = 2\ninfinity = "drop"\nunparsed = 3\n', "null = 1\nnan = 2\ninfinity = 3\nunparsed = 1\n")
DOUBLES = [math.nan, math.inf, -math.inf, 1.8e308 / 10, -1.7e308, 5e-324, -0.0, 2.0**63, -(2.0**63), 1e26, None]
WHOLE = [2**63 - 1, -(2**63), 10**18, -(10**18), 10**18 + 1, 0, None]
LONG = [Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(0), None]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("clamp", ["", 'clamp = "unit"\n'])
@pytest.mark.parametrize(
    "values",
    [
        pa.array(DOUBLES, pa.float64()),
        pa.array(DOUBLES[:3] + DOUBLES[5:7] + [None], pa.float32()),
        pa.array(WHOLE, pa.int64()),
        pa.array([2**64 - 1, 0, None], pa.uint64()),
        pa.array(LONG, pa.decimal128(38, 0)),
        pa.array([Decimal("99999999999999999999999999.999999999999"), None], pa.decimal128(38, 12)),
        pa.array([Decimal("0." + "9" * 38), None], pa.decimal128(38, 38)),
    ],
    ids=lambda values: str(values.type) if isinstance(values, pa.Array) else values,
)
def test_no_typed_number_is_an_error(tmp_path: Path, rules: str, clamp: str, values: pa.Array) -> None:
    whole = pa.types.is_integer(values.type)
    kind = 'type = "integer"\n' if whole else 'type = "decimal"\nlattice = 1\n'
    ranges = '[bins.r]\ncolumn = "x"\nfirst = -1000000000000000000\nlast = 999999999999999999\nwidth = 10\n'.replace(
        "10\n", "1000000000000000000\n"
    )
    columns = (
        f"[columns.x]\n{kind}lower = -5\nupper = 5\n{rules}{clamp}"
        '[bins.e]\ncolumn = "x"\nedges = ["-1e18", "-0.5", "0", "1e18"]\nbelow = true\nabove = true\n'
    )
    contract = agreed(columns + (ranges if whole else ""), groups=9, rows=9)
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(len(values))), x=values)
    (total,) = run(path, ask(contract, "sum", "x"))
    assert abs(total) <= 5 * len(values)
    placed = run(path, ask(contract, "count", by="e"))
    # Every number has a place, and a missing one, NaN or an infinity the place that its rule gives it.
    missing = sum(value is None or (isinstance(value, float) and math.isnan(value)) for value in values.to_pylist())
    infinite = sum(isinstance(value, float) and math.isinf(value) for value in values.to_pylist())
    dropped = (missing if not rules else 0) + (infinite if "drop" in rules else 0)
    assert sum(placed) == len(values) - dropped
    if whole:
        run(path, ask(contract, "count", by="r"))
