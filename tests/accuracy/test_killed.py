"""A run of steps is killed at each marked point of each step; the same run again goes on from what the ledger holds.

What was released is taken up for nothing, what was under way is forfeited, and the run ends with the law and cost, bar
that one forfeit, of a run that nobody disturbed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import parco
from parco.accuracy.ladders import Geometric
from parco.accuracy.rules import RelativeError, View
from parco.accuracy.sessions import ReleasedUntil, release_until
from parco.accuracy.validation import Validation
from parco.mechanisms.mechanism import Mechanism
from parco.mechanisms.refinement import RefinedGaussian
from parco.stores.address import open_ledger
from tests.accuracy.test_sessions import PARTS, purchases
from tests.cli.run import parco as run_parco
from tests.cli.run import parco_json
from tests.shop import COLUMNS, contract_text, write_csv

if TYPE_CHECKING:
    from tests.postgres import Server

GDP = 'measure = "gdp"\nmu = "3"\nreceipt_order = 8\ndelta = "1e-6"'
LADDER = ("0.001", 2, 4)
STEPS = range(1, LADDER[2] + 1)
# Of the points of one release: whether what was under way is charged when killed there, and whether it is released.
POINTS = {
    "before-reserve": (False, False),
    "after-reserve": (True, False),
    "before-settle": (True, False),
    "after-settle": (True, True),
}

KILL = """
import os, signal
from parco.ledger import points
left = {{"{point}": {times}}}
def reach(point):
    left[point] = left.get(point, 0) - 1
    if left["{point}"] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
points.reach = reach
"""
RUN = """
import sys
import parco
session = parco.Session(parco.Contract.read(sys.argv[1]), ledger=sys.argv[2])
"""
UNTIL = """
ladder = parco.Geometric({ladder[0]!r}, {ladder[1]}, count={ladder[2]})
ask, rule = parco.Ask("count", by="channel"), parco.RelativeError("0.001%")
parco.release_until(session, ask, rule, at_most="2", ladder=ladder)
"""
VALIDATED = """
until = parco.Validation("0.8", check={check!r}, {paid}, model=lambda view: "items = %d" % view.step)
ladder = parco.Geometric({ladder[0]!r}, {ladder[1]}, count={ladder[2]})
ask = parco.Ask("count", by="channel", part="fit")
parco.release_until(session, ask, until, at_most="2", ladder=ladder)
"""


@dataclass(frozen=True)
class Place:
    """A signed contract's file, and its ledger."""

    contract: Path
    ledger: str

    @property
    def session(self) -> parco.Session:
        return parco.Session(parco.Contract.read(self.contract), ledger=self.ledger)

    @property
    def accounts(self) -> dict[str, tuple[int, int]]:
        return {row.label: (row.spent, row.reserved) for row in open_ledger(self.ledger).accounts()}

    def has_spent(self, units: int, *, label: str = "whole") -> bool:
        """So much, but for the rounding of a unit a step, and nothing reserved."""
        spent, reserved = self.accounts[label]
        return abs(spent - units) <= 5 and reserved == 0

    def killed(self, script: str, *, point: str, times: int) -> None:
        """Runs a script in a process of its own, which is killed when it comes to a point for the so manyth time."""
        text = KILL.format(point=point, times=times) + RUN + script.format(ladder=LADDER)
        command = [sys.executable, "-c", text, str(self.contract), self.ledger]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")


def signed(folder: Path, ledger: str, *, columns: str = COLUMNS, people: int = 300) -> Place:
    folder.mkdir(exist_ok=True)
    write_csv(folder / "purchases.csv", purchases(people))
    (folder / "contract.toml").write_text(contract_text(budget=GDP, columns=columns), encoding="utf-8")
    parco.sign(parco.Contract.read(folder / "contract.toml"), ledger=ledger, actor="steward")
    return Place(folder / "contract.toml", ledger)


@pytest.fixture
def file(tmp_path: Path) -> Place:
    return signed(tmp_path / "shop", str(tmp_path / "shop.ledger"))


@pytest.fixture
def server(tmp_path: Path, postgres: Server) -> Iterator[Place]:
    name = postgres.ledger()
    yield signed(tmp_path / "shop", postgres.url(name))
    postgres.free(name)


def climbed(place: Place) -> ReleasedUntil:
    ladder = Geometric(LADDER[0], LADDER[1], count=LADDER[2])
    with place.session as session:
        rule = RelativeError("0.001%")
        return release_until(session, parco.Ask("count", by="channel"), rule, at_most="2", ladder=ladder)


@cache
def costs() -> tuple[int, ...]:
    """What an answer at each step costs in all: an undisturbed run in memory, by its own arithmetic."""
    first, ratio, count = Fraction(LADDER[0]), LADDER[1], LADDER[2]
    return tuple(int(first * ratio**step * 10**15) for step in range(count))


def law(release: ReleasedUntil) -> tuple[Mechanism, ...]:
    mechanism = release.release.receipt.mechanism
    assert isinstance(mechanism, RefinedGaussian)
    return mechanism.path.draws


def check_resumed(place: Place, *, point: str, step: int, undisturbed: ReleasedUntil) -> None:
    charged, released = POINTS[point]
    done = step if released else step - 1
    before = costs()[done - 1] if done else 0
    under_way = costs()[step - 1] - (costs()[step - 2] if step > 1 else 0)
    lost = under_way if charged and not released else 0
    store = open_ledger(place.ledger)  # whoever opens it next forfeits what nobody will end
    assert place.has_spent(before + lost)
    kept = [row.seq for row in store.history() if row.state == "settled"]
    assert len(kept) == done
    store.verify()
    found = climbed(place)
    # What was released is taken up for nothing, each answer of it as it was.
    assert [view.charged for view in found.stopped.views[:done]] == [0] * done
    assert [row.seq for row in store.history() if row.state == "settled"][:done] == kept
    assert [row.state for row in store.history() if row.mechanism].count("forfeited") == (lost > 0)
    assert place.has_spent(costs()[-1] + lost)
    assert found.stopped.cost.units == place.accounts["whole"][0] - before - lost
    # One who was not disturbed ends there, too: the same draws, of which none is made of what was forfeited.
    assert law(found) == law(undisturbed)
    assert found.release.receipt.path_cost == undisturbed.release.receipt.path_cost
    assert (found.stopped.last.step, found.stopped.enough) == (len(STEPS), False)
    assert found.stopped.last.half_widths == undisturbed.stopped.last.half_widths
    store.verify()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> ReleasedUntil:
    folder = tmp_path_factory.mktemp("undisturbed")
    found = climbed(signed(folder, str(folder / "shop.ledger")))
    assert found.stopped.cost.units == pytest.approx(costs()[-1], abs=5)
    return found


@pytest.mark.parametrize(
    ("step", "point"),
    [
        pytest.param(step, point, marks=[] if step == 2 or point == "before-settle" else pytest.mark.long)
        for step in STEPS
        for point in POINTS
    ],
)
def test_a_run_killed_there_goes_on(file: Place, point: str, step: int, undisturbed: ReleasedUntil) -> None:
    file.killed(UNTIL, point=point, times=step)
    check_resumed(file, point=point, step=step, undisturbed=undisturbed)


@pytest.mark.parametrize("point", POINTS)
def test_a_run_killed_there_goes_on_in_postgresql(server: Place, point: str, undisturbed: ReleasedUntil) -> None:
    server.killed(UNTIL, point=point, times=2)
    check_resumed(server, point=point, step=2, undisturbed=undisturbed)


def test_a_run_killed_twice_has_two_forfeits(file: Place, undisturbed: ReleasedUntil) -> None:
    file.killed(UNTIL, point="before-settle", times=3)
    # Two steps are taken up; the third, begun again, is the first that the second process makes.
    file.killed(UNTIL, point="after-reserve", times=1)
    lost = 2 * (costs()[2] - costs()[1])
    found = climbed(file)
    assert file.has_spent(costs()[-1] + lost)
    assert law(found) == law(undisturbed)


WITHIN = ("count", "--by", "channel", "--within", "0.01%", "--at-most", "0.01")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, dict[str, Any]]:
    """The same command, undisturbed."""
    folder = tmp_path_factory.mktemp("other")
    place = signed(folder, str(folder / "shop.ledger"))
    return place, parco_json("release", place.contract, *WITHIN, "--ledger", place.ledger)


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=[] if point == "before-settle" else pytest.mark.long) for point in POINTS]
)
def test_the_command_killed_there_goes_on(file: Place, other: tuple[Place, dict[str, Any]], point: str) -> None:
    """On the default ladder, which here climbs evenly: so near is not to be had for so little."""
    charged, released = POINTS[point]
    ask, (undisturbed, whole) = ("release", file.contract, *WITHIN, "--json"), other
    done = run_parco(*ask, "--ledger", file.ledger, before=KILL.format(point=point, times=3), code=None)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    found = parco_json(*ask[:-1], "--ledger", file.ledger)
    assert found["until"]["steps"] == whole["until"]["steps"] == 5
    assert found["receipt"]["path_cost"] == whole["receipt"]["path_cost"]
    assert found["receipt"]["scale"] == whole["receipt"]["scale"]
    third = costs_of(undisturbed)[2]
    spent, _ = file.accounts["whole"]
    assert spent - undisturbed.accounts["whole"][0] == (third if charged and not released else 0)
    states = [row.state for row in file.session.history() if row.mechanism]
    assert states == ["settled"] * 2 + (["forfeited"] if charged and not released else []) + ["settled"] * 3


def costs_of(place: Place) -> list[int]:
    return [sum(charge.cost for charge in row.charges) for row in place.session.history() if row.mechanism]


@pytest.fixture
def divided(tmp_path: Path) -> Place:
    return signed(tmp_path / "divided", str(tmp_path / "divided.ledger"), columns=PARTS)


def validated(place: Place, **more: Any) -> ReleasedUntil:
    def model(view: View) -> str:
        return f"items = {view.step}"

    ladder = Geometric(LADDER[0], LADDER[1], count=LADDER[2])
    with place.session as session:
        ask, until = parco.Ask("count", by="channel", part="fit"), Validation("0.8", model=model, **more)
        return release_until(session, ask, until, at_most="2", ladder=ladder)


def test_gaussian_checks_that_were_made_are_free_after_a_crash(divided: Place) -> None:
    """Killed in the third step's check: the purchases have three items each, so that it passes."""
    script = VALIDATED.format(check="gaussian", paid='cost="0.05"', ladder=LADDER)
    divided.killed(script, point="before-settle", times=6)
    lost = divided.session.budget()
    before = {row.label: row.spent for row in lost}
    # A score a step, the last of them forfeited.
    assert before["validation"] == pytest.approx(3 * 0.05e15, rel=1e-9)
    found = validated(divided, cost="0.05")
    assert found.stopped.enough
    assert found.stopped.last.step == 3
    after = {row.label: row.spent for row in divided.session.budget()}
    assert after["validation"] - before["validation"] == pytest.approx(0.05e15, rel=1e-9)
    assert after["fit"] == before["fit"]


@pytest.mark.parametrize(("point", "released"), [("after-reserve", 2), ("before-settle", 2)])
def test_a_stream_that_was_killed_is_forfeited_whole_and_the_next_run_paid_anew(
    divided: Place, point: str, released: int
) -> None:
    """Points are met by a measurement, a check, a measurement, a check: killed in the second check."""
    script = VALIDATED.format(check="sparse-vector", paid='epsilon="0.5"', ladder=LADDER)
    divided.killed(script, point=point, times=4)
    whole = open_ledger(divided.ledger)
    states = [row.state for row in whole.history() if row.mechanism and row.mechanism.kind == "sparse-vector"]
    assert states == ["forfeited"]
    spent, reserved = divided.accounts["validation"]
    assert (spent > 0, reserved) == (True, 0)
    assert divided.has_spent(costs()[released - 1], label="fit")
    found = validated(divided, check="sparse-vector", epsilon="0.5")
    assert (found.stopped.enough, found.stopped.last.step) == (True, 3)
    assert divided.accounts["validation"] == (2 * spent, 0)
    assert divided.has_spent(costs()[2], label="fit")
    whole.verify()
