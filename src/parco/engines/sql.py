"""A plan as one SQL statement: a sqlglot tree that bounds each unit before anything is aggregated.

    source_rows   unit, cell, value     declared keys only; values clamped and on the lattice, as integers
    kept_rows     at most R rows of a unit in a cell       (sums and quantiles only: a count need not choose)
    kept_values   at most R values of a unit in a cell     (count_distinct only, before values are made distinct)
    unit_cells    unit, cell, amount    what the unit puts into the cell
    kept_cells    at most K cells of a unit
    result        cell, sum of amounts                     (quantile: cell, value, its rows)

Where keys are selected a cell is the key itself, whichever the data hold. Of what units contribute each has one number,
by all of its rows, so that none is left out.

A question on a part of the units, or on a unit in one period, is so from `source_rows` on (`parts.py`, `periods.py`).
Which rows and cells a unit keeps depends on its own rows and on the data set's secret: the order is that of a keyed
hash of unit, cell, value and occurrence, never of position, so shuffling the file changes nothing. Every expression
is total: no value can raise. Names and literals are nodes of the tree; no text is ever put together.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from sqlglot import exp

from parco.contract.columns import DateColumn
from parco.engines import places, values
from parco.engines.filters import condition
from parco.engines.parts import in_part
from parco.engines.periods import in_periods, period_index, place_of_period, unit_in_period
from parco.engines.tree import StoredColumn
from parco.engines.tree import literal as _literal
from parco.engines.tree import number as _number
from parco.engines.tree import template as _template
from parco.queries.query import Query, Statistic

__all__ = ["StoredColumn", "statement", "statements"]

_ROW_RANK = (
    "ROW_NUMBER() OVER (PARTITION BY unit, cell"
    " ORDER BY MD5(CONCAT_WS('|', :key, unit, cell, value, occurrence)), value, occurrence)"
)
_VALUE_RANK = "ROW_NUMBER() OVER (PARTITION BY unit, cell ORDER BY MD5(CONCAT_WS('|', :key, unit, cell, value)), value)"
# All rows of a cell have one place.
_CELL_PLACE = "DENSE_RANK() OVER (PARTITION BY unit ORDER BY MD5(CONCAT_WS('|', :key, unit, cell)), cell)"
# Days are counted as Python does, from the first of January of the year 1.
_DAY_NUMBER = ":days + 719163"
_CELL_RANK = "ROW_NUMBER() OVER (PARTITION BY unit ORDER BY MD5(CONCAT_WS('|', :key, unit, cell)), cell)"
# `place - 1 < limit` and not `place <= limit`: DuckDB turns the latter into a top-N that is twice as slow.
_KEPT = "place - 1 < :limit"


def statement(query: Query, columns: dict[str, StoredColumn], *, relation: exp.Expression, secret: bytes) -> exp.Select:
    """For every question, returns the statement whose rows are (cell, exact integer in lattice steps).

    Where keys are selected the cell is the key.

    Of a quantile they are (cell, value in lattice steps, how many of its rows are kept), a value without rows absent;
    of what units contribute (0, number, how many units have it).
    `columns` maps the unit and each stored column the question uses; `relation` is what FROM names. A cell without
    rows is absent from the result: the caller, who knows the declared keys, puts its zero.
    """
    tables = {"source_rows": _source_rows(query, columns, relation, secret=secret)}
    if query.of_units:
        tables |= {"unit_cells": _contributed(), "unit_numbers": _unit_numbers(query)}
        result = exp.select("0 AS cell", "value", "COUNT(*) AS total").from_("unit_numbers").group_by("value")
        return _with_tables(result, tables)
    if query.statistic is Statistic.QUANTILE:
        kept = _cells_of_values(query, secret, table="kept_rows")
        tables |= {"kept_rows": _kept_rows(query, secret), "kept_cells": kept}
        result = exp.select("cell", "value", "COUNT(*) AS total").from_("kept_cells").group_by("cell", "value")
        return _with_tables(result, tables)
    if query.statistic is Statistic.COUNT_DISTINCT:
        kept = _cells_of_values(query, secret, table="kept_values")
        tables |= {"kept_values": _kept_values(query, secret), "kept_cells": kept}
        result = exp.select("cell", "COUNT(DISTINCT value) AS total").from_("kept_cells").group_by("cell")
        return _with_tables(result, tables)
    if query.statistic in (Statistic.SUM, Statistic.SUM_SQUARES):
        tables["kept_rows"] = _kept_rows(query, secret)
    tables["unit_cells"] = _unit_cells(query)
    tables["kept_cells"] = _kept_cells(query, secret)
    result = exp.select("cell", "SUM(amount) AS total").from_("kept_cells").group_by("cell")
    return _with_tables(result, tables)


def statements(
    queries: Sequence[Query],
    columns: Sequence[dict[str, StoredColumn]],
    *,
    relation: exp.Expression,
    secret: bytes,
    apart: bool,
) -> exp.Expression:
    """For every list of questions, returns one statement of rows (place in the list, cell, value, exact integer, key).

    The value is a quantile's, in lattice steps, and 0 elsewhere; the key is one that no contract declares, as text, in
    place of a cell, and null elsewhere.
    `columns` holds the stored columns of each question. Questions share one table of those they use, so that the file
    is read once; or, if `apart`, only questions on the same columns do, for a file whose rows a reader may drop for
    what stands in a column it was asked for: then no answer depends on what else is asked.
    """
    used = [frozenset(own) if apart else frozenset[str]() for own in columns]
    tables: dict[frozenset[str], str] = {}
    for names in used:
        if used.count(names) > 1:
            tables.setdefault(names, f"read_once_{len(tables)}")
    parts = []
    for place, (query, own, names) in enumerate(zip(queries, columns, used, strict=True)):
        table = exp.to_table(tables[names]) if names in tables else relation.copy()
        answer = statement(query, own, relation=table, secret=secret).subquery("answer", copy=False)
        question = exp.alias_(_number(place), "question")
        value = "value" if query.statistic is Statistic.QUANTILE or query.of_units else "0 AS value"
        cell, key = ("0 AS cell", "CAST(cell AS TEXT)") if query.finds_keys else ("cell", "CAST(NULL AS TEXT)")
        parts.append(exp.select(question, cell, value, "total", f"{key} AS found").from_(answer, copy=False))
    result = parts[0] if len(parts) == 1 else exp.union(*parts, distinct=False, copy=False)
    for names, name in tables.items():
        sharing = [own for own, theirs in zip(columns, used, strict=True) if theirs == names]
        once = _read_once(sharing, relation)
        result = result.with_(name, as_=once, materialized=True, copy=False)
    return result


def _read_once(columns: Sequence[dict[str, StoredColumn]], relation: exp.Expression) -> exp.Select:
    """The stored columns that several questions use."""
    expressions = [column.expression for own in columns for column in own.values()]
    stored = {column.name: column for expression in expressions for column in expression.find_all(exp.Column)}
    return exp.select(*(column.copy() for column in stored.values())).from_(relation.copy(), copy=False)


def _with_tables(result: exp.Select, tables: dict[str, exp.Select]) -> exp.Select:
    for name, table in tables.items():
        result = result.with_(name, as_=table, copy=False)
    return result


def _source_rows(
    query: Query, columns: dict[str, StoredColumn], relation: exp.Expression, *, secret: bytes
) -> exp.Select:
    """The rows that count: unit, value and all keys are there. Undeclared keys are gone before cells are chosen."""
    contract = query.contract
    unit = values.unit(contract.unit, columns[contract.unit.column])
    value = _number(1) if query.column is None or query.finds_keys else _column_value(query, columns)
    declared = exp.select(exp.alias_(unit, "unit"), exp.alias_(value, "value")).from_(relation)
    for index, name in enumerate(query.by):
        declared = _with_ordinal(declared, query, columns, name=name, index=index)
    period = period_index(query)
    if period == len(query.by):
        declared = _with_ordinal(declared, query, columns, name=contract.unit.period or "", index=period)
    found: dict[str, exp.Expression] = {}
    extra = [] if query.where is None else list(query.where.names)
    if _counts_keys(query):
        extra = [query.column or "", *extra]
    # Behind the groupings, and behind the period where it is none of them.
    for index, name in enumerate(dict.fromkeys(extra), start=len(query.by) + 1):
        declared = _with_place(declared, query, columns, name=name, index=index)
        found[name] = exp.column(f"ordinal_{index}")
    if _counts_keys(query):
        last = _number(len(contract.keys(query.column or "") or ()) - 1)
        inside = "CASE WHEN :place BETWEEN 0 AND :last THEN CAST(:place AS BIGINT) END"
        value = _template(inside, place=found[query.column or ""], last=last)
    else:
        value = exp.column("value")
    protected = exp.column("unit") if period is None else unit_in_period(period)
    cell = _cell(query)
    if query.finds_keys:
        cell = exp.column("found")
        found_key = values.found_key(contract.columns[query.column or ""], columns[query.column or ""])
        declared = declared.select(exp.alias_(found_key, "found"), copy=False)
    rows = exp.select(exp.alias_(protected, "unit"), exp.alias_(value, "value"), exp.alias_(cell, "cell"))
    rows = rows.from_(declared.subquery("declared", copy=False), copy=False)
    if query.finds_keys:
        rows = rows.where("NOT declared.found IS NULL", copy=False)
    rows = rows.where("NOT declared.unit IS NULL", copy=False)
    rows = rows.where(exp.not_(exp.Is(this=value.copy(), expression=exp.Null())), copy=False)
    if period is not None:
        rows = rows.where(in_periods(query, period), copy=False)
    if query.part is not None and contract.parts is not None:
        rows = rows.where(*in_part(contract.parts, query.part, secret=secret), copy=False)
    for index, keys in enumerate(query.keys):
        if index == period:
            continue
        ordinal, last = exp.column(f"ordinal_{index}"), _number(len(keys) - 1)
        rows = rows.where(_template(":ordinal BETWEEN 0 AND :last", ordinal=ordinal, last=last), copy=False)
    return rows if query.where is None else rows.where(condition(query.where.root, found), copy=False)


def _counts_keys(query: Query) -> bool:
    """Whether the values are declared keys and not numbers."""
    return query.statistic is Statistic.COUNT_DISTINCT and query.contract.numeric(query.column or "") is None


def _column_value(query: Query, columns: dict[str, StoredColumn]) -> exp.Expression:
    return exp.null() if _counts_keys(query) else _steps(query, query.column or "", columns)


def _steps(query: Query, name: str, columns: dict[str, StoredColumn]) -> exp.Expression:
    """The clamped value of a row as a whole number of lattice steps, or NULL where the row is to be dropped."""
    numeric = query.contract.numeric(name)
    if numeric is None:
        raise AssertionError("a sum was planned over a column without bounds")
    return values.steps(numeric, places.as_number(query.contract.columns[name], columns[name]))


def _with_place(
    select: exp.Select, query: Query, columns: dict[str, StoredColumn], *, name: str, index: int
) -> exp.Select:
    """Adds the whole number at which the row's value lies, or null, and drops no row."""
    declared = query.contract.columns.get(name)
    if isinstance(declared, DateColumn):
        day = _template(_DAY_NUMBER, days=places.as_number(declared, columns[name]).expression)
        return select.select(exp.alias_(day, f"ordinal_{index}"), copy=False)
    if query.contract.numeric(name) is not None:
        return select.select(exp.alias_(_steps(query, name, columns), f"ordinal_{index}"), copy=False)
    return _with_ordinal(select, query, columns, name=name, index=index, keep="left")


def _with_ordinal(
    select: exp.Select, query: Query, columns: dict[str, StoredColumn], *, name: str, index: int, keep: str = ""
) -> exp.Select:
    """Adds the place of the row's key among the declared keys, as column `ordinal_<index>`.

    A row whose key is not declared is dropped, or has no place there if `keep` is "left".
    """
    ordinal, contract = f"ordinal_{index}", query.contract
    if name in contract.bins:
        bins = contract.bins[name]
        place = places.place(bins, contract.columns[bins.column], columns[bins.column])
        return select.select(exp.alias_(place, ordinal), copy=False)
    table, declared = f"keys_{index}", contract.columns[name]
    keys = [values.compared(declared, key) for key in contract.keys(name) or ()]
    table_of_keys = exp.values([(_literal(key), _number(at)) for at, key in enumerate(keys)], table, ["key", ordinal])
    match = exp.EQ(this=values.key(declared, columns[name]), expression=exp.column("key", table=table))
    return select.join(table_of_keys, on=match, join_type=keep, copy=False).select(
        exp.column(ordinal, table=table), copy=False
    )


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


def _kept_values(query: Query, secret: bytes) -> exp.Select:
    """At most R values of a unit in a cell, each once, chosen before values of different units are compared."""
    own = exp.select("unit", "cell", "value").from_("source_rows").distinct().subquery("own")
    order = _template(_VALUE_RANK, key=_subkey(secret, "values"))
    ranked = exp.select("unit", "cell", "value", exp.alias_(order, "place")).from_(own).subquery("ordered")
    return exp.select("unit", "cell", "value").from_(ranked).where(_template(_KEPT, limit=_number(query.values)))


def _cells_of_values(query: Query, secret: bytes, *, table: str) -> exp.Select:
    """The values kept in `table`, in at most K cells of a unit, those that any other question would keep."""
    if query.groups == query.cells:
        return exp.select("cell", "value").from_(table)
    order = _template(_CELL_PLACE, key=_subkey(secret, "groups"))
    ranked = exp.select("cell", "value", exp.alias_(order, "place")).from_(table).subquery("ordered")
    return exp.select("cell", "value").from_(ranked).where(_template(_KEPT, limit=_number(query.groups)))


def _contributed() -> exp.Select:
    """How many rows each unit has in each cell, all of them."""
    return exp.select("unit", "cell", "COUNT(*) AS own").from_("source_rows").group_by("unit", "cell")


def _unit_numbers(query: Query) -> exp.Select:
    """The one number of each unit: its rows in the cell where it has the most, or its cells; at most the largest."""
    number = "MAX(own)" if query.statistic is Statistic.UNIT_ROWS else "COUNT(*)"
    value = _template(f"CAST(LEAST({number}, :most) AS BIGINT)", most=_number(query.candidates[-1]))
    return exp.select("unit", exp.alias_(value, "value")).from_("unit_cells").group_by("unit")


def _unit_cells(query: Query) -> exp.Select:
    """What each unit puts into each cell: its sum, its rows up to R, or one."""
    match query.statistic:
        case Statistic.SUM | Statistic.SUM_SQUARES:
            amount, table = _added(query), "kept_rows"
        case Statistic.COUNT:
            rows = _number(query.contract.unit.rows)
            amount, table = _template("CAST(LEAST(COUNT(*), :rows) AS DECIMAL(38, 0))", rows=rows), "source_rows"
        case Statistic.COUNT_UNITS | Statistic.SELECT_KEYS:
            amount, table = _template("CAST(1 AS DECIMAL(38, 0))"), "source_rows"
        case _:
            raise AssertionError(f"a {query.statistic} does not add up over units")
    return exp.select("unit", "cell", exp.alias_(amount, "amount")).from_(table).group_by("unit", "cell")


def _added(query: Query) -> exp.Expression:
    """What a unit's kept rows add up to in a cell."""
    numeric = query.contract.numeric(query.column or "")
    if numeric is None:
        raise AssertionError("a sum was planned over a column without bounds")
    centre = int(query.centre / numeric.lattice)
    if query.statistic is Statistic.SUM_SQUARES:
        return values.total_of_squares(centre=centre)
    return values.total(numeric, centre=centre)


def _kept_cells(query: Query, secret: bytes) -> exp.Select:
    """At most K cells of a unit, again in the order of a keyed hash; all of them where there are no more than K."""
    if query.groups == query.cells and not query.finds_keys:
        return exp.select("cell", "amount").from_("unit_cells")
    order = _template(_CELL_RANK, key=_subkey(secret, "groups"))
    ranked = exp.select("cell", "amount", exp.alias_(order, "place")).from_("unit_cells").subquery("ordered")
    return exp.select("cell", "amount").from_(ranked).where(_template(_KEPT, limit=_number(query.groups)))


def _subkey(secret: bytes, purpose: str) -> exp.Expression:
    """A key of its own for each choice, so that which rows are kept says nothing about which groups are."""
    return exp.Literal.string(hmac.new(secret, f"parco/bounding/{purpose}".encode(), hashlib.sha256).hexdigest())
