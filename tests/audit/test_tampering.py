"""What somebody who may write everywhere can do to a ledger, and what finds it: one head that was seen outside."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from parco.audit import offline, offline_life, offline_prices
from parco.audit.offline import CheckError
from parco.audit.verify import verify
from parco.errors import VerificationError
from parco.stores.keys import signature_holds
from parco.stores.sqlite import SqliteStore
from tests.stores.build import harm, signed_file

from .build import forty, release


class FastLedger(offline_life.Ledger):
    """The offline verifier with a faster library's Ed25519."""

    verify = staticmethod(signature_holds)


def check(lines: Sequence[bytes], outside: Sequence[Any] = ()) -> None:
    """CheckError unless all checks hold."""
    ledger = FastLedger(outside)
    for line in lines:
        ledger.feed(line)
    ledger.end()


@pytest.fixture(scope="session")
def head(lines: list[bytes]) -> Any:
    """What somebody outside kept: the last head."""
    return json.loads(lines[-1])


def test_the_ledger_itself_passes(original: SqliteStore, lines: list[bytes], head: Any) -> None:
    check(lines)
    check(lines, [head])
    check(lines, [json.loads(line) for line in lines if b'"tag":"head"' in line])
    verify(original, heads=[original.head()], strict=False)


def edited(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Each line with each of its numbers and each of its hashes changed to another of the same form."""
    for place, line in enumerate(lines):
        for found in re.finditer(rb"[0-9a-f]{32,}|\b[0-9]+\b", line):
            old = found[0]
            new = old[:-1] + (b"1" if old[-1:] != b"1" else b"2")
            bad = line[: found.start()] + new + line[found.end() :]
            yield [*lines[:place], bad, *lines[place + 1 :]]


def test_every_edit_deletion_swap_and_repetition_is_found(lines: list[bytes], head: Any) -> None:
    for bad in edited(lines):
        with pytest.raises(CheckError):
            check(bad, [head])
    for place, line in enumerate(lines):
        for other in (
            [*lines[:place], *lines[place + 1 :]],
            [*lines[: place + 1], line, *lines[place + 1 :]],
            [*lines[:place], *lines[place : place + 2][::-1], *lines[place + 2 :]],
        ):
            if other != lines:
                with pytest.raises(CheckError):
                    check(other, [head])


def test_every_truncation_is_found_by_a_head_and_some_by_nothing_else(lines: list[bytes], head: Any) -> None:
    silent = 0
    for place in range(len(lines)):
        with pytest.raises(CheckError):
            check(lines[:place], [head])
        try:
            check(lines[:place])
        except CheckError:
            continue
        silent += 1
    assert silent > 10, "an end that was cut off behind a head is seen from outside alone"


def test_a_whole_ledger_made_anew_is_found_by_a_head_and_by_nothing_else(
    tmp_path: Path, original: SqliteStore, head: Any
) -> None:
    anew = forty(tmp_path / "x.ledger")
    check(list(anew.export()))
    verify(anew)
    with pytest.raises(CheckError) as caught:
        check(list(anew.export()), [head])
    assert caught.value.args[:2] == ("witnessed", 40)
    with pytest.raises(VerificationError, match=r"witnessed: entry 40: the head seen outside is not extended"):
        verify(anew, heads=[original.head()])


def test_a_backup_that_was_restored_and_went_on_is_found_by_a_head(store: SqliteStore) -> None:
    backup = shutil.copy(store.path, store.path.with_name("backup"))
    release(store, "lost")
    seen = store.head()
    shutil.copy(backup, store.path)
    store.marks_path.unlink()
    verify(store)
    with pytest.raises(VerificationError, match="witnessed"):
        verify(store, heads=[seen])
    for number in range(3):
        release(store, f"instead {number}")
    assert store.head().size > seen.size
    verify(store)
    with pytest.raises(VerificationError, match="head seen outside"):
        verify(store, heads=[seen])
    with pytest.raises(CheckError, match="head seen outside"):
        check(list(store.export()), [seen.record()])


HARM = {
    "an entry": "UPDATE entries SET body = CAST(replace(body, '\"fresh\":0', '\"fresh\":1') AS BLOB) WHERE seq = 5",
    "an entry left out": "DELETE FROM entries WHERE seq = 40",
    "two entries swapped": "UPDATE entries SET seq = 5000 WHERE seq = 2; UPDATE entries SET seq = 2 WHERE seq = 5;"
    " UPDATE entries SET seq = 5 WHERE seq = 5000",
    "an answer": "UPDATE answers SET body = CAST(replace(body, '3', '4') AS BLOB) WHERE request = 2",
    "an answer left out": "DELETE FROM answers WHERE request = 2",
    "an account": "UPDATE accounts SET spent = spent - 1",
    "a request's state": "UPDATE requests SET state = 'void' WHERE state = 'forfeited'",
    "a text": "UPDATE texts SET text = 'nobody' WHERE text = 'ana'",
    "a secret": "UPDATE secrets SET secret = zeroblob(32)",
    "a head": "UPDATE heads SET accounts = root WHERE size = 3",
    "a head left out": "DELETE FROM heads WHERE size = 3",
    "a node": "UPDATE tree SET nodes = zeroblob(32) WHERE size = 3",
    "a key": "DELETE FROM keys WHERE private IS NULL",
    "an answered head": "DELETE FROM strays",
}
NAMED = {
    "an entry": ("rooted", 5),
    "an answer": ("answers", 4),
    "an account": ("tables", 0),
    "a text": ("kept", 0),
    "a head": ("signed", 4),
    "a node": ("rooted", 3),
}


@pytest.mark.parametrize("what", HARM)
def test_what_is_changed_in_the_store_is_found_and_named(store: SqliteStore, what: str) -> None:
    harm(store.path, "PRAGMA ignore_check_constraints = ON", *HARM[what].split("; "))
    with pytest.raises(VerificationError) as caught:
        verify(store)
    assert str(caught.value).startswith(str(caught.value.facts["check"]))
    if what in NAMED:
        # A head's or an answer's line is told with the entry that would come next.
        name, entry = NAMED[what]
        assert caught.value.facts["check"] == name
        assert caught.value.facts["entry"] in (entry, entry + 1)


def test_strict_also_tells_what_is_odd_without_being_wrong(store: SqliteStore) -> None:
    with pytest.raises(VerificationError, match="strict: entry 39: it is still open"):
        verify(store, strict=True)
    (number,) = [row.seq for row in store.history() if row.state == "started"]
    store.abandon(number)
    store.tidy()
    verify(store, strict=True)


@pytest.mark.parametrize("module", [offline, offline_life])
def test_the_offline_verifier_is_short_and_of_the_standard_library_alone(
    tmp_path: Path, lines: list[bytes], module: ModuleType
) -> None:
    """Run as a stranger would, in an empty folder, without parco and without any package: offline.py needs itself only,
    offline_life.py that and offline_prices.py as well; and what is beyond the one it leaves to the other, by name.
    """
    for needed in {offline, module} | ({offline_prices} if module is offline_life else set()):
        text = Path(str(needed.__file__)).read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 400
        (tmp_path / Path(str(needed.__file__)).name).write_text(text, encoding="utf-8")
    imported = re.findall(
        r"^\s*(?:from|import) (\w+)", Path(offline.__file__).read_text(encoding="utf-8"), re.MULTILINE
    )
    assert "parco" not in imported
    plain = signed_file(tmp_path / "plain.ledger")
    for number in range(2):
        release(plain, f"question {number}")
    whole, later = list(plain.export()), lines
    lines = whole if module is offline else later
    (tmp_path / "x.export").write_bytes(b"\n".join(lines) + b"\n")
    (tmp_path / "later.export").write_bytes(b"\n".join(later) + b"\n")
    (tmp_path / "bad.export").write_bytes(b"\n".join(lines).replace(b'"fresh":0', b'"fresh":1', 1) + b"\n")
    (tmp_path / "heads.jsonl").write_bytes(lines[-1] + b"\n")
    (tmp_path / "no.json").write_text("format = 1", encoding="utf-8")

    def run(*names: str) -> tuple[int, str]:
        command = [sys.executable, "-I", "-S", Path(str(module.__file__)).name, *names]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    assert run("x.export") == (0, "")
    assert run("x.export", "heads.jsonl") == (0, "")
    code, told = run("bad.export")
    assert code == 4
    assert told.startswith("rooted: entry ")
    for names in (("absent.export",), ("x.export", "absent.jsonl"), ("x.export", "no.json")):
        code, told = run(*names)
        assert (code, "Traceback" in told, len(told.splitlines())) == (2, False, 1)
    code, told = run("later.export")
    assert (code, "offline_life.py" in told) == ((4, True) if module is offline else (0, False))
