"""`parco release --within`: sharpened step by step, shown with intervals that hold at the stop."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.cli.run import parco, parco_json
from tests.shop import open_shop

GDP = 'measure = "gdp"\nmu = "2"\nreceipt_order = 8\ndelta = "1e-6"'


@pytest.fixture
def ask(tmp_path: Path) -> tuple[object, ...]:
    rows = [(str(one), "2024-02-01", "3", "30", ("web", "shop", "phone")[one % 3]) for one in range(600)]
    open_shop(tmp_path, purchases=rows, budget=GDP)
    return ("release", tmp_path / "contract.toml", "count", "--by", "channel")


def test_it_stops_when_it_is_near_enough_and_says_so(ask: tuple[object, ...]) -> None:
    found = parco_json(*ask, "--within", "10%", "--at-most", "2")
    assert found["until"]["enough"]
    assert found["until"]["confidence"] == "0.95"
    assert Decimal(found["until"]["cost"]) <= Decimal(found["until"]["at_most"]) == 2
    for row in found["rows"]:
        assert Decimal(row["upper"]) - Decimal(row["value"]) <= Decimal(row["value"]) / 10
    again = parco(*ask, "--within", "10%", "--at-most", "2").stdout
    assert "Good enough after 1 of at most" in " ".join(again.split())
    assert "holds at the stop" in " ".join(again.split())


def test_not_to_get_there_is_told(ask: tuple[object, ...]) -> None:
    shown = " ".join(parco(*ask, "--within", "0.1%", "--at-most", "0.01").stdout.split())
    assert "Not yet good enough in 3 of 3 cells" in shown


def test_a_reserved_run_gives_back_the_rest_and_says_so(tmp_path: Path, ask: tuple[object, ...]) -> None:
    shown = " ".join(parco(*ask, "--within", "20%", "--at-most", "2", "--reserve").stdout.split())
    for words in (
        "Good enough after",
        "(realised: what the steps that ran cost)",
        "before the data were read; what the steps did not need is free again",
        "at order 8: it adds up over releases, wherever they stopped, and becomes an epsilon at a delta",
    ):
        assert words in shown
    ledger = tmp_path / "shop.ledger"
    (row,) = parco_json("budget", "--ledger", ledger)["accounts"]
    assert 0 < Decimal(row["spent"]) < Decimal("0.5")
    assert Decimal(row["reserved"]) == 0
    sharper = (*ask, "--within", "10%", "--at-most", "2", "--reserve", "--each")
    assert "Pay in full for another" in " ".join(parco(*sharper, code=2).stderr.split())
    fresh = parco_json(*sharper, "--fresh")
    receipt = fresh["receipt"]
    assert fresh["until"]["cost"] == receipt["cost"]
    assert Decimal(receipt["cost"]) < Decimal(receipt["reserved"]) <= 2
    assert Decimal(receipt["bound"]) == 4 * Decimal(receipt["cost"])
    release = parco_json("show", ledger, receipt["release"])["release"]
    assert (release["cost"], release["reserved"]) == (receipt["cost"], receipt["reserved"])
    told = " ".join(parco("show", ledger, receipt["release"]).stdout.split())
    assert " stopped," in told
    assert [one for one in parco_json("history", "--ledger", ledger)["history"] if "reserved" in one]
    parco("ledger", "verify", "--ledger", ledger, "--strict")


def test_a_refusal_names_the_options(ask: tuple[object, ...]) -> None:
    told = parco(*ask, "--within", "5%", "--at-most", "1", "--dry-run", "--cost", "0.1", code=2).stderr
    assert "leave out --cost, --dry-run" in " ".join(told.split())
    assert "--within: " in parco(*ask, "--within", "near", "--at-most", "1", code=2).stderr
    assert "--reserve" in parco(*ask, "--within", "5%", "--at-most", "1", "--each", code=2).stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--within", "5%"),
        ("--at-most", "1"),
        ("--within", "5%", "--at-most", "1", "--cost", "0.1"),
        ("--within", "5%", "--at-most", "1", "--fresh"),
        ("--within", "5%", "--at-most", "1", "--dry-run"),
        ("--within", "near", "--at-most", "1"),
        ("--within", "5%", "--at-most", "0"),
        ("--within", "5%", "--at-most", "1", "--each"),
        ("--reserve",),
        ("--each",),
        ("--within", "5%", "--at-most", "1", "--reserve", "--cost", "0.1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(ask: tuple[object, ...], options: tuple[str, ...]) -> None:
    parco(*ask, *options, code=2)
