"""What a release costs beside what it is made of, in one run: `make bench`.

Each figure is a ratio of medians, measured turn by turn so that a busy machine slows both sides alike:

    bounding     the bounded statement over a plain, unbounded group-by of the same rows (Parquet, in DuckDB)
    ledger       a release of an empty table, data access apart, over two bare durable SQLite commits
    repeat       a repeat over one bare durable commit
    draw         one exact draw over one draw of numpy's (insecure, inexact) normal; more of that in `noise.py`
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
from rich.console import Console
from rich.progress import track
from rich.table import Table

from machine import duration, machine
from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.noise.bits import CipherBits
from parco.noise.laws import RoundedGaussian
from parco.noise.vector import draw_array
from parco.queries.query import Query
from parco.session.session import Session
from parco.session.signing import sign

ROWS, UNITS, TURNS = 1_000_000, 100_000, 9
DRAWS = 100_000

CONTRACT = """
format = 1
name = "bench"
purpose = "measuring"
unprotected = "none"
data = { name = "bench" }
unit = { column = "unit", neighbours = "add-or-remove", groups = 6, rows = 2 }
budget = { measure = "gdp", total = "9000", delta = "1e-6" }

[columns.value]
type = "integer"
lower = 0
upper = 100

[columns.day]
type = "date"

[bins.month]
column = "day"
every = "month"
first = "2024-01"
last = "2025-12"
"""

Job = Callable[[], object]


def main() -> None:
    """Measures and prints the table."""
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = {"count by month": _bounding(folder, "count"), "sum by month": _bounding(folder, "sum")}
        pairs |= {"ledger": _ledger(folder), "repeat": _repeat(folder), "draw": _draw()}
        table = Table("what", "ours", "beside", "ratio", title=f"{ROWS:,} rows of {UNITS:,} units; medians of {TURNS}")
        for what, (ours, beside, per) in track(pairs.items(), description="measuring", console=console):
            first, second = _medians(ours, beside)
            table.add_row(what, duration(first / per), duration(second / per), f"{first / second:.2f}")
    console.print(machine("duckdb", "sqlglot", "sqlalchemy", "python-flint"))
    console.print(table)


def _medians(ours: Job, beside: Job) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(TURNS):
        for job, taken in zip((ours, beside), times, strict=True):
            start = time.perf_counter()
            job()
            taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def _bounding(folder: Path, statistic: str) -> tuple[Job, Job, int]:
    data = folder / "rows.parquet"
    if not data.exists():
        duckdb.execute(
            f"COPY (SELECT (hash(i) % {UNITS})::BIGINT AS unit, (hash(i + 1) % 120)::BIGINT AS value, "  # noqa: S608
            f"DATE '2024-01-01' + (hash(i + 2) % 700)::INTEGER AS day FROM range({ROWS}) r(i)) "
            f"TO '{data}' (FORMAT parquet)"
        )
    column = "value" if statistic == "sum" else None
    query = Query.of(Contract.parse(CONTRACT), statistic, column=column, by="month")
    engine = DuckDBEngine(data)
    plain = "sum(value)" if column else "count(*)"
    text = f"SELECT date_trunc('month', day), {plain} FROM read_parquet('{data}') GROUP BY 1"  # noqa: S608

    def beside() -> object:
        with duckdb.connect(":memory:") as connection:
            return connection.execute(text).fetchall()

    return lambda: engine.run(query, secret=b"secret"), beside, 1


def _session(folder: Path) -> Session:
    (folder / "empty.csv").write_text("unit,value,day\n", encoding="utf-8")
    contract = Contract.parse(CONTRACT)
    sign(contract, ledger=folder / "bench.ledger")
    session = Session(contract, data=folder / "empty.csv", ledger=folder / "bench.ledger")
    session.count(cost="0.01")
    return session


def _ledger(folder: Path) -> tuple[Job, Job, int]:
    session, engine = _session(folder), DuckDBEngine
    commit = _bare_commit(folder)

    def ours() -> object:
        run = engine.run_all
        engine.run_all = lambda *_, **__: [[0]]  # type: ignore[method-assign]
        try:
            return session.count(cost="0.01", fresh=True)
        finally:
            engine.run_all = run  # type: ignore[method-assign]

    return ours, lambda: (commit(), commit()), 1


def _repeat(folder: Path) -> tuple[Job, Job, int]:
    session = _session(folder)
    return lambda: session.count(cost="0.01"), _bare_commit(folder), 1


def _bare_commit(folder: Path) -> Job:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous=EXTRA")
    connection.execute("CREATE TABLE IF NOT EXISTS entries (seq INTEGER PRIMARY KEY, body BLOB) STRICT")

    def commit() -> object:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO entries (body) VALUES (?)", (b"x" * 1000,))
        return connection.execute("COMMIT")

    return commit


def _draw() -> tuple[Job, Job, int]:
    import numpy as np

    law, generator = RoundedGaussian(Fraction(1000)), np.random.default_rng()
    return lambda: draw_array(law, DRAWS, CipherBits()), lambda: generator.normal(0.0, 1000.0, DRAWS), DRAWS


if __name__ == "__main__":
    main()
