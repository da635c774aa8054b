"""Schedules in a session: what is fixed, what is drawn, and what may be claimed while nothing is released outside."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parco
from parco.audit.verify import verify
from parco.errors import BudgetError, QuestionError, RequestError
from parco.ledger.entries import Charge, MechanismFacts, SensitivityFacts, Steps
from parco.measure import COST_UNIT
from parco.privacy.accountants import account
from parco.privacy.claim import Claim
from parco.privacy.composition import compose
from parco.privacy.facts import Exponential, Gaussian, Pure
from parco.session.ask import Ask
from parco.session.prices import price
from parco.session.schedules import (
    ScheduledAsk,
    accounting,
    drawn_of,
    leave_schedule,
    open_charges,
    root_upper,
    sign_schedule,
    standing,
)
from parco.session.session import Session
from parco.stores.address import open_ledger
from parco.stores.records import Recovery
from tests.shop import open_shop
from tests.stores.scenarios import lost

GDP = 'measure = "gdp"\nepsilon = "2"\ndelta = "1e-6"'
ZCDP = 'measure = "zcdp"\nepsilon = "2"\ndelta = "1e-6"'
RENYI = 'measure = "renyi"\norder = 8\nepsilon = "2"\ndelta = "1e-6"'
PURE = 'measure = "pure"\nepsilon = "1"'
VERSIONS = ("w1", "w2", "w3")
COUNT = ScheduledAsk(Ask("count", by="month", cost="0.01"), VERSIONS)


def shop(folder: Path, budget: str = GDP, **contract: Any) -> parco.Contract:
    return open_shop(folder, budget=budget, **contract)


def drawing(contract: parco.Contract, version: str = "w1", schedule: str | None = "weekly") -> Session:
    return Session(contract, version=version, schedule=schedule)


def scheduled_claims(contract: parco.Contract) -> list[Claim]:
    with Session(contract) as session:
        return [claim for claim in session.claims() if claim.basis == "schedule"]


def signed(contract: parco.Contract, *asks: ScheduledAsk, name: str = "weekly") -> Any:
    with Session(contract) as session:
        return sign_schedule(session, name, asks or (COUNT,))


@pytest.mark.parametrize("budget", [GDP, ZCDP, RENYI])
def test_the_claim_is_the_composition_of_all_that_was_signed(tmp_path: Path, budget: str) -> None:
    contract = shop(tmp_path, budget)
    scheduled = signed(contract)
    expected = accounting((step.facts, 1) for step in scheduled.steps)
    (before,) = scheduled_claims(contract)
    with drawing(contract) as session:
        released = session.count(by="month")
    assert released.cost.value == Fraction(1, 100)
    assert (released.receipt.drawn, released.receipt.record()["step"]) == (("weekly", 1), 1)
    assert "step 1 of the schedule weekly" in str(released.receipt)
    (claim,) = scheduled_claims(contract)
    assert claim == before
    assert (claim.status, claim.accountant, claim.fixed_in_advance, claim.schedules) == (
        "tight",
        "pld",
        True,
        ("weekly",),
    )
    assert claim.epsilon == compose(expected).epsilon("1e-6").upper
    pld = next(one for one in account(expected, "1e-6").claims if one.accountant == "pld")
    assert claim.record()["epsilon"] == pld.record()["epsilon"]
    assert claim.total == 3 * Fraction(1, 100)
    with Session(contract) as session:
        cap = session.claims()[0]
    assert claim.epsilon < cap.epsilon
    verify(open_ledger(contract.folder / "shop.ledger"), releases=[released.record()], strict=True)


def test_a_release_outside_ends_it_and_is_named(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    signed(contract)
    with drawing(contract) as session:
        session.count(by="month")
    assert len(scheduled_claims(contract)) == 1
    with Session(contract) as session:
        session.count_units(cost="0.01")
        store = session._store
        found = standing(store, contract, store.accounts())
    assert scheduled_claims(contract) == []
    assert found is not None
    assert (found.claim, found.outside is not None and found.outside.seq) == (None, 6)


def test_a_repeat_is_no_release(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    signed(contract)
    with drawing(contract) as session:
        session.count(by="month")
    with drawing(contract, schedule=None) as session:
        assert session.count(by="month").repeat
    assert len(scheduled_claims(contract)) == 1


def test_what_was_signed_after_the_first_release_has_no_tight_claim(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    with Session(contract) as session:
        session.count(cost="0.01")
    signed(contract)
    with drawing(contract) as session:
        session.count(by="month")
    assert scheduled_claims(contract) == []


def test_two_signed_before_are_one_and_a_third_counts_as_outside(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    signed(contract)
    (alone,) = scheduled_claims(contract)
    signed(contract, ScheduledAsk(Ask("sum", "dollars", cost="0.02"), VERSIONS), name="sums")
    (both,) = scheduled_claims(contract)
    assert both.schedules == ("weekly", "sums")
    assert both.epsilon > alone.epsilon
    assert both.total == Fraction(9, 100)
    with drawing(contract) as session:
        session.count(by="month")
    signed(contract, ScheduledAsk(Ask("count", cost="0.01"), VERSIONS), name="late")
    assert scheduled_claims(contract) == [both]
    with drawing(contract, schedule="late") as session:
        session.count()
    assert scheduled_claims(contract) == []


def test_a_recovery_ends_it(tmp_path: Path) -> None:
    """In the past that was lost a step may have been drawn that could now be drawn again."""
    contract = shop(tmp_path)
    signed(contract)
    store = open_ledger(contract.folder / "shop.ledger")
    store.witness([lost(store)])
    store.recover(Recovery(actor="steward", reason="a disk failed", unshown=0))
    found = standing(store, contract, store.accounts())
    assert found is not None
    assert (found.claim, found.outside is not None and found.outside.state) == (None, "recover")


def test_leaving_makes_the_claim_no_smaller_until_something_is_released_outside(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    signed(contract)
    with drawing(contract) as session:
        session.count(by="month")
        (before,) = (claim for claim in session.claims() if claim.basis == "schedule")
        left = leave_schedule(session, "weekly", reason="over")
        assert (drawn_of(left), open_charges(left)) == (1, ())
        row = session.budget()[0]
        assert (row.spent * COST_UNIT, row.reserved) == (Fraction(1, 100), 0)
    assert scheduled_claims(contract) == [before]
    with drawing(contract, "w2") as session, pytest.raises(RequestError, match="was left"):
        session.count(by="month")
    with Session(contract) as session:
        session.count(cost="0.01")
    assert scheduled_claims(contract) == []


def test_a_draw_takes_nothing_from_the_free_room(tmp_path: Path) -> None:
    contract = shop(tmp_path, PURE)
    signed(contract, ScheduledAsk(Ask("count", by="month", cost="0.25"), VERSIONS))
    with Session(contract) as session:
        session.count(cost="0.25")
        with pytest.raises(BudgetError):
            session.count_units(cost="0.01")
    with drawing(contract) as session:
        assert session.plan.count(by="month").remaining == 0
        assert session.plan.release([Ask("count", by="month")])[0].fits
        session.count(by="month")
        assert session.plan.count(by="month").repeat


def test_pure_claims_add_up(tmp_path: Path) -> None:
    contract = shop(tmp_path, PURE)
    signed(contract)
    (claim,) = scheduled_claims(contract)
    assert (claim.epsilon, claim.delta, claim.accountant, claim.status) == (
        Fraction(3, 100),
        Fraction(0),
        "basic",
        "valid",
    )
    with Session(contract) as session:
        cheaper = price(session, [COUNT], name="weekly", delta="1e-6")
    assert cheaper.tight.epsilon < claim.epsilon
    assert cheaper.tight.status == "valid"


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (ScheduledAsk(Ask("count", fresh=True), VERSIONS), "neither fresh nor key"),
        (ScheduledAsk(Ask("count", key="k"), VERSIONS), "neither fresh nor key"),
        (ScheduledAsk(Ask("count"), ()), "versions"),
        (ScheduledAsk(Ask("count"), ("w1", "w1")), "each once"),
        (ScheduledAsk(Ask("count", cost="0.01"), VERSIONS, "3"), "its scale"),
        (ScheduledAsk(Ask("count"), VERSIONS, "0"), "above 0"),
        (ScheduledAsk(Ask("sum"), VERSIONS), "column"),
        (ScheduledAsk(Ask("count"), tuple(f"w{n}" for n in range(10_001))), "10,000 steps"),
    ],
)
def test_what_cannot_be_fixed_is_refused(tmp_path: Path, ask: ScheduledAsk, told: str) -> None:
    contract = shop(tmp_path)
    with pytest.raises(QuestionError, match=told):
        signed(contract, ask)
    assert len(open_ledger(contract.folder / "shop.ledger").history()) == 1


def test_a_selection_of_keys_is_asked_outside(tmp_path: Path) -> None:
    contract = shop(
        tmp_path,
        GDP + '\ndelta_mechanisms = "1e-7"',
        columns='[columns.channel]\ntype = "text"\nkeys = "select"\n',
    )
    with pytest.raises(QuestionError, match="outside of a schedule"):
        signed(contract, ScheduledAsk(Ask("select_keys", "channel"), VERSIONS))


def test_only_what_was_fixed_is_drawn(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    signed(contract)
    with drawing(contract) as session:
        with pytest.raises(QuestionError, match="no step for count_units"):
            session.count_units()
        with pytest.raises(QuestionError, match="fixed count by month otherwise"):
            session.count(by="month", cost="0.02")
        assert session.count(by="month", cost="0.01").cost.value == Fraction(1, 100)
    with drawing(contract, "w4") as session, pytest.raises(QuestionError, match="version w4"):
        session.count(by="month")
    with pytest.raises(RequestError, match="no schedule 'monthly'"):
        drawing(contract, schedule="monthly")


def test_a_schedule_is_of_one_data_set(tmp_path: Path) -> None:
    first = shop(tmp_path)
    signed(first)
    (tmp_path / "other").mkdir()
    other = shop(tmp_path / "other", dataset="other", name="other")
    parco.sign(other, ledger=tmp_path / "shop.ledger", disjoint="other persons")
    with pytest.raises(RequestError, match="another data set"):
        Session(other, ledger=tmp_path / "shop.ledger", schedule="weekly")
    with Session(other, ledger=tmp_path / "shop.ledger") as session:
        session.count(cost="0.01")
    assert len(scheduled_claims(first)) == 1


def test_a_mean_and_a_quantile_are_drawn_part_by_part(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    asks = (
        ScheduledAsk(Ask("mean", "dollars", cost="0.01"), ("w1",)),
        ScheduledAsk(Ask("quantile", "dollars", at=["0.25", "0.5"], cost="0.01"), ("w1",)),
        ScheduledAsk(Ask("count", by="month"), ("w1",), "20"),
    )
    scheduled = signed(contract, *asks)
    assert [step.facts.mechanism.kind for step in scheduled.steps] == [
        *["gaussian"] * 2,
        *["exponential"] * 2,
        "gaussian",
    ]
    assert scheduled.steps[-1].facts.mechanism.scale == 20
    with drawing(contract) as session:
        mean, quantile, count = session.release(
            [Ask("mean", "dollars"), Ask("quantile", "dollars", at=["0.25", "0.5"]), Ask("count", by="month")]
        )
    assert not mean.repeat
    assert not quantile.repeat
    assert count.receipt.mechanism.scale == 20
    assert drawn_of(open_ledger(contract.folder / "shop.ledger").schedule("weekly")) == 5
    (claim,) = scheduled_claims(contract)
    assert claim.status == "valid"
    assert claim.epsilon > 0


def test_the_largest_of_several_accounts_is_claimed(tmp_path: Path) -> None:
    parts = '\n[parts]\nfit = "0.5"\nrest = "0.5"\n'
    from tests.shop import COLUMNS

    contract = shop(tmp_path, columns=COLUMNS + parts)
    asks = [
        ScheduledAsk(Ask("count", cost=cost, part=part), VERSIONS) for cost, part in (("0.01", "fit"), ("0.03", "rest"))
    ]
    scheduled = signed(contract, *asks)
    (claim,) = scheduled_claims(contract)
    assert claim.total == Fraction(9, 100)
    dearer = accounting([(step.facts, 1) for step in scheduled.steps], account=2)
    assert claim.epsilon == compose(dearer).epsilon("1e-6").upper
    with drawing(contract) as session:
        session.count(part="fit")
    assert scheduled_claims(contract) == [claim]
    with Session(contract) as session:
        session.count(part="fit", by="month", cost="0.01")
    assert scheduled_claims(contract) == []


def test_a_price_is_what_signing_then_takes(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    with Session(contract) as session:
        found = price(session, [COUNT], name="weekly")
        scheduled = sign_schedule(session, "weekly", [COUNT])
        row = session.budget()[0]
    assert found.cost == row.reserved * COST_UNIT
    assert found.remaining == row.remaining * COST_UNIT
    assert found.fits
    assert [found.tight] == scheduled_claims(contract)
    assert found.schedule == accounting((step.facts, 1) for step in scheduled.steps)
    assert found.filter_alone.epsilon < found.filter.epsilon
    # Gaussian noise is composed exactly in gdp: the charge, rounded up, claims as much but for its rounding.
    assert found.tight.epsilon <= found.filter_alone.epsilon < found.tight.epsilon * (1 + Fraction(1, 10**9))


def test_too_dear_a_schedule_is_priced_and_refused(tmp_path: Path) -> None:
    contract = shop(tmp_path)
    dear = ScheduledAsk(Ask("count", cost="0.1"), VERSIONS)
    with Session(contract) as session:
        assert not price(session, [dear], name="weekly").fits
        with pytest.raises(BudgetError):
            sign_schedule(session, "weekly", [dear])


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30).filter(bool))
def test_a_root_is_rounded_up_and_hardly(square: Fraction) -> None:
    root = root_upper(square)
    assert root**2 >= square
    assert root**2 <= square * (1 + Fraction(1, 2**62))
    assert root_upper(root**2) == root


def test_steps_have_their_accounting_form() -> None:
    def step(kind: str, l1: int, l2_squared: int) -> Steps:
        facts = MechanismFacts(kind, Fraction(4), Fraction(1))
        return Steps(("q",), facts, SensitivityFacts(Fraction(l1), Fraction(l2_squared)), 1, (Charge(1, 1),))

    found = accounting(
        [(step("gaussian", 3, 9), 2), (step("gaussian", 9, 9), 1), (step("two-sided-geometric", 3, 9), 5)]
    )
    assert [(one.facts, one.times) for one in found.releases] == [
        (Gaussian(Fraction(3), Fraction(4)), 3),
        (Pure(Fraction(3, 4)), 5),
    ]
    # Two choices, each score moved by at most 3: bounded range 2 * 3/4 each.
    found = accounting([(step("exponential", 6, 18), 1)])
    assert [(one.facts, one.times) for one in found.releases] == [(Exponential(Fraction(3, 2)), 2)]
    with pytest.raises(RequestError):
        accounting([(step("gaussian", 3, 9), 2)], account=2)


def test_a_claim_is_right_where_the_distance_is_irrational(tmp_path: Path) -> None:
    """The claim against the Gaussian profile at 40 digits, with mu from the square of the sensitivity itself."""
    contract = shop(tmp_path, groups=3, rows=1)
    signed(contract)
    (claim,) = scheduled_claims(contract)
    scale = open_ledger(contract.folder / "shop.ledger").schedule("weekly").steps[0].facts.mechanism.scale
    with mpmath.workdps(40):
        mu = mpmath.sqrt(9) / (mpmath.mpf(scale.numerator) / scale.denominator)

        def profile(epsilon: Any) -> Any:
            return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)

        above = mpmath.mpf(claim.epsilon.numerator) / claim.epsilon.denominator
        assert profile(above) <= mpmath.mpf("1e-6") < profile(above * (1 - mpmath.mpf("1e-12")))


def test_each_period_has_its_own_sum_and_the_largest_is_claimed(tmp_path: Path) -> None:
    contract = shop(tmp_path, groups=1)
    text = (tmp_path / "contract.toml").read_text(encoding="utf-8").replace("rows = 2", 'rows = 2\nperiod = "month"')
    (tmp_path / "contract.toml").write_text(text, encoding="utf-8")
    contract = parco.Contract.read(tmp_path / "contract.toml")
    ledger = tmp_path / "periods.ledger"
    parco.sign(contract, ledger=ledger)
    asks = [
        ScheduledAsk(Ask("count", by="month", cost="0.01"), VERSIONS),
        ScheduledAsk(Ask("count", period="2024-02", cost="0.02"), ("w1",)),
    ]
    with Session(contract, ledger=ledger) as session:
        sign_schedule(session, "weekly", asks)
        reserved = [row.reserved * COST_UNIT for row in session.budget()]
        (claim,) = (claim for claim in session.claims() if claim.basis == "schedule")
    assert reserved == [Fraction(3, 100), Fraction(5, 100), Fraction(3, 100), Fraction(3, 100)]
    assert claim.total == Fraction(5, 100)
    assert "the largest loss among" in claim.context.bounds
    with Session(contract, ledger=ledger, version="w1", schedule="weekly") as session:
        session.count(period="2024-02")
        session.count(by="month")
        assert claim in session.claims()
