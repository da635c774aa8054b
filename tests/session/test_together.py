"""Several questions at once: one commit, one statement, all or nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pyarrow import csv, parquet

import parco
from parco import Ask
from parco.engines import duckdb
from parco.engines.duckdb import DuckDBEngine
from parco.queries.query import Query
from parco.session.mean import MeanAnswer
from parco.session.session import Session
from parco.stores.sqlite import SqliteStore
from tests.shop import open_shop

ASKS = [
    Ask("count", by="month", cost="0.1"),
    Ask("sum", "dollars", by=("month", "channel"), where="items >= 2", cost="0.1"),
    Ask("count_distinct", "channel", cost="0.1"),
    Ask("mean", "dollars", by="channel", cost="0.2"),
    Ask("count_units", cost="0.05"),
]


def spent(session: Session) -> Fraction:
    (account,) = session.budget()
    return account.spent * Fraction(1, 10**15)


def test_answers_come_in_the_order_of_the_questions(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        releases = session.release(ASKS)
        assert [release.receipt.question for release in releases] == [
            "count by month",
            "sum dollars where items >= 2 by channel, month",
            "count_distinct channel",
            "mean dollars by channel",
            "count_units",
        ]
        assert [str(release.cost) for release in releases] == ["0.1", "0.1", "0.1", "0.2", "0.05"]
        assert isinstance(releases[3].value, MeanAnswer)
        assert [len(release.value) for release in releases] == [4, 12, 1, 3, 1]
        assert spent(session) == Fraction("0.55")
        again = session.release(ASKS)
        assert all(release.repeat for release in again)
        assert [release.value for release in again] == [release.value for release in releases]
        # Each alone is free, too.
        assert session.count(by="month", cost="0.1").value == releases[0].value
        assert session.mean("dollars", by="channel", cost="0.2").value == releases[3].value
        assert spent(session) == Fraction("0.55")


def test_one_commit_charges_and_one_settles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract, writes = open_shop(tmp_path), []
    original = SqliteStore._writing

    def counted(store: SqliteStore) -> Any:
        writes.append(1)
        return original(store)

    monkeypatch.setattr(SqliteStore, "_writing", counted)
    with Session(contract) as session:
        session.release(ASKS)
        assert len(writes) == 2
        tags = [
            part.split(b'"tag":"')[1].split(b'"')[0] for part in SqliteStore.open(tmp_path / "shop.ledger").entries()
        ]
        assert tags == [b"open", *[b"reserve", b"start"] * 6, *[b"settle"] * 6]
    SqliteStore.open(tmp_path / "shop.ledger").verify()


def test_the_file_is_read_by_one_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract, statements = open_shop(tmp_path), []
    original = duckdb._fetch

    def counted(sql: str, rows: Any) -> list[tuple[int, int, int, int, str | None]]:
        statements.append(sql)
        return original(sql, rows)

    monkeypatch.setattr(duckdb, "_fetch", counted)
    Session(contract).release(ASKS)
    (sql,) = statements
    # Once for each set of columns: six questions, of which a mean's two have the same.
    assert sql.upper().count("READ_CSV") == 5
    parquet.write_table(csv.read_csv(tmp_path / "purchases.csv"), tmp_path / "purchases.parquet")
    Session(contract, data=tmp_path / "purchases.parquet", version="2").release(ASKS[2:4])
    assert statements[1].count("stored_rows") == 1


def test_if_one_does_not_fit_none_is_charged(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        for asks in (
            [Ask("count", cost="0.6"), Ask("count_units", cost="0.6")],
            [Ask("count", cost="0.1"), Ask("sum", "channel", cost="0.1")],
            [Ask("count", cost="0.1"), Ask("count", where="nothing = 1", cost="0.1")],
            [Ask("count", cost="0.1"), Ask("count", split="0.5")],
            [Ask("count", cost="0.1"), Ask("count", cost="0.1", fresh=True)],
            [Ask("count", cost="0.1"), "count_units"],
        ):
            with pytest.raises((parco.BudgetError, parco.QuestionError)):
                session.release(asks)  # type: ignore[arg-type]
            assert [row.state for row in session.history()] == ["open"]
        assert session.release([]) == []


def test_a_failure_forfeits_all_with_one_constant_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(engine: DuckDBEngine, queries: Sequence[Query], *, secret: bytes) -> Any:
        raise ValueError("Conversion Error: 'customer 7'")

    with Session(open_shop(tmp_path)) as session:
        with monkeypatch.context() as patch:
            patch.setattr(DuckDBEngine, "run_all", fail)
            with pytest.raises(parco.ForfeitedError) as caught:
                session.release(ASKS)
        assert "customer 7" not in str(caught.value)
        assert caught.value.__context__ is None
        assert [row.state for row in session.history()] == ["open", *["forfeited"] * 6]
        assert spent(session) == Fraction("0.55")


def test_what_is_stored_is_free_and_only_the_rest_is_charged(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        count = session.count(by="month", cost="0.1")
        releases = session.release(ASKS)
        assert [release.repeat for release in releases] == [True, False, False, False, False]
        assert releases[0].value == count.value
        assert {release.remaining for release in releases} == {1 - spent(session)}


def test_a_question_asked_twice_is_answered_and_charged_once(tmp_path: Path) -> None:
    asks = [
        Ask("count", "dollars", by="channel", cost="0.05"),
        Ask("mean", "dollars", by="channel", cost="0.2"),
        Ask("count", "dollars", by="channel", cost="0.02", confidence="0.5"),
    ]
    with Session(open_shop(tmp_path)) as session:
        count, mean, other = session.release(asks)
        assert spent(session) == Fraction(2, 10)
        assert str(count.cost) == "0.1"
        assert str(mean.cost) == "0.1"
        assert other.repeat
        assert isinstance(mean.value, MeanAnswer)
        assert isinstance(count.value, parco.Answer)
        assert isinstance(other.value, parco.Answer)
        assert count.value.values == mean.value.counts.values == other.value.values
        assert count.value.half_width > other.value.half_width
        assert (count.value.confidence, other.value.confidence) == (Fraction(95, 100), Fraction(1, 2))


def test_a_dead_rival_is_forfeited_before_any_of_them_is_charged(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        session.count(by="month", cost="0.01")
        store = SqliteStore.open(tmp_path / "shop.ledger")
        (plan,) = [session.plan.count_units(cost="0.05")]
        ask = session._read("count_units", None, {"cost": "0.05"})
        ((request,),) = [session._begin([(plan, ask)])]
        assert isinstance(request, int)
        store.abandon(request)
        session.release([Ask("count_units", cost="0.05"), Ask("count", cost="0.1")])
        assert [row.state for row in session.history()] == ["open", "settled", "forfeited", "settled", "settled"]


def test_two_lists_in_opposite_order_wait_for_each_other_and_pay_once(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    asks = [Ask("count", cost="0.1"), Ask("count_units", cost="0.1"), Ask("mean", "dollars", cost="0.2")]
    found: list[dict[str, Any]] = []

    def ask(order: list[Ask]) -> None:
        releases = Session(contract).release(order)
        found.append({release.receipt.question: release.value for release in releases})

    threads = [threading.Thread(target=ask, args=(asks[:: (-1) ** place],)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(one == found[0] for one in found)
    assert spent(Session(contract)) == Fraction("0.4")
    assert [row.state for row in Session(contract).history()] == ["open", *["settled"] * 4]
