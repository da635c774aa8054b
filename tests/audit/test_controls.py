"""Negative controls on real ledgers: every planted fault is seen, and a claim that ignores one is caught."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.audit import controls as room
from parco.audit.controls import Control, controls
from parco.errors import RequestError, VerificationError
from parco.ledger.entries import SensitivityFacts
from parco.session.receipt import account_claims
from parco.stores.records import Act, HistoryRow
from parco.stores.sqlite import SqliteStore
from parco.testing import TapeSession
from tests.cli.run import parco as run
from tests.cli.run import parco_json
from tests.shop import COLUMNS, contract_text, open_shop, write_csv

GDP = 'epsilon = "1"\ndelta = "1e-6"\nreceipt_order = 20'
PARTS = COLUMNS + '[parts]\nfit = "0.8"\nvalidation = "0.2"\n'


def released(folder: Path, **how: str) -> parco.Session:
    """A count, a sum, a mean and a quantile on a new ledger."""
    session = parco.Session(open_shop(folder, **how))
    session.count(by="month", cost="0.01")
    session.sum("dollars", by="channel", cost="0.01")
    session.mean("items", cost="0.02")
    session.quantile("dollars", at="0.5", cost="0.01")
    return session


def found(folder: Path) -> dict[str, Control]:
    return {control.fault: control for control in controls(SqliteStore.open(folder / "shop.ledger"))}


@pytest.mark.parametrize("budget", ['measure = "pure"\nepsilon = "1"', GDP])
def test_every_control_bites_that_something_depends_on(tmp_path: Path, budget: str) -> None:
    released(tmp_path, budget=budget)
    by_fault = found(tmp_path)
    left_out = [fault for fault in by_fault if fault.endswith("left out")]
    assert len(left_out) == 5
    moved = {
        "rows of a unit doubled": "higher",
        "groups of a unit doubled": "higher",
        "bounds of dollars doubled": "higher",
        "bounds of items doubled": "higher",
        "neighbours taken to be replace": "higher",
    }
    assert by_fault.keys() == {*left_out, *moved}
    for fault, control in by_fault.items():
        assert control.bites is True, fault
        assert control.expected == moved.get(fault, "lower")


def test_a_pure_claim_falls_by_what_was_left_out_and_doubles_with_the_rows(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path))
    session.count(cost="0.25")
    session.count_units(cost="0.5")
    by_fault = found(tmp_path)
    first = next(control for control in by_fault.values() if control.fault.startswith("release"))
    assert (first.before, first.after) == (Fraction(3, 4), Fraction(1, 2))
    assert by_fault["rows of a unit doubled"].after == 2 * Fraction(1, 4) + Fraction(1, 2)
    # One answer without groups: two groups of a unit or four are the same.
    assert by_fault["groups of a unit doubled"].bites is None
    assert by_fault["bounds of dollars doubled"].bites is None
    # A unit's rows go from 2 to none or to 2 others: the count of all moves by 2 either way.
    assert by_fault["neighbours taken to be replace"].bites is None


def test_replace_is_swapped_for_add_or_remove(tmp_path: Path) -> None:
    session = parco.Session(_replaced(tmp_path))
    session.count(by="month", cost="0.2")
    control = found(tmp_path)["neighbours taken to be add-or-remove"]
    assert (control.expected, control.bites) == ("lower", True)


def _replaced(folder: Path) -> parco.Contract:
    path = folder / "contract.toml"
    write_csv(folder / "purchases.csv")
    path.write_text(contract_text().replace('"add-or-remove"', '"replace"'))
    contract = parco.Contract.read(path)
    parco.sign(contract)
    return contract


def test_without_the_split_parts_add_up(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path, columns=PARTS))
    session.count(cost="0.2", part="fit")
    assert found(tmp_path)["split into accounts dropped"].bites is None
    session.count(cost="0.1", part="validation")
    control = found(tmp_path)["split into accounts dropped"]
    assert (control.before, control.after, control.bites) == (Fraction(1, 5), Fraction(3, 10), True)


def test_what_failed_counts_and_what_was_erased_keeps_its_cost(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path))
    session.count(cost="0.25")
    session.count_units(cost="0.5")
    store = SqliteStore.open(tmp_path / "shop.ledger")
    (row,) = (row for row in store.history() if row.question and json.loads(row.question)["statistic"] == "count")
    store.amend(Act(actor="steward", reason="asked for"), entry=row.seq, field="question", text=None)
    by_fault = found(tmp_path)
    # Only the count depends on rows, and its question is gone.
    assert by_fault["rows of a unit doubled"].bites is None
    assert sum(fault.endswith("left out") for fault in by_fault) == 2


def test_a_claim_that_ignores_what_it_says_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released(tmp_path)
    fixed = account_claims

    def deaf(contract: parco.Contract, **facts: object) -> object:
        return fixed(contract, **{**facts, "spent": Fraction(1)})  # type: ignore[arg-type]

    monkeypatch.setattr(room, "account_claims", deaf)
    verdicts = {control.bites for control in found(tmp_path).values()}
    assert verdicts == {False}


def test_a_sensitivity_that_is_not_the_contracts_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released(tmp_path)
    honest = SqliteStore.history

    def halved(store: SqliteStore) -> list[HistoryRow]:
        return [
            HistoryRow(
                **{**vars(row), "sensitivity": SensitivityFacts(row.sensitivity.l1 / 2, row.sensitivity.l2_squared)}
            )
            if row.sensitivity
            else row
            for row in honest(store)
        ]

    monkeypatch.setattr(SqliteStore, "history", halved)
    with pytest.raises(VerificationError, match="its recorded sensitivity is not the one"):
        found(tmp_path)


def test_no_claim_is_made_of_noise_from_a_tape(tmp_path: Path) -> None:
    TapeSession(open_shop(tmp_path), tape=bytes(range(256)) * 64).count(cost="0.1")
    with pytest.raises(RequestError, match="not private"):
        found(tmp_path)


def test_on_the_command_line(tmp_path: Path) -> None:
    released(tmp_path)
    ledger = tmp_path / "shop.ledger"
    record = parco_json("controls", "--ledger", ledger)
    assert {one["bites"] for one in record["controls"]} == {True}
    assert all(isinstance(one["epsilon_after"], str) for one in record["controls"])
    table = run("controls", "--ledger", ledger).stdout
    assert "10 of 10 controls bite." in table
    assert "rows of a unit doubled" in table
    cut = "from parco.audit import controls as room\nroom.Control.bites = property(lambda self: False)\n"
    failed = run("controls", "--ledger", ledger, before=cut, code=4)
    assert "10 of 10 controls do not bite, first: release" in failed.stderr


def test_a_ledger_without_releases_has_nothing_to_try(tmp_path: Path) -> None:
    open_shop(tmp_path)
    assert controls(SqliteStore.open(tmp_path / "shop.ledger")) == []
    assert "no claim to try" in run("controls", "--ledger", tmp_path / "shop.ledger").stdout
