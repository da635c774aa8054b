"""Filters, means and several questions at once, as a script sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.run import parco, parco_json
from tests.shop import open_shop

ASKS = """
[[ask]]
statistic = "count"
by = "month"
where = "items >= 2"
cost = 0.1

[[ask]]
statistic = "mean"
column = "dollars"
cost = "1/5"
split = "0.25"
"""


def test_a_filter_and_the_same_filter_in_other_words(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = ("release", tmp_path / "contract.toml", "count", "dollars", "--by", "month", "--cost", "0.1", "--where")
    first = parco_json(*ask, "items >= 2 and channel = 'web'")
    second = parco_json(*ask, "not (channel <> 'web' or 2 > items)")
    assert (first["repeat"], second["repeat"]) == (False, True)
    assert first["receipt"]["question"] == "count dollars where channel in ('web') and items >= 2 by month"
    assert second["rows"] == first["rows"]
    shown = parco("history", "--ledger", tmp_path / "shop.ledger").stdout
    assert "items >= 2" in shown
    refused = parco(*ask, "items / 0 > 1", code=2)
    assert refused.stderr.startswith("parco: where: div stands where the name of a column or bins must")
    assert parco(*ask, "customer = '1'", code=2).stdout == ""


def test_a_mean_before_and_after(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = ("release", tmp_path / "contract.toml", "mean", "dollars", "--by", "channel", "--cost", "0.2")
    plan = parco_json(*ask, "--dry-run")
    assert (plan["cost"], [part["cost"] for part in plan["parts"]]) == ("0.2", ["0.1", "0.1"])
    assert "in two parts" in parco(*ask, "--dry-run").stdout
    done = parco_json(*ask)
    assert (done["cost"], done["repeat"], done["remaining"]) == ("0.2", False, plan["remaining"])
    # Six purchases are lost in this much noise.
    assert done["rows"][0] == {"channel": "web", "value": None, "lower": "0", "upper": "100"}
    assert [part["question"] for part in done["receipt"]["parts"]] == [part["question"] for part in plan["parts"]]
    shown = parco(*ask).stdout
    assert "none" in shown
    assert "this access cost 0" in shown
    assert "takes no error" in parco(*ask[:4], "--error", "5", code=2).stderr
    assert "leave out --split" in parco(*ask[:2], "count", "--split", "0.5", code=2).stderr


def test_several_questions_from_a_file(tmp_path: Path) -> None:
    open_shop(tmp_path)
    (tmp_path / "asks.toml").write_text(ASKS, encoding="utf-8")
    ask = ("release", tmp_path / "contract.toml", "--ask", tmp_path / "asks.toml")
    plans = parco_json(*ask, "--dry-run")["plans"]
    releases = parco_json(*ask)["releases"]
    assert [plan["cost"] for plan in plans] == [one["cost"] for one in releases] == ["0.1", "0.2"]
    assert [part["cost"] for part in releases[1]["receipt"]["parts"]] == ["0.05", "0.15"]
    assert [one["repeat"] for one in parco_json(*ask)["releases"]] == [True, True]
    assert "mean dollars" in parco(*ask).stdout
    assert "free" in parco(*ask, "--dry-run").stdout
    assert "stand in the file" in parco(*ask, "--cost", "0.1", code=2).stderr
    assert "name a statistic" in parco(*ask[:2], code=2).stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write each question as"),
        ("ask = 5", "write each question as"),
        ("[ask]\nstatistic = 'count'", "write each question as"),
        ("[[ask]]\ncolumn = 'dollars'", "question 1: say its statistic"),
        ("[[ask]]\nstatistic = 'count'\n[[ask]]\nstatistic = 'count'\nhow = 1", "question 2: unknown option how"),
        ("[[ask]]\nstatistic = 5", "statistic is text"),
        ("[[ask]]\nstatistic = 'median'", "unknown statistic 'median'"),
        ("[[ask]]\nstatistic = 'count'\nby = 5", "by takes one name"),
        ("[[ask]]\nstatistic = 'count'\nfresh = 1", "fresh is True or False"),
        ("[[ask", "is not TOML"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, words: str) -> None:
    open_shop(tmp_path)
    (tmp_path / "asks.toml").write_text(text, encoding="utf-8")
    refused = parco("release", tmp_path / "contract.toml", "--ask", tmp_path / "asks.toml", code=2)
    assert words in refused.stderr
    assert "no ledger" not in refused.stderr
