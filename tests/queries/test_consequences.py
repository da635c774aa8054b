"""What a contract leads to, told before anything is read."""

from __future__ import annotations

from fractions import Fraction

import pytest

from parco.contract.contract import Contract
from parco.measure import Measure, units_floor
from parco.privacy import conversion
from parco.queries import consequences
from tests.shop import contract_text

GDP = 'epsilon = "1"\ndelta = "1e-6"'


def contract(budget: str = GDP, **changes: int) -> Contract:
    return Contract.parse(contract_text(budget=budget, **changes))  # type: ignore[arg-type]


def test_the_words_name_every_limit_the_contract_sets() -> None:
    words = " ".join(consequences.in_words(contract(groups=7, rows=3)))
    for part in (
        "more than 7 groups",
        "more than 3 rows",
        "items outside [0, 10]",
        "dollars outside [0, 100]",
        "5 % of",
    ):
        assert part in words, part
    assert "at most 3 rows in all" in words
    assert "rows in all" not in " ".join(consequences.in_words(contract(groups=2, rows=3)))


@pytest.mark.parametrize(
    "budget",
    [GDP, 'measure = "pure"\nepsilon = "1"', 'measure = "zcdp"\nrho = "0.1"\ndelta = "1e-6"'],
)
def test_each_kind_of_question_is_priced_at_the_default_share(budget: str) -> None:
    made = contract(budget)
    plans = list(consequences.sample_plans(made))
    share = units_floor(made.budget.default_share * made.budget.cap.value)
    assert {str(plan.query) for plan in plans} >= {
        "count", "count_units", "count by month", "sum items", "sum dollars by channel",
    }  # fmt: skip
    for plan in plans:
        assert share * (1 - Fraction(1, 10**9)) <= plan.cost.units <= share
        assert plan.half_width > 0


def test_a_group_called_like_a_column_of_an_answer_is_in_no_sample() -> None:
    text = contract_text(budget=GDP).replace("columns.channel", "columns.value")
    asked = {str(plan.query) for plan in consequences.sample_plans(Contract.parse(text))}
    assert "count by month" in asked
    assert not any("by value" in question for question in asked)


def test_the_advised_order_reads_better_than_its_neighbours_and_the_default() -> None:
    made = contract()
    best = consequences.best_order(made)
    assert best is not None
    rho, delta = made.budget.cap.value / 2, made.budget.delta

    def epsilon(order: int) -> Fraction:
        return conversion.epsilon_upper(Measure.renyi(Fraction(order)), order * rho, delta)

    assert epsilon(best) <= min(epsilon(best // 2), epsilon(best * 2), epsilon(8))


def test_where_the_order_plays_no_part_none_is_advised() -> None:
    assert consequences.best_order(contract('measure = "pure"\nepsilon = "1"')) is None
    renyi = 'measure = "renyi"\norder = 8\nepsilon_at_order = "0.5"\ndelta = "1e-6"'
    assert consequences.best_order(contract(renyi)) is None
