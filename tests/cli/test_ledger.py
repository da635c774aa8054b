"""`parco ledger …` as an auditor, a steward and a script see it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parco.audit import offline
from tests.cli.run import parco, parco_json
from tests.shop import open_shop
from tests.stores.build import harm


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A signed ledger with one release on it; what that printed is in `first.json`."""
    open_shop(tmp_path)
    release(tmp_path, "first.json")
    return tmp_path


def release(shop: Path, name: str) -> None:
    printed = parco_json("release", shop / "contract.toml", "count", "--by", "month", "--cost", "0.1", "--fresh")
    (shop / name).write_text(json.dumps(printed), encoding="utf-8")


def keep(shop: Path, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """`parco ledger …` on the shop's ledger."""
    return parco("ledger", *arguments, "--ledger", "shop.ledger", cwd=shop, code=code)


def test_head_prove_and_export_are_taken_by_the_offline_verifier(shop: Path) -> None:
    (shop / "head.json").write_text(keep(shop, "head").stdout, encoding="utf-8")
    (shop / "proof.json").write_text(keep(shop, "prove", 4).stdout, encoding="utf-8")
    (shop / "from.json").write_text(keep(shop, "prove", "--from", 3).stdout, encoding="utf-8")
    (shop / "x.export").write_text(keep(shop, "export").stdout, encoding="utf-8")

    def check(*names: str) -> tuple[int, str]:
        command = [sys.executable, "-I", "-S", offline.__file__, *names]
        done = subprocess.run(command, cwd=shop, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    everything = ("head.json", "proof.json", "from.json", "first.json")
    assert check("x.export", *everything) == (0, "")
    assert check("-", "proof.json", "from.json") == (0, "")
    told = json.loads((shop / "first.json").read_text(encoding="utf-8"))
    told["rows"][0]["value"] = str(int(told["rows"][0]["value"]) + 1)
    (shop / "first.json").write_text(json.dumps(told), encoding="utf-8")
    code, message = check("x.export", *everything)
    assert (code, message.split(":")[0]) == (4, "released")


def test_a_receipt_carries_position_head_and_proof(shop: Path) -> None:
    receipt = json.loads((shop / "first.json").read_text(encoding="utf-8"))["receipt"]
    proof = receipt["evidence"]["proof"]
    assert (proof["position"], proof["head"]["size"]) == (receipt["position"], receipt["position"])
    assert json.loads(proof["entry"])["request"] == receipt["release"]
    offline.Ledger().check_proof(proof)


def test_verify_is_silent_or_names_the_first_failure_and_exits_with_4(shop: Path) -> None:
    assert keep(shop, "verify", "--strict", "--release", "first.json").stdout == ""
    told = json.loads((shop / "first.json").read_text(encoding="utf-8"))
    told["receipt"]["cost"] = "0.05"
    (shop / "lie.json").write_text(json.dumps(told), encoding="utf-8")
    refused = keep(shop, "verify", "--release", "lie.json", code=4)
    assert "released: entry 4: the ledger says otherwise of: cost" in refused.stderr
    harm(shop / "shop.ledger", "UPDATE accounts SET spent = spent - 1")
    refused = keep(shop, "verify", code=4)
    assert "tables: the accounts of this ledger differ" in refused.stderr
    refused = parco("release", "contract.toml", "count", "--cost", "0.1", cwd=shop, code=4)
    assert "not as it was left" in refused.stderr


def test_a_restored_backup_is_found_by_a_witness_and_recovered_by_a_receipt(shop: Path) -> None:
    keep(shop, "witness", "heads.jsonl")
    shutil.copy(shop / "shop.ledger", shop / "backup")
    release(shop, "second.json")
    keep(shop, "witness", "heads.jsonl")
    shutil.copy(shop / "backup", shop / "shop.ledger")
    (shop / "shop.ledger.heads").unlink()
    assert "witnessed: entry 7" in keep(shop, "verify", "--witness", "heads.jsonl", code=4).stderr
    keep(shop, "verify")  # nothing inside tells
    assert "does not extend heads that it signed, of 7 entries" in keep(shop, "witness", "heads.jsonl", code=4).stderr
    refused = parco("release", "contract.toml", "count", "--cost", "0.1", cwd=shop, code=4)
    assert "parco ledger recover" in refused.stderr
    done = keep(shop, "recover", "--release", "second.json", "--witness", "heads.jsonl", "--reason", "restored")
    assert "Account 1 was charged 0.1." in done.stdout
    assert parco_json("budget", "--ledger", shop / "shop.ledger")["accounts"][0]["spent"] == "0.2"
    parco("release", "contract.toml", "count", "--cost", "0.1", cwd=shop)
    keep(shop, "verify", "--witness", "heads.jsonl", "--release", "second.json", "--strict")


def test_another_key_signs_after_a_rotation(shop: Path) -> None:
    before = json.loads(keep(shop, "head").stdout)["key"]
    keep(shop, "rotate", "--reason", "yearly")
    after = json.loads(keep(shop, "head").stdout)["key"]
    assert after != before
    keep(shop, "verify", "--strict", "--release", "first.json")


def test_what_is_asked_wrongly_is_the_askers_fault(shop: Path) -> None:
    assert "one of them" in keep(shop, "prove", code=2).stderr
    assert "nothing is lost" in keep(shop, "recover", "--reason", "why", code=2).stderr
    (shop / "heads.jsonl").write_text("{}\n", encoding="utf-8")
    assert "not a file of heads" in keep(shop, "witness", "heads.jsonl", code=2).stderr
    assert "no older parco" in parco("ledger", "upgrade", "--ledger", "postgresql://x", code=2).stderr
    assert "0 ended" in keep(shop, "tidy").stdout
    assert "newest now" in keep(shop, "upgrade").stdout
