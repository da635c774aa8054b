"""Many ask for the last tenth of a budget at once: exactly one gets it. And one question is answered once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.engines.duckdb import DuckDBEngine, Found
from parco.queries.query import Query
from parco.session.session import Session
from parco.stores.sqlite import SqliteStore
from tests.shop import open_shop

THREADS, PROCESSES = 64, 8
TENTH = 10**14


def _spent(folder: Path) -> int:
    (account,) = SqliteStore.open(folder / "shop.ledger").accounts()
    assert account.reserved == 0
    return account.spent


def test_threads_race_for_the_last_tenth(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    Session(contract).count(cost="0.9")
    start, outcomes = threading.Barrier(THREADS), []

    def ask(session: Session) -> None:
        start.wait()
        try:
            session.count(cost="0.1", fresh=True)
            outcomes.append("won")
        except parco.BudgetError:
            outcomes.append("refused")

    threads = [threading.Thread(target=ask, args=(Session(contract),)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * (THREADS - 1) + ["won"]
    assert _spent(tmp_path) == 10 * TENTH


def test_processes_race_for_the_last_tenth(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    Session(contract).count(cost="0.9")
    command = "from parco.cli.main import run; run()"
    arguments = ["release", str(tmp_path / "contract.toml"), "count", "--cost", "0.1", "--fresh", "--json"]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(PROCESSES)
    ]
    ended = [(racer.communicate(timeout=120), racer.returncode) for racer in racers]
    assert sorted(code for _, code in ended) == [0] + [3] * (PROCESSES - 1)
    ((out, _),) = [texts for texts, code in ended if code == 0]
    assert json.loads(out)["remaining"] == "0"
    assert all("nothing was charged" in texts[1] for texts, code in ended if code == 3)
    assert _spent(tmp_path) == 10 * TENTH


def test_one_question_asked_by_many_at_once_is_read_and_charged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = open_shop(tmp_path)
    runs, values = [], []
    original = DuckDBEngine.run_all

    def counted(engine: DuckDBEngine, queries: Sequence[Query], *, secret: bytes) -> list[Found]:
        runs.append(1)
        return original(engine, queries, secret=secret)

    def ask() -> None:
        values.append(Session(contract).sum("dollars", by="month", cost="0.5").value)

    monkeypatch.setattr(DuckDBEngine, "run_all", counted)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs) == 1
    assert len(values) == 8
    assert len(set(values)) == 1
    assert _spent(tmp_path) == 5 * TENTH


def test_the_budget_adds_up_from_the_entries(tmp_path: Path) -> None:
    session = Session(open_shop(tmp_path))
    for cost in ("1/7", "0.05", "1e-9"):
        session.count(cost=cost, fresh=True)
    charged = [sum(charge.cost for charge in row.charges) for row in session.history()]
    assert sum(charged) == _spent(tmp_path) == (10**15 // 7) + 5 * 10**13 + 10**6
    (account,) = SqliteStore.open(tmp_path / "shop.ledger").verify().accounts.values()
    assert Fraction(account.balance.spent, 10**15) == session.budget()[0].spent * Fraction(1, 10**15)
