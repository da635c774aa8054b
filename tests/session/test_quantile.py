"""Quantiles end to end: shape, bounding, stored parts, and those that are read off a histogram for nothing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.session.quantile import BinRow, histogram_quantiles
from parco.session.receipt import JointReceipt
from tests.session.test_mean import spent
from tests.shop import COLUMNS, open_shop

# So much that the best candidate is all but certain.
RICH = 'measure = "pure"\nepsilon = "9000"'
BINS = """
[bins.price]
column = "dollars"
edges = ["0", "10", "20", "50"]
above = true
"""
QUARTERS = ["0.25", "0.5", "0.75"]


def purchases(*amounts: str, month: str = "2024-01") -> list[tuple[str, str, str, str, str]]:
    return [(str(place), f"{month}-05", "1", amount, "web") for place, amount in enumerate(amounts)]


def test_each_group_has_each_quantile_whatever_it_holds(tmp_path: Path) -> None:
    # Ties, one distinct value outside the bounds, nothing at all, an even number of rows.
    rows = [
        *purchases("5", "5", "5", "9"),
        *purchases("-3", "-2", "-7", month="2024-02"),
        *purchases("10", "20", "30", "40", "50", month="2024-04"),
    ]
    contract = open_shop(tmp_path, purchases=rows, budget=RICH, groups=4)
    with parco.Session(contract) as session:
        release = session.quantile("dollars", at=QUARTERS, by="month", cost="4000")
        (account,) = session.budget()
    shown = release.value.rows()
    assert [(row["month"], row["at"]) for row in shown] == [
        (f"2024-0{month}", share) for month in (1, 2, 3, 4) for share in QUARTERS
    ]
    values = [Fraction(str(row["value"])) for row in shown]
    # At a quarter of four rows every candidate between the first two is as good.
    assert values[:3] == [5, 5, values[2]]
    assert 5 <= values[2] <= 9
    assert values[3:6] == [0, 0, 0]
    assert all(0 <= value <= 100 for value in values[6:9])
    assert values[9:] == [20, 30, 40]
    assert all(row["lower"] is None and row["upper"] is None for row in shown)
    assert release.table().num_rows == 12
    assert isinstance(release.receipt, JointReceipt)
    assert account.spent == release.cost.units == sum(part.cost.units for part in release.receipt.parts)
    assert 0 <= 4000 * 10**15 - release.cost.units < 10**6


def test_a_unit_is_bounded_before_ranks_are_counted(tmp_path: Path) -> None:
    many = [("hoarder", "2024-01-05", "1", "100", "web")] * 50
    contract = open_shop(tmp_path, purchases=[*many, *purchases("1", "2", "3", "4", "5")], budget=RICH, rows=2)
    with parco.Session(contract) as session:
        release = session.quantile("dollars", at="0.5", cost="4000")
    assert [Fraction(str(row["value"])) for row in release.value.rows()] == [4]


def test_a_stored_quantile_is_free_alone_and_among_others(tmp_path: Path) -> None:
    with parco.Session(open_shop(tmp_path)) as session:
        first = session.quantile("dollars", at=QUARTERS, by="channel", cost="0.3")
        before = spent(session)
        again = session.quantile("dollars", at=[0.5], by="channel")
        both = session.quantile("dollars", at=["3/4", 0.5], by="channel")
        planned = session.plan.quantile("dollars", at=QUARTERS, by="channel")
        assert (again.repeat, both.repeat, planned.repeat, spent(session)) == (True, True, True, before)
        whole = first.value.rows()
        assert again.value.rows() == [row for row in whole if row["at"] == "0.5"]
        assert both.value.rows() == [row for row in whole if row["at"] != "0.25"]
        listed = session.release([parco.Ask("quantile", "dollars", by="channel", at=QUARTERS), parco.Ask("count")])
        assert listed[0].value.rows() == whole
        with pytest.raises(parco.SharperError) as sharper:
            session.quantile("dollars", at=[0.5], by="channel", cost="0.5")
        assert "rank" not in str(sharper.value.facts["stored"])
        planned = session.plan.quantile("dollars", at=[0.1], by="channel", error="200")
        assert planned.parts[0].half_width <= 200
        assert "rows of rank" in str(planned)


@pytest.mark.parametrize("at", [[], "1.5", ["0.5", "1/2"], "-0.1", None, "x", "1/3000000000"])
def test_shares_that_are_none_are_refused_before_anything_is_charged(tmp_path: Path, at: object) -> None:
    with parco.Session(open_shop(tmp_path)) as session:
        with pytest.raises(parco.RequestError):
            session.quantile("dollars", at=at)  # type: ignore[arg-type]
        with pytest.raises(parco.RequestError):
            session.ask("quantile", "dollars")
        assert spent(session) == 0


def test_a_histogram_is_the_count_by_its_bins_and_has_free_quantiles(tmp_path: Path) -> None:
    rows = [*purchases("5", "12", "12", "60"), *purchases("55", month="2024-02")]
    contract = open_shop(tmp_path, purchases=rows, budget=RICH, columns=COLUMNS + BINS)
    with parco.Session(contract) as session:
        release = session.histogram("dollars", by="month", cost="4000")
        assert session.count(by=["price", "month"]).repeat
        assert session.histogram("price", by="month").repeat
        before = spent(session)
        with pytest.raises(parco.QuestionError, match="month"):
            session.histogram("nothing")
        found = histogram_quantiles(release, bins="price", at=["0.5", 1])
        assert (found.receipt, spent(session)) == (release.receipt, before)
    assert found.value[:4] == (
        BinRow(("2024-01",), Fraction(1, 2), "[10, 20)"),
        BinRow(("2024-01",), Fraction(1), ">= 50"),
        BinRow(("2024-02",), Fraction(1, 2), ">= 50"),
        BinRow(("2024-02",), Fraction(1), ">= 50"),
    )
    # Where there are no rows the noise alone decides: a bin, or none.
    assert [row.keys for row in found.value[4:]] == [("2024-03",)] * 2 + [("2024-04",)] * 2
    with pytest.raises(parco.QuestionError):
        histogram_quantiles(release, bins="channel", at="0.5")
