"""C19: groups were merged after each person had been bounded in them, and the old bound was still believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.errors import QuestionError
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from tests.shop import contract_text

SECRET = bytes(32)
COLUMNS = """
[columns.group]
type = "integer"
lower = 0
upper = 99
keys = [{keys}]

[columns.day]
type = "date"

[bins.month]
column = "day"
every = "month"
first = "2024-01"
last = "2024-12"
"""


def counts(path: Path, contract: Contract, by: tuple[str, ...] = (), where: str | None = None) -> list[int]:
    query = Query.of(contract, "count", by=by, where=where)
    engine = DuckDBEngine(path)
    engine.check(contract, query.names)
    found = engine.run(query, secret=SECRET)
    assert sum(found) <= 2 * sensitivity(query).l1
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    rows = [f"{person},{group},2024-{group % 12 + 1:02d}-01" for person in (0, 1) for group in range(100)]
    path.write_text("\n".join(["customer,group,day", *rows, ""]))
    return path


def test_a_person_is_bounded_in_the_groups_that_are_published(table: Path) -> None:
    keys = ", ".join(map(str, range(100)))
    fine = Contract.parse(contract_text(groups=100, rows=1, columns=COLUMNS.format(keys=keys)))
    assert counts(table, fine, ("group",)) == [2] * 100
    assert sensitivity(Query.of(fine, "count", by="group")).l2_squared == 100
    # Put together, a person's hundred rows lie in one group, of which one row counts.
    assert counts(table, fine) == [2]
    assert sensitivity(Query.of(fine, "count")).l2_squared == 1
    # Months are groups of groups: bounded in months, not before.
    assert counts(table, fine, ("month",)) == [2] * 12
    assert sensitivity(Query.of(fine, "count", by="month")).l2_squared == 12


def test_a_condition_merges_nothing(table: Path) -> None:
    fine = Contract.parse(contract_text(groups=3, rows=2, columns=COLUMNS.format(keys="0, 1, 2, 3, 4")))
    for where in (None, "group < 50", "group >= 98 or month = '2024-01'"):
        assert counts(table, fine, (), where) == [4]
        assert sensitivity(Query.of(fine, "count", where=where)).l1 == 2


@pytest.mark.parametrize("by", ["group + 1", "group / 10", "0", "cast(group as int)", "case group when 1 then 0 end"])
def test_a_group_made_by_an_expression_is_refused(by: str) -> None:
    fine = Contract.parse(contract_text(columns=COLUMNS.format(keys="0, 1")))
    with pytest.raises(QuestionError, match="no declared keys"):
        Query.of(fine, "count", by=by)
