"""Quotas, lineage and scopes around refinements and schedules: each counts, charges and hides what a release would."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.audit.controls import controls
from parco.audit.verify import verify
from parco.session.ask import Ask
from parco.session.schedules import ScheduledAsk, leave_schedule, sign_schedule
from parco.session.session import Session
from parco.stores.records import Recosting
from parco.stores.sqlite import SqliteStore
from tests.stores.build import ACT

from .test_answers import signed as scoped
from .test_lineage import GDP, ZCDP, signed, spent

ASKS = [ScheduledAsk(Ask("count", by="month", cost="0.01"), ("w1", "w2"))]


def used(session: Session) -> Fraction:
    (row,) = session.quotas()
    return Fraction(row.used, 10**15)


def test_a_quota_counts_what_refines_by_the_difference_and_no_recost(tmp_path: Path) -> None:
    session = signed(tmp_path, "a", budget=GDP)
    actor, ledger = session.actor, tmp_path / "x.ledger"
    parco.set_quota("team", members=[actor], amount="0.03", reason="fairness", ledger=ledger)
    first = session.count(by="month", cost="0.01")
    finer = session.refine(first, cost="0.01")
    assert used(session) == first.cost.value + finer.cost.value == spent(session)["a"]
    with pytest.raises(parco.QuotaError):
        session.refine(finer, cost="0.02")
    store = SqliteStore.open(ledger)
    store.recost(ACT, Recosting(mechanism="gaussian", factor=Fraction(2)))
    assert used(session) == spent(session)["a"] / 2
    verify(store)


def test_a_quota_counts_a_step_when_it_is_drawn(tmp_path: Path) -> None:
    session = signed(tmp_path, "a", budget=GDP)
    ledger = tmp_path / "x.ledger"
    parco.set_quota("team", members=[session.actor], amount="0.015", reason="fairness", ledger=ledger)
    sign_schedule(session, "weekly", ASKS)
    assert used(session) == 0
    for version in ("w1", "w2"):
        drawing = Session(session.contract, ledger=ledger, version=version, schedule="weekly")
        if version == "w1":
            cost = drawing.count(by="month").cost.value
            assert used(drawing) == cost > 0
        else:
            with pytest.raises(parco.QuotaError):
                drawing.count(by="month")
    leave_schedule(session, "weekly", reason="over")
    assert used(session) == cost
    store = SqliteStore.open(ledger)
    store.verify()
    verify(store, strict=True)


def test_a_refinement_of_derived_data_charges_every_ancestor_the_difference(tmp_path: Path) -> None:
    signed(tmp_path, "a", budget=ZCDP)
    session = signed(tmp_path, "b", "a", budget=GDP)
    first = session.count(by="month", cost="0.01")
    before = spent(session)
    plan = session.plan.refine(first, cost="0.01")
    assert [one.account for one in plan.also] == ["a"]
    finer = session.refine(first, cost="0.01")
    after = spent(session)
    assert after["b"] - before["b"] == finer.cost.value > 0
    assert after["a"] - before["a"] == finer.receipt.also[0].cost.value == plan.also[0].cost.value > 0
    # Both telescope: what one release of the last law costs there, rounded up.
    law = finer.receipt.mechanism
    whole = {one: Fraction(law.cost_units(finer.receipt.sensitivity, one), 10**15) for one in (parco.Measure.ZCDP,)}
    assert after["a"] == whole[parco.Measure.ZCDP]
    store = SqliteStore.open(tmp_path / "x.ledger")
    store.verify()
    verify(store, releases=[first.record(), finer.record()], strict=True)


def test_a_recost_of_derived_data_is_told_in_its_own_measure(tmp_path: Path) -> None:
    signed(tmp_path, "a", budget=GDP)
    session = signed(tmp_path, "b", "a", budget=ZCDP)
    first = session.count(by="month", cost="0.005")
    store = SqliteStore.open(tmp_path / "x.ledger")
    with pytest.raises(parco.RequestError, match="several measures"):
        store.recost(ACT, Recosting(mechanism="gaussian", cost=10**14))
    store.recost(ACT, Recosting(mechanism="gaussian", factor=Fraction(3)))
    since = session.count(by="month").receipt.since
    assert since is not None
    assert since.cost.value == 3 * first.cost.value
    verify(store)


def test_a_control_on_an_ancestor_leaves_out_what_was_recosted_there(tmp_path: Path) -> None:
    signed(tmp_path, "a", budget=ZCDP)
    session = signed(tmp_path, "b", "a", budget=GDP)
    session.count(by="month", cost="0.004")
    session.recost("gaussian", factor=3, reason="the formula was wrong")
    store = SqliteStore.open(tmp_path / "x.ledger")
    rows = {row.name: row for row in store.accounts()}
    assert rows["b"].spent == 2 * rows["a"].spent > 0
    left_out = {one.account: one for one in controls(store) if one.fault.endswith("left out")}
    # It was the only one: without it nothing is claimed but what a total of 0 has.
    assert left_out.keys() == {"a", "b"}
    assert left_out["a"].after == left_out["b"].after
    assert [one.bites for one in left_out.values()] == [True, True]


def test_no_schedule_is_signed_on_derived_data(tmp_path: Path) -> None:
    signed(tmp_path, "a", budget=GDP)
    session = signed(tmp_path, "b", "a", budget=GDP)
    with pytest.raises(parco.QuestionError, match="derived from no other"):
        sign_schedule(session, "weekly", ASKS)
    assert session._store.schedules() == []


def test_who_is_not_served_an_answer_refines_none_and_draws_no_step_of_others(tmp_path: Path) -> None:
    contract = scoped(tmp_path, "actor")
    ana, bob = (Session(contract, actor=actor) for actor in ("ana", "bob"))
    first = ana.count(cost="0.1")
    with pytest.raises(parco.QuestionError, match="served to other askers"):
        bob.plan.refine(first, cost="0.1")
    with pytest.raises(parco.QuestionError, match="served to other askers"):
        bob.refine(first, cost="0.1")
    assert not ana.refine(first, cost="0.1").repeat
    sign_schedule(ana, "weekly", [ScheduledAsk(Ask("count", by="month", cost="0.1"), ("w1",))])
    with pytest.raises(parco.QuestionError, match="has no step"):
        Session(contract, actor="bob", version="w1", schedule="weekly").count(by="month")
    assert not Session(contract, actor="ana", version="w1", schedule="weekly").count(by="month").repeat
