"""Histograms, variances and quantiles from the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.run import parco, parco_json
from tests.shop import open_shop


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
