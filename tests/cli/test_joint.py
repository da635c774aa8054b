"""Histograms, variances, quantiles, tops, selected keys and suggested bounds from the command line."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from parco.cli import show
from parco.measure import Measure
from parco.stores.records import AccountRow
from tests.cli.run import parco, parco_json
from tests.shop import COLUMNS, open_shop


def test_quantiles_in_json_in_a_dry_run_and_on_a_terminal(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = ("release", tmp_path / "contract.toml", "quantile", "dollars", "--at", "0.5", "--at", "1/4", "--by", "month")
    plan = parco_json(*ask, "--cost", "0.2", "--dry-run")
    done = parco_json(*ask, "--cost", "0.2")
    assert (plan["cost"], len(plan["parts"])) == (done["cost"], 2)
    assert plan["question"] == "quantile dollars at 0.25, 0.5 by month"
    assert [(row["month"], row["at"]) for row in done["rows"]] == [
        (f"2024-0{month}", share) for month in (1, 2, 3, 4) for share in ("0.25", "0.5")
    ]
    assert all(row["value"] is not None and row["lower"] is row["upper"] is None for row in done["rows"])
    assert {part["mechanism"] for part in done["receipt"]["parts"]} == {"exponential"}
    shown = parco(*ask).stdout
    assert "rows of its target" in shown
    assert "Served from the ledger" in shown
    assert "--at 0.5" in parco(*ask[:4], code=2).stderr
    # The table's columns are narrow: each part has a line of its own for its share.
    history = parco("history", "--ledger", tmp_path / "shop.ledger").stdout
    assert all(f"dollars at {share}" in history for share in ("0.25", "0.5"))


def test_a_variance_and_a_histogram(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = ("release", tmp_path / "contract.toml")
    variance = parco_json(*ask, "variance", "dollars", "--cost", "0.3")
    assert len(variance["receipt"]["parts"]) == 3
    assert parco_json(*ask, "mean", "dollars")["repeat"]
    assert len(parco_json(*ask, "histogram", "month")["rows"]) == 4
    assert parco_json(*ask, "count", "--by", "month")["repeat"]
    assert "--at" in parco(*ask, "count", "--at", "0.5", code=2).stderr


def test_keys_are_selected_at_a_cost_and_a_delta(tmp_path: Path) -> None:
    budget = 'measure = "pure"\nepsilon = "9000"\ndelta = "1e-6"\ndelta_mechanisms = "1e-6"'
    columns = COLUMNS.replace('keys = ["web", "shop", "phone"]', 'keys = "select"')
    rows = [(unit, "2024-01-05", "1", "3", channel) for unit in "123" for channel in ("web", "m\u200eail")]
    open_shop(tmp_path, budget=budget, columns=columns, purchases=rows)
    ask = ("release", tmp_path / "contract.toml", "select_keys", "channel", "--cost", "8000", "--delta", "1e-7")
    plan = parco_json(*ask, "--dry-run")
    done = parco_json(*ask)
    assert [row["channel"] for row in done["rows"]] == ["m\u200eail", "web"]
    assert plan["delta"] == done["receipt"]["delta"]
    shown = parco(*ask).stdout
    assert "\\u200e" in shown or "\\200e" in shown
    assert "\u200e" not in shown
    (account,) = parco_json("budget", "--ledger", tmp_path / "shop.ledger")["accounts"]
    assert account["delta_spent"] == done["receipt"]["delta"]
    assert "for mechanisms" in parco("budget", "--ledger", tmp_path / "shop.ledger").stdout
    *_, told = parco_json("history", "--ledger", tmp_path / "shop.ledger")["history"]
    assert told["delta"] == account["delta_spent"]
    assert "delta" in parco("release", tmp_path / "contract.toml", "count", "--delta", "1e-9", code=2).stderr


def test_the_delta_of_a_release_in_flight_is_told() -> None:
    account = AccountRow(
        account=1, name="shop", measure=Measure.GDP, cap=9, spent=2, reserved=3, excess=0,
        delta_cap=10**12, delta_spent=10**11, delta_reserved=2 * 10**11, delta_excess=0, fixed_cap=9,
    )  # fmt: skip
    (record,) = show.account_records([account])
    both = show.sum_record([account, account])
    names = ("delta_cap", "delta_spent", "delta_reserved", "delta_remaining")
    assert [Decimal(record[name]) for name in names] == [Decimal(f"{part}e-7") for part in (10, 1, 2, 7)]
    assert [Decimal(both[name]) for name in names] == [Decimal(f"{part}e-7") for part in (20, 2, 4, 14)]


def test_a_top_and_suggested_bounds(tmp_path: Path) -> None:
    open_shop(tmp_path, budget='measure = "pure"\nepsilon = "100"')
    ask = ("release", tmp_path / "contract.toml")
    top = parco_json(*ask, "top", "month", "--k", "2", "--cost", "1")
    assert [row["rank"] for row in top["rows"]] == [1, 2]
    assert "left out" in parco(*ask, "top", "month", "--k", "2").stdout
    assert "--k 3" in parco(*ask, "top", "month", code=2).stderr
    assert "--k" in parco(*ask, "count", "--k", "2", code=2).stderr
    plan = parco_json(*ask, "suggest_bounds", "dollars", "--by", "month", "--cost", "4", "--dry-run")
    bounds = parco_json(*ask, "suggest_bounds", "dollars", "--by", "month", "--cost", "4")
    assert (plan["cost"], len(plan["parts"])) == (bounds["cost"], 4)
    assert [row["bound"] for row in bounds["rows"]] == ["lower", "upper", "rows", "groups"]
    shown = parco(*ask, "suggest_bounds", "dollars", "--by", "month").stdout
    assert "[columns.dollars]" in shown
    assert "parco revise" in shown
    for option, value in (("--at", "0.5"), ("--k", "2"), ("--split", "1/3")):
        assert f"leave out {option}" in parco(*ask, "suggest_bounds", "dollars", option, value, code=2).stderr
    assert "--cover" in parco(*ask, "count", "--cover", "0.9", code=2).stderr
    history = parco("history", "--ledger", tmp_path / "shop.ledger").stdout.split()
    assert {"top", "quantile", "unit_rows", "unit_groups", "0.98"} <= set(history)
