"""Contracts, files and runs for the engine's tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.queries.query import Query
from tests.shop import contract_text

__all__ = ["COLUMNS", "SECRET", "agreed", "ask", "run", "write", "write_parquet"]

SECRET = bytes(range(32))

COLUMNS = """
[columns.day]
type = "date"

[columns.score]
type = "decimal"
lattice = "0.25"
lower = "-10"
upper = "20"

[columns.age]
type = "integer"
lower = -1
upper = 3
keys = [0, 1, 2, 3]

[columns.ward]
type = "text"
keys = ["north", "south", "it's; \\"east\\""]

[bins.month]
column = "day"
every = "month"
first = "2024-01"
last = "2024-06"
"""


def agreed(columns: str = COLUMNS, *, groups: int = 1, rows: int = 1, unit: str = "person") -> Contract:
    """A contract on these columns."""
    return Contract.parse(contract_text(columns=columns, groups=groups, rows=rows, unit=unit))


def ask(
    contract: Contract,
    statistic: str,
    column: str | None = None,
    by: str | Sequence[str] = (),
    where: str | None = None,
    *,
    centred: bool = False,
) -> Query:
    """A question on it."""
    return Query.of(contract, statistic, column=column, by=by, where=where, centred=centred)


def run(path: Path, query: Query, *, secret: bytes = SECRET) -> list[int]:
    """The exact integers of a file, after the check that a session makes."""
    engine = DuckDBEngine(path)
    engine.check(query.contract, query.names)
    return engine.run(query, secret=secret)


def write(path: Path, content: str | bytes) -> Path:
    """A file of exactly these characters."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_parquet(path: Path, **columns: pa.Array) -> Path:
    """A Parquet file of these columns."""
    parquet.write_table(pa.table(columns), path)
    return path
