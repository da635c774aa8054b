"""A signed contract's later life: new versions and moved caps, seen from the session."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.session.receipt import claims_to_date
from parco.stores.sqlite import SqliteStore
from tests.shop import COLUMNS, contract_text, open_shop

GDP = 'epsilon = "1"\ndelta = "1e-6"\nreceipt_order = 20'
MORE = GDP.replace('"1"', '"2"')


def read(folder: Path, **changes: object) -> parco.Contract:
    (folder / "contract.toml").write_text(contract_text(**changes), encoding="utf-8")  # type: ignore[arg-type]
    return parco.Contract.read(folder / "contract.toml")


def store(folder: Path) -> SqliteStore:
    return SqliteStore.open(folder / "shop.ledger")


def test_a_revised_contract_keeps_budget_and_answers(tmp_path: Path) -> None:
    old = open_shop(tmp_path)
    first = parco.Session(old).count(by="month", cost="0.1")
    new = read(tmp_path, columns=COLUMNS.replace("upper = 10\n", "upper = 20\n"))
    with pytest.raises(parco.ContractChangedError, match="parco revise"):
        parco.Session(new)
    parco.revise(new, reason="more items are sold", actor="ana")
    session = parco.Session(new)
    again = session.count(by="month", cost="0.1")
    assert again.repeat
    assert again.value == first.value
    assert again.receipt.record() == first.receipt.record()
    assert again.receipt.contract.digest == old.digest
    assert session.budget()[0].spent == first.cost.units
    with pytest.raises(parco.ContractChangedError):
        parco.Session(old)
    store(tmp_path).verify()


def test_a_changed_definition_is_a_new_question(tmp_path: Path) -> None:
    old = open_shop(tmp_path)
    session = parco.Session(old)
    session.sum("items", cost="0.1")
    session.sum("dollars", cost="0.1")
    new = read(tmp_path, columns=COLUMNS.replace("upper = 10\n", "upper = 20\n"))
    parco.revise(new, reason="more items are sold")
    revised = parco.Session(new)
    assert revised.sum("dollars", cost="0.1").repeat
    items = revised.sum("items", cost="0.1")
    assert not items.repeat
    assert items.receipt.contract.digest == new.digest
    assert items.remaining == Fraction(7, 10)


@pytest.mark.parametrize(
    "changes",
    [
        {"unit": "channel2"},
        {"budget": 'measure = "pure"\nepsilon = "1"\nreceipt_order = 9'},
        {"budget": 'measure = "pure"\nepsilon = "1"\ndelta = "1e-9"\ndelta_mechanisms = "1e-9"'},
        {"budget": 'measure = "gdp"\ntotal = "1"\ndelta = "1e-6"'},
        {"budget": 'measure = "pure"\nepsilon = "2"'},
        {"columns": COLUMNS + '[parts]\nfit = "1/2"\nrest = "1/2"\n'},
    ],
)
def test_terms_and_cap_are_not_revised(tmp_path: Path, changes: dict[str, str]) -> None:
    open_shop(tmp_path)
    before = list(store(tmp_path).entries())
    with pytest.raises(parco.ContractError):
        parco.revise(read(tmp_path, **changes), reason="why")
    assert list(store(tmp_path).entries()) == before


def test_two_contracts_on_one_data_set_share_the_account_and_a_changed_unit_is_refused(tmp_path: Path) -> None:
    first = parco.Session(open_shop(tmp_path))
    first.count(cost="0.3")
    changed = read(tmp_path, name="audit", unit="household")
    with pytest.raises(parco.ContractError, match="protected unit"):
        parco.sign(changed)
    audit = read(tmp_path, name="audit", rows=1)
    parco.sign(audit)
    assert parco.Session(audit).count(cost="0.5").remaining == Fraction(2, 10)
    with pytest.raises(parco.BudgetError):
        first.count_units(cost="0.25")
    assert len(store(tmp_path).accounts()) == 1
    with pytest.raises(parco.ContractError, match="protected unit"):
        parco.revise(changed, reason="households")


def test_a_cap_is_raised_where_only_the_amount_differs(tmp_path: Path) -> None:
    old = open_shop(tmp_path)
    session = parco.Session(old)
    session.count(cost="0.9")
    with pytest.raises(parco.ContractError, match="only the amount"):
        parco.move_cap(read(tmp_path, budget='measure = "pure"\nepsilon = "2"', rows=3), reason="the board")
    new = read(tmp_path, budget='measure = "pure"\nepsilon = "2"')
    with pytest.raises(parco.ContractChangedError, match="parco cap"):
        parco.Session(new)
    parco.move_cap(new, reason="the board", actor="ana")
    with pytest.raises(parco.ContractChangedError, match="revised meanwhile"):
        session.count_units(cost="1")
    release = parco.Session(new).count_units(cost="1")
    assert release.remaining == Fraction(1, 10)
    assert release.receipt.cap.value == 2
    with pytest.raises(parco.BudgetError, match="spent or reserved"):
        parco.move_cap(read(tmp_path, budget='measure = "pure"\nepsilon = "1.8"'), reason="less")
    store(tmp_path).verify()


@pytest.mark.parametrize("reason", ["", "a\nb", "x" * 201])
def test_a_reason_is_a_line_of_text(tmp_path: Path, reason: str) -> None:
    contract = open_shop(tmp_path)
    with pytest.raises(parco.RequestError, match="reason"):
        parco.revise(contract, reason=reason)


def test_a_raised_cap_is_claimed_by_what_holds_for_any_choice_of_it(tmp_path: Path) -> None:
    """A cap raised in view of answers is no cap fixed in advance: the exact profile is not claimed of it."""
    old = open_shop(tmp_path, budget=GDP)
    first = parco.Session(old).count(cost="0.01")
    assert first.receipt.claims()[0].accountant == "gaussian-profile"
    new = read(tmp_path, budget=MORE)
    parco.move_cap(new, reason="the board")
    session = parco.Session(new)
    later = session.count_units(cost="0.01").receipt
    assert {claim.accountant for claim in later.claims()} == {"ex-post-hockey-stick", "ex-post-probabilistic"}
    assert {claim.total for claim in later.claims() if claim.basis == "cap"} == {later.cap.value}
    # What an attacker finds is said of claims that bound every set of outcomes; this one bounds those with this cap.
    assert "whoever tries" in first.receipt.claims()[0].statement()
    assert not any("whoever tries" in claim.statement() for claim in later.claims())
    assert session.count(cost="0.01").receipt.record() == first.receipt.record()
    assert claims_to_date(new, *session.budget()) == later.claims()


def test_a_lowered_cap_adds_a_claim_and_takes_none_away(tmp_path: Path) -> None:
    old = open_shop(tmp_path, budget=GDP)
    (exact, *_) = claims_to_date(old, *parco.Session(old).budget())
    new = read(tmp_path, budget=GDP.replace('"1"', '"0.5"'))
    parco.move_cap(new, reason="sparing")
    claims = claims_to_date(new, *parco.Session(new).budget())
    assert claims[0] == exact
    caps = {claim.total for claim in claims if claim.basis == "cap"}
    assert len(caps) == 2
    assert min(caps) * 10**15 == new.budget.cap_units


def test_a_pure_cap_is_what_it_says_however_it_moved(tmp_path: Path) -> None:
    open_shop(tmp_path)
    new = read(tmp_path, budget='measure = "pure"\nepsilon = "2"')
    parco.move_cap(new, reason="the board")
    claims = claims_to_date(new, *parco.Session(new).budget())
    assert [(claim.basis, claim.epsilon) for claim in claims] == [("cap", Fraction(2)), ("realised", Fraction(0))]
