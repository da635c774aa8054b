"""How far one unit can move an answer: from contract and question alone (docs/mathematics.md, "Sensitivity")."""

from __future__ import annotations

from fractions import Fraction

from parco.privacy.sensitivity import Sensitivity
from parco.queries.query import Query, Statistic

__all__ = ["reach", "sensitivity"]


def sensitivity(query: Query) -> Sensitivity:
    """For every question, returns the L1 and squared L2 distance of exact answers on neighbouring tables.

    A unit is in at most K = min(groups, G) of the G cells and adds to each an amount between low <= 0 and high >= 0.
    Under add-or-remove K amounts come or go. Under replace two such units may meet: in `o` cells both are, and what
    they add may differ by high - low; in 2(K - o) cells one of them is. Where the contract clamps by the unit, what it
    adds is one sum within the bounds. Of a quantile, it is the scores of one value that are told apart, in rows. In
    the statistic's own units. The bounds hold because the engine enforces them
    before it aggregates, and some pair of tables reaches each.
    """
    if query.statistic is Statistic.QUANTILE or query.of_units:
        return _of_scores(query)
    if query.statistic is Statistic.TOP:
        return _of_counts(query)
    if query.statistic in (Statistic.SCORE, Statistic.CHECKS):
        return _of_units(query)
    low, high = _per_cell(query)
    groups, most = query.groups, max(-low, high)
    if query.contract.unit.neighbours == "add-or-remove":
        return Sensitivity(l1=groups * most, l2_squared=groups * most**2)
    # Both are linear in o, so that the ends of its range decide.
    # Keys that are not declared are never all taken: two units may share none.
    meetings = (0 if query.finds_keys else max(0, 2 * groups - query.cells), groups)
    return Sensitivity(
        l1=max(o * (high - low) + 2 * (groups - o) * most for o in meetings),
        l2_squared=max(o * (high - low) ** 2 + 2 * (groups - o) * most**2 for o in meetings),
    )


def reach(query: Query) -> tuple[int, Fraction] | None:
    """For every sum or count, (K, B) such that a unit moves at most K cells, each by at most B, and L1 = K B and
    L2^2 = K B^2; None where two units that meet in a cell move it by more than one alone.

    Under replace that is where amounts have both signs. B in the statistic's own units.
    """
    low, high = _per_cell(query)
    if query.contract.unit.neighbours == "add-or-remove":
        return query.groups, max(-low, high)
    if low < 0 < high:
        return None
    return 2 * query.groups - (0 if query.finds_keys else max(0, 2 * query.groups - query.cells)), high - low


def _of_scores(query: Query) -> Sensitivity:
    """How far a unit moves the scores of one candidate, in all groups together (docs/mathematics.md, "Quantiles").

    A row that comes moves q n against the ranks of a candidate by q one way or 1 - q the other; one that is replaced
    by 1 at most. Each of the groups that a unit can reach has a mechanism of its own.
    """
    share, rows, groups = query.at or Fraction(0), query.contract.unit.rows, query.groups
    if query.of_units:
        # Each unit has one number, and there is one group.
        rows, groups = 1, 1
    if query.contract.unit.neighbours == "add-or-remove":
        each = rows * max(share, 1 - share)
    else:
        each, groups = Fraction(rows), min(2 * groups, query.published)
    return Sensitivity(l1=groups * each, l2_squared=groups * each**2)


def _of_counts(query: Query) -> Sensitivity:
    """The same of the counts by which k keys are chosen, one after the other (docs/mathematics.md, "Top keys").

    A choice loses (largest - least change of a score)/b. A unit that comes changes all counts upwards, by at most its
    rows: half of them stands for a score's change, whose double is what a choice is charged for. Replaced by another,
    some go up and some go down.
    """
    choices, rows = query.k or 0, Fraction(query.contract.unit.rows)
    each = rows / 2 if query.contract.unit.neighbours == "add-or-remove" else rows
    return Sensitivity(l1=choices * each, l2_squared=choices * each**2)


def _of_units(query: Query) -> Sensitivity:
    """How far a unit moves a score, the sum over the units of den c - num: c is 1 where the condition holds for it.

    num/den is the share asked for (docs/mathematics.md, "Stopping on a private validation set").
    """
    num, den = (query.at or Fraction(0)).as_integer_ratio()
    each = Fraction(den if query.contract.unit.neighbours == "replace" else max(num, den - num))
    return Sensitivity(l1=each, l2_squared=each**2)


def _per_cell(query: Query) -> tuple[Fraction, Fraction]:
    """The least and the most that one unit can add to a cell; nothing at all, 0, lies between them."""
    rows = query.contract.unit.rows
    match query.statistic:
        case Statistic.COUNT_UNITS | Statistic.SELECT_KEYS:
            return Fraction(0), Fraction(1)
        case Statistic.COUNT:
            return Fraction(0), Fraction(rows)
        case Statistic.SUM:
            numeric = query.contract.numeric(query.column or "")
            if numeric is None:
                raise AssertionError("a sum was planned over a column without bounds")
            low, high = numeric.lower - query.centre, numeric.upper - query.centre
            # What a unit adds up to in a cell may be clamped as a whole, however many rows it is made of.
            times = 1 if numeric.clamp == "unit" else rows
            return times * min(low, Fraction(0)), times * max(high, Fraction(0))
        case Statistic.SUM_SQUARES:
            numeric = query.contract.numeric(query.column or "")
            if numeric is None:
                raise AssertionError("squares were planned over a column without bounds")
            # The larger of both squares: with bounds of different signs neither end alone decides.
            low, high = numeric.lower - query.centre, numeric.upper - query.centre
            return Fraction(0), rows * max(low**2, high**2)
        case Statistic.QUANTILE | Statistic.TOP | Statistic.UNIT_ROWS | Statistic.UNIT_GROUPS:
            raise AssertionError("the scores of a choice are not what its cells add up to")
        case Statistic.SCORE | Statistic.CHECKS:
            raise AssertionError("a score is no amount that a unit adds to a cell")
        case Statistic.COUNT_DISTINCT:
            # The values that only this unit holds: none to all of its own.
            return Fraction(0), Fraction(query.values)
