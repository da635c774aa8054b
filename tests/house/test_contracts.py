"""The page on contracts: its example is a contract, and says of the defaults what is so."""

from __future__ import annotations

import re
from pathlib import Path

from parco.contract.contract import Contract
from tests.shop import contract_text

PAGE = (Path(__file__).parents[2] / "docs" / "contracts.md").read_text(encoding="utf-8")


def test_the_example_is_a_contract() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    dialect, _, columns = example.partition("[columns.delay]")
    text = contract_text(columns=f"[columns.delay]{columns}", unit="plane")
    contract = Contract.parse(text.replace("[unit]", f"{dialect}\n[unit]", 1))
    assert contract.data.dialect.delimiter == ";"
    assert contract.keys("lateness") == ("[0, 15)", "[15, 60)", ">= 60")
    assert (contract.keys("decade") or ())[1] == "10 to 19"
    assert len(contract.keys("week") or ()) == 52
    assert contract.groupings == ("week", "lateness", "decade", "carrier", "cancelled")
