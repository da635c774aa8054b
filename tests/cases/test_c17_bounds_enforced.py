"""C17: a stated bound is enforced, not believed, and groups without rows are not missing from the answer."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.mechanisms.mechanism import TwoSidedGeometric
from parco.privacy.sensitivity import Sensitivity
from parco.queries.plan import Plan, Spend
from parco.queries.query import Query
from tests.shop import contract_text, write_csv

SECRET = b"c17" * 11

# Persons by number of rows, and the sum of their clamped incomes: from the bounded counts and sums below.
PERSONS = {1: (418, 9_545_890), 2: (309, 9_080_384), 3: (180, 6_559_470), 4: (93, 3_742_550)}
MARRIED = {1: 211, 2: 183, 3: 100, 4: 55}
COUNTS = {1: 1000, 2: 1582, 3: 1855, 4: 1948}
SUMS = {1: 28_928_294, 2: 48_310_698, 3: 58_612_718, 4: 62_355_268}

INCOME = """
[columns.income]
type = "integer"
lower = 0
upper = 100000

[columns.married]
type = "integer"
lower = 0
upper = 1
keys = [0, 1]
"""

VISITORS = {1: 440, 2: 507, 3: 281, 4: 109, 5: 21, 6: 2}
BY_DAY = {1: 300, 2: 300, 3: 400, 4: 400, 5: 450, 6: 500, 7: 500}
TOTALS = {1: 1360, 2: 2280, 3: 2693, 4: 2825, 5: 2848, 6: 2850}
DAY = f'[columns.day]\ntype = "integer"\nlower = 0\nupper = 0\nkeys = {list(range(9))}\n'


def contract(columns: str, *, groups: int, rows: int, unit: str = "person") -> Contract:
    return Contract.parse(contract_text(columns=columns, groups=groups, rows=rows, unit=unit))


def exact(path: Path, query: Query, secret: bytes = SECRET) -> list[int]:
    engine = DuckDBEngine(path)
    engine.check(query.contract, [*query.by, *([] if query.column is None else [query.column])])
    return engine.run(query, secret=secret)


def incomes(number: int, total: int) -> list[int]:
    """So many incomes whose clamped values add up to the total; some are above the bound, one below."""
    rich = 5
    rest = number - rich - 1
    share, more = divmod(total - rich * 100_000, rest)
    return [250_000, 100_001, 100_000, 999_999, 10**12, -40_000, *([share] * (rest - more)), *([share + 1] * more)]


@pytest.fixture(scope="module")
def persons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1000 persons, the rows of one person identical."""
    rows = []
    for times, (number, total) in PERSONS.items():
        for place, income in enumerate(incomes(number, total)):
            rows += [(f"{times}-{place}", income, int(place < MARRIED[times]))] * times
    return write_csv(tmp_path_factory.mktemp("persons") / "persons.csv", rows, ("person", "income", "married"))


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1360 visitors on seven days, at most one row a visitor and day, and some rows on a ninth day."""
    left, rows = Counter(BY_DAY), []
    visitors = [days for days, number in VISITORS.items() for _ in range(number)]
    for visitor, days in sorted(enumerate(visitors), key=lambda pair: -pair[1]):
        for day, _ in left.most_common(days):
            left[day] -= 1
            rows.append((visitor, day))
    assert set(left.values()) == {0}
    rows += [(visitor, 9) for visitor in range(100)]
    return write_csv(tmp_path_factory.mktemp("week") / "week.csv", rows, ("visitor", "day"))


@pytest.mark.parametrize("rows", COUNTS)
def test_a_person_counts_with_at_most_the_declared_rows(persons: Path, rows: int) -> None:
    agreed = contract(INCOME, groups=1, rows=rows)
    assert exact(persons, Query.of(agreed, "count")) == [COUNTS[rows]]
    assert exact(persons, Query.of(agreed, "sum", column="income")) == [SUMS[rows]]
    assert exact(persons, Query.of(agreed, "count_units")) == [1000]


def test_more_rows_than_anybody_has_change_nothing(persons: Path) -> None:
    agreed = contract(INCOME, groups=1, rows=1000)
    assert exact(persons, Query.of(agreed, "count")) == [COUNTS[4]]
    assert exact(persons, Query.of(agreed, "sum", column="income")) == [SUMS[4]]


def test_persons_and_rows_by_group(persons: Path) -> None:
    assert exact(persons, Query.of(contract(INCOME, groups=1, rows=1), "count_units", by="married")) == [451, 549]
    assert exact(persons, Query.of(contract(INCOME, groups=1, rows=4), "count", by="married")) == [851, 1097]


@pytest.mark.parametrize("rows", COUNTS)
def test_the_noise_is_that_of_the_bound(rows: int) -> None:
    agreed = contract(INCOME, groups=1, rows=rows)
    for statistic, column, scale in (
        ("count", None, rows),
        ("sum", "income", 100_000 * rows),
        ("count_units", None, 1),
    ):
        plan = Plan.of(Query.of(agreed, statistic, column=column), version="1", spend=Spend.of(cost="1"))
        assert plan.mechanism == TwoSidedGeometric(Fraction(scale), plan.mechanism.lattice)


@pytest.mark.parametrize("groups", TOTALS)
def test_a_visitor_counts_on_at_most_the_declared_days(week: Path, groups: int) -> None:
    query = Query.of(contract(DAY, groups=groups, rows=1, unit="visitor"), "count", by="day")
    found = exact(week, query)
    assert sum(found) == TOTALS[groups]
    # Days 0 and 8 are declared and have no rows: they are there. Day 9 is not declared: it took nobody's place.
    assert (len(found), found[0], found[8]) == (9, 0, 0)
    plan = Plan.of(query, version="1", spend=Spend.of(cost="1"))
    assert plan.sensitivity == Sensitivity(l1=Fraction(groups), l2_squared=Fraction(groups))


def test_without_a_bound_that_bites_each_day_is_whole(week: Path) -> None:
    query = Query.of(contract(DAY, groups=9, rows=1, unit="visitor"), "count", by="day")
    assert exact(week, query) == [0, *BY_DAY.values(), 0]


def test_the_small_twin(tmp_path: Path) -> None:
    rows = [(1, 10_000)] * 3 + [(2, 50_000)] * 2 + [(3, 120_000)] + [(4, 0)] * 4
    path = write_csv(tmp_path / "twin.csv", rows, ("person", "income"))
    one, all_rows = contract(INCOME, groups=1, rows=1), contract(INCOME, groups=1, rows=10)
    assert exact(path, Query.of(one, "count")) == [4]
    assert exact(path, Query.of(one, "sum", column="income")) == [160_000]
    assert exact(path, Query.of(all_rows, "count")) == [10]
    assert exact(path, Query.of(all_rows, "sum", column="income")) == [230_000]


def test_each_row_is_clamped_and_then_some_are_kept(tmp_path: Path) -> None:
    """The form of the rule: rows 1 to 5, clamped to [1, 3], three kept: 6 to 9, whatever the secret."""
    columns = '[columns.x]\ntype = "integer"\nlower = 1\nupper = 3\n'
    path = write_csv(tmp_path / "five.csv", [(1, value) for value in range(1, 6)], ("person", "x"))
    query = Query.of(contract(columns, groups=1, rows=3), "sum", column="x")
    found = {exact(path, query, secret=bytes([number]) * 32)[0] for number in range(10)}
    # Clamped: 1, 2, 3, 3, 3. Three of them add up to 6, 7, 8 or 9; 7 and 8 are the likeliest.
    assert found <= {6, 7, 8, 9}
    assert len(found) > 1


def test_a_stated_bound_holds_for_any_table(tmp_path: Path) -> None:
    """The class of fault: one person with everything, who must not count for more than the contract says."""
    rows = [("hoarder", day % 12, 10**9) for day in range(20_000)] + [("other", 3, 5)]
    path = write_csv(tmp_path / "all.csv", rows, ("visitor", "day", "income"))
    columns = DAY + INCOME
    for groups, limit in ((1, 1), (2, 3), (9, 100)):
        agreed = contract(columns, groups=groups, rows=limit, unit="visitor")
        assert sum(exact(path, Query.of(agreed, "count", by="day"))) == groups * limit + 1
        assert sum(exact(path, Query.of(agreed, "count_units", by="day"))) == groups + 1
        assert sum(exact(path, Query.of(agreed, "sum", column="income", by="day"))) == groups * limit * 100_000 + 5
        assert (
            Fraction(groups * limit)
            == Plan.of(Query.of(agreed, "count", by="day"), version="1", spend=Spend.of(cost="1")).sensitivity.l1
        )
