"""A plan as one SQL statement: a sqlglot tree that bounds each unit before anything is aggregated.

    source_rows   unit, cell, value     declared keys only; values clamped and on the lattice, as integers
    kept_rows     at most R rows of a unit in a cell       (sums only: a count need not choose)
    unit_cells    unit, cell, amount    what the unit puts into the cell
    kept_cells    at most K cells of a unit
    result        cell, sum of amounts

A question on a part of the units, or on a unit in one period, is so from `source_rows` on (`parts.py`, `periods.py`).
Which rows and cells a unit keeps depends on its own rows and on the data set's secret: the order is that of a keyed
hash of unit, cell, value and occurrence, never of position, so shuffling the file changes nothing. Every expression
is total: no value can raise. Names and literals are nodes of the tree; no text is ever put together.
"""

from __future__ import annotations

import hashlib
import hmac

from sqlglot import exp

from parco.engines import places, values
from parco.engines.parts import in_part
from parco.engines.periods import in_periods, period_index, place_of_period, unit_in_period
from parco.engines.tree import StoredColumn
from parco.engines.tree import literal as _literal
from parco.engines.tree import number as _number
from parco.engines.tree import template as _template
from parco.queries.query import Query, Statistic

__all__ = ["StoredColumn", "statement"]

_ROW_RANK = (
    "ROW_NUMBER() OVER (PARTITION BY unit, cell"
    " ORDER BY MD5(CONCAT_WS('|', :key, unit, cell, value, occurrence)), value, occurrence)"
)
_CELL_RANK = "ROW_NUMBER() OVER (PARTITION BY unit ORDER BY MD5(CONCAT_WS('|', :key, unit, cell)), cell)"
# `place - 1 < limit` and not `place <= limit`: DuckDB turns the latter into a top-N that is twice as slow.
_KEPT = "place - 1 < :limit"


def statement(query: Query, columns: dict[str, StoredColumn], *, relation: exp.Expression, secret: bytes) -> exp.Select:
    """For every question, returns the statement whose rows are (cell, exact integer in lattice steps).

    `columns` maps the unit and each stored column the question uses; `relation` is what FROM names. A cell without
    rows is absent from the result: the caller, who knows the declared keys, puts its zero.
    """
    tables = {"source_rows": _source_rows(query, columns, relation, secret=secret)}
    if query.statistic is Statistic.SUM:
        tables["kept_rows"] = _kept_rows(query, secret)
    tables["unit_cells"] = _unit_cells(query)
    tables["kept_cells"] = _kept_cells(query, secret)
    result = exp.select("cell", "SUM(amount) AS total").from_("kept_cells").group_by("cell")
    for name, table in tables.items():
        result = result.with_(name, as_=table)
    return result


def _source_rows(
    query: Query, columns: dict[str, StoredColumn], relation: exp.Expression, *, secret: bytes
) -> exp.Select:
    """The rows that count: unit, value and all keys are there. Undeclared keys are gone before cells are chosen."""
    contract = query.contract
    unit = values.unit(contract.unit, columns[contract.unit.column])
    value = _number(1)
    if query.column is not None:
        numeric = contract.numeric(query.column)
        if numeric is None:
            raise AssertionError("a sum was planned over a column without bounds")
        value = values.steps(numeric, places.as_number(contract.columns[query.column], columns[query.column]))
    declared = exp.select(exp.alias_(unit, "unit"), exp.alias_(value, "value")).from_(relation)
    for index, name in enumerate(query.by):
        declared = _with_ordinal(declared, query, columns, name=name, index=index)
    period = period_index(query)
    if period == len(query.by):
        declared = _with_ordinal(declared, query, columns, name=query.contract.unit.period or "", index=period)
    protected = exp.column("unit") if period is None else unit_in_period(period)
    rows = exp.select(exp.alias_(protected, "unit"), "value", exp.alias_(_cell(query), "cell"))
    rows = rows.from_(declared.subquery("declared"))
    rows = rows.where("NOT declared.unit IS NULL", "NOT value IS NULL")
    if period is not None:
        rows = rows.where(in_periods(query, period))
    if query.part is not None and query.contract.parts is not None:
        rows = rows.where(*in_part(query.contract.parts, query.part, secret=secret))
    for index, keys in enumerate(query.keys):
        if index == period:
            continue
        ordinal, last = exp.column(f"ordinal_{index}"), _number(len(keys) - 1)
        rows = rows.where(_template(":ordinal BETWEEN 0 AND :last", ordinal=ordinal, last=last))
    return rows


def _with_ordinal(
    select: exp.Select, query: Query, columns: dict[str, StoredColumn], *, name: str, index: int
) -> exp.Select:
    """Adds the place of the row's key among the declared keys, as column `ordinal_<index>`."""
    ordinal, contract = f"ordinal_{index}", query.contract
    if name in contract.bins:
        bins = contract.bins[name]
        place = places.place(bins, contract.columns[bins.column], columns[bins.column])
        return select.select(exp.alias_(place, ordinal))
    table, declared = f"keys_{index}", contract.columns[name]
    keys = [values.compared(declared, key) for key in query.keys[index]]
    table_of_keys = exp.values([(_literal(key), _number(at)) for at, key in enumerate(keys)], table, ["key", ordinal])
    match = exp.EQ(this=values.key(declared, columns[name]), expression=exp.column("key", table=table))
    return select.join(table_of_keys, on=match).select(exp.column(ordinal, table=table))


def _cell(query: Query) -> exp.Expression:
    """The number of the row's cell: mixed radix over the ordinals, in the order of `Query.labels`."""
    cell: exp.Expression = exp.cast(_number(0), "BIGINT")
    for index, keys in enumerate(query.keys):
        ordinal: exp.Expression = exp.column(f"ordinal_{index}")
        if query.by[index] == query.contract.unit.period:
            ordinal = place_of_period(query, index)
        size = _number(len(keys))
        cell = _template("CAST(:cell * :size + :ordinal AS BIGINT)", cell=cell, size=size, ordinal=ordinal)
    return cell


def _kept_rows(query: Query, secret: bytes) -> exp.Select:
    """At most R rows of a unit in a cell, the first in the order of a keyed hash; equal rows are interchangeable."""
    occurrence = "ROW_NUMBER() OVER (PARTITION BY unit, cell, value ORDER BY unit) AS occurrence"
    numbered = exp.select("unit", "cell", "value", occurrence).from_("source_rows").subquery("numbered")
    order = _template(_ROW_RANK, key=_subkey(secret, "rows"))
    ranked = exp.select("unit", "cell", "value", exp.alias_(order, "place")).from_(numbered).subquery("ordered")
    limit = _template(_KEPT, limit=_number(query.contract.unit.rows))
    return exp.select("unit", "cell", "value").from_(ranked).where(limit)


def _unit_cells(query: Query) -> exp.Select:
    """What each unit puts into each cell: its sum, its rows up to R, or one."""
    match query.statistic:
        case Statistic.SUM:
            amount, table = values.total(query.contract.numeric(query.column or "")), "kept_rows"
        case Statistic.COUNT:
            rows = _number(query.contract.unit.rows)
            amount, table = _template("CAST(LEAST(COUNT(*), :rows) AS DECIMAL(38, 0))", rows=rows), "source_rows"
        case Statistic.COUNT_UNITS:
            amount, table = _template("CAST(1 AS DECIMAL(38, 0))"), "source_rows"
    return exp.select("unit", "cell", exp.alias_(amount, "amount")).from_(table).group_by("unit", "cell")


def _kept_cells(query: Query, secret: bytes) -> exp.Select:
    """At most K cells of a unit, again in the order of a keyed hash; all of them where there are no more than K."""
    if query.groups == query.cells:
        return exp.select("cell", "amount").from_("unit_cells")
    order = _template(_CELL_RANK, key=_subkey(secret, "groups"))
    ranked = exp.select("cell", "amount", exp.alias_(order, "place")).from_("unit_cells").subquery("ordered")
    return exp.select("cell", "amount").from_(ranked).where(_template(_KEPT, limit=_number(query.groups)))


def _subkey(secret: bytes, purpose: str) -> exp.Expression:
    """A key of its own for each choice, so that which rows are kept says nothing about which groups are."""
    return exp.Literal.string(hmac.new(secret, f"parco/bounding/{purpose}".encode(), hashlib.sha256).hexdigest())
