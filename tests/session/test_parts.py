"""Questions on parts: who pays, what is left, what may be claimed, in records and in words."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.session.receipt import claims_to_date
from parco.stores.sqlite import SqliteStore
from tests.shop import COLUMNS, contract_text, open_shop

PARTS = COLUMNS + '[parts]\nfit = "0.8"\nvalidation = "0.2"\n'
GDP = 'epsilon = "1"\ndelta = "1e-6"\nreceipt_order = 20'


def left(session: parco.Session) -> dict[str, str]:
    return {row.label: str(Fraction(row.remaining, 10**15)) for row in session.budget()}


@pytest.fixture
def session(tmp_path: Path) -> parco.Session:
    return parco.Session(open_shop(tmp_path, columns=PARTS))


def test_a_named_part_pays_alone_and_all_units_charge_every_part(session: parco.Session) -> None:
    one = session.count(by="month", cost="0.2", part="fit")
    assert left(session) == {"fit": "4/5", "validation": "1"}
    assert one.receipt.accounts == ("fit",)
    assert one.remaining == Fraction(4, 5)
    every = session.count(by="month", cost="0.1")
    assert left(session) == {"fit": "7/10", "validation": "9/10"}
    assert every.receipt.accounts == ("fit", "validation")
    assert (str(every.cost), every.remaining) == ("0.1", Fraction(7, 10))
    assert session.count(by="month", cost="0.2", part="fit").repeat
    other = session.count(by="month", cost="0.2", part="validation")
    assert not other.repeat
    assert other.remaining == Fraction(7, 10)


def test_the_plan_says_what_would_be_left_where_it_is_charged(session: parco.Session) -> None:
    session.count(cost="0.9", part="fit")
    assert session.plan.count_units(cost="0.2", part="validation").remaining == Fraction(8, 10)
    every = session.plan.count_units(cost="0.2")
    assert (every.fits, every.remaining) == (False, Fraction(-1, 10))
    with pytest.raises(parco.BudgetError, match="'shop / fit'"):
        session.count_units(cost="0.2")
    assert left(session) == {"fit": "1/10", "validation": "1"}


def test_the_same_noise_is_planned_for_a_part_as_for_all(session: parco.Session) -> None:
    """One unit moves a part's answer as far as it moves everybody's."""
    whole, part = (session.plan.sum("dollars", by="month", cost="0.1", part=part) for part in (None, "fit"))
    assert whole.mechanism == part.mechanism


def test_the_claim_is_the_largest_over_the_parts_and_says_so(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path, columns=PARTS, budget=GDP))
    session.count(cost="0.02", part="fit")
    receipt = session.count(cost="0.01", part="validation").receipt
    assert {claim.total for claim in receipt.claims() if claim.basis == "realised"} == {Fraction(1, 100)}
    claims = claims_to_date(session.contract, *session.budget())
    assert {claim.total for claim in claims if claim.basis == "realised"} == {Fraction(2, 100)}
    assert "largest loss in parts fit, validation" in claims[0].in_words()
    assert "largest loss in part validation" in receipt.claims()[0].in_words()
    assert receipt.record()["accounts"] == ["validation"]
    assert "paid by    validation" in str(receipt)
    undivided = parco.Session(open_shop(tmp_path / "whole")).count(cost="0.1").receipt
    assert "accounts" not in undivided.record()
    assert "paid by" not in str(undivided)
    assert "part" not in undivided.claims()[0].in_words()


def test_two_contracts_share_parts_and_membership(tmp_path: Path) -> None:
    rows = [(str(unit), "2024-01-05", "1", "1", "web") for unit in range(400)]
    contract = open_shop(tmp_path, columns=PARTS, purchases=rows, budget='measure = "pure"\nepsilon = "4000"')
    (tmp_path / "audit.toml").write_text(
        contract_text(name="audit", columns=PARTS, groups=1, budget='measure = "pure"\nepsilon = "4000"')
    )
    audit = parco.Contract.read(tmp_path / "audit.toml")
    parco.sign(audit)
    first, second = parco.Session(contract), parco.Session(audit, version="2")
    # At epsilon 1000 the noise rounds to 0 but with probability below 1e-200.
    counts = [round(next(iter(one.count_units(cost="1000", part="fit").value)).value) for one in (first, second)]
    rest = round(next(iter(first.count_units(cost="1000", part="validation").value)).value)
    assert counts[0] == counts[1]
    assert counts[0] + rest == 400
    assert left(first) == left(second) == {"fit": "2000", "validation": "3000"}


def test_parts_are_declared_at_the_first_signing_and_never_revised(tmp_path: Path) -> None:
    open_shop(tmp_path)
    (tmp_path / "contract.toml").write_text(contract_text(columns=PARTS))
    divided = parco.Contract.read(tmp_path / "contract.toml")
    with pytest.raises(parco.ContractError, match="parts"):
        parco.revise(divided, reason="why")
    with pytest.raises(parco.ContractChangedError):
        parco.sign(divided)
    (tmp_path / "other.toml").write_text(contract_text(name="other", columns=PARTS))
    with pytest.raises(parco.ContractError, match="parts"):
        parco.sign(parco.Contract.read(tmp_path / "other.toml"))
    assert len(list(SqliteStore.open(tmp_path / "shop.ledger").entries())) == 1


@pytest.mark.parametrize("part", ["Fit", "whole", "", 1, ["fit"]])
def test_an_undeclared_part_is_refused_before_any_charge(session: parco.Session, part: object) -> None:
    with pytest.raises(parco.QuestionError, match="there are: fit, validation"):
        session.count(cost="0.1", part=part)  # type: ignore[arg-type]
    assert left(session) == {"fit": "1", "validation": "1"}


def test_a_failure_forfeits_on_every_part(session: parco.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from parco.engines.duckdb import DuckDBEngine

    monkeypatch.setattr(DuckDBEngine, "run_all", lambda *_, **__: 1 / 0)
    with pytest.raises(parco.ForfeitedError):
        session.count(cost="0.1")
    assert left(session) == {"fit": "9/10", "validation": "9/10"}
