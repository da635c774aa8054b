"""Suggested bounds end to end: what they are, that each is a line of its own, and that they change no contract."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.session.bounds import BoundsAnswer
from tests.session.test_mean import spent
from tests.shop import COLUMNS, contract_text, open_shop

RICH = 'measure = "pure"\nepsilon = "9000"'
DAYS = COLUMNS.replace('type = "date"', 'type = "date"\nlower = "2024-01-01"\nupper = "2024-12-31"')


def sales(units: int) -> list[tuple[str, ...]]:
    """Unit u buys for u + 1 dollars, in the first month u % 3 + 1 times, and once more in the second if u is odd."""
    months = [(unit, "2024-01") for unit in range(units) for _ in range(unit % 3 + 1)]
    months += [(unit, "2024-02") for unit in range(1, units, 2)]
    return [(str(unit), f"{month}-05", "1", str(unit + 1), "web") for unit, month in months]


def suggested(release: parco.Release[BoundsAnswer]) -> dict[str, Fraction]:
    return {row.keys[0]: row.value for row in release.value}


def test_they_leave_the_share_that_was_asked_as_it_is(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, purchases=sales(60), budget=RICH, groups=4, rows=9)
    with parco.Session(contract) as session:
        most = suggested(session.suggest_bounds("dollars", by="month", cover="0.9", cost="4000"))
        assert most == {"lower": 4, "upper": 58, "rows": 3, "groups": 2}
        # Two thirds have at most two rows in a month, half are in one month only.
        half = suggested(session.suggest_bounds(by="month", cover="0.45", cost="4000"))
        assert half == {"rows": 2, "groups": 1}
        # Without grouping all rows of a unit are in one group, and there is no other.
        assert suggested(session.suggest_bounds(cover="0.99", cost="900"))["rows"] == 4


def test_each_is_a_line_of_its_own_at_an_equal_part_of_the_cost(tmp_path: Path) -> None:
    with parco.Session(open_shop(tmp_path, purchases=sales(9))) as session:
        plan = session.plan.suggest_bounds("dollars", by="month", cost="0.4")
        release = session.suggest_bounds("dollars", by="month", cost="0.4")
        assert [str(part.query) for part in plan.parts] == [
            "quantile dollars at 0.01",
            "quantile dollars at 0.99",
            "unit_rows at 0.98 by month",
            "unit_groups at 0.98 by month",
        ]
        assert spent(session) == plan.cost.value == release.cost.value
        assert all(0 <= Fraction(1, 10) - part.cost.value < Fraction(1, 10**10) for part in plan.parts)
        assert [row.cells for row in session.history()][1:] == [1] * 4
        assert "four parts" in str(plan)
        assert release.value.rank_errors == tuple(part.half_width for part in plan.parts)
        # What is stored is free: all of it again, or one of it by its own name.
        assert session.suggest_bounds("dollars", by="month").value == release.value
        assert session.plan.suggest_bounds("dollars", by="month").repeat
        assert session.quantile("dollars", at=["0.01", "0.99"]).repeat
        assert session.release([parco.Ask("suggest_bounds", "dollars", by="month")])[0].repeat
        assert spent(session) == plan.cost.value


def test_nothing_changes_until_the_contract_is_revised(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, purchases=sales(60), budget=RICH, groups=4, rows=9)
    with parco.Session(contract) as session:
        before = session.contract.text
        release = session.suggest_bounds("dollars", by="month", cover="0.9", cost="4000")
        assert session.contract.text == before
        assert parco.Contract.read(contract.folder / "contract.toml").text == before
    written = tomllib.loads(release.value.toml)
    assert written == {"unit": {"groups": 2, "rows": 3}, "columns": {"dollars": {"lower": "4", "upper": "58"}}}
    assert release.value.toml in release.value.promise
    assert "parco revise" in release.value.promise
    columns = COLUMNS.replace('lower = "0"\nupper = "100"', 'lower = "4"\nupper = "58"')
    text = contract_text(columns=columns, budget=RICH, **written["unit"])
    (contract.folder / "contract.toml").write_text(text, "utf-8")
    parco.revise(revised := parco.Contract.read(contract.folder / "contract.toml"), reason="bounds as suggested")
    with parco.Session(revised) as session:
        assert not session.plan.sum("dollars", by="month", cost="1").repeat
        assert session.plan.sum("dollars", by="month", cost="1").sensitivity.l1 == 2 * 3 * 58


def test_bounds_of_days_are_written_as_days_and_odd_names_in_quotes(tmp_path: Path) -> None:
    contract = open_shop(tmp_path / "a", purchases=sales(60), budget=RICH, rows=9, columns=DAYS)
    with parco.Session(contract) as session:
        release = session.suggest_bounds("date", cost="8000")
    days = tomllib.loads(release.value.toml)["columns"]["date"]
    assert days == {"lower": "2024-01-05", "upper": "2024-02-05"}
    odd = '[columns."it\'s \\"x\\" \\u00e9"]\ntype = "integer"\nlower = 0\nupper = 9\n'
    contract = open_shop(tmp_path / "b", budget=RICH, columns=odd)
    name = next(iter(contract.columns))
    header = "customer," + '"it\'s ""x"" \u00e9"\n'
    (tmp_path / "b" / "purchases.csv").write_text(header + "1,3\n", "utf-8")
    with parco.Session(contract) as session:
        assert name in tomllib.loads(session.suggest_bounds(name, cost="8000").value.toml)["columns"]


@pytest.mark.parametrize(
    "rows", [[], sales(1), [("", "x", "y", "z", "w")], [("1", "2024-01-05", "1", "1e99", "web")] * 5]
)
def test_any_table_gives_the_same_form(tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
    with parco.Session(open_shop(tmp_path, purchases=rows)) as session:
        found = suggested(session.suggest_bounds("dollars", by="month", cost="0.1"))
    assert list(found) == ["lower", "upper", "rows", "groups"]
    assert 0 <= found["lower"] <= found["upper"] <= 100
    assert 1 <= found["rows"] <= 10_000
    assert 1 <= found["groups"] <= 4


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_a_unit_moves_a_rank_by_one_unit_at_most(neighbours: str) -> None:
    text = contract_text(groups=3, rows=7).replace('"add-or-remove"', f'"{neighbours}"')
    contract = parco.Contract.parse(text)
    from parco.queries.sensitivity import sensitivity

    for statistic in ("unit_rows", "unit_groups"):
        distance = sensitivity(parco.Query.of(contract, statistic, by="month", at=Fraction(9, 10)))
        assert distance.l1 == (Fraction(9, 10) if neighbours == "add-or-remove" else 1)
        assert distance.l2_squared == distance.l1**2


@pytest.mark.parametrize(
    ("column", "how", "told"),
    [
        ("channel", {}, "there are: items, dollars"),
        (None, {"cover": "1"}, "such as 0.98"),
        (None, {"cover": "0"}, "such as 0.98"),
        (None, {"cover": "1/3000000000"}, "nine decimals"),
        (None, {"by": "dollars"}, "no declared keys"),
        ("dollars", {"delta": "1e-9"}, "only a selection"),
    ],
)
def test_what_cannot_be_suggested_is_refused_before_data_are_read(
    tmp_path: Path, column: str | None, how: dict[str, str], told: str
) -> None:
    with parco.Session(open_shop(tmp_path), data=tmp_path / "nothing.csv") as session:
        with pytest.raises(parco.QuestionError, match=told):
            session.suggest_bounds(column, **how)  # type: ignore[arg-type]
        with pytest.raises(parco.QuestionError, match="leave out cover"):
            session.release([parco.Ask("count", cover="0.9")])
        for statistic in ("unit_rows", "unit_groups"):
            with pytest.raises(parco.QuestionError, match="share of the units"):
                session.ask(statistic)
            with pytest.raises(parco.QuestionError, match="takes no column"):
                session.ask(statistic, "dollars")
        assert spent(session) == 0


def test_units_in_several_periods_are_not_put_into_one_group() -> None:
    text = contract_text().replace("[budget]", 'period = "month"\n\n[budget]')
    contract = parco.Contract.parse(text)
    with pytest.raises(parco.QuestionError, match="name one period"):
        parco.Query.of(contract, "unit_rows", by="month", at=Fraction(1, 2))
    query = parco.Query.of(contract, "unit_rows", at=Fraction(1, 2), period="2024-02")
    assert query.accounts == ("2024-02",)
    with pytest.raises(parco.QuestionError, match="one group only"):
        parco.Query.of(contract, "unit_groups", by="month", at=Fraction(1, 2), period="2024-02")
