"""A panel: a year of weekly counts on a signed schedule, and no period paid twice, whatever happens between."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import parco
from parco.audit import offline_life
from parco.audit.verify import verify
from parco.cli.main import app
from parco.cli.schedule_files import read_panel, read_schedule
from parco.errors import ForfeitedError, KeyReuseError, QuestionError
from parco.ledger import points
from parco.measure import COST_UNIT
from parco.session.ask import Ask
from parco.session.panel import Told, run_panel
from parco.session.schedules import ScheduledAsk, sign_schedule
from parco.session.session import Session
from parco.stores.address import open_ledger
from parco.stores.keys import signature_holds
from tests.cli.run import parco as run_parco
from tests.shop import open_shop

EXAMPLE = Path(__file__).parents[2] / "examples" / "weekly"
WEEKS = 52
ASKS = (Ask("count", by="month", cost="0.01"), Ask("mean", "dollars", cost="0.02"))


def prepared(folder: Path, weeks: int) -> Path:
    """The example in a folder of its own, with the files of so many weeks, and its contract signed."""
    for name in ("contract.toml", "panel.toml", "schedule.toml"):
        shutil.copy(EXAMPLE / name, folder)
    found = importlib.util.spec_from_file_location("prepare", EXAMPLE / "prepare.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.prepare(folder / "weeks", weeks)
    parco.sign(parco.Contract.read(folder / "contract.toml"))
    return folder


def invoke(*arguments: object) -> Any:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_year_of_weekly_counts_on_a_signed_schedule(tmp_path: Path) -> None:
    """History, filter's claim, tight claim, and the same figures from `parco account` on the exported schedule."""
    folder = prepared(tmp_path, WEEKS)
    ledger, panel = folder / "members.ledger", read_panel(folder / "panel.toml")
    contract = parco.Contract.read(panel.contract)
    schedule = read_schedule(folder / "schedule.toml")
    planned = invoke("schedule", "plan", "--file", folder / "schedule.toml", "--json")
    with Session(contract) as session:
        scheduled = sign_schedule(session, schedule.name, schedule.asks)
    periods = list(schedule.asks[0].versions)
    assert len(scheduled.steps) == len(periods) == WEEKS
    counts = []
    for period in periods:
        with Session(contract, data=panel.data_of(period), version=period, schedule=panel.schedule) as session:
            (told,) = run_panel(session, panel.name, panel.asks)
        assert told.state == "released"
        assert told.release is not None
        counts.append(sum(row.value for row in told.release.value))
        rows = (folder / "weeks" / f"{period}.csv").read_text(encoding="utf-8").count("\n") - 1
        assert abs(counts[-1] - rows) < 300  # three cells with a standard deviation of 10.5 each
    assert counts[-1] > counts[0] + 1500

    history = invoke("history", "--ledger", ledger, "--json")["history"]
    assert [(row["state"], row.get("schedule"), row.get("step")) for row in history] == [
        ("open", None, None),
        ("schedule", schedule.name, None),
        *(("settled", schedule.name, number) for number in range(1, WEEKS + 1)),
    ]
    budget = invoke("budget", "--ledger", ledger, "--json")
    (account,) = budget["accounts"]
    assert account["spent"] == history[1]["set_aside"]["1"] == planned["cost"]
    assert (account["reserved"], account["remaining"]) == ("0", planned["remaining"])
    tight, cap = budget["tight"]["members"]["claim"], budget["claims"]["members"][0]
    assert tight == planned["tight"]
    assert cap["epsilon"] == planned["filter"]["epsilon"]
    assert Fraction(tight["epsilon"]) < Fraction(cap["epsilon"])

    exported = CliRunner().invoke(app, ["schedule", "export", str(ledger)]).stdout
    assert json.loads(exported) == planned["schedule"]
    (folder / "schedule.json").write_text(exported, encoding="utf-8")
    told_by = invoke("account", folder / "schedule.json", "--delta", tight["delta"], "--json")["claims"]
    figures = {one["accountant"]: (one["epsilon"], one["status"]) for one in told_by}
    assert figures["pld"] == (tight["epsilon"], "tight")
    assert figures["gdp"] == (tight["epsilon"], "tight")

    store = open_ledger(ledger)
    verify(store, strict=True)
    checked = offline_life.Ledger()
    checked.verify = signature_holds
    for line in store.export():
        checked.feed(line)
    checked.end()
    assert [request for _, request in checked.steps.values()] == sorted(checked.drawn)
    assert len(checked.drawn) == WEEKS


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    """Where the shop's ledger lies, in each store."""
    if request.param == "sqlite":
        yield tmp_path / "shop.ledger"
        return
    server = request.getfixturevalue("postgres")
    name = server.ledger()
    yield server.url(name)
    server.free(name)


def shop(folder: Path, ledger: Path | str, *, schedule: bool = False) -> parco.Contract:
    contract = open_shop(folder)
    parco.sign(contract, ledger=ledger)
    if schedule:
        with Session(contract, ledger=ledger) as session:
            sign_schedule(session, "plan", [ScheduledAsk(ask, ("w1", "w2")) for ask in ASKS])
    asks = "".join(
        f'[[ask]]\nstatistic = "{ask.statistic}"\n'
        + (f'column = "{ask.column}"\n' if ask.column else "")
        + (f'by = "{ask.by}"\n' if ask.by else "")
        + ("" if schedule else f'cost = "{ask.cost}"\n')
        for ask in ASKS
    )
    named = 'schedule = "plan"\n' if schedule else ""
    text = f'name = "panel"\ncontract = "contract.toml"\nledger = "{ledger}"\n{named}{asks}'
    (folder / "panel.toml").write_text(text, encoding="utf-8")
    return contract


def run(folder: Path, period: str = "w1", **options: Any) -> list[Told]:
    panel = read_panel(folder / "panel.toml")
    contract = parco.Contract.read(panel.contract)
    with Session(contract, ledger=panel.ledger, version=period, schedule=panel.schedule, **options) as session:
        return run_panel(session, panel.name, panel.asks)


def spent(ledger: Path | str) -> Fraction:
    (row,) = open_ledger(ledger).accounts()
    return row.spent * COST_UNIT


PRICE = Fraction(3, 100)


@pytest.mark.parametrize("schedule", [False, True])
def test_a_period_is_paid_once_and_the_next_by_itself(tmp_path: Path, ledger: Path | str, *, schedule: bool) -> None:
    shop(tmp_path, ledger, schedule=schedule)
    first = run(tmp_path)
    assert [(one.state, one.cost.value) for one in first] == [
        ("released", Fraction(1, 100)),
        ("released", 2 * PRICE / 3),
    ]
    # The data are not needed for what is there.
    (tmp_path / "purchases.csv").rename(tmp_path / "gone.csv")
    again = run(tmp_path)
    assert [(one.state, one.cost.value) for one in again] == [("stored", Fraction(0))] * 2
    assert [one.release.value for one in again if one.release] == [one.release.value for one in first if one.release]
    assert spent(ledger) == PRICE
    (tmp_path / "gone.csv").rename(tmp_path / "purchases.csv")
    run(tmp_path, "w2")
    assert spent(ledger) == 2 * PRICE
    verify(open_ledger(ledger))


KILL = """
import os, signal
from parco.ledger import points
def reach(point):
    if point == {point!r}:
        os.kill(os.getpid(), signal.SIGKILL)
points.reach = reach
"""
# point -> what the next run says of each question, and what both together were charged
OUTCOMES = {
    "before-reserve": ("released", PRICE),
    "after-reserve": ("forfeited", PRICE),
    "before-settle": ("forfeited", PRICE),
    "after-settle": ("stored", PRICE),
}


@pytest.mark.parametrize("point", OUTCOMES)
def test_killed_anywhere_it_never_pays_twice(tmp_path: Path, ledger: Path | str, point: str) -> None:
    shop(tmp_path, ledger, schedule=True)
    killed = run_parco("panel", tmp_path / "panel.toml", "--period", "w1", before=KILL.format(point=point), code=None)
    assert killed.returncode == -signal.SIGKILL
    state, charged = OUTCOMES[point]
    assert [one.state for one in run(tmp_path)] == [state] * len(ASKS)
    assert spent(ledger) == charged
    assert [one.state for one in run(tmp_path)] == ["stored" if state == "released" else state] * len(ASKS)
    assert spent(ledger) == charged
    store = open_ledger(ledger)
    verify(store)
    drawn = [step.request is not None for step in store.schedule("plan").steps]
    assert drawn == [True, False, True, False, True, False]


def test_a_failure_told_by_the_exit_code_and_answered_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract = shop(tmp_path, tmp_path / "shop.ledger")

    def die(point: str) -> None:
        if point == "before-settle":
            raise ValueError("somebody's row")

    with monkeypatch.context() as patch:
        patch.setattr(points, "reach", die)
        with pytest.raises(ForfeitedError):
            run(tmp_path)
    done = CliRunner().invoke(app, ["panel", str(tmp_path / "panel.toml"), "--period", "w1", "--json"])
    assert done.exit_code == ForfeitedError.exit_code == 70
    record = json.loads(done.stdout)
    assert [(one["state"], one["release"]) for one in record["questions"]] == [("forfeited", None)] * 2
    assert record["cost"] == "0"
    shown = CliRunner().invoke(app, ["panel", str(tmp_path / "panel.toml"), "--period", "w1"])
    assert "the charge stands" in " ".join(shown.stdout.split())
    # Somebody decides to pay again, by hand: from then on the panel serves that answer.
    with Session(contract, version="w1") as session:
        session.count(by="month", cost="0.01")
    assert [one.state for one in run(tmp_path)] == ["stored", "forfeited"]


RACERS = 2


def test_processes_that_run_one_period_at_once_pay_once(tmp_path: Path, ledger: Path | str) -> None:
    shop(tmp_path, ledger, schedule=True)
    command = [sys.executable, "-c", "from parco.cli.main import run; run()"]
    command += ["panel", str(tmp_path / "panel.toml"), "--period", "w1", "--json"]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(RACERS)]
    told = [json.loads(racer.communicate(timeout=100)[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * RACERS
    states = sorted([one["state"] for one in record["questions"]] for record in told)
    assert states == [["released"] * 2, *[["stored"] * 2] * (RACERS - 1)]
    assert sorted(record["cost"] for record in told) == [*["0"] * (RACERS - 1), "0.03"]
    rows = [[one["release"]["rows"] for one in record["questions"]] for record in told]
    assert rows[0] == rows[1]
    assert spent(ledger) == PRICE
    verify(open_ledger(ledger))


def test_another_question_of_the_panel_is_paid_and_the_rest_served(tmp_path: Path) -> None:
    contract = shop(tmp_path, tmp_path / "shop.ledger")
    run(tmp_path)
    with Session(contract, version="w1") as session:
        told = run_panel(session, "panel", [*ASKS, Ask("count_units", cost="0.05")])
        assert [one.state for one in told] == ["stored", "stored", "released"]
        # Asked for less noise than is stored, in a period that was paid: what is there is what there is.
        (sharper,) = run_panel(session, "panel", [Ask("count", by="month", cost="0.2")])
        assert sharper.state == "stored"
        assert sharper.record()["cost"] == "0"


@pytest.mark.parametrize("ask", [Ask("count", key="k"), Ask("count", fresh=True)])
def test_a_panel_makes_its_own_keys(tmp_path: Path, ask: Ask) -> None:
    contract = shop(tmp_path, tmp_path / "shop.ledger")
    with Session(contract) as session, pytest.raises(QuestionError, match="leave out key and fresh"):
        run_panel(session, "panel", [ask])


def test_an_ask_may_have_a_key_of_its_own(tmp_path: Path) -> None:
    contract = shop(tmp_path, tmp_path / "shop.ledger")
    with Session(contract) as session:
        (first,) = session.release([Ask("count", cost="0.01", key="k")])
        (again,) = session.release([Ask("count", cost="0.01", key="k")])
        assert (first.repeat, again.repeat) == (False, True)
        with pytest.raises(KeyReuseError):
            session.release([Ask("count_units", cost="0.01", key="k")])
