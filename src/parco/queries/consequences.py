"""What a contract leads to, from the contract alone: whom it protects, what bounding takes, what questions would cost.

For whoever writes one: no file is read, no ledger touched, nothing spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from parco.contract.contract import Contract
from parco.measure import Measure, exact_text, significant_text
from parco.privacy import conversion
from parco.queries.plan import Plan, Spend
from parco.queries.query import ANSWER_COLUMNS, Query, Statistic

__all__ = ["best_order", "in_words", "sample_plans"]

# One grouping of each size class shows the prices; all pairs of groupings would only fill the screen.
_GROUPINGS_SHOWN = 4


def in_words(contract: Contract) -> list[str]:
    """What is protected, what a heavy unit loses, what is not protected: a sentence each."""
    unit, budget = contract.unit, contract.budget
    heavy = (
        f"A {unit.column} with more than {unit.groups} groups in a question, or more than {unit.rows} rows in one of "
        "them, counts with that many, chosen by a keyed hash: it loses weight, never protection. Totals are then too "
        "low; the interval does not cover that."
    )
    alone = (
        f"Without grouping there is one group, so a {unit.column} counts with at most {unit.rows} rows in all."
        if unit.rows < unit.groups
        else ""
    )
    clamped = [
        f"{name} outside [{exact_text(column.lower)}, {exact_text(column.upper)}]"
        for name in contract.columns
        if (column := contract.numeric(name)) is not None
    ]
    clamp = f"Clamped to its bound before it is summed: {'; '.join(clamped)}." if clamped else ""
    share = significant_text(100 * budget.default_share, 3, up=True)
    spend = f"A question that names neither cost nor error spends {share} % of the budget."
    public = "Public whatever the data say: this contract, its keys and bounds, what is asked and when."
    return [words for words in (heavy, alone, clamp, spend, public) if words]


def sample_plans(contract: Contract) -> Iterator[Plan]:
    """One question of each kind at the default share: ungrouped, then by the first groupings, then each sum."""
    spend = Spend()
    # Where a unit is protected in each period, a question is asked by period.
    period = () if contract.unit.period is None else (contract.unit.period,)
    groupings: list[tuple[str, ...]] = [
        (),
        *((name,) for name in contract.groupings[:_GROUPINGS_SHOWN] if name not in period),
    ]
    bounded = {name: contract.numeric(name) for name in contract.columns}
    sums = [name for name, numeric in bounded.items() if numeric is not None and numeric.magnitude]
    asked: list[tuple[Statistic, str | None]] = [(Statistic.COUNT_UNITS, None), (Statistic.COUNT, None)]
    asked += [(Statistic.SUM, name) for name in sums]
    for statistic, column in asked:
        for by in groupings:
            names = tuple(dict.fromkeys((*by, *period)))
            if set(names) & set(ANSWER_COLUMNS):
                continue
            query = Query.of(contract, statistic, column=column, by=names)
            yield Plan.of(query, version=contract.data.version, spend=spend)


def best_order(contract: Contract) -> int | None:
    """The whole receipt order at which a fully spent budget reads best, or None where order plays no part.

    A plain search over orders: each gives a valid claim, so a rough best is good enough to advise.
    """
    budget = contract.budget
    if budget.measure == Measure.PURE or budget.order is not None:
        return None
    total, delta = budget.cap.value, budget.delta_for_conversion
    rho = total / 2 if budget.measure == Measure.GDP else total
    orders = sorted({2, 3, 4, 5, 6, 8, *(round(1.25**step) for step in range(10, 60))})

    def epsilon(order: int) -> Fraction:
        return conversion.epsilon_upper(Measure.renyi(Fraction(order)), order * rho, delta)

    return min(orders, key=epsilon)
