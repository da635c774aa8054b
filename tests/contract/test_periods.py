"""A contract whose protected unit is a unit in one period."""

from __future__ import annotations

import json

import pytest

from parco.contract.contract import Contract
from parco.contract.division import check_period
from parco.errors import ContractError

from .document import changed, parse

PERIOD = ("rows = 2", 'rows = 2\nperiod = "month"')


def test_each_period_is_an_account_and_a_term() -> None:
    contract = parse(PERIOD)
    assert contract.accounts == ("2024-01", "2024-02", "2024-03", "2024-04", "2024-05", "2024-06")
    terms = json.loads(contract.terms)
    assert terms.pop("period") == {
        "bins": {"column": "day", "every": "month", "first": "2024-01", "last": "2024-06"},
        "column": {"type": "date"},
    }
    assert terms == json.loads(parse().terms)
    assert Contract.from_text(contract.text).accounts == contract.accounts
    assert "period" not in parse().text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((("rows = 2", 'rows = 2\nperiod = "week"'),), "bins that the contract declares"),
        ((("rows = 2", 'rows = 2\nperiod = "ward"'),), "bins that the contract declares"),
        ((PERIOD, ('last = "2024-06"', 'last = "2124-06"')), "at most 1000"),
        ((PERIOD, ("[columns.day]", '[parts]\na = "1/2"\nb = "1/2"\n[columns.day]')), "no [parts]"),
        ((("rows = 2", "rows = 2\nperiod = 1"),), "unit.period"),
        ((("rows = 2", 'rows = 2\nperiod = ""'),), "unit.period"),
    ],
)
def test_other_periods_are_refused(changes: tuple[tuple[str, str], ...], words: str) -> None:
    with pytest.raises(ContractError) as caught:
        Contract.parse(changed(*changes))
    assert words in str(caught.value)


def test_periods_are_refused_where_a_unit_may_be_replaced() -> None:
    check_period(("2024-01",), neighbours="add-or-remove", parts=False)
    with pytest.raises(ValueError, match="add-or-remove"):
        check_period(("2024-01",), neighbours="replace", parts=False)
