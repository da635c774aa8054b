"""Frozen reports: the same bytes from the same ledger, checked by themselves, against it, and by a stranger."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco import canonical
from parco.audit import offline_life
from parco.audit.report import check_report
from parco.errors import RequestError, VerificationError
from parco.measure import decimal_text
from parco.reports.frozen import freeze, read
from parco.session.signing import move_cap, revise
from parco.stores.keys import REPORT_LABEL
from parco.stores.records import Act, Recosting
from parco.stores.sqlite import SqliteStore
from parco.testing import TapeSession
from tests.cli.run import parco as run
from tests.shop import COLUMNS, open_shop

PARTS = COLUMNS + '[parts]\nfit = "0.8"\nvalidation = "0.2"\n'


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    session = parco.Session(open_shop(tmp_path), actor="José 'x' \"y\"")
    session.count(by="month", cost="0.1")
    session.sum("dollars", by="channel", where="items >= 2", cost="0.2")
    return SqliteStore.open(tmp_path / "shop.ledger")


def stranger(*paths: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", offline_life.__file__, *map(str, paths)], capture_output=True, text=True, check=False
    )


def test_the_same_ledger_gives_the_same_bytes_at_the_same_head(store: SqliteStore, tmp_path: Path) -> None:
    data = freeze(store)
    assert freeze(store) == data == read(data).data
    parco.Session(parco.Contract.read(tmp_path / "contract.toml")).count(cost="0.3")
    assert freeze(store) != data
    assert check_report(data, store=store) == []


def test_its_claims_are_those_of_the_ledger(store: SqliteStore) -> None:
    (one,) = read(freeze(store)).record["data"]
    assert one["name"] == "shop"
    realised = [claim for claim in one["claims"] if claim["basis"] == "realised"]
    assert [claim["epsilon"] for claim in realised] == ["0.3"]
    assert "one customer" in realised[0]["protected"]
    assert "What was released up to here" in realised[0]["words"]
    (row,) = store.accounts()
    assert decimal_text(row.spent * parco.measure.COST_UNIT) == "0.3"
    assert one["accounts"] == [[row.account, row.cap, row.spent, 0, 0, 0, 0, 0, 0]]


def test_a_stranger_verifies_it_with_python_alone(store: SqliteStore, tmp_path: Path) -> None:
    report, export = tmp_path / "frozen.json", tmp_path / "export"
    report.write_bytes(freeze(store))
    export.write_bytes(b"\n".join(store.export()) + b"\n")
    for ledger in (Path("-"), export):
        done = stranger(ledger, report)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def changed(data: bytes, place: str) -> bytes:
    """The report with one thing changed and, as far as that can be forged, everything else made to fit."""
    record = json.loads(data)
    match place:
        case "claim":
            record["data"][0]["claims"][0]["epsilon"] = "0.01"
        case "words":
            record["data"][0]["claims"][0]["words"] = "Nothing can be learnt."
        case "account":
            record["data"][0]["accounts"][0][2] -= 1
        case "text":
            digest = next(name for name, one in record["texts"].items() if "José" in one["text"])
            record["texts"][digest]["text"] = "Jose"
        case "more text":
            record["texts"]["0" * 64] = {"salt": "00" * 16, "text": "x"}
        case "release left out":
            record["lines"] = [line for line in record["lines"] if '"request":3' not in line and '"seq":3' not in line]
        case "answer":
            record["lines"] = [line.replace("cells\\", "sells\\") for line in record["lines"]]
        case "end cut off":
            last = max(n for n, line in enumerate(record["lines"][:-1]) if '"tag":"head"' in line)
            record["lines"] = record["lines"][: last + 1]
        case "source":
            record["source"] = "0" * 64
        case "signature":
            first = "1" if record["signature"][0] == "0" else "0"
            record["signature"] = first + record["signature"][1:]
    return canonical.encode(record)


@pytest.mark.parametrize(
    "place",
    [
        "claim",
        "words",
        "account",
        "text",
        "more text",
        "release left out",
        "answer",
        "end cut off",
        "source",
        "signature",
    ],
)
def test_whatever_is_changed_is_found_by_both(store: SqliteStore, tmp_path: Path, place: str) -> None:
    forged = changed(freeze(store), place)
    assert forged != freeze(store)
    with pytest.raises(VerificationError):
        check_report(forged)
    report = tmp_path / "forged.json"
    report.write_bytes(forged)
    assert stranger(Path("-"), report).returncode == 4


@pytest.mark.parametrize("place", ["claim", "words"])
def test_a_claim_is_worked_out_anew_even_where_the_ledgers_own_key_signed_another(
    store: SqliteStore, place: str
) -> None:
    """The statement regenerated with a smaller epsilon: who holds the key can sign it, and it is still found."""
    record = json.loads(changed(freeze(store), place))
    del record["signature"]
    record |= store.sign_report(store.head(), REPORT_LABEL + canonical.encode(record))
    with pytest.raises(VerificationError, match="claimed"):
        check_report(canonical.encode(record))


def test_another_ledger_gives_another_report(store: SqliteStore, tmp_path: Path) -> None:
    data = freeze(store)
    parco.Session(open_shop(tmp_path / "b")).count(by="month", cost="0.1")
    other = SqliteStore.open(tmp_path / "b" / "shop.ledger")
    with pytest.raises(VerificationError, match=r"does not have|rebuilt"):
        check_report(data, store=other)


def test_what_was_erased_since_stays_in_the_report_and_is_found_to_be_what_stood_there(
    store: SqliteStore, tmp_path: Path
) -> None:
    data = freeze(store)
    (first, *_) = (row.seq for row in store.history() if row.question)
    store.amend(Act(actor="steward", reason="he asked for it"), entry=first, field="actor", text=None)
    assert "José" not in freeze(store).decode()
    assert check_report(data, store=store) == [f"Entry {first}: actor erased by steward (entry 8): he asked for it."]
    report = tmp_path / "after.json"
    report.write_bytes(freeze(store))
    assert stranger(Path("-"), report).returncode == 0


def test_what_happened_to_contract_and_cap_is_in_it(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "contract.toml"
    path.write_text(path.read_text().replace('"a test"', '"another purpose"'))
    revise(parco.Contract.read(path), ledger=store.path, reason="clearer", actor="steward")
    path.write_text(path.read_text().replace('epsilon = "1"', 'epsilon = "2"'))
    move_cap(parco.Contract.read(path), ledger=store.path, reason="the board said so", actor="steward")
    data = freeze(store)
    (one,) = read(data).record["data"]
    assert (one["accounts"][0][1], one["fixed_caps"]) == (2 * 10**15, [None])
    assert check_report(data, store=store) == []
    assert {"the board said so", "clearer"} <= {text["text"] for text in read(data).record["texts"].values()}


def test_parts_are_told_with_their_labels(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path, columns=PARTS))
    session.count(cost="0.2", part="fit")
    store = SqliteStore.open(tmp_path / "shop.ledger")
    data = freeze(store)
    (one,) = read(data).record["data"]
    assert one["labels"] == ["fit", "validation"]
    assert check_report(data, store=store) == []


def test_after_another_key_an_older_report_still_holds(store: SqliteStore) -> None:
    data = freeze(store)
    store.rotate(actor="steward", reason="yearly")
    assert check_report(data, store=store) == []
    assert check_report(freeze(store), store=store) == []
    with pytest.raises(VerificationError, match="another by now"):
        store.sign_report(read(data).head, REPORT_LABEL + b"x")


def test_the_ledgers_key_signs_no_other_statement(store: SqliteStore) -> None:
    with pytest.raises(parco.errors.InternalError):
        store.sign_report(store.head(), store.head().statement)


def test_no_report_of_noise_from_a_tape(tmp_path: Path) -> None:
    TapeSession(open_shop(tmp_path), tape=bytes(range(256)) * 64).count(cost="0.1")
    with pytest.raises(RequestError, match="not private"):
        freeze(SqliteStore.open(tmp_path / "shop.ledger"))


def test_on_the_command_line(store: SqliteStore, tmp_path: Path) -> None:
    report = tmp_path / "frozen.json"
    told = run("report", "--ledger", store.path).stdout
    assert "What was released up to here" in told.replace("\n", " ")
    run("report", "--ledger", store.path, "--freeze", report)
    assert report.read_bytes() == freeze(store)
    assert "there already" in run("report", "--ledger", store.path, "--freeze", report, code=2).stderr
    assert "The report holds" in run("report", "--check", report).stdout
    assert "same bytes" in " ".join(run("report", "--check", report, "--ledger", store.path).stdout.split())
    report.write_bytes(changed(report.read_bytes(), "claim"))
    run("report", "--check", report, code=4)
    run("report", code=2)


def test_a_report_that_was_superseded_says_by_what_and_why_and_still_holds(store: SqliteStore, tmp_path: Path) -> None:
    data = freeze(store)
    session = parco.Session(parco.Contract.read(tmp_path / "contract.toml"))
    other = session.count_units(cost="0.1").receipt.release
    (first, *_) = (row.seq for row in store.history() if row.question)
    act = Act(actor="bo", reason="bounds in cents")
    store.supersede(act, request=first, by=other)
    store.recost(act, Recosting(mechanism="two-sided-geometric", factor=Fraction(2)))
    remarks = check_report(data, store=store)
    assert any("superseded by release" in remark and "bounds in cents" in remark for remark in remarks)
    assert sum("bounds in cents" in remark for remark in remarks) == 3
    assert check_report(freeze(store), store=store) == []
    report = tmp_path / "after.json"
    for frozen in (data, freeze(store)):
        report.write_bytes(frozen)
        assert stranger(Path("-"), report).returncode == 0


def test_a_report_read_after_a_hundred_corrections(store: SqliteStore) -> None:
    data = freeze(store)
    (first, *_) = (row.seq for row in store.history() if row.question)
    for number in range(100):
        store.flag(Act(actor="bo", reason=f"remark {number}"), entry=first)
    assert len(check_report(data, store=store)) == 100
