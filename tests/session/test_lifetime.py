"""The lifetime loss: periods and parts do not hide what one unit can have lost in all."""

from __future__ import annotations

from pathlib import Path

import pytest

import parco
from tests.shop import contract_text, write_csv

PARTS = ("[budget]", '[parts]\nfit = "0.5"\ntest = "0.5"\n\n[budget]')
MONTHS = ("rows = 2\n", 'rows = 2\nperiod = "month"\n')


def session(folder: Path, *changes: tuple[str, str]) -> parco.Session:
    text = contract_text()
    for old, new in changes:
        text = text.replace(old, new)
    write_csv(folder / "purchases.csv")
    (folder / "contract.toml").write_text(text, encoding="utf-8")
    contract = parco.Contract.read(folder / "contract.toml")
    parco.sign(contract)
    return parco.Session(contract)


def test_of_a_whole_data_set_it_is_what_the_account_spent(tmp_path: Path) -> None:
    shop = session(tmp_path)
    assert str(shop.lifetime().lost) == "0"
    receipts = [shop.count(cost="0.1").receipt, shop.sum("dollars", cost="0.2").receipt]
    assert str(shop.lifetime().lost) == "0.3"
    assert shop.lifetime().record()["scope"] == "by all releases"
    assert "one customer lost at most 0.1 of pure" in str(receipts[0])
    assert "one customer lost at most 0.3 of pure" in str(receipts[1])


def test_of_periods_it_is_the_sum(tmp_path: Path) -> None:
    shop = session(tmp_path, MONTHS)
    receipt = shop.count(by="month", cost="0.1").receipt
    shop.count_units(cost="0.2", period="2024-02")
    assert str(shop.lifetime().lost) == "0.6"
    assert "if in every month" in str(shop.lifetime())
    assert "who is in several loses their sum" in str(receipt)


def test_of_parts_it_is_the_largest(tmp_path: Path) -> None:
    shop = session(tmp_path, PARTS)
    shop.count(cost="0.1", part="fit")
    shop.count_units(cost="0.2")
    assert str(shop.lifetime().lost) == "0.3"
    assert "on its part" in str(shop.lifetime())


@pytest.mark.parametrize("change", [PARTS, MONTHS])
def test_it_never_says_less_than_any_account(tmp_path: Path, change: tuple[str, str]) -> None:
    shop = session(tmp_path, change)
    shop.count(by="month", cost="0.25")
    assert all(shop.lifetime().lost.units >= row.spent for row in shop.budget())
