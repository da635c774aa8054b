"""`parco quota`, `parco sign --disjoint`, and what they and lineage show elsewhere, as processes."""

from __future__ import annotations

from pathlib import Path

from tests.shop import contract_text, open_shop

from .run import parco, parco_json


def told(text: str) -> str:
    """Words as they were before the terminal broke the lines."""
    return " ".join(text.split())


def test_a_quota_is_set_shown_enforced_and_lifted(tmp_path: Path) -> None:
    open_shop(tmp_path)
    contract, ledger = tmp_path / "contract.toml", tmp_path / "shop.ledger"
    why = ("--reason", "two of five", "--actor", "steward")
    parco("quota", "team", "--ledger", ledger, "--member", "ana", "--member", "bob", "--amount", "0.3", *why)
    parco("release", contract, "count", "--cost", "0.2", "--actor", "ana")
    refused = told(parco("release", contract, "sum", "dollars", "--cost", "0.2", "--actor", "bob", code=3).stderr)
    assert "0.1 of 0.3 is left of the quota 'team' on 'shop'; nothing was charged" in refused
    found = parco_json("quota", "--list", "--ledger", ledger)
    assert found["quotas"] == [
        {
            "quota": "team",
            "members": ["ana", "bob"],
            "account": "shop",
            "measure": "pure",
            "amount": "0.3",
            "used": "0.2",
            "remaining": "0.1",
        }
    ]
    assert "account alone is the guarantee" in found["note"]
    assert parco_json("budget", "--ledger", ledger)["quotas"] == found["quotas"]
    assert "fairness, not of privacy" in told(parco("quota", "--list", "--ledger", ledger).stdout)
    assert "team" in parco("budget", "--ledger", ledger).stdout
    assert "is lifted" in parco("quota", "team", "--ledger", ledger, "--lift", *why).stdout
    parco("release", contract, "sum", "dollars", "--cost", "0.2", "--actor", "bob")
    rows = parco_json("history", "--ledger", ledger)["history"]
    acts = [(row["quota"], row["members"], row["actor"], row["reason"]) for row in rows if row["state"] == "quota"]
    assert acts == [("team", ["ana", "bob"], "steward", "two of five")] * 2
    parco("ledger", "verify", "--ledger", ledger, "--strict")


def test_a_quota_says_what_it_needs(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ledger = ("--ledger", tmp_path / "shop.ledger")
    for options, words in (
        ((), "--list"),
        (("team", "--member", "ana", "--amount", "1"), "--reason"),
        (("team", "--reason", "why", "--amount", "1"), "--member"),
        (("team", "--reason", "why", "--member", "ana", "--amount", "-1"), "0 or more"),
        (("team", "--reason", "why", "--member", "ana", "--amount", "NaN"), "amount"),
        (("team", "--reason", "why", "--lift", "--amount", "1"), "leave out"),
        (("team", "--reason", "why", "--lift"), "no quota 'team'"),
        (("team", "--list"), "takes nothing but"),
    ):
        assert words in told(parco("quota", *options, *ledger, code=2).stderr), options


def test_lineage_is_asked_for_and_shown(tmp_path: Path) -> None:
    open_shop(tmp_path)
    ledger = ("--ledger", tmp_path / "shop.ledger")
    text = contract_text(name="view", dataset="view")
    (tmp_path / "view.toml").write_text(text, encoding="utf-8")
    assert "--disjoint" in told(parco("sign", tmp_path / "view.toml", *ledger, code=2).stderr)
    (tmp_path / "view.toml").write_text(text.replace("[unit]", 'derived_from = ["shop"]\n\n[unit]'), encoding="utf-8")
    parco("sign", tmp_path / "view.toml", *ledger)
    (tmp_path / "visits.toml").write_text(contract_text(name="visits", dataset="visits"), encoding="utf-8")
    parco("sign", tmp_path / "visits.toml", *ledger, "--disjoint", "patients, not customers")
    plan = parco_json("release", tmp_path / "view.toml", "count", "--cost", "0.1", "--dry-run", *ledger)
    assert plan["also"] == [{"account": "shop", "measure": "pure", "cost": "0.1", "remaining": "0.9"}]
    shown = told(parco("release", tmp_path / "view.toml", "count", "--cost", "0.1", *ledger).stdout)
    assert "0.1 of pure on 'shop', from which the data are derived; 0.9 remained" in shown
    assert "Lifetime loss: one customer lost at most 0.1 of pure so far, by all releases." in shown
    budget = parco_json("budget", *ledger)
    assert {row["account"]: row["spent"] for row in budget["accounts"]} == {"shop": "0.1", "view": "0.1", "visits": "0"}
    assert budget["derived"] == {"view": ["shop"]}
    assert {row["account"]: row["lost"] for row in budget["lifetime"]} == {"shop": "0.1", "view": "0.1", "visits": "0"}
    words = told(parco("budget", *ledger).stdout)
    assert "Derived from shop: its releases are charged there, too." in words
    assert "Stored answers are served to everybody who can open this ledger." in words
    rows = parco_json("history", *ledger)["history"]
    assert [(row["data"], row["parents"]) for row in rows if row["state"] == "derive"] == [
        ("view", ["shop"]),
        ("visits", []),
    ]
    assert [(row["cost"], row["also"]) for row in rows if row["state"] == "settled"] == [("0.1", {"1": "0.1"})]
    history = told(parco("history", *ledger).stdout)
    assert "Lifetime loss" in history


def test_the_lifetime_loss_stands_beside_periods(tmp_path: Path) -> None:
    text = contract_text().replace("rows = 2\n", 'rows = 2\nperiod = "month"\n')
    open_shop(tmp_path / "made")
    (tmp_path / "made" / "month.toml").write_text(text, encoding="utf-8")
    contract, ledger = tmp_path / "made" / "month.toml", ("--ledger", tmp_path / "x.ledger")
    parco("sign", contract, *ledger)
    released = parco_json("release", contract, "count", "--by", "month", "--cost", "0.1", *ledger)
    assert released["lifetime"]["lost"] == "0.4"
    for command in ("budget", "history"):
        assert parco_json(command, *ledger)["lifetime"][0]["lost"] == "0.4"
        assert "lost at most 0.4 of pure so far, by all releases, if in every month" in told(
            parco(command, *ledger).stdout
        )


def test_history_shows_that_an_answer_was_paid_again_for_others(tmp_path: Path) -> None:
    open_shop(tmp_path)
    text = contract_text(name="mine").replace("\n[data]", 'answers = "actor"\n\n[data]')
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    ledger = ("--ledger", tmp_path / "shop.ledger")
    parco("sign", tmp_path / "mine.toml", *ledger)
    for actor in ("ana", "bob", "bob"):
        parco("release", tmp_path / "mine.toml", "count", "--cost", "0.1", "--actor", actor, *ledger)
    rows = [row for row in parco_json("history", *ledger)["history"] if row["state"] == "settled"]
    assert [(row["cost"], row.get("answered_for_others", False), row["repeats"]) for row in rows] == [
        ("0.1", False, 0),
        ("0.1", True, 1),
    ]
    assert parco_json("budget", *ledger)["answers"] == {"shop": ["ledger", "actor"]}
