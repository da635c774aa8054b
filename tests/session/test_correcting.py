"""What is told of a release that was corrected: by receipts, repeats and claims; and claims never count too little."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import parco
from parco.audit.verify import verify
from parco.errors import BudgetError, NotSignedError, RequestError, SupersededError, VerificationError
from parco.session.receipt import claims_to_date
from parco.stores.sqlite import SqliteStore
from tests.shop import COLUMNS, open_shop

GDP = 'epsilon = "1"\ndelta = "1e-6"\nreceipt_order = 20'
WHY: Any = {"reason": "because"}


@pytest.fixture
def shop(tmp_path: Path) -> parco.Contract:
    return open_shop(tmp_path)


def epsilons(claims: Any) -> list[Fraction]:
    return [claim.epsilon for claim in claims]


def test_a_session_and_a_ledger_correct_by_the_same_names(shop: parco.Contract, tmp_path: Path) -> None:
    with parco.Session(shop, actor="ana") as session, parco.Ledger(tmp_path / "shop.ledger", actor="bo") as ledger:
        one, two = session.count(cost="0.1"), session.count(by="month", cost="0.1")
        session.supersede(one.receipt.release, two.receipt.release, reason="by month is what was meant")
        ledger.amend(one.receipt.release, "title", "Purchases", reason="for the report")
        ledger.flag(two.receipt.release, reason="March lacks a shop")
        found = ledger.show(one.receipt.release)
        assert session.corrections(one.receipt.release) == found.row.corrections
        assert [(each.what, each.actor) for each in found.row.corrections] == [("supersede", "ana"), ("amend", "bo")]
        assert found.answer is not None
        assert json.loads(found.answer.answer)["cells"] == [row.value for row in one.value]
        assert ledger.show(1).answer is None
        assert ledger.history() == session.history()
        assert ledger.accounts() == session.budget()


def test_a_superseded_answer_is_not_served_and_the_one_instead_is(shop: parco.Contract) -> None:
    session = parco.Session(shop)
    old = session.count(by="month", cost="0.1")
    session.supersede(old.receipt.release, withdraw=True, **WHY)
    with pytest.raises(SupersededError, match="release 2, was withdrawn: `parco show` says why"):
        session.count(by="month", cost="0.1")
    with pytest.raises(SupersededError):
        session.count(by="month", cost="0.2")
    assert session.budget()[0].spent == 10**14, "asking again cost nothing"
    new = session.count(by="month", cost="0.1", fresh=True)
    session.supersede(old.receipt.release, new.receipt.release, **WHY)
    again = session.count(by="month", cost="0.1")
    assert (again.repeat, again.receipt.release) == (True, new.receipt.release)


def test_a_key_is_served_what_it_paid_for_and_told(shop: parco.Contract) -> None:
    session = parco.Session(shop)
    old = session.count(cost="0.1", key="monday")
    assert "since" not in old.receipt.record()
    session.supersede(old.receipt.release, withdraw=True, reason="the wrong file")
    again = session.count(cost="0.1", key="monday")
    assert again.value == old.value
    assert again.receipt.since is not None
    assert "SINCE      withdrawn by" in str(again.receipt)
    assert "the wrong file" in str(again.receipt)


@pytest.mark.parametrize("budget", [GDP, 'measure = "pure"\nepsilon = "1"'])
def test_claims_after_a_recost_count_the_raised_cost(tmp_path: Path, budget: str) -> None:
    contract = open_shop(tmp_path, budget=budget)
    session = parco.Session(contract)
    first = session.count(cost="0.01")
    last = session.count(by="month", cost="0.01")
    before = claims_to_date(contract, *session.budget())
    session.recost(first.receipt.mechanism.kind, factor=4, reason="advisory 7")
    after = claims_to_date(contract, *session.budget())
    assert after[-1].epsilon > before[-1].epsilon
    again = session.count(cost="0.01")
    assert again.receipt.cost == first.receipt.cost, "what it was charged then is still told"
    assert again.receipt.since is not None
    assert again.receipt.since.cost.units == 4 * first.receipt.cost.units
    assert again.receipt.since.added == 3 * (first.receipt.cost.value + last.receipt.cost.value)
    assert again.receipt.claims()[-1].epsilon > first.receipt.claims()[-1].epsilon
    # A release that came before another's recost claims at least what holds of all up to its place.
    assert epsilons(session.count(by="month", cost="0.01").receipt.claims()) == epsilons(after)
    record = again.record()
    assert json.loads(json.dumps(record)) == record
    store = SqliteStore.open(tmp_path / "shop.ledger")
    verify(store, releases=[first.record(), last.record(), record])


def test_claims_of_an_overdrawn_account_leave_the_cap_behind(shop: parco.Contract, tmp_path: Path) -> None:
    session = parco.Session(shop)
    one = session.count(cost="0.5")
    wrong = session.recost("two-sided-geometric", factor=4, reason="advisory 7")
    (account,) = session.budget()
    assert (account.remaining, account.fixed_cap) == (-(10**15), None)
    assert min(epsilons(claims_to_date(shop, account))) >= 2
    assert min(epsilons(session.count(cost="0.5").receipt.claims())) >= 2
    assert min(epsilons(one.receipt.claims())) == Fraction(1, 2), "the old receipt, as it was given"
    with pytest.raises(BudgetError):
        session.count(by="month", cost="1/1000000")
    session.recost("two-sided-geometric", factor=1, corrects=wrong.position, reason="advisory 7 was withdrawn")
    assert min(epsilons(claims_to_date(shop, *session.budget()))) == Fraction(1, 2)
    again = session.count(cost="0.5")
    assert again.receipt.claims() == one.receipt.claims()
    assert again.receipt.since is not None
    assert again.receipt.since.added == 0
    assert session.count(by="month", cost="0.25").receipt.since is None
    verify(SqliteStore.open(tmp_path / "shop.ledger"), releases=[again.record(), one.record()])


def test_the_total_of_a_selections_delta_is_raised_and_claimed(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, budget=GDP)
    session = parco.Session(contract)
    session.count(cost="0.01")
    session.recost("gaussian", cost="0.01", delta="1e-7", reason="a tail was left out")
    (account,) = session.budget()
    assert (account.delta_spent, account.delta_excess) == (10**11, 10**11)
    receipt = session.count(cost="0.01").receipt
    assert receipt.since is not None
    assert receipt.since.delta_added == Fraction(1, 10**7)
    told = {claim.delta for claim in receipt.claims()}
    assert told == {claim.delta for claim in claims_to_date(contract, account)}
    assert min(told) >= Fraction(1, 10**6) + Fraction(1, 10**7)


def test_an_old_receipt_verifies_and_a_bent_one_does_not(shop: parco.Contract, tmp_path: Path) -> None:
    """A smaller epsilon, a correction left out, changed or made up: each differs from what the ledger says."""
    session = parco.Session(shop)
    old = session.count(cost="0.1").record()
    session.recost("two-sided-geometric", factor=4, reason="advisory 7")
    session.flag(2, reason="to be looked at")
    new: Any = session.count(cost="0.1").record()
    session.flag(2, reason="looked at")
    store = SqliteStore.open(tmp_path / "shop.ledger")
    verify(store, releases=[old, new])

    def bent(**changes: Any) -> dict[str, Any]:
        return {**new, "receipt": {**new["receipt"], **changes}}

    since, claims = new["receipt"]["since"], new["receipt"]["claims"]
    first, *others = since["corrections"]
    for bad in (
        bent(claims=[{**claims[0], "epsilon": "0.1"}, *claims[1:]]),
        bent(claims=old["receipt"]["claims"]),  # type: ignore[index]
        bent(cost="0.01"),
        bent(since={**since, "until": since["until"] - 1}),
        bent(since={**since, "until": since["until"] + 2}),
        bent(since={**since, "until": "now"}),
        bent(since={**since, "added": "0.1"}),
        bent(since={**since, "cost": "0.1"}),
        bent(since={**since, "corrections": [first]}),
        bent(since={**since, "corrections": [{**first, "reason": "none"}, *others]}),
        bent(since=None),
    ):
        with pytest.raises(VerificationError, match="released"):
            verify(store, releases=[bad])


def test_a_receipt_with_a_reason_that_was_erased_since_still_verifies(shop: parco.Contract, tmp_path: Path) -> None:
    session = parco.Session(shop)
    session.count(cost="0.1")
    flag = session.flag(2, reason="Mr Rossi asked")
    record = session.count(cost="0.1").record()
    session.amend(flag, "reason", erase=True, reason="he asked again")
    verify(SqliteStore.open(tmp_path / "shop.ledger"), releases=[record])


def test_a_receipt_of_several_accounts_claims_what_was_recosted_on_any(tmp_path: Path) -> None:
    """Also on one that another release alone had charged, and that had more left when the receipt was made."""
    parts = COLUMNS + '\n[parts]\nfit = "0.5"\ntest = "0.5"\n'
    session = parco.Session(open_shop(tmp_path, columns=parts))
    early, _ = session.count(part="test", cost="0.05"), session.count(part="fit", cost="0.2")
    both = session.count(by="month", cost="0.01")
    assert [one.epsilon for one in both.receipt.claims() if one.basis == "realised"] == [Fraction(21, 100)]
    session.recost("two-sided-geometric", factor=10, only=[early.receipt.release], reason="the formula was wrong")
    again = session.count(by="month")
    assert [one.epsilon for one in again.receipt.claims() if one.basis == "realised"] == [Fraction(51, 100)]
    verify(SqliteStore.open(tmp_path / "shop.ledger"), releases=[both.record(), again.record()])


def test_a_receipt_made_while_its_accounts_were_closed_claims_the_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Caps then differ, and nothing is left on either."""
    parts = COLUMNS + '\n[parts]\nfit = "0.5"\ntest = "0.5"\n'
    session = parco.Session(open_shop(tmp_path, columns=parts))
    session.count(part="test", cost="0.5")
    answers = parco.Session._answers

    def closing(one: parco.Session, *given: Any) -> list[bytes]:
        one.close_account(reason="just now")
        return answers(one, *given)

    monkeypatch.setattr(parco.Session, "_answers", closing)
    both = session.count(by="month", cost="0.01").receipt
    assert [row.cap for row in session.budget()] == [10**13, 51 * 10**13]
    assert {one.epsilon for one in both.claims() if one.basis == "realised"} == {Fraction(51, 100)}
    assert "lost at most 0.51 of pure" in both.lifetime_words
    verify(SqliteStore.open(tmp_path / "shop.ledger"), strict=True)


def test_a_data_set_that_was_deleted_leaves_its_releases(shop: parco.Contract, tmp_path: Path) -> None:
    session = parco.Session(shop)
    old = session.count(cost="0.1")
    (tmp_path / "purchases.csv").unlink()
    session.close_account(reason="the table was deleted")
    assert session.count(cost="0.1").value == old.value
    assert session.show(2).answer is not None
    with pytest.raises(RequestError):
        session.count(by="month", cost="0.1")  # there is no file any more
    assert session.budget()[0].remaining == 0
    verify(SqliteStore.open(tmp_path / "shop.ledger"), releases=[old.record()], strict=True)


@pytest.mark.parametrize(
    "act",
    [
        lambda one: one.amend(2, "title", **WHY),
        lambda one: one.amend(2, "title", "x", erase=True, **WHY),
        lambda one: one.amend(2, "title", "a\nb", **WHY),
        lambda one: one.amend(2, "title", "x" * 2001, **WHY),
        lambda one: one.amend(2, "title", "x", reason=""),
        lambda one: one.supersede(2, **WHY),
        lambda one: one.supersede(2, 2, withdraw=True, **WHY),
        lambda one: one.supersede("2", withdraw=True, **WHY),
        lambda one: one.supersede(True, withdraw=True, **WHY),
        lambda one: one.recost("two-sided-geometric", factor=4),
        lambda one: one.recost("two-sided-geometric", factor="nan", **WHY),
        lambda one: one.recost("two-sided-geometric", factor=4, only=[0], **WHY),
        lambda one: one.flag(0, **WHY),
        lambda one: one.flag(2, reason="x" * 2001),
        lambda one: one.close_account("nothing", **WHY),
    ],
)
def test_what_is_refused_changes_nothing(shop: parco.Contract, tmp_path: Path, act: Any) -> None:
    parco.Session(shop).count(cost="0.1")
    ledger = parco.Ledger(tmp_path / "shop.ledger")
    before = ledger.history()
    with pytest.raises(RequestError):
        act(ledger)
    assert ledger.history() == before


def test_a_dry_run_lists_and_charges_nothing(shop: parco.Contract, tmp_path: Path) -> None:
    parco.Session(shop).count(cost="0.1")
    ledger = parco.Ledger(tmp_path / "shop.ledger")
    before = ledger.history()
    listed = ledger.recost("two-sided-geometric", factor=4, dry_run=True)
    assert (listed.position, [one.total[0] for one in listed.releases]) == (None, [4 * 10**14])
    assert ledger.history() == before
    done = ledger.recost("two-sided-geometric", factor=4, **WHY)
    assert done.releases == listed.releases


def test_there_is_no_ledger_to_correct(tmp_path: Path) -> None:
    with pytest.raises(NotSignedError):
        parco.Ledger(tmp_path / "x.ledger")
