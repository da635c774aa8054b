"""`parco release`, `budget` and `history` as a script sees them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from tests.cli.run import parco, parco_json
from tests.shop import open_shop


def release(folder: Path, *arguments: str) -> tuple[object, ...]:
    return ("release", folder / "contract.toml", *arguments)


def test_twice_the_second_is_free_and_has_the_same_rows(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = release(tmp_path, "sum", "dollars", "--by", "month", "--cost", "0.05")
    first, second = parco_json(*ask), parco_json(*ask)
    assert (first["repeat"], first["cost"], first["remaining"]) == (False, "0.05", "0.95")
    assert (second["repeat"], second["cost"], second["remaining"]) == (True, "0", "0.95")
    assert second["rows"] == first["rows"]
    assert second["receipt"] == first["receipt"]
    assert list(first["rows"][0]) == ["month", "value", "lower", "upper"]
    for row in first["rows"]:
        assert Decimal(row["lower"]) < Decimal(row["value"]) < Decimal(row["upper"])


def test_the_budget_adds_up_exactly(tmp_path: Path) -> None:
    open_shop(tmp_path)
    costs = [
        parco_json(*release(tmp_path, "count", "--cost", cost, "--fresh"))["cost"] for cost in ("0.1", "1/3", "1e-15")
    ]
    (account,) = parco_json("budget", "--ledger", tmp_path / "shop.ledger")["accounts"]
    assert list(account) == [
        "account", "measure", "cap", "spent", "reserved", "remaining",
        "delta_cap", "delta_spent", "delta_reserved", "delta_remaining",
    ]  # fmt: skip
    assert sum(map(Decimal, costs)) == Decimal(account["spent"]) == Decimal("0.433333333333334")
    assert Decimal(account["cap"]) - Decimal(account["spent"]) == Decimal(account["remaining"])
    assert (account["account"], account["measure"], account["reserved"]) == ("shop", "pure", "0")
    assert (account["delta_cap"], account["delta_spent"]) == ("0", "0")


def test_ten_tenths_then_none(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = release(tmp_path, "count", "--cost", "1/10", "--fresh")
    for _ in range(10):
        parco(*ask)
    refused = parco(*ask, code=3)
    assert "0 of 1 is left" in refused.stderr
    assert refused.stdout == ""


def test_a_dry_run_spends_nothing_and_tells_what_it_would(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = release(tmp_path, "count", "--by", "month", "--error", "40")
    plan = parco_json(*ask, "--dry-run")
    assert parco_json("budget", "--ledger", tmp_path / "shop.ledger")["accounts"][0]["spent"] == "0"
    done = parco_json(*ask)
    assert plan["cost"] == done["cost"]
    assert plan["remaining"] == done["remaining"]
    assert Decimal(plan["half_width"]) <= 40
    assert "costs" not in parco(*ask, "--dry-run").stdout  # it is stored by now
    assert "free" in parco(*ask, "--dry-run").stdout


def test_what_people_read_says_what_it_cost_and_what_it_means(tmp_path: Path) -> None:
    open_shop(tmp_path)
    shown = parco(*release(tmp_path, "count", "--by", "channel", "--cost", "0.5")).stdout
    bounding = "one customer counts with at most 2 of its rows in a group, in at most 2 of 3 groups"
    for words in ("web", "phone", "0.5 of pure", "50 % of the budget", "after bounding", bounding, "parco budget"):
        assert words in " ".join(shown.split()), words
    said = " ".join(parco("budget", "--ledger", tmp_path / "shop.ledger").stdout.split())
    for words in ("Pr[S | in]", "one customer", "50.0 %", "finds at most"):
        assert words in said, words


def test_history_tells_signings_releases_and_repeats(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ask = release(tmp_path, "count_units", "--cost", "0.1", "--actor", "ana")
    parco(*ask)
    parco(*ask)
    parco(*ask, "--fresh")
    opened, first, fresh = parco_json("history", "--ledger", tmp_path / "shop.ledger")["history"]
    assert (opened["state"], opened["actor"], opened["contract"]) == ("open", "steward", "shop")
    assert (first["state"], first["actor"], first["cost"], first["repeats"]) == ("settled", "ana", "0.1", 1)
    assert first["question"]["statistic"] == "count_units"
    assert fresh["fresh"]
    assert fresh["repeats"] == 0
    assert "count_units" in parco("history", "--ledger", tmp_path / "shop.ledger").stdout


def test_each_refusal_has_its_exit_code_and_one_line(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ledger = tmp_path / "shop.ledger"
    parco(*release(tmp_path, "count", "--cost", "0.1"))
    (tmp_path / "no.ledger").write_text("customer,date\n4711,2024-01-01\n")
    (tmp_path / "empty.csv").write_bytes(b"")
    cases: list[tuple[int, str, tuple[object, ...]]] = [
        (2, "--fresh", release(tmp_path, "count", "--cost", "0.2")),
        (2, "not both", release(tmp_path, "count", "--cost", "0.2", "--error", "1")),
        (2, "median", release(tmp_path, "median", "dollars")),
        (2, "zero bytes", release(tmp_path, "count_units", "--data", str(tmp_path / "empty.csv"))),
        (2, "no data file", release(tmp_path, "count_units", "--data", str(tmp_path / "nowhere.csv"))),
        (2, "parco sign", ("budget", "--ledger", tmp_path / "nowhere.ledger")),
        (2, "no-such-option", release(tmp_path, "count", "--no-such-option")),
        (3, "nothing was charged", release(tmp_path, "count", "--cost", "0.95", "--fresh")),
        (4, "not a parco ledger", ("budget", "--ledger", tmp_path / "no.ledger")),
        (5, "", ("sign", tmp_path / "contract.toml", "--ledger", "/proc/nowhere/x.ledger")),
    ]
    for code, words, arguments in cases:
        done = parco(*arguments, code=code)
        assert words in done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert "4711" not in done.stderr
    assert parco_json("budget", "--ledger", ledger)["accounts"][0]["spent"] == "0.1"


def test_an_internal_error_shows_no_text_of_its_own(tmp_path: Path) -> None:
    fail = "def fail(*_): raise RuntimeError('4711-secret')"
    before = f"import parco.contract.contract as c\n{fail}\nc.Contract.read = fail"
    done = parco("check", tmp_path / "contract.toml", before=before, code=70)
    assert "4711" not in done.stdout + done.stderr
    assert "RuntimeError" in done.stderr


def test_every_command_helps_with_an_example() -> None:
    for command in ("init", "check", "schema", "sign", "release", "budget", "history", "demo"):
        shown = parco(command, "--help").stdout
        assert "Example" in shown, command
        assert f"parco {command}" in " ".join(shown.split())
