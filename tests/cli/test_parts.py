"""`--part`, and a budget in parts, as processes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.shop import COLUMNS, open_shop

from .run import parco

PARTS = COLUMNS + '[parts]\nfit = "0.8"\nvalidation = "0.2"\n'


def test_a_part_is_asked_for_and_shown(tmp_path: Path) -> None:
    open_shop(tmp_path, columns=PARTS)
    contract, ledger = tmp_path / "contract.toml", tmp_path / "shop.ledger"
    assert "fit 0.8, validation 0.2" in " ".join(parco("check", contract).stdout.split())
    done = parco("release", contract, "count", "--cost", "0.1", "--part", "fit", "--json")
    assert json.loads(done.stdout)["receipt"]["accounts"] == ["fit"]
    assert "there are: fit, validation" in parco("release", contract, "count", "--part", "x", code=2).stderr
    accounts = json.loads(parco("budget", "--ledger", ledger, "--json").stdout)["accounts"]
    assert [(row["account"], row["spent"]) for row in accounts] == [("shop / fit", "0.1"), ("shop / validation", "0")]
    shown = " ".join(parco("budget", "--ledger", ledger).stdout.split())
    assert shown.count("Protected: one customer") == 1
    assert "each unit is in one part, by a secret coin" in shown
    (row,) = json.loads(parco("history", "--ledger", ledger, "--json").stdout)["history"][1:]
    assert row["cost"] == "0.1"
    parco("release", contract, "count", "--cost", "0.1")
    every = json.loads(parco("history", "--ledger", ledger, "--json").stdout)["history"][-1]
    assert every["cost"] == "0.1"  # on each part, as the release says
    assert "in part fit" in " ".join(parco("history", "--ledger", ledger).stdout.split())
