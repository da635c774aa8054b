"""One year of a weekly panel on growing data: signed, drawn, sharpened, asked afresh, corrected and recosted.

Of `examples/weekly`, by the real commands where they are what is shown.
"""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.audit import offline_life
from parco.audit.controls import controls
from parco.audit.report import check_report
from parco.audit.verify import verify
from parco.measure import COST_UNIT, units_ceil
from parco.reports.frozen import freeze
from parco.session.receipt import claims_to_date
from parco.stores.sqlite import SqliteStore
from tests.cli.run import parco as run
from tests.cli.run import parco_json

EXAMPLE = Path(__file__).parents[2] / "examples" / "weekly"
NAME = "members of 2025"
ASK = parco.Ask("count_units", by="branch")
WEEKS = [f"2025-W{week:02d}" for week in range(1, 53)]


class Year:
    """The example in a folder, and its sessions by week."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("contract.toml", "schedule.toml", "panel.toml"):
            shutil.copy(EXAMPLE / name, folder / name)
        runpy.run_path(str(EXAMPLE / "prepare.py"))["prepare"](folder / "weeks", 52)
        self.contract = parco.Contract.read(folder / "contract.toml")
        self.ledger = folder / "members.ledger"

    def session(self, week: str, *, schedule: str | None = None) -> parco.Session:
        data = self.folder / "weeks" / f"{week}.csv"
        return parco.Session(self.contract, data=data, version=week, schedule=schedule)

    @property
    def store(self) -> SqliteStore:
        return SqliteStore.open(self.ledger)


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Year:
    """Signed and drawn, week by week: by the command, the first two weeks twice, as cron may run it."""
    year = Year(tmp_path_factory.mktemp("year"))
    run("sign", "contract.toml", cwd=year.folder)
    run("schedule", "sign", "schedule.toml", cwd=year.folder)
    for week in WEEKS:
        if week in WEEKS[:2]:
            told = [
                parco_json("panel", "panel.toml", "--period", week, cwd=year.folder)["questions"][0]["state"]
                for _ in range(2)
            ]
            assert told == ["released", "stored"]
        else:
            (one,) = parco.run_panel(year.session(week, schedule=NAME), "weekly", [ASK])
            assert one.state == "released"
    return year


def test_the_tight_claim_is_what_parco_account_says_of_the_exported_schedule(year: Year, tmp_path: Path) -> None:
    exported = run("schedule", "export", year.ledger, cwd=year.folder).stdout
    (tmp_path / "schedule.json").write_text(exported)
    claims = year.session(WEEKS[-1]).claims()
    tight = next(claim for claim in claims if claim.status == "tight")
    account = parco_json("account", tmp_path / "schedule.json", "--delta", str(float(tight.delta)))
    assert account["releases"] == 52
    composed = next(
        one for one in account["claims"] if one["accountant"] in ("pld", "gdp") and one["status"] == "tight"
    )
    assert Fraction(composed["lower"] or composed["epsilon"]) <= tight.epsilon * (1 + Fraction(1, 10**11))
    assert tight.epsilon <= Fraction(composed["epsilon"]) * (1 + Fraction(1, 10**6))
    # Beside it the filter's: the cap as signed, and what was realised by the ex-post conversion. Both are larger.
    assert all(claim.epsilon > tight.epsilon for claim in claims if claim is not tight)
    budget = parco_json("budget", "--ledger", year.ledger)
    assert Fraction(budget["tight"]["members"]["claim"]["epsilon"]) == pytest.approx(float(tight.epsilon), rel=1e-12)


def test_a_year_and_what_came_after(year: Year) -> None:
    drawn = {json.loads(row.question or "{}").get("version"): row for row in year.store.history() if row.step}
    assert list(drawn) == WEEKS
    each = drawn[WEEKS[0]].charges[0].cost
    assert year.store.accounts()[0].spent == 52 * each

    refined = [year.session(week).refine(drawn[week].seq, error="15") for week in (WEEKS[9], WEEKS[19], WEEKS[29])]
    fresh = [year.session(week).count_units(by="branch", error="20", fresh=True) for week in WEEKS[4:6]]
    for release in refined:
        # With what it refines it is charged, to the last unit, what one release at its precision costs.
        sensitivity, scale = release.receipt.sensitivity, release.receipt.mechanism.scale
        assert each + release.cost.units == units_ceil(sensitivity.l2_squared / scale**2)
        assert release.value.half_width <= 15
    session = year.session(WEEKS[4])
    session.supersede(drawn[WEEKS[4]].seq, fresh[0].receipt.release, reason="the export of that week lacked a branch")
    session.amend(drawn[WEEKS[11]].seq, "title", "Members, spring", reason="for the annual report")
    recosted = session.recost("gaussian", factor="2", only=[drawn[WEEKS[6]].seq], reason="advisory 7")
    assert [row.request for row in recosted.releases] == [drawn[WEEKS[6]].seq]

    # The account holds the sum of all that, to the last unit.
    (account,) = year.store.accounts()
    extra = sum(release.cost.units for release in (*refined, *fresh)) + each
    assert account.spent == 52 * each + extra

    # The filter's claim is that of this sum; the tight one has ended, and says at which entry.
    claims = year.session(WEEKS[-1]).claims()
    assert claims == claims_to_date(year.contract, account)
    assert {claim.total for claim in claims if claim.basis == "realised"} == {account.spent * COST_UNIT}
    assert not any(claim.status == "tight" for claim in claims)
    told = run("budget", "--ledger", year.ledger).stdout
    assert f"Entry {refined[0].receipt.release} was released outside of {NAME}" in " ".join(told.split())

    # The history tells which is which.
    counts = parco_json("budget", "--ledger", year.ledger)["accesses"]
    assert (counts["first"], counts["fresh"], counts["refinement"]) == (52, 2, 3)
    history = parco_json("history", "--ledger", year.ledger)["history"]
    by_entry = {row["entry"]: row for row in history}
    assert by_entry[drawn[WEEKS[4]].seq]["now"]["superseded"] == fresh[0].receipt.release
    assert by_entry[drawn[WEEKS[6]].seq]["now"]["cost"]
    assert {row["refines"] for row in history if row["refines"]} == {drawn[week].seq for week in WEEKS[9:30:10]}
    # Asked again, the superseded week is answered by what stands in its place.
    assert session.count_units(by="branch").receipt.release == fresh[0].receipt.release


def test_all_of_it_verifies_for_a_stranger_too(year: Year, tmp_path: Path) -> None:
    verify(year.store, strict=True)
    assert all(control.bites is not False for control in controls(year.store))
    report = tmp_path / "2025.json"
    report.write_bytes(freeze(year.store))
    assert check_report(report.read_bytes(), store=year.store) == []
    export = tmp_path / "export"
    export.write_bytes(b"\n".join(year.store.export()) + b"\n")
    assert _stranger(export, report) == 0
    lines = export.read_bytes().splitlines()
    for tag in (b'"draw"', b'"refine"', b'"recost"', b'"supersede"'):
        place = next(number for number, line in enumerate(lines) if b'"tag":' + tag in line)
        left_out = [line for number, line in enumerate(lines) if number != place]
        export.write_bytes(b"\n".join(left_out) + b"\n")
        assert _stranger(export) == 4


def _stranger(*paths: Path) -> int:
    checked = [sys.executable, offline_life.__file__, *map(str, paths)]
    return subprocess.run(checked, capture_output=True, check=False).returncode


def test_the_example_fixes_what_the_panel_asks() -> None:
    panel, schedule = (tomllib.loads((EXAMPLE / f"{name}.toml").read_text()) for name in ("panel", "schedule"))
    asked = [{name: one[name] for name in ("statistic", "by")} for one in (*panel["ask"], *schedule["step"])]
    assert asked[0] == asked[1]
    assert schedule["versions"] == WEEKS
