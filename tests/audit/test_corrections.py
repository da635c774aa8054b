"""A ledger with corrections: its originals stand to the byte, its checks hold, and whatever is bent in it is found."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from parco.audit import offline, offline_life
from parco.audit.offline import CheckError
from parco.audit.verify import verify
from parco.errors import VerificationError
from parco.ledger.entries import Added, Recost, Supersede, Total
from parco.stores import texts
from parco.stores.append import append
from parco.stores.keys import signature_holds
from parco.stores.records import Act, Recosting
from parco.stores.sqlite import SqliteStore
from tests.stores.build import ACT, TENTH, anything, ask, harm, signed_file, started

from .build import ANSWER, release

GEOMETRIC = "two-sided-geometric"
CORRECTIONS = 100


class FastLedger(offline_life.Ledger):
    """The offline verifier with a faster library's Ed25519."""

    verify = staticmethod(signature_holds)


def check(lines: list[bytes], outside: tuple[Any, ...] = ()) -> FastLedger:
    """CheckError unless all checks hold."""
    ledger = FastLedger(outside)
    for line in lines:
        ledger.feed(line)
    ledger.end()
    return ledger


def corrected(path: Path) -> SqliteStore:
    """Every kind of correction, and corrections of corrections."""
    store = signed_file(path)
    one, two, three = (release(store, question) - 2 for question in ("one", "two", "Ada Lovelace"))
    store.supersede(ACT, request=one, by=two)
    store.supersede(ACT, request=one, by=None)
    store.amend(ACT, entry=three, field="title", text="a title")
    store.amend(ACT, entry=three, field="question", text=None)
    wrong = store.recost(ACT, Recosting(mechanism=GEOMETRIC, factor=Fraction(50))).position
    store.flag(ACT, entry=three)
    store.recost(ACT, Recosting(mechanism=GEOMETRIC, factor=Fraction(4), corrects=wrong))
    store.recost(ACT, Recosting(mechanism=GEOMETRIC, cost=TENTH, delta=3, only=(two,)))
    store.amend(ACT, entry=wrong or 0, field="reason", text="it was wrong")
    store.close_account(ACT)
    return store


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    """Made once; nobody writes to it."""
    return corrected(tmp_path_factory.mktemp("corrected") / "x.ledger")


@pytest.fixture
def store(original: SqliteStore, tmp_path: Path) -> SqliteStore:
    for file in original.path.parent.glob("x.ledger*"):
        shutil.copy(file, tmp_path / file.name)
    return SqliteStore(tmp_path / "x.ledger")


@pytest.fixture(scope="module")
def lines(original: SqliteStore) -> list[bytes]:
    return list(original.export())


def test_it_passes_every_check(original: SqliteStore, lines: list[bytes]) -> None:
    verify(original, strict=True)
    original.verify()
    ledger = check(lines, (json.loads(lines[-1]),))
    assert ledger.totals[2, 1] == (TENTH * 4 // 10, 0, 17)
    assert [ledger.accounts[1][place] for place in (1, 2, 4)] == [18 * TENTH // 10, 18 * TENTH // 10, 0]


def test_a_hundred_corrections_later_the_original_is_the_same_to_the_byte(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger", cap=1000 * 10**15)
    one, two = release(store, "one") - 2, release(store, "two") - 2
    entries, proofs = list(store.entries()), [store.prove(seq) for seq in (one, one + 2)]
    evidence, receipt = store.evidence(one, one + 2), store.stored(one)
    last: int | None = None
    for number in range(CORRECTIONS):
        act = Act(actor=f"actor {number % 7}", reason=f"reason {number}")
        match number % 5:
            case 0:
                store.amend(act, entry=one, field="title", text=f"title {number}")
            case 1:
                store.supersede(act, request=one, by=two if number % 10 == 1 else one)
            case 2:
                factor = Fraction(2 + (7 * number // 5) % 20)  # twenty that differ, up and down
                last = store.recost(act, Recosting(mechanism=GEOMETRIC, factor=factor, corrects=last)).position
            case 3:
                store.flag(act, entry=store.head().size)
            case _:
                store.amend(act, entry=store.head().size, field="reason", text=f"better reason {number}")
    assert list(store.entries())[: len(entries)] == entries
    assert len(list(store.entries())) == len(entries) + CORRECTIONS
    assert store.stored(one).answer == receipt.answer == ANSWER
    assert (store.stored(one).reserve, store.stored(one).accounts) == (receipt.reserve, receipt.accounts)
    assert store.evidence(one, one + 2) == evidence
    assert all(proof.holds for proof in proofs)
    assert all(store.prove(proof.position).entry == proof.entry for proof in proofs)
    verify(store, heads=[proof.head for proof in proofs], strict=True)
    check(list(store.export()), tuple(proof.head.record() for proof in proofs))

    def depth(corrections: Any) -> Iterator[Any]:
        for correction in corrections:
            yield correction
            yield from depth(correction.corrections)

    row = store.row(one)
    assert {found.entry for found in depth(row.corrections)} == set(range(len(entries) + 1, store.head().size + 1))
    assert all(found.reason and found.actor for found in depth(row.corrections))
    assert {found.reason for found in depth(row.corrections)} == {f"reason {n}" for n in range(CORRECTIONS)}
    assert next(row for row in store.history() if row.seq == one) == row


def test_every_edit_deletion_swap_and_repetition_is_found(lines: list[bytes]) -> None:
    head = (json.loads(lines[-1]),)
    start = next(place for place, line in enumerate(lines) if b'"tag":"supersede"' in line)
    for place, line in list(enumerate(lines))[start:]:
        for found in re.finditer(rb"[0-9a-f]{32,}|-?\b[0-9]+\b|null", line):
            old = found[0]
            new = b"1" if old == b"null" else old[:-1] + (b"1" if old[-1:] != b"1" else b"2")
            bad = line[: found.start()] + new + line[found.end() :]
            with pytest.raises(CheckError):
                check([*lines[:place], bad, *lines[place + 1 :]], head)
        for other in ([*lines[:place], *lines[place + 1 :]], [*lines[: place + 1], line, *lines[place + 1 :]]):
            with pytest.raises(CheckError):
                check(other, head)


def _forged(store: SqliteStore, make: Any) -> None:
    """An entry that parco would not write, under a head that parco signs."""

    def work(connection: Any) -> None:
        names = {"actor": "x", "reason": "y"}
        digests = {kind: texts.intern(connection, kind, text) for kind, text in names.items()}
        append(connection, lambda seq: make(seq=seq, time=9, **digests))

    store._write(work)


def _recost(seq: int, totals: list[tuple[int, int, int]], added: int, **changes: Any) -> Recost:
    facts: dict[str, Any] = {"mechanism": GEOMETRIC, "factor": None, "corrects": None}
    rows = tuple(Total(request, 1, cost, delta) for request, cost, delta in totals)
    return Recost(seq=seq, totals=rows, added=(Added(1, added, 0),), **facts | changes)


FORGED: dict[str, tuple[str, Any]] = {
    "a total below the charge": ("priced", lambda **k: _recost(k.pop("seq"), [(2, 1, 0)], 1 - 4 * TENTH // 10, **k)),
    "a total that falls": (
        "priced",
        lambda **k: _recost(k.pop("seq"), [(2, TENTH // 10, 0)], -3 * TENTH // 10, **k),
    ),
    "a factor that is not kept": (
        "priced",
        lambda **k: _recost(k.pop("seq"), [(2, TENTH, 0)], 6 * TENTH // 10, factor=Fraction(9), **k),
    ),
    "sums that are off": ("priced", lambda **k: _recost(k.pop("seq"), [(2, TENTH, 0)], 1, **k)),
    "another kind": (
        "priced",
        lambda **k: _recost(k.pop("seq"), [(2, TENTH, 0)], 6 * TENTH // 10, mechanism="gaussian", **k),
    ),
    "no release": ("priced", lambda **k: _recost(k.pop("seq"), [(3, TENTH, 0)], TENTH, **k)),
    "an answer that is none": ("amendments", lambda **k: Supersede(request=2, by=3, **k)),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_correction_is_refused_by_both_verifiers(store: SqliteStore, what: str) -> None:
    name, make = FORGED[what]
    _forged(store, make)
    with pytest.raises(CheckError) as caught:
        check(list(store.export()))
    assert caught.value.args[:2] == (name, store.head().size)
    with pytest.raises(VerificationError, match=rf"{name}: entry {store.head().size}"):
        verify(store)
    with pytest.raises(VerificationError):
        store.verify()


@pytest.mark.parametrize("by", [2, 5])
def test_a_circle_of_answers_is_refused(tmp_path: Path, by: int) -> None:
    store = signed_file(tmp_path / "x.ledger")
    one, two = release(store, "one") - 2, release(store, "two") - 2
    store.supersede(ACT, request=one, by=two)
    _forged(store, lambda **k: Supersede(request=two if by == 2 else one, by=by, **k))
    with pytest.raises(VerificationError, match="amendments: entry 9"):
        verify(store)
    with pytest.raises(VerificationError):
        store.verify()


def test_what_was_priced_too_low_holds_once_a_recost_covers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The formula was wrong by four, and a later version knows better: its checks list the releases, then hold."""
    store = signed_file(tmp_path / "x.ledger")
    for number in range(3):
        release(store, f"question {number}")
    verify(store)
    price = offline.price
    monkeypatch.setattr(offline, "price", lambda *facts: 4 * (price(*facts) or 0))
    with pytest.raises(VerificationError, match=r"priced: entry 2: .*\(3 releases cost more") as caught:
        verify(store)
    assert caught.value.facts["affected"] == (2, 5, 8)
    store.recost(ACT, Recosting(mechanism=GEOMETRIC, factor=Fraction(4), only=(2, 8)))
    with pytest.raises(VerificationError, match=r"priced: entry 5: .*\(1 releases cost more"):
        verify(store)
    store.recost(ACT, Recosting(mechanism=GEOMETRIC, factor=Fraction(4)))
    verify(store)
    check(list(store.export()))


def test_a_correction_that_takes_back_too_much_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = signed_file(tmp_path / "x.ledger")
    release(store, "question")
    price = offline.price
    monkeypatch.setattr(offline, "price", lambda *facts: 4 * (price(*facts) or 0))
    right = store.recost(ACT, Recosting(mechanism=GEOMETRIC, factor=Fraction(4))).position
    verify(store)
    wrong = store.recost(ACT, Recosting(mechanism=GEOMETRIC, factor=Fraction(2), corrects=right)).position
    with pytest.raises(CheckError, match="priced"):
        check(list(store.export()))
    with pytest.raises(VerificationError, match=r"priced: entry 2: .*\(1 releases cost more"):
        verify(store)
    store.recost(ACT, Recosting(mechanism=GEOMETRIC, factor=Fraction(4), corrects=wrong))
    verify(store)
    check(list(store.export()))


def test_a_charge_above_the_price_is_no_correction(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")
    outcome = store.begin(ask(store, cost=TENTH + 1, scale=10), serves=anything)
    assert outcome
    with pytest.raises(VerificationError, match="priced: entry 2"):
        verify(store)


def test_no_erased_text_is_in_the_file_and_all_proofs_hold(original: SqliteStore) -> None:
    assert b"Lovelace" not in original.path.read_bytes()
    assert all(original.prove(position).holds for position in range(1, original.head().size + 1))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        *(("corrections", f"{column} = {column} + 100") for column in ("about", "seq")),
        ("corrections", "tag = 'amend'"),
        ("corrections", "stands = 2"),
        *(("recosts", f"{column} = {column} + 1") for column in ("seq", "account", "cost", "delta")),
    ],
)
def test_each_column_of_the_tables_is_checked(store: SqliteStore, table: str, change: str) -> None:
    last = f"(SELECT max(rowid) FROM {table} WHERE seq < 16)"
    harm(store.path, "PRAGMA ignore_check_constraints = ON", f"UPDATE {table} SET {change} WHERE rowid = {last}")
    with pytest.raises(VerificationError, match=f"tables: the list of {table}"):
        verify(store)


def test_what_began_before_it_and_ends_after_it_counts_once(tmp_path: Path) -> None:
    store = signed_file(tmp_path / "x.ledger")
    running = started(store, cost=TENTH, scale=10)
    store.recost(ACT, Recosting(mechanism=GEOMETRIC, factor=Fraction(4)))
    settled = store.settle(running, answer=ANSWER)
    assert settled.accounts[0].spent == 4 * TENTH
    verify(store)
    check(list(store.export()))
