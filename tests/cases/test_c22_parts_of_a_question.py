"""C22: every aggregate of one question got the whole budget, or a share was taken off whether it was used or not."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco import Ask
from parco.session.session import Session
from tests.shop import COLUMNS, open_shop

COST_UNIT = Fraction(1, 10**15)
PURE = 'measure = "pure"\nepsilon = "{}"'


def spent(session: Session) -> Fraction:
    (account,) = session.budget()
    return account.spent * COST_UNIT


def test_count_and_mean_by_group_are_two_parts_shown_before_and_charged_the_same(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget=PURE.format(4))) as session:
        # Epsilon 1 a part; the keys are declared, so that none has to be chosen.
        plan = session.plan.mean("dollars", by="channel", cost="2")
        assert [str(part.cost) for part in plan.parts] == ["1", "1"]
        assert str(plan.cost) == "2"
        count, mean = session.release(
            [Ask("count", "dollars", by="channel", cost="1"), Ask("mean", "dollars", by="channel", cost="2")]
        )
        assert spent(session) == 2 == count.cost.value + mean.cost.value
        assert [str(part.cost) for part in mean.receipt.parts] == ["1", "1"]  # type: ignore[attr-defined]
        # The count asked again alone is served from the stored part.
        again = session.count("dollars", by="channel", cost="1")
        assert again.repeat
        assert spent(session) == 2


def test_shares_add_up_to_the_whole_exactly(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget=PURE.format("1.5"))) as session:
        for split in ("1/3", "2/3", "1/7", "0.999999999999999", None):
            plan = session.plan.mean("dollars", cost="1.5", split=split)
            assert plan.cost.units == 1_500_000_000_000_000
            assert plan.remaining == 0
        asks = [Ask("count", where=f"items >= {place}", cost="0.1") for place in range(1, 11)]
        session.release([*asks, Ask("mean", "dollars", cost="0.5")])
        assert spent(session) == Fraction("1.5")
        with pytest.raises(parco.BudgetError):
            session.count_units(cost="1e-15")


def test_what_does_not_fit_is_refused_at_once_and_by_name(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget=PURE.format("1.0"))) as session:
        with pytest.raises(parco.BudgetError, match="nothing was charged"):
            session.release([Ask("count_units", cost="1.0"), Ask("mean", "dollars", cost="0.5")])
        with pytest.raises(parco.QuestionError, match="a part's share of the cost"):
            session.mean("dollars", cost="0.5", split="1e-16")
        assert spent(session) == 0
        # Nothing is set aside for what nobody asked.
        assert str(session.count(cost="1").cost) == "1"


def test_keys_that_are_not_declared_are_a_part_of_their_own(tmp_path: Path) -> None:
    """The hidden number of units behind a key has a cost of its own, in plan and ledger, and is stored as well."""
    columns = COLUMNS.replace('keys = ["web", "shop", "phone"]', 'keys = "select"')
    budget = 'measure = "pure"\nepsilon = "4"\ndelta = "1e-6"\ndelta_mechanisms = "1e-6"'
    asks = [
        Ask("select_keys", "channel", cost="1", delta="1e-7"),
        Ask("count", "dollars", cost="1"),
        Ask("mean", "dollars", cost="2"),
    ]
    with Session(open_shop(tmp_path, budget=budget, columns=columns)) as session:
        with pytest.raises(parco.QuestionError, match="no declared keys"):
            session.count(by="channel", cost="1")
        plans = session.plan.release(asks)
        assert [str(plan.cost) for plan in plans] == ["1", "1", "2"]
        # Three parts, since the count of the mean is the count that is asked beside it.
        released = session.release(asks)
        (account,) = session.budget()
        assert account.spent * COST_UNIT == 3 == sum(one.cost.value for one in released)
        assert account.delta_spent == plans[0].delta_units > 0  # type: ignore[union-attr]
        assert session.count("dollars", cost="1").repeat
        assert session.select_keys("channel").repeat
        assert spent(session) == 3
