"""`parco revise` and `parco cap`, as processes."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from parco.cli import show
from tests.shop import contract_text, open_shop

from .run import parco

TWO = 'measure = "pure"\nepsilon = "2"'


def test_revise_and_cap_are_acts_with_actor_and_reason(tmp_path: Path) -> None:
    open_shop(tmp_path)
    contract, ledger = tmp_path / "contract.toml", tmp_path / "shop.ledger"
    contract.write_text(contract_text(rows=3), encoding="utf-8")
    refused = parco("release", contract, "count", "--cost", "0.1", code=4)
    assert "parco revise" in refused.stderr.replace("\n", " ")
    parco("revise", contract, "--ledger", ledger, "--reason", "three a day", "--actor", "bo")
    parco("release", contract, "count", "--cost", "0.1")
    contract.write_text(contract_text(rows=3, budget=TWO), encoding="utf-8")
    assert "parco cap" in parco("revise", contract, "--ledger", ledger, "--reason", "more", code=2).stderr
    parco("cap", contract, "--ledger", ledger, "--reason", "the board", "--actor", "bo")
    history = json.loads(parco("history", "--ledger", ledger, "--json").stdout)["history"]
    assert [(row["state"], row.get("reason")) for row in history] == [
        ("open", None),
        ("revise", "three a day"),
        ("settled", None),
        ("cap", "the board"),
        ("revise", "the board"),
    ]
    assert history[3]["caps"] == {"1": "2"}
    wide = Console(width=200)
    with wide.capture() as captured:
        wide.print(show.history_table(history))
    assert "cap 2: the board" in captured.get()
    assert "revise shop: three a day" in captured.get()
    (account,) = json.loads(parco("budget", "--ledger", ledger, "--json").stdout)["accounts"]
    assert (account["cap"], account["spent"]) == ("2", "0.1")


def test_a_reason_must_be_given(tmp_path: Path) -> None:
    open_shop(tmp_path)
    for command in ("revise", "cap"):
        assert "--reason" in parco(command, tmp_path / "contract.toml", code=2).stderr
