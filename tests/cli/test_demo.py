"""The main job on the real purchases: paid once, then free."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

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
    for words in ("Refused: this would be charged", "Lost by the refusal: 0.", "and the same figures", "Pr[S | in]"):
        assert words in " ".join(first.split())


def test_the_demo_without_its_data_says_what_to_install(tmp_path: Path) -> None:
    before = "import importlib.util\nimportlib.util.find_spec = lambda name: None"
    refused = parco("demo", "--dir", tmp_path / "demo", before=before, code=2)
    assert "parco[demo]" in refused.stderr
