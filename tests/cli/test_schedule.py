"""`parco schedule …` as a person runs it: priced, signed, left, exported, and killed at each of its points."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from parco.cli.main import app
from parco.cli.schedule_files import PanelFile, read_panel, read_schedule
from parco.errors import QuestionError, RequestError
from parco.session.session import Session
from parco.stores.address import open_ledger
from tests.cli.run import parco
from tests.shop import contract_text, open_shop, write_csv

GDP = 'measure = "gdp"\nepsilon = "2"\ndelta = "1e-6"'
SCHEDULE = """
name = "weekly"
contract = "contract.toml"
versions = ["w1", "w2"]

[[step]]
statistic = "count"
by = "month"
cost = "0.01"

[[step]]
statistic = "count_units"
scale = "12.5"
versions = ["w1"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_shop(tmp_path, budget=GDP)
    (tmp_path / "schedule.toml").write_text(SCHEDULE, encoding="utf-8")
    return tmp_path


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return " ".join(done.stdout.split())


def told(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json"))


def test_signed_left_and_what_it_all_says(folder: Path) -> None:
    ledger = folder / "shop.ledger"
    signed = told("schedule", "sign", folder / "schedule.toml", "--actor", "steward")
    # 2 times 0.01, and 1/12.5^2.
    assert signed == {
        "schedule": "weekly",
        "entry": 2,
        "data": "shop",
        "steps": 3,
        "drawn": 0,
        "left_by_entry": None,
        "set_aside": {"1": "0.0264"},
    }
    again = run("schedule", "sign", folder / "schedule.toml")
    assert "entry 2, in force: 0 of 3 steps drawn; 0.0264 is set aside" in again
    assert "Something was released" not in again
    with Session(read_contract(folder), version="w1", schedule="weekly") as session:
        session.count(by="month")
    shown = run("budget", "--ledger", ledger)
    assert "The whole of what was fixed in advance (weekly), drawn or not, and nothing outside of it" in shown
    assert "Schedule weekly: 1 of 3 steps drawn; 0.0164 is set aside for the rest." in shown
    assert "Tight: the noise as it was fixed" in shown
    history = run("history", "--ledger", ledger)
    assert "schedule: weekly, 0.0264 set aside" in history
    assert "weekly 1" in history
    rows = told("history", "--ledger", ledger)["history"]
    assert [(row["state"], row.get("schedule"), row.get("step"), row.get("set_aside")) for row in rows] == [
        ("open", None, None, None),
        ("schedule", "weekly", None, {"1": "0.0264"}),
        ("settled", "weekly", 1, None),
    ]
    left = run("schedule", "leave", "weekly", "--ledger", ledger, "--reason", "over")
    assert "left: 1 of 3 steps drawn; nothing is set aside" in left
    assert told("history", "--ledger", ledger)["history"][-1]["reason"] == "over"
    assert "weekly: over" in run("history", "--ledger", ledger)
    assert "Schedule weekly: 1 of 3 steps drawn; left by entry 6." in run("budget", "--ledger", ledger)
    assert told("budget", "--ledger", ledger)["tight"]["shop"]["outside"] is None
    run("release", folder / "contract.toml", "count", "--cost", "0.01")
    shown = run("budget", "--ledger", ledger)
    assert "Entry 7 was released outside of weekly: the tight claim has ended, the cap's claim is what holds." in shown
    assert "fixed in advance" not in shown
    record = told("budget", "--ledger", ledger)
    assert record["tight"]["shop"] == {"schedules": ["weekly"], "claim": None, "outside": 7}
    assert record["claims"]["shop"][0]["accountant"] == "gaussian-profile"


def test_a_schedule_signed_late_says_so(folder: Path) -> None:
    run("release", folder / "contract.toml", "count", "--cost", "0.01")
    shown = run("schedule", "sign", folder / "schedule.toml")
    assert "Something was released before it was signed" in shown
    shown = run("budget", "--ledger", folder / "shop.ledger")
    assert "No schedule was signed before the first release: no tight claim" in shown
    assert told("budget", "--ledger", folder / "shop.ledger")["tight"] == {}


def test_without_schedules_a_budget_says_nothing_of_them(folder: Path) -> None:
    record = told("budget", "--ledger", folder / "shop.ledger")
    assert record.keys().isdisjoint({"schedules", "claims", "tight"})
    assert "chedule" not in run("budget", "--ledger", folder / "shop.ledger")


def test_a_plan_prices_what_is_not_signed(folder: Path, tmp_path: Path) -> None:
    contract = folder / "contract.toml"
    priced = told("schedule", "plan", contract, "count", "--by", "month", "--times", "104", "--error", "200")
    (plan,) = priced["plans"]
    assert plan["times"] == 104
    assert priced["fits"]
    assert priced["schedule"] == [
        {**priced["schedule"][0], "mechanism": "gaussian", "scale": plan["scale"], "times": 104}
    ]
    assert priced["tight"]["status"] == "tight"
    assert priced["filter"]["status"] == "valid"
    wider = told("schedule", "plan", contract, "count", "--times", "4", "--cost", "0.01", "--delta", "1e-4")
    assert wider["tight"]["delta"] == "0.0001"
    shown = run("schedule", "plan", contract, "mean", "dollars", "--times", "12", "--cost", "1")
    assert "In all 12 of gdp; does not fit: 0.201004039445224 is left." in shown
    assert "12 times sum dollars" in shown
    by_file = told("schedule", "plan", "--file", folder / "schedule.toml")
    assert by_file["cost"] == "0.0264"
    assert open_ledger(folder / "shop.ledger").schedules() == []
    # Before the contract is signed, too: the whole budget is there, and no ledger is made.
    bare = tmp_path / "bare"
    bare.mkdir()
    write_csv(bare / "purchases.csv")
    (bare / "contract.toml").write_text(contract_text(budget=GDP), encoding="utf-8")
    assert told("schedule", "plan", bare / "contract.toml", "count", "--cost", "0.01")["fits"]
    assert sorted(path.name for path in bare.iterdir()) == ["contract.toml", "purchases.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan",), "name a contract"),
        (("plan", "contract.toml"), "name a statistic"),
        (("plan", "contract.toml", "count", "--file", "schedule.toml"), "one of them"),
        (("plan", "contract.toml", "count", "--delta", "2"), "delta lies strictly"),
        (("leave", "weekly", "--ledger", "shop.ledger", "--reason", "why"), "no schedule 'weekly'"),
        (("export", "shop.ledger"), "no schedule was signed"),
        (("export", "shop.ledger", "--name", "weekly"), "no schedule 'weekly'"),
    ],
)
def test_what_is_missing_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(RequestError, match=words):
        run("schedule", *arguments)


def test_an_export_is_of_one_account(folder: Path, tmp_path: Path) -> None:
    ledger = folder / "shop.ledger"
    run("schedule", "sign", folder / "schedule.toml")
    other = SCHEDULE.replace('name = "weekly"', 'name = "more"')
    (folder / "more.toml").write_text(other, encoding="utf-8")
    run("schedule", "sign", folder / "more.toml")
    times = [one.get("times", 1) for one in json.loads(run("schedule", "export", ledger))]
    assert times == [4, 2]
    assert [one.get("times", 1) for one in json.loads(run("schedule", "export", ledger, "--name", "more"))] == [2, 1]
    with pytest.raises(RequestError, match="no account 'fit', but whole"):
        run("schedule", "export", ledger, "--account", "fit")
    parts = tmp_path / "parts"
    from tests.shop import COLUMNS

    open_shop(parts, budget=GDP, columns=COLUMNS + '\n[parts]\nfit = "0.5"\nrest = "0.5"\n')
    (parts / "schedule.toml").write_text(SCHEDULE, encoding="utf-8")
    run("schedule", "sign", parts / "schedule.toml")
    with pytest.raises(RequestError, match="name one with --account, of fit, rest"):
        run("schedule", "export", parts / "shop.ledger")
    assert len(json.loads(run("schedule", "export", parts / "shop.ledger", "--account", "rest"))) == 2


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (SCHEDULE.replace('name = "weekly"\n', ""), "say its name"),
        (SCHEDULE.replace('"contract.toml"', "1"), "say its contract"),
        (SCHEDULE.replace("[[step]]", "[[steps]]"), "unknown key steps"),
        (SCHEDULE.replace('versions = ["w1", "w2"]\n', ""), "step 1: say the versions"),
        (SCHEDULE.replace('["w1"]', '"w1"'), "step 2: say the versions"),
        (SCHEDULE.replace("statistic", "question"), "step 1: unknown option question"),
        ('name = "x"\ncontract = "y"\nstep = []', "write each question"),
    ],
)
def test_a_file_that_is_none_is_told_its_fault(tmp_path: Path, bad: str, words: str) -> None:
    (tmp_path / "schedule.toml").write_text(bad, encoding="utf-8")
    with pytest.raises(QuestionError, match=words):
        read_schedule(tmp_path / "schedule.toml")
    with pytest.raises(QuestionError, match="cannot read"):
        read_panel(tmp_path / "none.toml")


def test_a_panel_file_names_data_by_period(tmp_path: Path) -> None:
    text = 'name = "p"\ncontract = "c.toml"\ndata = "w/{period}.csv"\nledger = "l"\n[[ask]]\nstatistic = "count"\n'
    (tmp_path / "panel.toml").write_text(text, encoding="utf-8")
    read = read_panel(tmp_path / "panel.toml")
    assert read.data_of("2025-W07") == tmp_path / "w" / "2025-W07.csv"
    assert read.ledger == str(tmp_path / "l")
    for period in ("../x", "a/b", ".x"):
        with pytest.raises(QuestionError, match="holds no path"):
            read.data_of(period)
    assert PanelFile("p", tmp_path / "c.toml", ()).data_of("../x") is None
    (tmp_path / "panel.toml").write_text(text.replace('"l"', '"postgresql://r@h/d"'), encoding="utf-8")
    assert read_panel(tmp_path / "panel.toml").ledger == "postgresql://r@h/d"


KILL = """
import os, signal
from parco.ledger import points
def reach(point):
    if point == {point!r}:
        os.kill(os.getpid(), signal.SIGKILL)
points.reach = reach
"""
# point -> the tags of the ledger afterwards, and what is set aside; then the same command does it, or finds it done
OUTCOMES = {
    "before-schedule": (["open"], "0"),
    "after-schedule": (["open", "schedule"], "0.0264"),
    "before-leave": (["open", "schedule"], "0.0264"),
    "after-leave": (["open", "schedule", "leave"], "0"),
}


@pytest.mark.parametrize("point", OUTCOMES)
def test_killed_there(folder: Path, point: str) -> None:
    ledger = folder / "shop.ledger"
    command: tuple[object, ...] = ("schedule", "sign", folder / "schedule.toml")
    if "leave" in point:
        run(*command)
        command = ("schedule", "leave", "weekly", "--ledger", ledger, "--reason", "why")
    killed = parco(*command, before=KILL.format(point=point), code=None)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    tags, reserved = OUTCOMES[point]
    assert [row["state"] for row in told("history", "--ledger", ledger)["history"]] == tags
    assert told("budget", "--ledger", ledger)["accounts"][0]["reserved"] == reserved
    if point == "after-leave":
        with pytest.raises(RequestError, match="was left before"):
            run(*command)
    else:
        run(*command)
    open_ledger(ledger).verify()


def read_contract(folder: Path) -> Any:
    from parco.contract.contract import Contract

    return Contract.read(folder / "contract.toml")
