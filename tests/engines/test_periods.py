"""With periods, rows and groups are bounded for each unit and period by themselves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from parco.contract.contract import Contract
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from tests.shop import contract_text

from . import reference
from .build import COLUMNS, SECRET, run
from .reference import Asked, Row
from .tables import KEYS, MONTHS, Visit, to_csv, to_parquet, visits


def contract(groups: int, rows: int) -> Contract:
    text = contract_text(columns=COLUMNS, groups=groups, rows=rows, unit="person")
    return Contract.parse(text.replace(f"rows = {rows}", f'rows = {rows}\nperiod = "month"'))


def month(visit: Visit) -> str | None:
    return None if visit.day is None else f"{visit.day:%Y-%m}"


def expected(made: list[Visit], query: Query, *, groups: int, rows: int) -> list[int]:
    """The rule of `reference`, on units that are pairs of unit and number of the period."""
    keys = tuple(query.periods if name == "month" else KEYS[name] for name in query.by)
    bounds = (Fraction(-10), Fraction(20), Fraction(1, 4)) if query.column else (Fraction(1),) * 3
    meant = Asked(query.statistic.value, keys, groups, rows, *bounds)
    own = []
    for visit in made:
        when = month(visit)
        if visit.person is None or when not in query.periods:
            continue
        labels: dict[str, Any] = {"month": when, "ward": visit.ward, "age": visit.age}
        value = visit.score if query.column else Fraction(1)
        unit = f"{visit.person}|{MONTHS.index(when)}"
        own.append(Row(unit, tuple(labels[name] for name in query.by), value))
    return reference.answer(meant, own, SECRET)


ASKED: list[tuple[str, str | None, tuple[str, ...], Any]] = [
    ("count", None, ("month", "ward"), None),
    ("count_units", None, ("age", "month", "ward"), None),
    ("sum", "score", ("month",), None),
    ("sum", "score", ("age", "month", "ward"), ("2024-05", "2024-02")),
    ("count", None, ("ward",), "2024-03"),
    ("sum", "score", (), "2024-01"),
    ("count_units", None, ("month", "ward"), ("2024-06",)),
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("typed", [False, True])
def test_the_rule_holds_for_each_unit_and_period(
    tmp_path: Path, asked: tuple[str, str | None, tuple[str, ...], Any], typed: bool
) -> None:
    statistic, column, by, period = asked
    made = visits(len(by), numbered=typed, doubles=False)
    path = (
        to_parquet(tmp_path / "a.parquet", made, numbered=True, doubles=False)
        if typed
        else to_csv(tmp_path / "a.csv", made)
    )
    query = Query.of(contract(1, 2), statistic, column=column, by=by, period=period)
    found = run(path, query)
    assert found == expected(made, query, groups=1, rows=2)
    assert found != expected(made, query, groups=99, rows=99) or statistic == "count_units"


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_taking_a_unit_out_of_one_period_moves_that_period_alone(
    tmp_path: Path, asked: tuple[str, str | None, tuple[str, ...], Any]
) -> None:
    """For every unit-period of a table: no cell of another period moves, and the distance is within the stated one."""
    statistic, column, by, period = asked
    made = visits(3, numbered=False, doubles=False)[:60]
    query = Query.of(contract(2, 2), statistic, column=column, by=by, period=period)
    whole, stated = run(to_csv(tmp_path / "a.csv", made), query), sensitivity(query)
    moved = 0
    for person, when in sorted({(visit.person or "", month(visit) or "") for visit in made})[:25]:
        rest = [visit for visit in made if (visit.person, month(visit)) != (person, when)]
        other = run(to_csv(tmp_path / "b.csv", rest), query)
        steps = [(a - b) * query.step for a, b in zip(whole, other, strict=True)]
        moved += any(steps)
        assert sum(abs(step) for step in steps) <= stated.l1
        assert sum(step**2 for step in steps) <= stated.l2_squared
        for label, step in zip(query.labels(), steps, strict=True):
            if "month" in by and label[by.index("month")] != when:
                assert step == 0
    assert moved
