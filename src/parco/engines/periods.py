"""The protected unit of a contract with periods, in SQL: the unit's text and the number of its row's period.

From here on "unit" means one unit in one period: its rows and groups are chosen and bounded by themselves. Rows outside
the asked periods are gone before that.
"""

from __future__ import annotations

from sqlglot import exp

from parco.queries.query import Query

__all__ = ["in_periods", "period_index", "place_of_period", "unit_in_period"]


def period_index(query: Query) -> int | None:
    """Which `ordinal_<index>` holds the period: its grouping's, or one beyond all groupings; None without periods."""
    period = query.contract.unit.period
    if period is None:
        return None
    return query.by.index(period) if period in query.by else len(query.by)


def unit_in_period(index: int) -> exp.Expression:
    """Unit and period as one text. The period comes last and is all digits, so that two pairs never share a text."""
    pair: exp.Expression = exp.maybe_parse(
        f"CONCAT_WS('|', declared.unit, CAST(ordinal_{index} AS TEXT))", dialect="duckdb"
    )
    return pair


def in_periods(query: Query, index: int) -> exp.Expression:
    """Holds for the rows of the asked periods."""
    return exp.In(this=exp.column(f"ordinal_{index}"), expressions=[_number(ordinal) for ordinal in _ordinals(query)])


def place_of_period(query: Query, index: int) -> exp.Expression:
    """The place of a row's period among those asked."""
    case = exp.Case(this=exp.column(f"ordinal_{index}"))
    for place, ordinal in enumerate(_ordinals(query)):
        case = case.when(_number(ordinal), _number(place))
    return case


def _ordinals(query: Query) -> list[int]:
    every = query.contract.accounts
    return [every.index(period) for period in query.periods]


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)
