"""How far one unit can move an answer: from contract and question alone (docs/mathematics.md, "Sensitivity")."""

from __future__ import annotations

from fractions import Fraction

from parco.privacy.sensitivity import Sensitivity
from parco.queries.query import Query, Statistic

__all__ = ["sensitivity"]


def sensitivity(query: Query) -> Sensitivity:
    """For every question, returns the L1 and squared L2 distance of exact answers on neighbouring tables.

    Under add-or-remove a unit is in K = min(groups, G) cells and moves each by at most B: R rows, 1 unit, R values of
    magnitude m, or one sum of magnitude m where the contract clamps by the unit. So L1 = K B and L2^2 = K B^2, in the
    statistic's own units. The bounds hold because the engine enforces them before it aggregates.
    """
    cell = _per_cell(query)
    return Sensitivity(l1=query.groups * cell, l2_squared=query.groups * cell**2)


def _per_cell(query: Query) -> Fraction:
    rows = query.contract.unit.rows
    match query.statistic:
        case Statistic.COUNT_UNITS:
            return Fraction(1)
        case Statistic.COUNT:
            return Fraction(rows)
        case Statistic.SUM:
            numeric = query.contract.numeric(query.column or "")
            if numeric is None:
                raise AssertionError("a sum was planned over a column without bounds")
            # What a unit adds up to in a cell is clamped as a whole, however many rows it is made of.
            return numeric.magnitude if numeric.clamp == "unit" else rows * numeric.magnitude
