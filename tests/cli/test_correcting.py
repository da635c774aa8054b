"""`amend`, `supersede`, `recost`, `flag`, `close` and `show`, as processes, and what other commands tell of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.shop import open_shop

from .run import parco, parco_json

WHY = ("--reason", "because", "--actor", "bo")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One ledger's life, each command once; what each printed."""
    folder = tmp_path_factory.mktemp("life")
    open_shop(folder)
    ledger, contract = folder / "shop.ledger", folder / "contract.toml"
    told: dict[str, Any] = {"ledger": ledger, "folder": folder}
    old = parco("release", contract, "count", "--cost", "0.1", "--json").stdout
    (folder / "old.json").write_text(old, encoding="utf-8")
    parco("release", contract, "count", "--by", "month", "--cost", "0.2")
    told["amend"] = parco("amend", ledger, 2, "title", "Purchases", *WHY).stdout
    told["supersede"] = parco_json("supersede", ledger, 2, "--by", 5, "--reason", "by month was meant", "--actor", "bo")
    told["dry"] = parco_json("recost", ledger, "--mechanism", "two-sided-geometric", "--factor", "4", "--dry-run")
    told["recost"] = parco("recost", ledger, "--mechanism", "two-sided-geometric", "--factor", "4", *WHY).stdout
    told["flag"] = parco_json("flag", ledger, 10, *WHY)
    told["erase"] = parco("amend", ledger, 5, "question", "--erase", "--reason", "it named a customer").stdout
    told["again"] = parco("release", contract, "count", "--cost", "0.1", code=2).stderr
    told["history"] = parco("history", "--ledger", ledger).stdout
    told["records"] = parco_json("history", "--ledger", ledger)["history"]
    return told


def test_each_says_what_it_did(life: dict[str, Any]) -> None:
    assert life["amend"] == "Entry 8: the title of entry 2 was amended.\n"
    assert life["supersede"] == {"entry": 9}
    assert life["dry"] == {
        "entry": None,
        "releases": [
            {"release": 2, "account": "shop", "charged": "0.1", "before": "0.1", "total": "0.4"},
            {"release": 5, "account": "shop", "charged": "0.2", "before": "0.2", "total": "0.8"},
        ],
        "added": [{"account": "shop", "cost": "0.9", "delta": "0"}],
        "overdrawn": [],
        "given_back": [],
    }
    assert "Entry 10: 2 releases were charged." in life["recost"]
    assert "Overdrawn, no more spending on: shop." in life["recost"]
    assert life["flag"] == {"entry": 11}
    assert life["erase"] == "Entry 12: the question of entry 5 is erased.\n"


def test_a_question_whose_answer_was_superseded_is_told_so_and_costs_nothing(life: dict[str, Any]) -> None:
    assert "release 2, is superseded by release 5" in life["again"].replace("\n", " ")
    assert "--fresh" in life["again"]


def test_the_history_tells_each_correction_and_what_it_corrects(life: dict[str, Any]) -> None:
    states = [(row["state"], row.get("about")) for row in life["records"]]
    assert states == [
        ("open", None),
        ("settled", None),
        ("settled", None),
        ("amend", [2]),
        ("supersede", [2]),
        ("recost", [2, 5]),
        ("flag", [10]),
        ("amend", [5]),
    ]
    first, second = life["records"][1], life["records"][2]
    assert first["cost"] == "0.1", "what it was charged then"
    assert first["now"]["cost"] == "0.4"
    assert first["now"]["superseded"] == 5
    assert [one["what"] for one in first["corrections"]] == ["amend", "supersede", "recost"]
    assert first["corrections"][1]["reason"] == "by month was meant"
    assert first["corrections"][2]["corrections"][0]["what"] == "flag"
    assert second["question"] is None
    assert second["now"]["question"]["erased"]
    flat = " ".join(life["history"].split())
    for words in ("Purchases", "SUPERSEDED by 5", "costs 0.4", "(erased by", "because it named a customer)"):
        assert all(word in flat for word in words.split()), words


def test_show_prints_the_original_and_every_correction(life: dict[str, Any]) -> None:
    record = parco_json("show", life["ledger"], 2)
    assert json.loads(record["answer"])["cells"]
    assert record["release"]["corrections"] == life["records"][1]["corrections"]
    told = parco("show", life["ledger"], 2).stdout
    assert record["answer"] in told
    assert "• superseded by release 5, said by bo (entry 9): by month was meant" in told
    assert "  • flagged by bo (entry 11): because" in told
    assert parco_json("show", life["ledger"], 10)["act"]["state"] == "recost"
    parco("show", life["ledger"], 3, code=2)


def test_an_old_release_verifies_and_is_told_to_be_superseded_and_why(life: dict[str, Any]) -> None:
    told = parco("ledger", "verify", "--ledger", life["ledger"], "--release", life["folder"] / "old.json").stdout
    assert "release 2: superseded by release 5, said by bo (entry 9): by month was meant" in told
    assert "release 2: recosts since added 0.9 to its account" in told
    assert parco("ledger", "verify", "--ledger", life["ledger"], "--strict").stdout == ""


def test_the_budget_is_overdrawn_and_takes_no_more(life: dict[str, Any]) -> None:
    (account,) = parco_json("budget", "--ledger", life["ledger"])["accounts"]
    assert (account["spent"], account["remaining"], account["overdrawn"]) == ("1.2", "-0.2", "0.2")
    parco("release", life["folder"] / "contract.toml", "count_units", "--cost", "0.1", code=3)


def test_an_export_with_corrections_passes_the_offline_verifier(life: dict[str, Any]) -> None:
    import subprocess
    import sys

    from parco.audit import offline_life

    place = life["folder"] / "x.export"
    place.write_text(parco("ledger", "export", "--ledger", life["ledger"]).stdout, encoding="ascii")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(offline_life.__file__), place, life["folder"] / "old.json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_closed_account(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ledger, contract = tmp_path / "shop.ledger", tmp_path / "contract.toml"
    assert parco_json("close", ledger, *WHY) == {"entry": 2, "caps": {"1": "0"}, "given_back": [], "schedules_left": []}
    assert "nothing that could be spent" in parco("close", ledger, *WHY, code=2).stderr
    assert "0 of 0 is left" in parco("release", contract, "count", "--cost", "0.1", code=3).stderr.replace("\n", " ")
    parco("budget", "--ledger", ledger)
    parco("cap", contract, "--ledger", ledger, "--reason", "opened again")
    parco("release", contract, "count", "--cost", "0.1")


@pytest.mark.parametrize("command", ["amend", "supersede", "flag", "close"])
def test_a_reason_must_be_given(tmp_path: Path, command: str) -> None:
    more: tuple[object, ...] = {"amend": (2, "title"), "close": ()}.get(command, (2,))
    assert "--reason" in parco(command, tmp_path / "x.ledger", *more, code=2).stderr
