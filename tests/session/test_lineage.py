"""Derived data sets from the front door: what is charged where, and what a signing refuses."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import parco
from parco.audit.verify import verify
from parco.stores.sqlite import SqliteStore
from tests.shop import COLUMNS, ROWS, contract_text, write_csv

GDP = 'epsilon = "1"\ndelta = "1e-6"'
ZCDP = 'measure = "zcdp"\nrho = "0.05"\ndelta = "1e-6"'
RENYI = 'measure = "renyi"\norder = "5/2"\ntotal = "0.2"\ndelta = "1e-6"'
PURE = 'measure = "pure"\nepsilon = "1"'


def made(
    folder: Path, name: str, *parents: str, changes: tuple[tuple[str, str], ...] = (), **given: object
) -> parco.Contract:
    """A contract on a data set of its own, in a file of its own."""
    text = contract_text(name=name, dataset=name, **given)  # type: ignore[arg-type]
    if parents:
        text = text.replace("[unit]", f"derived_from = {list(parents)}\n\n[unit]")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    write_csv(folder / "purchases.csv")
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return parco.Contract.read(folder / f"{name}.toml")


def signed(folder: Path, name: str, *parents: str, **given: object) -> parco.Session:
    disjoint = given.pop("disjoint", None)
    contract = made(folder, name, *parents, **given)  # type: ignore[arg-type]
    parco.sign(contract, ledger=folder / "x.ledger", disjoint=disjoint)  # type: ignore[arg-type]
    return parco.Session(contract, ledger=folder / "x.ledger")


def spent(session: parco.Session) -> dict[str, Fraction]:
    return {row.name: Fraction(row.spent, 10**15) for row in session.budget()}


def test_a_chain_charges_three_accounts_each_in_its_own_measure(tmp_path: Path) -> None:
    signed(tmp_path, "a", budget=ZCDP)
    signed(tmp_path, "b", "a", budget=RENYI)
    session = signed(tmp_path, "c", "b", budget=GDP)
    plan = session.plan.count(by="month", cost="0.01")
    assert [(one.account, str(one.measure)) for one in plan.also] == [("a", "zcdp"), ("b", "renyi(2.5)")]
    assert plan.fits
    release = session.count(by="month", cost="0.01")
    mu = session.plan.count(by="month", cost="0.01", fresh=True).cost.value
    paid = spent(session)
    assert paid["c"] == mu == release.cost.value
    # rho is half of mu squared, and order 5/2 costs 5/4 of it: each rounded up on its own.
    assert 0 <= paid["a"] - mu / 2 < Fraction(1, 10**15)
    assert 0 <= paid["b"] - mu * Fraction(5, 4) < 2 * Fraction(1, 10**15)
    assert [(one.account, one.cost.value) for one in release.receipt.also] == [("a", paid["a"]), ("b", paid["b"])]
    assert release.receipt.record()["also"][0]["cost"] == str(release.receipt.also[0].cost)  # type: ignore[index]
    assert "on 'a', from which the data are derived" in str(release.receipt)
    assert session.count(by="month").repeat
    assert spent(session) == paid
    store = SqliteStore.open(tmp_path / "x.ledger")
    store.verify()
    verify(store, releases=[release.record()], strict=True)


def test_a_join_charges_both_parents_and_all_parts_of_one(tmp_path: Path) -> None:
    division = (("[budget]", '[parts]\nfit = "0.8"\ntest = "0.2"\n\n[budget]'),)
    signed(tmp_path, "people", changes=division)
    signed(tmp_path, "visits", disjoint="rows of the clinic, none of the shop")
    session = signed(tmp_path, "join", "people", "visits")
    assert session.contract.data.derived_from == ("people", "visits")
    mean = session.mean("dollars", by="month", cost="0.25")
    titles = {row.title: Fraction(row.spent, 10**15) for row in session.budget()}
    assert titles == dict.fromkeys(titles, Fraction(1, 4))
    assert set(titles) == {"people / fit", "people / test", "visits", "join"}
    assert {one.account: one.cost.value for one in mean.receipt.also} == {
        title: cost for title, cost in titles.items() if title != "join"
    }


def test_what_an_ancestor_cannot_hold_is_refused_whole(tmp_path: Path) -> None:
    first = signed(tmp_path, "a")
    session = signed(tmp_path, "b", "a")
    first.count(cost="0.9")
    plan = session.plan.count(by="month", cost="0.2")
    assert not plan.fits
    assert "'a', from which the data are derived, has no room" in str(plan)
    assert not session.plan.mean("dollars", cost="0.2").fits
    before = spent(session)
    with pytest.raises(parco.BudgetError, match="'a'"):
        session.count(by="month", cost="0.2")
    assert spent(session) == before
    session.count(by="month", cost="0.1")
    assert spent(session) == {"a": Fraction(1), "b": Fraction(1, 10)}


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another unit": ({"unit": "buyer"}, {}, "its unit is 'buyer'"),
    "another normal form": (
        {"changes": (("[budget]", 'normal = ["strip"]\n\n[budget]'),)},
        {},
        "another normal form",
    ),
    "other neighbours": ({"changes": (('"add-or-remove"', '"replace"'),)}, {}, "its neighbours are 'replace'"),
    "pure noise": ({"budget": GDP}, {"budget": PURE}, "measure of the same family"),
    "Gaussian noise": ({"budget": PURE}, {"budget": GDP}, "no pure cost"),
    "periods of the parent": ({"changes": (("rows = 2", 'rows = 2\nperiod = "month"'),)}, {}, "in one month"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_parent_that_cannot_be_charged_is_refused_at_signing(tmp_path: Path, what: str) -> None:
    parent, child, why = REFUSED[what]
    signed(tmp_path, "a", **parent)
    with pytest.raises(parco.ContractError, match=why):
        signed(tmp_path, "b", "a", **child)
    assert {row.name for row in SqliteStore.open(tmp_path / "x.ledger").accounts()} == {"a"}


def test_a_contract_names_no_parent_that_it_cannot_have(tmp_path: Path) -> None:
    with pytest.raises(parco.ContractError, match="not derived from itself"):
        made(tmp_path, "a", "a")
    with pytest.raises(parco.ContractError, match=r"with unit\.period each period has its own account"):
        made(tmp_path, "a", "b", changes=(("rows = 2", 'rows = 2\nperiod = "month"'),))
    with pytest.raises(parco.ContractError, match="no data set 'b' was signed"):
        signed(tmp_path, "a", "b")
    # Another order, or one named twice, is the same contract; naming none is what it was before.
    assert made(tmp_path, "a", "c", "b", "c").text == made(tmp_path, "a", "b", "c").text
    assert "derived_from" not in made(tmp_path, "a").text + made(tmp_path, "a").terms


def test_lineage_is_fixed_once_signed(tmp_path: Path) -> None:
    signed(tmp_path, "a")
    signed(tmp_path, "b", "a")
    contract = made(tmp_path, "b")
    with pytest.raises(parco.ContractError, match="terms"):
        parco.revise(contract, reason="why not", ledger=tmp_path / "x.ledger")


def test_the_same_data_under_a_new_name_are_charged_or_somebody_answers_for_it(tmp_path: Path) -> None:
    """Fault 39: without a word about its lineage nothing is signed; the contents are not looked at."""
    signed(tmp_path, "a")
    with pytest.raises(parco.ContractError, match="never compares"):
        signed(tmp_path, "renamed")
    session = signed(tmp_path, "renamed", disjoint="asserted by the steward", changes=())
    session.count(cost="0.1")
    assert spent(session) == {"a": 0, "renamed": Fraction(1, 10)}
    assert [row.reason for row in session.history() if row.state == "derive"] == ["asserted by the steward"]


def test_a_refusal_is_the_same_on_neighbouring_data(tmp_path: Path) -> None:
    """Fault 83: of ancestors, of quotas: text and facts follow from ledger and question alone."""
    told = []
    for place, rows in enumerate((ROWS, ROWS[2:])):
        folder = tmp_path / str(place)
        folder.mkdir()
        first, session = signed(folder, "a"), signed(folder, "b", "a")
        write_csv(folder / "purchases.csv", rows)
        parco.set_quota(
            "team", members=[session.actor], amount="0.3", reason="fairness", dataset="b", ledger=folder / "x.ledger"
        )
        first.count(cost="0.5")
        found = []
        for cost in ("0.6", "0.4"):
            with pytest.raises(parco.BudgetError) as caught:
                session.count(by="month", cost=cost)
            found.append((type(caught.value), str(caught.value), caught.value.facts))
        told.append(found)
    assert told[0] == told[1]
    assert [kind for kind, _, _ in told[0]] == [parco.BudgetError, parco.QuotaError]


@pytest.mark.parametrize("reserve", [False, True])
def test_a_sparse_vector_is_refused_before_measurements_whose_data_pay_for_both(tmp_path: Path, reserve: bool) -> None:
    """While it is open nothing else may be charged to the account that both parts descend from."""
    signed(tmp_path, "a", budget=GDP)
    divided = COLUMNS + '[parts]\nfit = "0.5"\nvalidation = "0.5"\n'
    session = signed(tmp_path, "b", "a", budget=GDP, columns=divided)
    until = parco.Validation("0.8", check="sparse-vector", epsilon="0.1", model=lambda _: "items = 3")
    ask = parco.Ask("count", by="channel", part="fit")
    with pytest.raises(parco.RequestError, match="derived from"):
        parco.release_until(session, ask, until, at_most="0.01", reserve=reserve)
    assert set(spent(session).values()) == {0}
    checked = parco.Validation("0.8", cost="0.001", model=lambda _: "items = 3")
    found = parco.release_until(session, ask, checked, at_most="0.01", reserve=reserve).stopped.validation
    assert found is not None
    # The account of the parent has what both parts were charged.
    assert spent(session)["a"] == sum(cost.value for _, cost in found.by_account) > found.bound.value
