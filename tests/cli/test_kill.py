"""A real `parco release` is killed at each marked point; what the ledger then says is what the crash table says."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from parco.ledger.points import POINTS
from parco.stores.sqlite import SqliteStore
from tests.cli.run import parco, parco_json
from tests.cli.test_schedule import OUTCOMES as SCHEDULES
from tests.shop import open_shop

KILL = """
import os, signal
from parco.ledger import points
def reach(point):
    if point == {point!r}:
        os.kill(os.getpid(), signal.SIGKILL)
points.reach = reach
"""

# point -> (states in the history, spent, whether asking again is free), after the next opening
OUTCOMES = {
    "before-reserve": ([], "0", False),
    "after-reserve": (["forfeited"], "0.1", False),
    "before-settle": (["forfeited"], "0.1", False),
    "after-settle": (["settled"], "0.1", True),
}


# Whether a correction that is killed there is done; done again, it is refused if it was.
CORRECTED = {"before-correction": False, "after-correction": True}


def test_every_point_has_its_outcome() -> None:
    assert {*OUTCOMES, *SCHEDULES, *CORRECTED} == set(POINTS)


@pytest.mark.parametrize("point", CORRECTED)
@pytest.mark.parametrize(
    "correction",
    [
        ("amend", 2, "title", "by month"),
        ("supersede", 2, "--withdraw"),
        ("recost", "--mechanism", "two-sided-geometric", "--factor", "4"),
        ("close",),
    ],
    ids=lambda words: words[0],
)
def test_a_correction_killed_there(tmp_path: Path, point: str, correction: tuple[object, ...]) -> None:
    open_shop(tmp_path)
    ledger = tmp_path / "shop.ledger"
    parco("release", tmp_path / "contract.toml", "count", "--cost", "0.1")
    act = (correction[0], ledger, *correction[1:], "--reason", "because", "--json")
    before = list(SqliteStore.open(ledger).entries())
    killed = parco(*act, before=KILL.format(point=point), code=None)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    left = SqliteStore.open(ledger)
    left.verify()
    assert len(list(left.entries())) - len(before) == CORRECTED[point]
    parco(*act, code=2 if CORRECTED[point] else 0)
    assert len(list(left.entries())) == len(before) + 1
    left.verify()


@pytest.mark.parametrize("point", OUTCOMES)
def test_a_release_killed_there(tmp_path: Path, point: str) -> None:
    states, spent, free = OUTCOMES[point]
    open_shop(tmp_path)
    ledger = tmp_path / "shop.ledger"
    ask = ("release", tmp_path / "contract.toml", "count", "--by", "month", "--cost", "0.1", "--json")
    killed = parco(*ask, before=KILL.format(point=point), code=None)
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout == ""

    stored = [cell.answer for cell in SqliteStore.open(ledger).answers(_question(ledger))] if free else []
    (account,) = parco_json("budget", "--ledger", ledger)["accounts"]
    assert (account["spent"], account["reserved"]) == (spent, "0")
    history = parco_json("history", "--ledger", ledger)["history"]
    assert [row["state"] for row in history] == ["open", *states]
    SqliteStore.open(ledger).verify()

    again = parco_json(*ask[:-1])
    assert again["repeat"] is free
    assert again["cost"] == ("0" if free else "0.1")
    if free:
        assert [cell.answer for cell in SqliteStore.open(ledger).answers(_question(ledger))] == stored
    SqliteStore.open(ledger).verify()


def test_a_retry_by_key_is_told_that_it_was_forfeited(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = ("release", tmp_path / "contract.toml", "count", "--cost", "0.1", "--key", "monday")
    parco(*ask, before=KILL.format(point="before-settle"), code=None)
    refused = parco(*ask, code=70)
    assert "the charge stands" in refused.stderr
    assert parco_json("budget", "--ledger", tmp_path / "shop.ledger")["accounts"][0]["spent"] == "0.1"


def _question(ledger: Path) -> str:
    question = SqliteStore.open(ledger).history()[1].question
    assert question is not None
    return question
