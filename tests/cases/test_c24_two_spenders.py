"""C24: two read one balance, both fit, both spend. Here the check is the spending, and nobody overdraws."""

from __future__ import annotations

import threading
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from parco import BudgetError, Session
from parco.stores.sqlite import SqliteStore
from tests.shop import open_shop

from .children import answers_of

ONE = 10**15
ROUNDS, PROCESSES = 3, 8

# One parent, which has nothing open, forks the spenders of every round: they wait for the last byte of a pipe, then all
# ask at once. Each tells its outcome, and whether its engine ever ran.
RACE = """
import json, os, signal, sys
from pathlib import Path
import duckdb, pyarrow.parquet, sqlalchemy
import parco
from parco.engines.duckdb import DuckDBEngine
from parco.ledger import points
from parco.stores import sqlite
from tests.shop import open_shop

root, rounds, processes, cost, killed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]

def outcome(contract, start, first):
    runs, run, reach = [], DuckDBEngine.run_all, points.reach

    def counted(self, queries, *, secret):
        runs.append(1)
        return run(self, queries, secret=secret)

    def die(point):
        reach(point)
        if point == "after-reserve":
            os.kill(os.getpid(), signal.SIGKILL)

    DuckDBEngine.run_all = counted
    if first:
        points.reach = die
    session = parco.Session(contract)
    os.read(start, 1)
    try:
        release = session.count(by="month", cost=cost, fresh=True)
        return ["won", str(release.cost), len(runs)]
    except parco.BudgetError as error:
        return ["refused", error.facts["asked"], len(runs)]

def fork(contract, first=False):
    start, go = os.pipe()
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.close(here)
        text = json.dumps(outcome(contract, start, first))
        os.write(there, text.encode())
        os._exit(0)
    os.close(start)
    os.close(there)
    return child, go, here

def end(child, here):
    with os.fdopen(here, "rb") as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else ["killed", os.WTERMSIG(status), 0]

for number in range(rounds):
    folder = root / str(number)
    contract = open_shop(folder)
    told = []
    if killed == "yes":
        child, go, here = fork(contract, first=True)
        os.close(go)
        told.append(end(child, here))
    racers = [fork(contract) for _ in range(processes)]
    for _, go, _ in racers:
        os.close(go)
    told += [end(child, here) for child, _, here in racers]
    print(json.dumps(told))
"""


def states(folder: Path) -> Counter[str]:
    return Counter(row.state for row in SqliteStore.open(folder / "shop.ledger").history())


def test_three_of_eight_processes_spend_and_five_never_touch_the_data(tmp_path: Path) -> None:
    rounds = answers_of(RACE, tmp_path, ROUNDS, PROCESSES, "0.3", "no")
    assert len(rounds) == ROUNDS
    for number, told in enumerate(rounds):
        assert sorted(told) == [["refused", "0.3", 0]] * 5 + [["won", "0.3", 1]] * 3
        folder = tmp_path / str(number)
        (account,) = SqliteStore.open(folder / "shop.ledger").accounts()
        assert (account.spent, account.reserved, account.remaining) == (9 * ONE // 10, 0, ONE // 10)
        # A refusal leaves nothing behind: neither an entry nor a reservation.
        assert states(folder) == {"open": 1, "settled": 3}
        SqliteStore.open(folder / "shop.ledger").verify()


def test_a_spender_that_dies_costs_its_reservation_and_no_more(tmp_path: Path) -> None:
    rounds = answers_of(RACE, tmp_path, 1, PROCESSES - 1, "0.3", "yes")
    for number, (dead, *told) in enumerate(rounds):
        assert dead == ["killed", 9, 0]
        assert sorted(told) == [["refused", "0.3", 0]] * 5 + [["won", "0.3", 1]] * 2
        folder = tmp_path / str(number)
        store = SqliteStore.open(folder / "shop.ledger")
        (account,) = store.accounts()
        assert (account.spent, account.reserved, account.remaining) == (9 * ONE // 10, 0, ONE // 10)
        assert states(folder) == {"open": 1, "settled": 2, "forfeited": 1}
        store.verify()


def test_one_of_two_threads_spends_three_quarters(tmp_path: Path) -> None:
    for number in range(ROUNDS):
        contract = open_shop(tmp_path / str(number))
        # Sometimes two sessions, sometimes one that both threads share.
        sessions = [Session(contract), Session(contract)] if number % 2 else [Session(contract)] * 2
        start = threading.Barrier(2)
        told: list[str] = []

        def ask(session: Session, start: threading.Barrier = start, told: list[str] = told) -> None:
            start.wait()
            try:
                told.append(f"won {session.count(cost='0.75', fresh=True).remaining}")
            except BudgetError as error:
                told.append(f"refused, {error.facts['remaining']} left")

        threads = [threading.Thread(target=ask, args=(session,)) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(told) == ["refused, 0.25 left", "won 1/4"]
        (account,) = SqliteStore.open(tmp_path / str(number) / "shop.ledger").accounts()
        assert (account.spent, account.reserved) == (3 * ONE // 4, 0)


@pytest.mark.parametrize(
    "costs", [("34685000/40000000", "31457280/40000000"), ("31457280/40000000", "34685000/40000000")]
)
def test_two_that_fit_one_by_one_and_not_together(tmp_path: Path, costs: tuple[str, str]) -> None:
    """The figures of the report, in turn: whoever comes second is told what is left, and loses nothing."""
    session = Session(open_shop(tmp_path))
    first = session.count(cost=costs[0], fresh=True)
    assert first.remaining == 1 - Fraction(costs[0])
    with pytest.raises(BudgetError) as caught:
        session.count(cost=costs[1], fresh=True)
    assert Fraction(str(caught.value.facts["remaining"])) == first.remaining
    (account,) = session.budget()
    assert account.spent == Fraction(costs[0]) * ONE <= ONE
