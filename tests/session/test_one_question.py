"""One question is answered once, however it is asked; others are charged; and nothing gives a budget back."""

from __future__ import annotations

from pathlib import Path

import pytest

import parco
from parco import Ask
from parco.session.session import Session
from tests.shop import contract_text, open_shop

REPEATS = 200
SAME = (
    "items >= 2 and channel = 'web'",
    "channel = 'web' and items >= 2",
    "  channel='web'   AND (items >= 2.0)",
    "not (items < 2 or channel <> 'web')",
    "2 <= items and channel in ('web', 'web')",
    "items > 1 and (channel = 'web' and items >= 0)",
)


def test_averaging_repeats_gives_the_one_answer_again(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        first = session.count(by="month", cost="0.1")
        entries = list(session._store.entries())
        again = [session.count(by="month", cost="0.1") for _ in range(REPEATS)]
        assert {release.value.values for release in again} == {first.value.values}
        assert sum(release.cost.units for release in again) == 0
        assert list(session._store.entries()) == entries
        with pytest.raises(parco.RequestError, match="one answer"):
            parco.combine([first, *again])
        assert session.accesses() == parco.Accesses(first=1, repeats=REPEATS)


def test_near_duplicates_are_one_question_and_its_one_charge(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        released = [session.count(where=where, by=["month", "channel"], cost="0.1") for where in SAME]
        released += session.release([Ask("count", by=["channel", "month"], where=SAME[0], cost="0.1")])  # type: ignore[arg-type]
        assert len({release.receipt.release for release in released}) == 1
        assert [release.repeat for release in released] == [False] + [True] * len(SAME)
        assert session.budget()[0].spent == 10**14
        # What refines it is found by any of its names.
        finer = session.refine(released[-1], cost="0.1")
        assert session.count(where=SAME[3], by=["channel", "month"]).receipt.release == finer.receipt.release


def test_a_condition_and_its_complement_are_both_charged(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        asks = ["items >= 2", "not items >= 2", "items is null", None]
        released = [session.count(where=where, cost="0.1") for where in asks]
        assert not any(release.repeat for release in released)
        assert session.budget()[0].spent == len(asks) * 10**14
        for one in released[1:]:
            with pytest.raises(parco.RequestError, match="different questions"):
                parco.combine([released[0], one])


def test_nothing_refreshes_the_budget_of_the_same_data(tmp_path: Path) -> None:
    """Signing again, a new text, another contract or version label, asking anew, refining: what is spent only rises."""
    contract = open_shop(tmp_path, budget='measure = "pure"\nepsilon = "1"')
    spent = [0]

    def rises(*, by: int = 0) -> None:
        spent.append(sum(row.spent for row in Session(contract).budget()))
        assert spent[-1] == spent[-2] + by

    with Session(contract) as session:
        first = session.count(by="month", cost="0.1")
    rises(by=10**14)
    parco.sign(contract)
    rises()
    (tmp_path / "contract.toml").write_text(
        contract_text(budget='measure = "pure"\nepsilon = "1"').replace('"a test"', '"again"'), encoding="utf-8"
    )
    contract = parco.Contract.read(tmp_path / "contract.toml")
    parco.revise(contract, reason="refresh")
    rises()
    parco.sign(parco.Contract.parse(contract_text(name="another")), ledger=tmp_path / "shop.ledger")
    rises()
    with Session(contract) as session:
        session.refine(first, cost="0.1")
        rises(by=10**14)
        session.count(by="month", cost="0.1", fresh=True)
        rises(by=10**14)
    with Session(contract, version="refreshed") as session:
        session.count(by="month", cost="0.1")
        rises(by=10**14)
        with pytest.raises(parco.BudgetError):
            session.count(cost="0.7")
    rises()
