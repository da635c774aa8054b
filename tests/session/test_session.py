"""One release from question to receipt: what is charged, what is free, what is refused."""

from __future__ import annotations

import traceback
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import parco
from parco.engines.duckdb import DuckDBEngine
from parco.session.session import Session
from parco.stores.sqlite import SqliteStore
from tests.shop import HEADER, ROWS, open_shop, write_csv

COST_UNIT = Fraction(1, 10**15)


def spent(session: Session) -> Fraction:
    (account,) = session.budget()
    return account.spent * COST_UNIT


def test_a_release_is_charged_what_was_asked_and_says_so(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path), actor="ana") as session:
        release = session.count(by="month", cost="0.1")
        assert not release.repeat
        assert str(release.cost) == "0.1"
        assert release.remaining == Fraction(9, 10)
        assert spent(session) == Fraction(1, 10)
        receipt = release.receipt
        assert (receipt.release, receipt.position) == (2, 4)
        assert receipt.mechanism.scale == 40  # two groups of two rows at epsilon 1/10
        assert [label for (label,) in release.value.labels] == ["2024-01", "2024-02", "2024-03", "2024-04"]


def test_the_same_question_again_is_free_and_word_for_word_the_same(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        first = session.sum("dollars", by=["month", "channel"], cost="0.1")
        before = list(SqliteStore.open(tmp_path / "shop.ledger").entries())
        again = session.sum("dollars", by=["channel", "month"], cost="0.1")
        assert again.repeat
        assert str(again.cost) == "0"
        assert again.value.rows() == first.value.rows()
        assert again.receipt.record() == first.receipt.record()
        assert list(SqliteStore.open(tmp_path / "shop.ledger").entries()) == before


def test_a_repeat_needs_no_data(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    first = Session(contract).count(cost="0.1")
    (tmp_path / "purchases.csv").unlink()
    assert Session(contract).count(cost="0.1").value == first.value
    with pytest.raises(parco.DataError, match="no data file"):
        Session(contract).count(cost="0.1", fresh=True)


def test_a_sharper_request_is_refused_by_name_and_a_coarser_one_is_served(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        first = session.count(cost="0.1")
        with pytest.raises(parco.SharperError, match="fresh=True"):
            session.count(cost="0.2")
        assert session.count(cost="0.05").value == first.value
        assert spent(session) == Fraction(1, 10)
        assert str(session.count(cost="0.2", fresh=True).cost) == "0.2"
        assert session.count(cost="0.2").repeat
        assert spent(session) == Fraction(3, 10)


def test_an_error_is_reached_and_served_by_whatever_reaches_it(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        first = session.count_units(error="30")
        assert first.value.half_width <= 30
        assert session.count_units(error="30").repeat
        assert session.count_units(error="45.5").repeat
        with pytest.raises(parco.SharperError):
            session.count_units(error="10")


def test_intervals_are_stated_at_the_level_asked_for(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        narrow = session.count(cost="0.1", confidence="0.5")
        wide = session.count(cost="0.1", confidence="0.999")
        assert wide.repeat
        assert wide.value.values == narrow.value.values
        assert wide.value.half_width > 5 * narrow.value.half_width


def test_the_default_share_is_spent_where_no_cost_is_named(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, budget='measure = "pure"\nepsilon = "1"\ndefault_share = "1/4"')
    assert str(Session(contract).count().cost) == "0.25"


def test_cost_and_error_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(parco.QuestionError, match="not both"):
        Session(open_shop(tmp_path)).count(cost="0.1", error="10")


@pytest.mark.parametrize("cost", ["0", "-1", "nan", "inf", "1e-16", True, float("nan"), "10000"])
def test_costs_that_are_none_are_refused_and_cost_nothing(tmp_path: Path, cost: Any) -> None:
    with Session(open_shop(tmp_path)) as session:
        with pytest.raises(parco.RequestError):
            session.count(cost=cost)
        assert spent(session) == 0


def test_ten_tenths_fit_into_one_and_an_eleventh_does_not(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        for left in range(9, -1, -1):
            assert session.count(cost=0.1, fresh=True).remaining == Fraction(left, 10)
        with pytest.raises(parco.BudgetError, match="0 of 1 is left") as refused:
            session.count(cost="0.1", fresh=True)
        assert refused.value.facts["remaining"] == "0"
        assert refused.value.exit_code == 3
        assert spent(session) == 1


def test_three_thirds_fit_into_one(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        for _ in range(3):
            session.count(cost="1/3", fresh=True)
        assert spent(session) == 1 - COST_UNIT


def test_a_plan_spends_nothing_and_is_what_is_then_charged(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget='epsilon = "1"\ndelta = "1e-6"')) as session:
        plan = session.plan.sum("dollars", by="month", error="5000")
        assert spent(session) == 0
        assert not plan.repeat
        release = session.sum("dollars", by="month", error="5000")
        assert (release.cost, release.value.half_width) == (plan.cost, plan.half_width)
        assert release.remaining == plan.remaining
        planned_again = session.plan.sum("dollars", by="month", error="5000")
        assert planned_again.repeat
        assert planned_again.remaining == release.remaining
        assert "free" in str(planned_again)


def test_another_version_is_another_access_and_the_same_one_is_served_though_the_file_changed(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    first = Session(contract).count(cost="0.1")
    write_csv(tmp_path / "purchases.csv", [*ROWS, *ROWS])
    assert Session(contract).count(cost="0.1").value == first.value
    second = Session(contract, version="2").count(cost="0.1")
    assert not second.repeat
    assert second.receipt.version == "2"
    assert second.remaining == Fraction(8, 10)


def test_two_contracts_on_one_data_set_share_account_and_answers(tmp_path: Path) -> None:
    first = open_shop(tmp_path)
    ledger = tmp_path / "shop.ledger"
    other = parco.Contract.parse((tmp_path / "contract.toml").read_text().replace('"shop"', '"other"', 1))
    parco.sign(other, ledger=ledger)
    release = Session(first).count(cost="0.4")
    repeated = Session(other, ledger=ledger, data=tmp_path / "purchases.csv").count(cost="0.4")
    assert repeated.repeat
    assert repeated.receipt.record() == release.receipt.record()
    with pytest.raises(parco.BudgetError):
        Session(other, ledger=ledger, data=tmp_path / "purchases.csv").count(cost="0.7", fresh=True)


def test_a_contract_edited_after_signing_is_refused(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    edited = (tmp_path / "contract.toml").read_text().replace("rows = 2", "rows = 1")
    (tmp_path / "contract.toml").write_text(edited)
    with pytest.raises(parco.ContractChangedError) as refused:
        Session(parco.Contract.read(tmp_path / "contract.toml"))
    assert refused.value.exit_code == 4
    assert Session(contract).budget()


def test_an_unsigned_contract_and_a_missing_ledger_say_to_sign(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    unsigned = parco.Contract.parse((tmp_path / "contract.toml").read_text().replace('"shop"', '"other"'))
    with pytest.raises(parco.NotSignedError, match="parco sign"):
        Session(unsigned, ledger=tmp_path / "shop.ledger")
    with pytest.raises(parco.NotSignedError, match="parco sign"):
        Session(contract, ledger=tmp_path / "nowhere.ledger")


def test_what_is_not_declared_is_refused_before_the_charge(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        for statistic, column, by in (
            ("sum", "customer", ()),
            ("sum", "date", ()),
            ("count", None, "dollars"),
            ("count", None, "nothing"),
            ("count", None, ["month", "month"]),
            ("median", "dollars", ()),
            ("count", "channel", ()),
            ("count_distinct", "date", ()),
            ("mean", "dollars", ()),
            ("sum", None, ()),
        ):
            with pytest.raises(parco.QuestionError):
                session.ask(statistic, column, by=by, cost="0.1")
        assert spent(session) == 0


def test_data_that_do_not_fit_are_refused_before_the_charge(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    write_csv(tmp_path / "purchases.csv", [], header=[name for name in HEADER if name != "dollars"])
    with Session(contract) as session:
        with pytest.raises(parco.DataError, match="dollars"):
            session.sum("dollars", cost="0.1")
        assert spent(session) == 0
        assert session.count(cost="0.1").cost.units == 10**14  # it needs no dollars


MARKER = "4711-secret"


def _fail(*_: object, **__: object) -> list[int]:
    raise RuntimeError(f"could not convert {MARKER}")


def test_a_failure_after_the_charge_is_a_forfeit_with_a_constant_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(open_shop(tmp_path)) as session:
        monkeypatch.setattr(DuckDBEngine, "run_all", _fail)
        with pytest.raises(parco.ForfeitedError) as failed:
            session.count(cost="0.1")
        error = failed.value
        assert (error.__cause__, error.__context__) == (None, None)
        assert MARKER not in "".join(traceback.format_exception(error))
        assert MARKER not in repr(vars(error))
        assert spent(session) == Fraction(1, 10)
        assert [row.state for row in session.history()] == ["open", "forfeited"]
        monkeypatch.undo()
        assert not session.count(cost="0.1").repeat
        assert spent(session) == Fraction(2, 10)


def test_an_interrupt_after_the_charge_is_a_forfeit_and_still_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> list[int]:
        raise KeyboardInterrupt

    with Session(open_shop(tmp_path)) as session:
        monkeypatch.setattr(DuckDBEngine, "run_all", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.count(cost="0.1")
        assert [row.state for row in session.history()] == ["open", "forfeited"]


def test_a_key_never_pays_twice(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        first = session.count(cost="0.1", fresh=True, key="monday")
        again = session.count(cost="0.1", fresh=True, key="monday")
        assert again.repeat
        assert again.value == first.value
        with pytest.raises(parco.KeyReuseError):
            session.count_units(cost="0.1", fresh=True, key="monday")
        assert spent(session) == Fraction(1, 10)


def test_progress_is_told_the_stages(tmp_path: Path) -> None:
    stages: list[str] = []
    session = Session(open_shop(tmp_path), progress=lambda stage, *_: stages.append(stage))
    session.count(by="month", cost="0.1")
    assert stages[0] == "reading"
    assert stages[-1] == "drawing"


def test_options_that_do_not_exist_are_refused_and_cost_nothing(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        for wrong in (
            {"cots": "0.1"},
            {"where": "items >> 2"},
            {"where": 5},
            {"split": "1/2"},
            {"fresh": "no"},
            {"key": 5},
            {"key": ""},
        ):
            with pytest.raises(parco.RequestError):
                session.count(**wrong)
        assert spent(session) == 0


@pytest.mark.parametrize("text", ["", "a\nb", "a\x1b[31m", "a\u2028b", "\ud800", "x" * 201, 1, None])
def test_labels_that_could_forge_a_line_are_refused(tmp_path: Path, text: Any) -> None:
    contract = open_shop(tmp_path)
    for name in ("actor", "version"):
        if text is not None:
            with pytest.raises(parco.RequestError, match=name):
                Session(contract, **{name: text})


def test_without_cost_or_error_whatever_is_stored_is_served(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        coarse = session.count(cost="0.001")
        assert session.count().value == coarse.value
        fine = session.count(cost="0.2", fresh=True)
        assert session.count().value == fine.value
        assert session.plan.count().half_width == fine.value.half_width


def test_a_sharper_request_is_told_what_is_stored_and_what_it_would_cost(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        stored = session.count(cost="0.1")
        with pytest.raises(parco.SharperError) as refused:
            session.count(error="5")
        for words in (f"within {stored.value.half_width}", "--fresh", "fresh=True", refused.value.facts["cost"]):
            assert str(words) in str(refused.value)


def test_a_stored_plan_shows_what_is_stored_and_one_that_does_not_fit_says_so(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        stored = session.count(error="20")
        plan = session.plan.count(error="1000")
        assert (plan.repeat, plan.half_width, str(plan.cost)) == (True, stored.value.half_width, "0")
        over = session.plan.sum("dollars", error="0.5")
        assert not over.fits
        assert "would be refused" in str(over)
        assert over.record()["fits"] is False


def test_a_settle_that_the_machine_refuses_does_not_block_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise parco.StorageError("the disk is full")

    with Session(open_shop(tmp_path)) as session:
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "settle_all", full)
            with pytest.raises(parco.StorageError):
                session.count(cost="0.1")
        assert [row.state for row in session.history()] == ["open", "started"]
        assert not session.count(cost="0.1").repeat
        assert [row.state for row in session.history()] == ["open", "forfeited", "settled"]


def test_contracts_that_would_choose_their_order_or_delta_late_are_refused(tmp_path: Path) -> None:
    open_shop(tmp_path, budget='epsilon = "1"\ndelta = "1e-6"')
    text = (tmp_path / "contract.toml").read_text().replace('"shop"', '"other"', 1)
    for late in ('delta = "1e-6"\nreceipt_order = 24', 'delta = "1e-5"', 'delta = "1e-6"\ndelta_mechanisms = "1e-7"'):
        with pytest.raises(parco.ContractError, match="terms"):
            parco.sign(parco.Contract.parse(text.replace('delta = "1e-6"', late)), ledger=tmp_path / "shop.ledger")


def test_the_default_ledger_is_the_data_sets_and_stays_in_the_folder(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    (tmp_path / "two.toml").write_text((tmp_path / "contract.toml").read_text().replace('"shop"', '"two"', 1))
    other = parco.Contract.read(tmp_path / "two.toml")
    parco.sign(other)
    Session(contract).count(cost="1")
    with pytest.raises(parco.BudgetError):
        Session(other).count(cost="0.1", fresh=True)
    for name in ("../escape", "/escape", ".hidden", "a\\b"):
        named = parco.Contract.parse((tmp_path / "two.toml").read_text().replace('name = "shop"', f"name = '{name}'"))
        with pytest.raises(parco.RequestError, match="--ledger"):
            parco.sign(named)


def test_a_ledger_is_for_its_owner_only(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    Session(contract).count(cost="0.1")
    Session(contract).count(cost="0.1")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("shop.ledger*")}
    assert modes == dict.fromkeys(("shop.ledger", "shop.ledger.heads", "shop.ledger.repeats"), 0o600)


def test_two_tables_of_one_data_set_share_the_account_and_not_the_answers(tmp_path: Path) -> None:
    """Contracts that differ in their table alone would otherwise ask one question of two files."""
    open_shop(tmp_path)
    text = (tmp_path / "contract.toml").read_text()
    for table, rows in (("sales", ROWS), ("returns", ROWS[:1])):
        write_csv(tmp_path / f"{table}.csv", rows)
        named = text.replace('name = "shop"', f'name = "{table}"', 1).replace(
            'source = "purchases.csv"', f'source = "{table}.csv"\ntable = "{table}"'
        )
        (tmp_path / f"{table}.toml").write_text(named)
        parco.sign(parco.Contract.read(tmp_path / f"{table}.toml"))
    sales, returns = (Session(parco.Contract.read(tmp_path / f"{table}.toml")) for table in ("sales", "returns"))
    first = sales.count_units(cost="0.4")
    second = returns.count_units(cost="0.4")
    assert not second.repeat
    assert second.receipt.release != first.receipt.release
    assert second.remaining == Fraction(2, 10)
    with pytest.raises(parco.BudgetError):
        returns.count_units(cost="0.3", fresh=True)
