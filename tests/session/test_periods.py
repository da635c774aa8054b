"""Questions on periods: each pays for its own cells, all or nothing; the sum is said."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.session.receipt import claims_to_date
from parco.stores.sqlite import SqliteStore
from tests.shop import contract_text, write_csv

GDP = 'epsilon = "1"\ndelta = "1e-6"\nreceipt_order = 20'
PURE = 'measure = "pure"\nepsilon = "1"'


def _text(**changes: object) -> str:
    return contract_text(**changes).replace("rows = 2\n", 'rows = 2\nperiod = "month"\n')  # type: ignore[arg-type]


def shop(folder: Path, **changes: object) -> parco.Contract:
    write_csv(folder / "purchases.csv")
    (folder / "contract.toml").write_text(_text(**changes), encoding="utf-8")
    contract = parco.Contract.read(folder / "contract.toml")
    parco.sign(contract)
    return contract


def left(session: parco.Session) -> list[str]:
    return [str(Fraction(row.remaining, 10**15)) for row in session.budget()]


def test_each_period_that_is_touched_pays(tmp_path: Path) -> None:
    session = parco.Session(shop(tmp_path))
    assert [row.label for row in session.budget()] == ["2024-01", "2024-02", "2024-03", "2024-04"]
    one = session.count(cost="0.25", period="2024-02")
    assert left(session) == ["1", "3/4", "1", "1"]
    assert (one.receipt.accounts, one.remaining) == (("2024-02",), Fraction(3, 4))
    every = session.count(by="month", cost="0.5")
    assert left(session) == ["1/2", "1/4", "1/2", "1/2"]
    assert (str(every.cost), str(every.receipt.cost_in_all), every.remaining) == ("0.5", "2", Fraction(1, 4))
    with pytest.raises(parco.BudgetError, match="shop / 2024-02"):
        session.count_units(by="month", cost="0.5")
    assert left(session) == ["1/2", "1/4", "1/2", "1/2"]
    session.count_units(by="month", cost="0.5", period=["2024-01", "2024-03"])
    assert left(session) == ["0", "1/4", "0", "1/2"]
    SqliteStore.open(tmp_path / "shop.ledger").verify()


def test_the_claims_are_for_one_period_and_for_all(tmp_path: Path) -> None:
    session = parco.Session(shop(tmp_path, budget=GDP))
    session.count(cost="0.02", period="2024-02")
    receipt = session.count(by="month", cost="0.01").receipt
    claims = claims_to_date(session.contract, *session.budget())
    assert {claim.total for claim in claims if claim.basis == "realised"} == {Fraction(3, 100)}
    assert claims[0].context.unit == "customer in one month"
    person = claims_to_date(session.contract, *session.budget(), all_periods=True)
    assert {claim.total for claim in person if claim.basis == "realised"} == {Fraction(6, 100)}
    assert person[0].total == 4 * session.contract.budget.cap_units * Fraction(1, 10**15)
    assert person[0].context.unit == "customer"
    assert "present in every month" in person[0].in_words()
    assert person[0].epsilon > claims[0].epsilon
    assert "one customer in all of them loses their sum, 0.04" in str(receipt)
    assert receipt.record()["cost_in_all_periods"] == "0.04"


def test_mechanisms_own_deltas_add_up_over_the_periods(tmp_path: Path) -> None:
    budget = 'epsilon = "1"\ndelta = "3e-6"\ndelta_mechanisms = "1e-6"'
    session = parco.Session(shop(tmp_path, budget=budget))
    person = claims_to_date(session.contract, *session.budget(), all_periods=True)
    assert person[0].delta == Fraction(6, 10**6)


def test_a_month_alone_and_the_same_month_of_a_grouped_question_are_two_questions(tmp_path: Path) -> None:
    session = parco.Session(shop(tmp_path))
    session.count(by="month", cost="0.1")
    assert not session.count(by="month", cost="0.1", period="2024-01").repeat
    assert session.count(by="month", cost="0.1", period=["2024-04", "2024-03", "2024-02", "2024-01"]).repeat


@pytest.mark.parametrize("change", [('period = "month"\n', ""), ("2024-04", "2024-05"), ("2024-01", "2023-12")])
def test_periods_are_never_revised(tmp_path: Path, change: tuple[str, str]) -> None:
    shop(tmp_path)
    (tmp_path / "contract.toml").write_text(_text().replace(*change), encoding="utf-8")
    with pytest.raises(parco.ContractError, match="periods"):
        parco.revise(parco.Contract.read(tmp_path / "contract.toml"), reason="why")


def test_the_plan_and_the_refusals_come_before_any_charge(tmp_path: Path) -> None:
    session = parco.Session(shop(tmp_path))
    session.count(cost="0.9", period="2024-03")
    assert session.plan.count_units(by="month", cost="0.2").remaining == Fraction(-1, 10)
    bad: list[str | list[str] | None] = [None, "2024-09", ["2024-01", "2024-02"]]
    for period in bad:
        with pytest.raises(parco.QuestionError):
            session.count(cost="0.1", period=period)
    assert left(session) == ["1", "1", "1/10", "1"]


def test_two_contracts_share_the_periods(tmp_path: Path) -> None:
    first = parco.Session(shop(tmp_path))
    (tmp_path / "audit.toml").write_text(_text(name="audit", groups=1), encoding="utf-8")
    audit = parco.Contract.read(tmp_path / "audit.toml")
    parco.sign(audit)
    parco.Session(audit).count(by=["month", "channel"], cost="0.25")
    assert left(first) == ["3/4"] * 4
    (tmp_path / "other.toml").write_text(contract_text(name="other"), encoding="utf-8")
    with pytest.raises(parco.ContractError, match="periods"):
        parco.sign(parco.Contract.read(tmp_path / "other.toml"))


def test_the_budget_says_both(tmp_path: Path) -> None:
    from tests.cli.run import parco as run

    shop(tmp_path)
    contract, ledger = tmp_path / "contract.toml", tmp_path / "shop.ledger"
    run("release", contract, "count", "--period", "2024-01", "--period", "2024-02", "--by", "month", "--cost", "0.1")
    (sums,) = json.loads(run("budget", "--ledger", ledger, "--json").stdout)["in_all_periods"]
    deltas = dict.fromkeys(("delta_cap", "delta_spent", "delta_reserved", "delta_remaining"), "0")
    assert sums == {"account": "shop", "measure": "pure", "cap": "4", "spent": "0.2", "reserved": "0", **deltas}
    shown = " ".join(run("budget", "--ledger", ledger).stdout.split())
    assert "one customer in one month" in shown
    assert "present in every month of 2024-01, 2024-02, 2024-03, 2024-04, so this is the sum" in shown
    checked = " ".join(run("check", contract).stdout.replace("│", " ").split())
    assert "one customer in one month: all its rows of that month" in checked
    assert "may lose their sum, 4" in checked
