"""Which periods a question touches, what it is bounded by, and how it reads."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import pytest

from parco.contract.contract import Contract
from parco.errors import QuestionError
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from tests.contract.document import parse

MONTHS = tuple(f"2024-{month:02d}" for month in range(1, 7))


def contract(groups: int = 3, rows: int = 2) -> Contract:
    limits = (("groups = 3", f"groups = {groups}"), ("rows = 2", f'rows = {rows}\nperiod = "month"'))
    return parse(*limits)


def test_grouped_by_the_period_it_touches_all_or_those_named() -> None:
    every = Query.of(contract(), "count", by="month")
    assert (every.periods, every.accounts, every.cells) == (MONTHS, MONTHS, 6)
    assert Query.of(contract(), "count", by="month", period=MONTHS[::-1]) == every
    two = Query.of(contract(), "count", by=["month", "ward"], period=["2024-05", "2024-02"])
    assert two.accounts == ("2024-02", "2024-05")
    assert list(two.labels()) == list(itertools.product(("2024-02", "2024-05"), ("north", "south")))
    assert str(two) == "count by month, ward in 2024-02, 2024-05"


def test_ungrouped_it_names_one() -> None:
    one = Query.of(contract(), "sum", column="cost", period="2024-03")
    assert (one.periods, one.cells) == (("2024-03",), 1)
    assert str(one) == "sum cost in 2024-03"
    with pytest.raises(QuestionError, match="group by month, or name one"):
        Query.of(contract(), "count", by="ward")
    with pytest.raises(QuestionError, match="grouped by month"):
        Query.of(contract(), "count", by="ward", period=["2024-01", "2024-02"])


@pytest.mark.parametrize("period", ["", "2024-07", "2024", [], ["2024-01", "2024-01"], ["2024-01", 1], 1, [[]], {}])
def test_other_periods_are_refused(period: Any) -> None:
    with pytest.raises(QuestionError, match="2024-01 to 2024-06"):
        Query.of(contract(), "count", by="month", period=period)


def test_without_periods_there_is_nothing_to_name() -> None:
    with pytest.raises(QuestionError, match="leave out period"):
        Query.of(parse(), "count", by="month", period="2024-01")
    assert Query.of(parse(), "count", by="month").periods == ()


def test_the_text_says_what_is_protected_and_which_periods() -> None:
    texts = {
        Query.of(contract(), "count", by="month").question("1"),
        Query.of(contract(), "count", by="month", period="2024-01").question("1"),
        Query.of(contract(), "count", period="2024-01").question("1"),
        Query.of(contract(), "count", period="2024-02").question("1"),
        Query.of(parse(), "count", by="month").question("1"),
    }
    assert len(texts) == 5
    record = json.loads(Query.of(contract(), "count", by="month").question("1"))
    assert record["period"]["keys"] == list(MONTHS)
    assert record["period"]["column"] == {"type": "date"}


def test_it_needs_the_periods_column_even_where_it_is_no_grouping() -> None:
    assert Query.of(contract(), "sum", column="cost", by="ward", period="2024-01").names == ("ward", "month", "cost")


@pytest.mark.parametrize(
    ("by", "period", "groups", "limits"),
    [
        ("month", None, 1, "one patient in one month counts with at most 2 of its rows in a group, in all"),
        (("month", "ward"), None, 2, "in at most 2 of 2 groups"),
        (("month", "ward", "age"), None, 3, "in at most 3 of 6 groups"),
        (("ward", "age"), "2024-01", 3, "in at most 3 of 6 groups"),
        ((), "2024-01", 1, "one patient in one month counts with at most 2 of its rows in all"),
    ],
)
def test_a_unit_is_bounded_within_its_period(by: Any, period: Any, groups: int, limits: str) -> None:
    query = Query.of(contract(), "count", by=by, period=period)
    assert query.groups == groups
    assert query.limits.endswith(limits)
    distance = sensitivity(query)
    assert distance.l1 == groups * 2
    assert distance.l2_squared == groups * 4


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_the_distance_is_that_of_the_worst_unit_in_one_period(groups: int, rows: int) -> None:
    """Every table of one unit-period, and the sum of its squares for a unit in all periods."""
    query = Query.of(contract(groups, rows), "count", by=["month", "ward"])
    stated = sensitivity(query)
    vectors = [
        amounts
        for amounts in itertools.product(range(rows + 1), repeat=2)
        if sum(1 for amount in amounts if amount) <= groups
    ]
    assert stated.l1 == max(map(sum, vectors))
    assert stated.l2_squared == max(sum(amount**2 for amount in vector) for vector in vectors)
    # Cells of other periods are other cells: over six periods the squares add up, and so does any additive cost.
    everywhere = [sum(amount**2 for amount in vector) * len(MONTHS) for vector in vectors]
    assert max(everywhere) == len(MONTHS) * stated.l2_squared == Fraction(6) * stated.l2_squared
