"""C09: 0.1 + 0.9 is 1. Parts of a budget that add up on paper add up in the ledger, and not one unit more fits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import mpmath
import pytest

from parco import BudgetError, Session
from parco.contract.contract import Contract
from parco.measure import Measure, decimal_text, units_ceil
from parco.mechanisms.mechanism import TwoSidedGeometric
from parco.privacy import pure, randomised_response
from parco.privacy.sensitivity import Sensitivity
from parco.queries.plan import Plan, Spend
from parco.queries.query import Query
from tests.shop import contract_text, open_shop

ONE = 10**15


def budget(epsilon: str, share: str = "0.05") -> str:
    return f'measure = "pure"\nepsilon = "{epsilon}"\ndefault_share = "{share}"'


def spend(folder: Path, epsilon: str, costs: Sequence[str | float | Fraction]) -> Session:
    """A session that has paid all of these, one after the other."""
    session = Session(open_shop(folder, budget=budget(epsilon)))
    for cost in costs:
        session.count(cost=cost, fresh=True)
    return session


def left(session: Session) -> int:
    (account,) = session.budget()
    assert account.reserved == 0
    return account.remaining


def refused(session: Session, cost: str) -> BudgetError:
    before = left(session)
    with pytest.raises(BudgetError) as caught:
        session.count(cost=cost, fresh=True)
    assert left(session) == before
    assert "nothing was charged" in str(caught.value)
    return caught.value


@pytest.mark.parametrize("costs", [("0.1", "0.9"), ("0.9", "0.1"), (0.1, 0.9), ("0.3", "0.7")], ids=str)
def test_two_parts_use_up_a_budget_of_one_in_either_order(tmp_path: Path, costs: tuple[str | float, ...]) -> None:
    session = spend(tmp_path, "1", costs)
    assert left(session) == 0
    error = refused(session, "1e-15")
    assert error.facts["remaining"] == "0"
    assert error.facts["asked"] == "0.000000000000001"
    assert "0 of 1 is left" in str(error)


def test_ten_tenths_fit_and_an_eleventh_does_not(tmp_path: Path) -> None:
    session = spend(tmp_path, "1", [0.1] * 9)
    assert left(session) == ONE // 10
    refused(session, "0.100000000000001")
    session.count(cost=0.1, fresh=True)
    assert left(session) == 0
    assert "0 of 1 is left" in str(refused(session, "0.1"))


def test_digits_beyond_the_unit_are_cut_off_on_both_sides(tmp_path: Path) -> None:
    session = Session(open_shop(tmp_path, budget=budget("0.024499999999999987")))
    assert left(session) == 24499999999999
    refused(session, "0.0245")
    plan = session.plan.count(cost="0.024499999999999997")
    assert (str(plan.cost), plan.remaining) == ("0.024499999999999", Fraction(0))
    release = session.count(cost="0.024499999999999997")
    assert (str(release.cost), release.remaining) == ("0.024499999999999", Fraction(0))
    refused(session, "0.000000000000001")


def test_what_is_charged_is_rounded_up() -> None:
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.mpf(11) / 9)
        assert 200670695462151 < exact * ONE < 200670695462152
    assert units_ceil(Fraction("0.20067069546215116")) == 200670695462152
    # Randomised response that tells the truth with probability 0.55.
    coin = randomised_response.epsilon_upper(Fraction(55, 100))
    assert units_ceil(coin) == units_ceil(pure.cost_upper(coin, Measure.PURE)) == 200670695462152
    # A mechanism whose epsilon is a third is charged one unit more than three of them could share.
    third = TwoSidedGeometric(Fraction(3), Fraction(1, 4))
    one = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1))
    assert third.cost_units(one, Measure.PURE) == 333333333333334


def test_who_splits_a_budget_gets_parts_that_fit(tmp_path: Path) -> None:
    for parts in (3, 9):
        session = Session(open_shop(tmp_path / str(parts), budget=budget("1", f"1/{parts}")))
        for place in range(parts):
            session.count(fresh=True) if place % 2 else session.count(cost=f"1/{parts}", fresh=True)
        assert left(session) == ONE - parts * (ONE // parts)


def test_any_split_into_decimals_adds_up_exactly() -> None:
    """The class of fault: a float anywhere between the text of a cost and the account."""
    random = Random(9)
    contract = Contract.parse(contract_text(budget=budget("1")))
    query = Query.of(contract, "count")
    for _ in range(60):
        cuts = sorted(random.sample(range(1, ONE), random.randint(1, 12)))
        parts = [after - before for before, after in zip([0, *cuts], [*cuts, ONE], strict=True)]
        texts = [decimal_text(Fraction(part, ONE)) for part in parts]
        charged = [Plan.of(query, version="1", spend=Spend.of(cost=text)).cost.units for text in texts]
        assert charged == parts
        assert sum(charged) == contract.budget.cap_units
