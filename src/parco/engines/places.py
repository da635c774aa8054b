"""The place of a row's value among declared bins, by exact comparisons; NULL or a number outside where it has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from parco.contract.bins import CalendarBins, EdgeBins, RangeBins
from parco.contract.columns import Column, DateColumn, DecimalColumn, IntegerColumn, NumericColumn
from parco.engines.source import Kind
from parco.engines.tree import StoredColumn, decimal, literal, number, template
from parco.engines.values import READ, read_text, ruled, whole

__all__ = ["as_number", "place"]

# A date that is no date has no parts: an infinity's are NULL.
_DAYS = "DATE_DIFF('day', CAST('1970-01-01' AS DATE), :day)"
_NUMBERS = {
    "day": f"{_DAYS} - :first",
    # Whole division goes towards zero, so that weeks before 1970 are moved up and back again.
    "week": f"({_DAYS} + 3 + 7000000000) // 7 - 1000000000 - :first",
    "month": "EXTRACT(YEAR FROM :day) * 12 + EXTRACT(MONTH FROM :day) - 1 - :first",
    "quarter": "EXTRACT(YEAR FROM :day) * 4 + EXTRACT(QUARTER FROM :day) - 1 - :first",
    "year": "EXTRACT(YEAR FROM :day) - :first",
}
_OFFSET = r":[0-9]{2}([.][0-9]+)?\s*(Z|z|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
_RANGE = (
    "CASE WHEN :x BETWEEN :first AND :last THEN (LEAST(GREATEST(:x, :first), :last) - :first) // :width"
    " WHEN NOT :x IS NULL THEN -1 END"
)


def place(bins: CalendarBins | EdgeBins | RangeBins, declared: Column, column: StoredColumn) -> exp.Expression:
    """For every row, the place of its value among the bins' keys, or NULL or a number that is no place."""
    match bins, declared:
        case CalendarBins(), DateColumn():
            day, first = _day(declared, column, bins.time_zone), number(bins.first_number)
            return exp.cast(template(_NUMBERS[bins.every], day=day, first=first), "BIGINT")
        case RangeBins(), IntegerColumn():
            ends = {"first": literal(bins.first), "last": literal(bins.last), "width": literal(bins.width)}
            return _ruled(declared, column, template(_RANGE, x=whole(column), **ends), bins.place)
        case EdgeBins(), IntegerColumn() | DecimalColumn():
            return _ruled(declared, column, _edges(bins, declared, column), bins.place)
    raise AssertionError("bins were planned over a column they do not fit")


def as_number(declared: Column, column: StoredColumn) -> StoredColumn:
    """The column as it is summed: a date is its number of days since 1970-01-01."""
    if not isinstance(declared, DateColumn):
        return column
    return StoredColumn(exp.cast(template(_DAYS, day=_day(declared, column, None)), "BIGINT"), Kind.INTEGER)


def _ruled(
    declared: NumericColumn, column: StoredColumn, read: exp.Expression, where: Callable[[Fraction], int]
) -> exp.Expression:
    return ruled(declared, column, read=read, constant=lambda value: literal(where(value)))


def _day(declared: DateColumn, column: StoredColumn, time_zone: str | None) -> exp.Expression:
    """The calendar day; a moment's is that of its time zone."""
    x, zone = column.expression, exp.Literal.string(time_zone or "")
    if column.kind is Kind.MOMENT:
        return _local_day(x, zone)
    if declared.formats is not None and column.kind in (Kind.UNTYPED, Kind.TEXT):
        return _written_day(x, declared.formats)
    day = template("TRY_CAST(:x AS DATE)", x=x)
    if time_zone is None or column.kind is not Kind.UNTYPED:
        return day
    moment = _local_day(template("TRY_CAST(:x AS TIMESTAMPTZ)", x=x), zone)
    has_offset = template("REGEXP_MATCHES(:x, :pattern)", x=x, pattern=exp.Literal.string(_OFFSET))
    return exp.Case(ifs=[exp.If(this=has_offset, true=moment)], default=day)


def _local_day(moment: exp.Expression, zone: exp.Expression) -> exp.Expression:
    # Some moments near the ends of time have no local one: TRY makes them NULL.
    local = exp.Anonymous(this="TIMEZONE", expressions=[zone.copy(), moment.copy()])
    return exp.Try(this=exp.cast(local, "DATE"))


def _written_day(x: exp.Expression, formats: Sequence[str]) -> exp.Expression:
    """The day by the first pattern that fits. Words such as "epoch" fit all of them: a day has digits."""
    read = [
        exp.Anonymous(this="TRY_STRPTIME", expressions=[x.copy(), exp.Literal.string(pattern)]) for pattern in formats
    ]
    first = exp.Coalesce(this=read[0], expressions=read[1:])
    digits = template("REGEXP_MATCHES(:x, '[0-9]')", x=x)
    return exp.Try(this=exp.cast(exp.Case(ifs=[exp.If(this=digits, true=first)]), "DATE"))


def _edges(bins: EdgeBins, declared: NumericColumn, column: StoredColumn) -> exp.Expression:
    """The place among edges, as decimals; doubles are compared with each edge's nearest double, which keeps order.

    What is too large for a decimal lies beyond all edges.
    """
    x = read_text(column)
    if column.kind is Kind.DOUBLE:
        return _search(x, [_double(edge) for edge in bins.edges], bins.places)
    read = template(READ, x=x)
    found = _search(read, [decimal(edge) for edge in bins.edges], bins.places)
    if isinstance(declared, IntegerColumn):
        # What is no whole number does not parse.
        found = template("CASE WHEN NOT :whole IS NULL THEN :found END", whole=whole(column), found=found)
    beyond = template(
        "CASE WHEN :x >= :high THEN :above WHEN :x < :low THEN :below END",
        x=template("TRY_CAST(:x AS DOUBLE)", x=x),
        high=_double(bins.edges[-1]),
        low=_double(bins.edges[0]),
        above=number(bins.places[-1]),
        below=number(bins.places[0]),
    )
    return template("CASE WHEN NOT :read IS NULL THEN :found ELSE :beyond END", read=read, found=found, beyond=beyond)


def _search(x: exp.Expression, edges: Sequence[exp.Expression], places: Sequence[int]) -> exp.Expression:
    """A tree of comparisons as deep as the logarithm of the number of edges."""
    if not edges:
        return literal(places[0])
    middle = len(edges) // 2
    left = _search(x, edges[:middle], places[: middle + 1])
    right = _search(x, edges[middle + 1 :], places[middle + 1 :])
    less = exp.LT(this=x.copy(), expression=edges[middle].copy())
    return exp.Case(ifs=[exp.If(this=less, true=left)], default=right)


def _double(value: Fraction) -> exp.Expression:
    """The double nearest to an edge; Python divides whole numbers with correct rounding."""
    return exp.cast(exp.Literal.string(repr(value.numerator / value.denominator)), "DOUBLE")
