"""The main job on the real purchases: paid once, then free."""

from __future__ import annotations

import csv
import re
from bisect import bisect_left, bisect_right
from decimal import Decimal
from pathlib import Path
from statistics import NormalDist

from tests.cli.run import parco, parco_json


def test_the_demo_pays_once_and_then_nothing(tmp_path: Path) -> None:
    first = parco("demo", "--dir", tmp_path / "demo").stdout
    ledger = tmp_path / "demo" / "purchases.ledger"
    (account,) = parco_json("budget", "--ledger", ledger)["accounts"]
    assert 0 < Decimal(account["spent"]) < Decimal(account["cap"])
    second = parco("demo", "--dir", tmp_path / "demo").stdout
    assert parco_json("budget", "--ledger", ledger)["accounts"] == [account]
    assert second.count("free: answered from the ledger") == 5

    def tables(shown: str) -> list[str]:
        return [line for line in shown.splitlines() if line.startswith(("│ 199", " 199"))]

    assert len(tables(first)) == 2 * 18  # the table and the chart
    assert tables(second) == tables(first)
    steps = [
        Decimal(row["cost"])
        for row in parco_json("history", "--ledger", ledger)["history"]
        if row["question"] and (row["question"]["statistic"], len(row["question"]["by"])) == ("count_units", 1)
    ]
    shown = " ".join(first.split())
    told = re.search(r"customers: cost ([0-9.]+) of mu squared", shown)
    assert told is not None
    assert Decimal(told[1]) == sum(steps)
    found = re.search(r"each is within 5 %, at 95 %: this took ([0-9.e-]+) of mu squared", shown)
    assert found is not None
    assert sum(steps) <= Decimal(found[1]) <= sum(steps) * Decimal("1.01")
    # One customer is in six months at most; rounded noise reaches a little less far than to the next lattice step.
    promised = re.findall(r"([0-9.e-]+) for months of ([0-9,]+) or more", shown)
    assert [least for _, least in promised] == ["100", "500", "1,000"]
    for cost, least in promised:
        exact = 6 * (NormalDist().inv_cdf(0.975) / (0.05 * int(least.replace(",", "")))) ** 2
        assert 0.94 * exact < float(cost) < 1.01 * exact
    for words in ("Refused: this would be charged", "Lost by the refusal: 0.", "and the same figures", "Pr[S | in]"):
        assert words in " ".join(first.split())


def test_quantiles_of_the_purchases_with_their_cost(tmp_path: Path) -> None:
    parco("demo", "--dir", tmp_path)
    ledger = tmp_path / "purchases.ledger"
    (before,) = parco_json("budget", "--ledger", ledger)["accounts"]
    shares = ("0.25", "0.5", "0.75")
    at = [word for share in shares for word in ("--at", share)]
    found = parco_json("release", tmp_path / "contract.toml", "quantile", "dollars", *at, "--cost", "0.006")
    (after,) = parco_json("budget", "--ledger", ledger)["accounts"]
    assert Decimal(found["cost"]) == Decimal(after["spent"]) - Decimal(before["spent"]) <= Decimal("0.006")
    with (tmp_path / "purchases.csv").open(encoding="utf-8") as lines:
        dollars = sorted(Decimal(row["dollars"]) for row in csv.DictReader(lines))
    assert [row["at"] for row in found["rows"]] == list(shares)
    for row, share in zip(found["rows"], shares, strict=True):
        # Of every customer two purchases count: about where all purchases have this share.
        low, high = (side(dollars, Decimal(row["value"])) / len(dollars) for side in (bisect_left, bisect_right))
        assert low - 0.05 < float(share) < high + 0.05


def test_the_demo_without_its_data_says_what_to_install(tmp_path: Path) -> None:
    before = "import importlib.util\nimportlib.util.find_spec = lambda name: None"
    refused = parco("demo", "--dir", tmp_path / "demo", before=before, code=2)
    assert "parco[demo]" in refused.stderr
