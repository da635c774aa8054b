"""The default engine: one DuckDB statement over CSV or Parquet files, or over a frame."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp

from parco.contract.bins import CalendarBins
from parco.contract.columns import IntegerColumn
from parco.contract.contract import Contract
from parco.engines.batches import column_name, record_batches
from parco.engines.data import read_data
from parco.engines.encoding import readable
from parco.engines.source import Kind, Source, check, used_columns
from parco.engines.sql import StoredColumn, statements
from parco.engines.tree import text_list
from parco.errors import DataError
from parco.queries.quantile import Tally
from parco.queries.query import Query, Statistic

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DuckDBEngine", "Found", "keyed", "sums", "tallies"]

Keyed = dict[str, int] | dict[int, int]
Found = list[int] | list[Tally] | Keyed
"""The exact cells of a question: integers, tallies to choose by, or units by key where keys are selected."""

_Line = tuple[int, int, int, int, str | None]
# A line longer than this is dropped like any other that does not parse.
_LINE_BYTES_MAX = 16_000_000
# Stored columns are named with their table, or one called "key" could be taken for a column of the key tables.
_ROWS = "stored_rows"
_MOMENT = "2000-01-01 00:00:00+00"


class DuckDBEngine:
    """Runs questions on one file, folder or frame. `check` reads names and types; only `run` reads rows."""

    def __init__(self, data: str | Path | Any) -> None:  # noqa: ANN401 - a frame of a library that may not be there
        self._data = data
        self._source: Source | None = None

    def check(self, contract: Contract, names: Iterable[str]) -> None:
        """Raises DataError unless the data has the unit and every named column or bins with a fitting type."""
        self._source = read_data(self._data, contract, names := tuple(names))
        check(contract, self._source, names)
        for zone in {bins.time_zone for bins in map(contract.bins.get, names) if isinstance(bins, CalendarBins)} - {
            None
        }:
            _check_zone(str(zone))

    def run(self, query: Query, *, secret: bytes) -> list[int]:
        """The exact statistic of each cell, in lattice steps and in the order of `Query.labels`; no quantile.

        Whatever the engine raises comes out as it is and may hold private values: the caller must swallow it.
        """
        return sums(self.run_all([query], secret=secret)[0])

    def run_all(self, queries: Sequence[Query], *, secret: bytes) -> list[Found]:
        """The same for several questions in one statement, and tallies for quantiles.

        It reads a Parquet file once, a CSV file once for all questions on the same columns. What several questions
        have in common before the draw is computed once. A score is made of two counts.
        """
        wanted, exact = [query.counted for query in queries], list[Query]()
        for query in (one for own in wanted for one in own):
            if query not in exact:
                exact.append(query)
        found = self._run(exact, secret=secret)
        return [
            _whole(query, [found[exact.index(one)] for one in own]) for query, own in zip(queries, wanted, strict=True)
        ]

    def _run(self, queries: Sequence[Query], *, secret: bytes) -> list[Found]:
        contract = queries[0].contract
        names = [_stored_names(query) for query in queries]
        used = tuple(dict.fromkeys(name for own in names for name in own[1:]))
        seen = self._source or read_data(self._data, contract, used)
        found = [_empty(query) for query in queries]
        with readable(seen) as source:
            positions = {name: _position(source, name) for own in names for name in own}
            columns = [{name: _column(source, positions[name]) for name in own} for own in names]
            # DuckDB drops a line of CSV for bytes that are not UTF-8 in a column that it was asked for.
            apart = source.format == "csv"
            tree = statements(queries, columns, relation=_relation(source), secret=secret, apart=apart)
            rows = None if apart else record_batches(source, sorted(set(positions.values())))
            for question, cell, value, total, key in _fetch(tree.sql(dialect="duckdb"), rows):
                query, cells = queries[int(question)], found[int(question)]
                if query.finds_keys:
                    keyed(cells)[_key(query, key)] = int(total)
                elif _tallied(query):
                    tallies(cells)[int(cell)][int(value)] = int(total)
                else:
                    sums(cells)[int(cell)] = int(total)
        return found


def _whole(query: Query, counted: Sequence[Found]) -> Found:
    """The cells of a question from those of what it is made of."""
    if query.statistic is not Statistic.SCORE:
        return counted[0]
    (everybody,), (right,) = map(sums, counted)
    return [query.score_of(everybody, right)]


def _empty(query: Query) -> Found:
    """The cells of a question before any row was found."""
    if query.finds_keys:
        return dict[str, int]()
    if _tallied(query):
        return [dict[int, int]() for _ in range(query.published)]
    return [0] * query.cells


def _tallied(query: Query) -> bool:
    return query.statistic is Statistic.QUANTILE or query.of_units


def sums(found: Found) -> list[int]:
    """What was found for a question that is no quantile."""
    return cast("list[int]", found)


def tallies(found: Found) -> list[Tally]:
    """What was found for a quantile, or for what units contribute."""
    return cast("list[Tally]", found)


def keyed(found: Found) -> dict[str | int, int]:
    """What was found where keys are selected: how many units keep each key, one or more; in no order."""
    return cast("dict[str | int, int]", found)


def _key(query: Query, text: str | None) -> str | int:
    whole = isinstance(query.contract.columns[query.column or ""], IntegerColumn)
    return int(text or "") if whole else text or ""


def _fetch(sql: str, rows: pa.RecordBatchReader | None) -> list[_Line]:
    import duckdb

    # What does not fit the memory is spilled: into a folder only we can read, gone afterwards, and not into ./.tmp.
    with tempfile.TemporaryDirectory(prefix="parco-") as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": folder,
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "preserve_insertion_order": "false",
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            # In a notebook, a shell or under `python -c` it would otherwise draw a bar on the standard output.
            connection.execute("SET enable_progress_bar = false")
            if rows is not None:
                connection.register(_ROWS, rows)
            found: list[_Line] = connection.execute(sql).fetchall()
            return found


def _check_zone(zone: str) -> None:
    """Raises DataError where the engine does not know a time zone: every row would be dropped without a word."""
    import duckdb

    local = exp.Anonymous(
        this="TIMEZONE", expressions=[exp.Literal.string(zone), exp.cast(exp.Literal.string(_MOMENT), "TIMESTAMPTZ")]
    )
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(exp.select(local).sql(dialect="duckdb"))
    except duckdb.Error:
        raise DataError(f"the engine does not know the time zone {zone}: choose another name of it") from None


def _stored_names(query: Query) -> tuple[str, ...]:
    contract = query.contract
    return (contract.unit.column, *used_columns(contract, query.names))


def _position(source: Source, name: str) -> int:
    position = source.position(name)
    if position is None:
        raise AssertionError("a column vanished between check and run")
    return position


def _column(source: Source, position: int) -> StoredColumn:
    kind, column = source.kinds[position], exp.column(column_name(position), quoted=True)
    # Text comes as bytes; what is not UTF-8 is null, and its row is dropped.
    text = exp.Try(this=exp.Decode(this=column, charset=exp.Literal.string("utf-8")))
    if kind is Kind.UNTYPED and source.dialect.nulls:
        missing = exp.In(this=column.copy(), expressions=text_list(source.dialect.nulls).expressions)
        told = exp.Case(ifs=[exp.If(this=missing, true=exp.null())], default=column)
        return StoredColumn(told, kind, source.dialect.decimal)
    return StoredColumn(text if kind is Kind.TEXT else column, kind, source.dialect.decimal)


def _relation(source: Source) -> exp.Expression:
    if source.format != "csv":
        return exp.to_table(_ROWS)
    path = exp.Array(expressions=[exp.Literal.string(str(file)) for file in source.files])
    dialect = source.dialect
    quote = "" if dialect.quote == "none" else dialect.quote
    # A folder called "customer=7" would otherwise replace the column of that name in every row.
    plain = exp.EQ(this=exp.to_identifier("hive_partitioning"), expression=exp.false())
    # Everything is read as text under names of our own, and nothing is sniffed from rows. A line that does not parse
    # is dropped; one thread reads, because two may disagree on where a quoted line break belongs.
    columns = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(column_name(index)), expression=exp.Literal.string("VARCHAR"))
            for index in range(len(source.names))
        ]
    )
    options: dict[str, exp.Expression] = {
        "columns": columns,
        "header": exp.true() if dialect.header else exp.false(),
        "auto_detect": exp.false(),
        "delim": exp.Literal.string(dialect.delimiter),
        "quote": exp.Literal.string(quote),
        "escape": exp.Literal.string(quote),
        # Said, or the first line end decides for all; in this setting every kind ends a line, in any mixture.
        "new_line": exp.Literal.string("\\n"),
        "nullstr": exp.Literal.string(""),
        "compression": exp.Literal.string("none"),
        "ignore_errors": exp.true(),
        "strict_mode": exp.false(),
        "parallel": exp.false(),
        "max_line_size": exp.Literal.number(_LINE_BYTES_MAX),
    }
    named = [exp.EQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]
    return _named(exp.Anonymous(this="read_csv", expressions=[path, plain, *named]))


def _named(function: exp.Expression) -> exp.Expression:
    return exp.Table(this=function, alias=exp.TableAlias(this=exp.to_identifier(_ROWS)))
