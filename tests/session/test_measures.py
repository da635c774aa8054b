"""The same question under each measure: what is charged, how much noise that buys, what may then be claimed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.measure import Measure
from tests.shop import open_shop

COST = Fraction(1, 50)
TOLERANCE = Fraction(1, 10**14)

# budget -> (measure, what D^2/s^2 is multiplied by, how the cap's claim is made)
BUDGETS = {
    'mu = "0.5"\ndelta = "1e-6"': (Measure.GDP, Fraction(1), "gaussian-profile"),
    'measure = "zcdp"\nrho = "0.125"\ndelta = "1e-6"': (Measure.ZCDP, Fraction(1, 2), "zcdp-improved"),
    'measure = "zcdp"\nepsilon = "2"\ndelta = "1e-6"': (Measure.ZCDP, Fraction(1, 2), "zcdp-improved"),
    'measure = "renyi"\norder = 16\nepsilon_at_order = "2"\ndelta = "1e-6"': (
        Measure.renyi(Fraction(16)), Fraction(8), "renyi-improved",
    ),
    'measure = "renyi"\norder = "3/2"\nepsilon = "40"\ndelta = "1e-6"': (
        Measure.renyi(Fraction(3, 2)), Fraction(3, 4), "renyi-improved",
    ),
}  # fmt: skip


@pytest.mark.parametrize("budget", BUDGETS)
def test_gaussian_noise_is_charged_by_the_measures_own_rule(tmp_path: Path, budget: str) -> None:
    measure, factor, accountant = BUDGETS[budget]
    with parco.Session(open_shop(tmp_path, budget=budget)) as session:
        release = session.count(by="month", cost=COST)
        receipt = release.receipt
        # Two groups of two rows each: L2 squared is 2 * 2^2.
        exact = factor * 8 / receipt.mechanism.scale**2
        assert exact <= COST
        assert exact >= COST - TOLERANCE
        assert receipt.cost.value == COST
        assert receipt.measure == measure
        assert session.budget()[0].measure == measure
        cap, *others = receipt.claims()
        assert (cap.accountant, cap.status, cap.delta) == (accountant, "valid", Fraction(1, 10**6))
        realised = [claim for claim in others if claim.basis == "realised"]
        assert {claim.order for claim in realised} == {measure.order or 8}
        assert {claim.total for claim in realised} == {COST}
        assert session.count(by="month", cost=COST).receipt.record() == receipt.record()
        with pytest.raises(parco.BudgetError):
            session.count(cost="9000", fresh=True)


def test_a_budget_in_epsilon_claims_that_epsilon_in_every_measure(tmp_path: Path) -> None:
    for place, budget in enumerate(
        ('epsilon = "3"\ndelta = "1e-6"', 'measure = "zcdp"\nepsilon = "3"\ndelta = "1e-6"',
         'measure = "renyi"\norder = 12\nepsilon = "3"\ndelta = "1e-6"')
    ):  # fmt: skip
        session = parco.Session(open_shop(tmp_path / str(place), budget=budget))
        cap = session.count(cost="1e-3").receipt.claims()[0]
        assert 3 * (1 - Fraction(1, 10**9)) <= cap.epsilon <= 3 * (1 + Fraction(1, 10**12))


def test_a_renyi_account_is_another_one_at_another_order(tmp_path: Path) -> None:
    text = 'measure = "renyi"\norder = 16\nepsilon_at_order = "2"\ndelta = "1e-6"'
    open_shop(tmp_path, budget=text)
    other = (tmp_path / "contract.toml").read_text().replace('"shop"', '"other"', 1).replace("order = 16", "order = 17")
    with pytest.raises(parco.ContractError, match="measure"):
        parco.sign(parco.Contract.parse(other), ledger=tmp_path / "shop.ledger")
