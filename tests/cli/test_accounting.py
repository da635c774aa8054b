"""`parco account` and `parco calibrate`: schedules in, claims and scales out."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import parco, parco_json

GAUSSIAN = {"mechanism": "gaussian", "sensitivity": "1", "scale": "8", "times": 1000}
LAPLACE = {"mechanism": "laplace", "sensitivity": "1", "scale": "2"}
SAMPLED = {
    "mechanism": "gaussian",
    "sensitivity": "1",
    "scale": "1.3",
    "times": 900,
    "sampling": {"scheme": "poisson", "rate": "1/60"},
}
TOML = """
[[release]]
mechanism = "gaussian"
sensitivity = "1"
scale = "8"
times = 1000
"""


def written(folder: Path, *releases: dict[str, Any]) -> Path:
    path = folder / "schedule.json"
    path.write_text(json.dumps(list(releases)))
    return path


def account(path: Path, delta: str = "1e-6") -> dict[str, Any]:
    told: dict[str, Any] = parco_json("account", path, "--delta", delta)
    return told


def test_every_accountant_of_gaussian_releases_stands_side_by_side(tmp_path: Path) -> None:
    told = account(written(tmp_path, GAUSSIAN))
    claims = {claim["accountant"]: claim for claim in told["claims"]}
    assert list(claims) == ["closed-form", "rdp", "zcdp", "gdp", "pld"]
    assert (told["releases"], Decimal(told["delta"]), told["not_applicable"]) == (1000, Decimal("1e-6"), {})
    epsilons = {name: Decimal(claim["epsilon"]) for name, claim in claims.items()}
    # The oracle of the published table, and the exact value beside it (tests/data/figures.json).
    assert abs(epsilons["closed-form"] - Decimal("28.590726703363874")) < Decimal("1e-12")
    assert abs(epsilons["gdp"] - Decimal("25.94773496271369")) < Decimal("1e-12")
    assert epsilons["closed-form"] > epsilons["rdp"] >= epsilons["zcdp"] > epsilons["gdp"] == epsilons["pld"]
    assert [claim["status"] for claim in told["claims"]] == ["valid", "valid", "valid", "tight", "tight"]
    assert all(Decimal(claims[name]["lower"]) <= epsilons[name] for name in ("gdp", "pld"))
    assert all(claim["assumes"] for claim in told["claims"])


def test_an_accountant_that_does_not_apply_says_why(tmp_path: Path) -> None:
    told = account(written(tmp_path, SAMPLED), "1e-5")
    assert [claim["accountant"] for claim in told["claims"]] == ["rdp", "pld"]
    assert set(told["not_applicable"]) == {"closed-form", "zcdp", "gdp"}
    assert all(any("Poisson" in word for word in claim["assumes"]) for claim in told["claims"])
    low, high = (Decimal(told["claims"][1][key]) for key in ("lower", "epsilon"))
    assert low <= Decimal("1.891518511666562") <= high <= low * (1 + Decimal("1e-6"))


def test_a_schedule_is_json_toml_or_standard_input(tmp_path: Path) -> None:
    toml = tmp_path / "schedule.toml"
    toml.write_text(TOML)
    piped = parco("account", "-", "--delta", "1e-6", "--json", given=json.dumps([GAUSSIAN]))
    assert account(toml) == account(written(tmp_path, GAUSSIAN)) == json.loads(piped.stdout)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"mechanism": "gaussian", "sensitivity": "1"}]', "scale missing"),
        ('[{"mechanism": "gaussian", "sensitivity": "1", "scale": NaN}]', "NaN"),
        ('[{"mechanism": "gaussian", "sensitivity": "1", "scale": "8"', "JSON"),
        ('[{"mechanism": "gauss"}]', "one of gaussian"),
        ('[{"mechanism": "pure", "epsilon": "1", "time": 3}]', "unknown key 'time'"),
        ('[{"mechanism": "pure", "epsilon": "1", "sampling": {"scheme": "shuffle", "rate": "0.1"}}]', "poisson"),
        ('[{"mechanism": "pure", "epsilon": "1", "sampling": {"scheme": "poisson", "rate": "1.2"}}]', "at most 1"),
        ("[]", "holds 1 to"),
    ],
)
def test_a_schedule_that_is_none_is_refused_with_what_to_write(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "schedule.json"
    path.write_text(text)
    ended = parco("account", path, "--delta", "1e-6", code=2)
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) <= 3


def test_a_table_says_valid_tight_and_what_is_assumed(tmp_path: Path) -> None:
    ended = parco("account", written(tmp_path, LAPLACE, SAMPLED), "--delta", "1e-6")
    for word in ("rdp", "pld", "valid", "tight", "Poisson", "does not apply"):
        assert word in ended.stdout


def test_scaled_noise_meets_the_target_and_less_would_not(tmp_path: Path) -> None:
    path = written(tmp_path, LAPLACE, SAMPLED)
    ended = parco("calibrate", str(path), "--epsilon", "3", "--delta", "1e-6", "--json")
    told = json.loads(ended.stdout)
    factor = Decimal(told["scale_factor"])
    again = account(written(tmp_path, *told["schedule"]))["claims"][-1]
    assert Decimal(again["lower"]) <= 3
    assert Decimal(told["reached"]) <= 3
    assert [Decimal(release["scale"]) for release in told["schedule"]] == [2 * factor, Decimal("1.3") * factor]
    less = factor * (1 - Decimal("2e-6"))
    smaller = [{**release, "scale": str(Decimal(release["scale"]) * less / factor)} for release in told["schedule"]]
    assert Decimal(account(written(tmp_path, *smaller))["claims"][-1]["epsilon"]) > 3


def test_attack_risk_and_runs_are_targets_too(tmp_path: Path) -> None:
    path = written(tmp_path, {**GAUSSIAN, "times": 10})
    risk = parco("calibrate", str(path), "--advantage", "0.1", "--json")
    assert Decimal(json.loads(risk.stdout)["reached"]) <= Decimal("0.1")
    runs = parco("calibrate", str(path), "--epsilon", "3", "--delta", "1e-6", "--runs", "--json")
    count = json.loads(runs.stdout)["runs"]
    within, beyond = (
        Decimal(account(written(tmp_path, {**GAUSSIAN, "times": 10 * times}))["claims"][-1]["epsilon"])
        for times in (count, count + 1)
    )
    assert within <= 3 < beyond


def test_a_target_is_one_thing(tmp_path: Path) -> None:
    path = written(tmp_path, GAUSSIAN)
    for options in (["--epsilon", "3"], ["--epsilon", "3", "--delta", "1e-6", "--advantage", "0.1"], []):
        ended = parco("calibrate", path, *options, code=2)
        assert "--advantage" in ended.stderr
