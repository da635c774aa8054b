"""A past that was lost: found by any head seen outside, halted, charged again by its receipts, and gone on from."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import BudgetError, HaltedError, RequestError, VerificationError
from parco.ledger.entries import Recover, decode
from parco.ledger.heads import Head
from parco.ledger.proofs import Inclusion
from parco.stores import marks
from parco.stores.address import open_ledger
from parco.stores.records import Recovered, Recovery
from parco.stores.sqlite import SqliteStore
from parco.stores.store import Store

from .build import (
    ONE,
    TENTH,
    Address,
    address_of,
    amounts,
    anything,
    ask,
    backup,
    opening,
    put_back,
    run_sql,
    signed_file,
    signed_store,
    started,
)
from .children import run

HUNDREDTH = ONE // 100
PAGE = 4096


def release(store: Store, question: str, cost: int = TENTH) -> Inclusion:
    """One settled release, and what its receipt proves."""
    stored = store.settle(started(store, question=question, cost=cost), answer=b"[1]")
    return store.evidence(stored.request, stored.position).proof


def known(*receipts: Inclusion, files: tuple[tuple[Head, ...], ...] = (), unshown: int | None = None) -> Recovery:
    return Recovery(actor="steward", reason="the disk failed", receipts=receipts, files=files, unshown=unshown)


@pytest.fixture
def store(address: Address) -> Store:
    store = signed_store(address)
    release(store, "before")
    return store


@pytest.fixture
def file_store(tmp_path: Path) -> SqliteStore:
    """The same in a file, for what happens to files."""
    store = signed_file(tmp_path / "x.ledger")
    release(store, "before")
    return store


def marks_of(store: Store) -> Path:
    """The file of heads that this host keeps."""
    assert store.marks_path is not None
    return store.marks_path


def test_an_old_copy_put_back_is_halted_by_the_mark_beside_it(store: Store) -> None:
    kept = backup(address_of(store))
    release(store, "lost", 3 * TENTH)
    put_back(address_of(store), kept)
    assert amounts(store) == (TENTH, 0)
    for act in (
        lambda: store.begin(ask(store, question="new"), serves=anything),
        lambda: store.sign(opening(name="other", contract="other")),
        lambda: store.revise(opening(contract="a new text"), reason="why"),
        lambda: store.move_cap(opening(contract="a new text", cap=2 * ONE), reason="why"),
        lambda: store.rotate(actor="ana", reason="why"),
    ):
        with pytest.raises(HaltedError, match=r"head of 7 entries.*parco ledger recover"):
            act()
    assert store.answers("before")[0].answer == b"[1]"  # what is stored can still be read
    assert amounts(open_ledger(address_of(store))) == (TENTH, 0)


def test_recovery_charges_what_the_last_receipt_shows_and_the_ledger_goes_on(store: Store) -> None:
    kept = backup(address_of(store))
    release(store, "lost", 3 * TENTH)
    last = release(store, "lost as well", 2 * TENTH)
    put_back(address_of(store), kept)
    done = store.recover(known(last))
    assert [(charge.account, charge.cost) for charge in done.charges] == [(1, 5 * TENTH)]
    assert done.lost == (6, 7, 9, 10)  # every head of the lost line, from the mark
    assert amounts(store) == (6 * TENTH, 0)
    entry = decode(list(store.entries())[done.position - 1])
    assert isinstance(entry, Recover)
    row = store.history()[-1]
    assert (row.state, row.reason, row.charges) == ("recover", "the disk failed", done.charges)
    release(store, "new", 4 * TENTH)
    with pytest.raises(BudgetError):
        store.begin(ask(store, question="one more", cost=1), serves=anything)
    store.verify()
    assert store.witness([last.head]) == []  # answered for, once and for all
    with pytest.raises(RequestError, match="nothing is lost"):
        store.recover(known(last))


def test_what_does_not_fit_is_overdrawn_and_a_cap_may_make_room(store: Store) -> None:
    kept = backup(address_of(store))
    last = release(store, "lost", 9 * TENTH)
    put_back(address_of(store), kept)
    os.unlink(marks_of(store))  # nobody noticed
    release(store, "new", 5 * TENTH)
    assert [head.size for head in store.witness([last.head])] == [7]
    store.recover(known(last))
    (row,) = store.accounts()
    assert (row.spent, row.excess, row.remaining) == (15 * TENTH, 5 * TENTH, -5 * TENTH)
    assert row.fixed_cap is None  # no cap held this back, so none may be claimed
    with pytest.raises(BudgetError):
        store.begin(ask(store, question="more", cost=1), serves=anything)
    store.verify()
    store.move_cap(opening(contract="more", cap=2 * ONE), reason="the board said so")
    release_at = store.signed("purchases", "sales").contract
    request = replace(ask(store, question="more", cost=5 * TENTH), contract=release_at)
    store.begin(request, serves=anything)
    store.verify()


def test_without_a_mark_a_receipt_halts_and_recovers_by_what_its_own_proof_shares(store: Store) -> None:
    release(store, "again")
    store.sign(opening(name="other", contract="other"))
    kept = backup(address_of(store))
    last = release(store, "lost", 2 * TENTH)
    put_back(address_of(store), kept)
    marks_of(store).unlink()
    started(store, question="nobody knows yet")  # nothing in the ledger can tell
    assert [head.size for head in store.witness([last.head])] == [last.head.size]
    with pytest.raises(HaltedError):
        store.begin(ask(store, question="new"), serves=anything)
    done = open_ledger(address_of(store)).recover(known(last))
    # Ten entries lie left of the lost settle entry, in whole nodes of 8 and 2. The ledger has the first of these nodes:
    # so eight entries are the same, and what they cost is not charged again.
    assert [(charge.account, charge.cost) for charge in done.charges] == [(1, 2 * TENTH)]


def test_what_no_receipt_shows_has_to_be_said(store: Store) -> None:
    kept = backup(address_of(store))
    receipt = release(store, "lost", 2 * TENTH)
    release(store, "lost, and its receipt too", TENTH)
    put_back(address_of(store), kept)
    for recovery in (known(receipt), known()):
        with pytest.raises(RequestError, match=r"up to entry 10.*--unshown"):
            store.recover(recovery)
    assert amounts(store) == (TENTH, 0)
    done = store.recover(known(receipt, unshown=TENTH))
    assert [charge.cost for charge in done.charges] == [3 * TENTH]
    store.verify()


def test_known_to_have_cost_nothing(store: Store) -> None:
    kept = backup(address_of(store))
    store.sign(opening(name="other", contract="other"))
    put_back(address_of(store), kept)
    done = store.recover(known(unshown=0))
    assert (done.charges, done.lost) == ((), (5,))
    store.verify()
    release(store, "new")


def test_two_resumed_from_one_snapshot_are_told_apart(file_store: SqliteStore, tmp_path: Path) -> None:
    """Equal size, another root: both signed by one key, which is evidence enough."""
    (tmp_path / "other").mkdir()
    twin = SqliteStore(shutil.copy(file_store.path, tmp_path / "other" / "x.ledger"))
    mine, other = release(file_store, "mine", 2 * TENTH), release(twin, "other", 3 * TENTH)
    assert (mine.head.size, mine.head.key) == (other.head.size, other.head.key)
    assert mine.head.root != other.head.root
    assert file_store.witness([other.head]) == [other.head]
    assert twin.witness([mine.head]) == [mine.head]
    for one in (file_store, twin):
        with pytest.raises(HaltedError):
            one.begin(ask(one, question="more"), serves=anything)
    file_store.recover(known(other))
    assert amounts(file_store) == (6 * TENTH, 0)
    file_store.verify()


def test_lines_lost_one_after_the_other_add_up(store: Store) -> None:
    kept = backup(address_of(store))
    first = release(store, "lost first", 2 * TENTH)
    put_back(address_of(store), kept)
    marks_of(store).unlink()
    second = release(store, "lost second", 3 * TENTH)
    put_back(address_of(store), kept)
    done = store.recover(known(first, second))
    assert [charge.cost for charge in done.charges] == [5 * TENTH]
    assert amounts(store) == (6 * TENTH, 0)


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.integers(1, 9), min_size=0, max_size=3),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(1, 9), min_size=0, max_size=2),
    st.sampled_from(["mark", "last receipt", "every receipt", "witness"]),
)
def test_never_less_than_what_was_really_spent(
    tmp_path_factory: pytest.TempPathFactory, before: list[int], lost: list[int], after: list[int], evidence: str
) -> None:
    """Whatever evidence there is, all that was ever spent is charged; with the file of heads, exactly that."""
    store = signed_file(tmp_path_factory.mktemp("lost") / "x.ledger", cap=10 * ONE)
    for number, cost in enumerate(before):
        release(store, f"before {number}", cost * HUNDREDTH)
    kept = backup(address_of(store))
    witness = [store.head()]
    receipts = []
    for number, cost in enumerate(lost):
        receipts.append(release(store, f"lost {number}", cost * HUNDREDTH))
        witness.append(store.head())
    put_back(address_of(store), kept)
    if evidence != "mark":
        marks_of(store).unlink()
        for number, cost in enumerate(after):
            release(store, f"after {number}", cost * HUNDREDTH)
    shown = receipts if evidence == "every receipt" else receipts[-1:]
    store.recover(known(*shown, files=(tuple(witness),) if evidence == "witness" else ()))
    truth = sum(before) + sum(lost) + (sum(after) if evidence != "mark" else 0)
    assert amounts(store)[0] >= truth * HUNDREDTH
    if evidence in ("mark", "witness"):
        assert amounts(store)[0] == truth * HUNDREDTH
    store.verify()


def test_false_evidence_is_refused_and_charges_nothing(store: Store, tmp_path: Path) -> None:
    other = signed_file(tmp_path / "other.ledger")
    foreign = release(other, "elsewhere")
    kept = backup(address_of(store))
    last = release(store, "lost", 3 * TENTH)
    put_back(address_of(store), kept)
    reserve = replace(last, position=5, entry=list(store.entries())[1])
    forged = (
        (foreign, "never had"),
        (replace(last, head=replace(last.head, root="0" * 64)), "not signed by its key"),
        (replace(last, entry=last.entry.replace(b"300000000000000", b"100000000000000")), "does not show"),
        (replace(last, path=last.path[:-1]), "does not show"),
        (replace(last, position=last.position - 1), "does not show"),
        (reserve, "does not show"),
    )
    for receipt, message in forged:
        with pytest.raises(VerificationError, match=message):
            store.recover(known(receipt))
    for head in (foreign.head, replace(last.head, size=8)):
        with pytest.raises(VerificationError):
            store.witness([head])
        with pytest.raises(VerificationError):
            store.recover(known(last, files=((head,),)))
    assert amounts(store) == (TENTH, 0)
    assert store.recover(known(last)).charges


def test_a_new_ledger_does_not_take_the_place_of_another(file_store: SqliteStore) -> None:
    """Deleting a ledger would be the cheapest way to a new budget."""
    file_store.path.unlink()
    with pytest.raises(HaltedError, match="another ledger stood in this place"):
        signed_file(file_store.path)
    marks_of(file_store).unlink()
    assert amounts(signed_file(file_store.path)) == (0, 0)


@pytest.mark.parametrize("harm", [b"", b"{", b"\x00" * 700, b'{"tag":"head"}\n', b"[" * 5000])
def test_a_mark_that_cannot_be_read_says_nothing_and_hides_nothing(store: Store, harm: bytes) -> None:
    path = marks_of(store)
    kept = backup(address_of(store))
    release(store, "lost")
    path.write_bytes(path.read_bytes() + harm)
    put_back(address_of(store), kept)
    with pytest.raises(HaltedError):
        store.begin(ask(store, question="new"), serves=anything)
    path.write_bytes(harm)
    started(store, question="new")


def test_a_mark_with_a_flipped_bit_is_no_head_of_anybody(store: Store) -> None:
    path = marks_of(store)
    line = path.read_bytes().splitlines()[-1]
    path.write_bytes(line.replace(store.head().root[:6].encode(), b"000000") + b"\n")
    started(store, question="new")


def test_a_mark_stays_small(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_BYTES_MAX", 5000)
    monkeypatch.setattr(marks, "_BYTES_KEPT", 2000)
    path, sizes = marks_of(store), []
    for number in range(9):
        release(store, str(number), cost=1)
        sizes.append(path.stat().st_size)
    assert max(sizes) < 6000
    assert marks.last(marks_of(store)) == store.head()
    assert [head.size for head in marks.read(marks_of(store))][-3:] == [28, 30, 31]


def test_a_crash_between_commit_and_mark_is_no_loss(store: Store) -> None:
    """The mark is then behind the ledger, which extends it."""
    behind = marks_of(store).read_bytes()
    release(store, "later")
    marks_of(store).write_bytes(behind)
    release(open_ledger(address_of(store)), "and on")
    assert marks.last(marks_of(store)) == store.head()


OLD_JOURNAL = """
import shutil
store = SqliteStore.open(path)
from sqlalchemy import Engine, event
journal = path.with_name(path.name + "-journal")
def keep(*told):
    if told[2] == "COMMIT" and journal.exists():
        shutil.copy(journal, str(path) + ".kept")
        os.kill(os.getpid(), signal.SIGKILL)
event.listen(Engine, "before_cursor_execute", keep)
started(store, question="dies")
"""


def _journal_of_a_dead_commit(store: SqliteStore) -> Path:
    """A journal as it was on disk when a process died in its commit, its header and all pages written."""
    run(OLD_JOURNAL, store.path)
    kept = store.path.with_name(f"{store.path.name}.kept")
    assert kept.stat().st_size > 512
    return kept


def test_a_journal_from_another_moment_halts_or_is_found(file_store: SqliteStore) -> None:
    """SQLite would roll back to pages of long ago: what comes out is damaged, halted, or the same ledger."""
    kept = _journal_of_a_dead_commit(file_store)
    open_ledger(file_store.path)
    for number in range(3):
        release(file_store, f"later {number}")
    before = list(file_store.entries())
    journal = file_store.path.with_name(f"{file_store.path.name}-journal")
    # SQLite ignores a journal whose header is still blank, as that of a commit that was not yet synced is.
    data = bytearray(kept.read_bytes())
    data[:8] = bytes.fromhex("d9d505f920a163d7")
    journal.write_bytes(bytes(data))
    try:
        again = open_ledger(file_store.path)
        again.begin(ask(again, question="new"), serves=anything)
    except VerificationError:
        return
    assert list(again.entries())[: len(before)] == before


def test_a_lost_journal_is_found_before_anything_is_added(file_store: SqliteStore, tmp_path: Path) -> None:
    """A commit that was half written: some pages are new and some old, and the journal that could tell is gone."""
    old = file_store.path.read_bytes()
    release(file_store, "half written", 3 * TENTH)
    new = file_store.path.read_bytes()
    pages = dict(run_sql(file_store.path, "SELECT name, rootpage FROM sqlite_master WHERE type = 'table'"))
    for name in ("entries", "accounts", "tree", "heads"):
        start = (pages[name] - 1) * PAGE
        assert old[start : start + PAGE] != new[start : start + PAGE], "the commit must have changed this page"
        torn = tmp_path / name / "x.ledger"
        torn.parent.mkdir()
        torn.write_bytes(new[:start] + old[start : start + PAGE] + new[start + PAGE :])
        again = SqliteStore.open(torn)
        with pytest.raises(VerificationError, match="as it was left"):
            again.begin(ask(again, question="new"), serves=anything)


def test_recovery_cannot_count_beyond_what_an_account_holds(store: Store) -> None:
    kept = backup(address_of(store))
    release(store, "lost")
    put_back(address_of(store), kept)
    with pytest.raises(RequestError, match="cannot count"):
        store.recover(known(unshown=2**63 - 1))
    assert amounts(store) == (TENTH, 0)


def test_what_a_recovery_returns_is_what_it_wrote(store: Store) -> None:
    kept = backup(address_of(store))
    last = release(store, "lost")
    put_back(address_of(store), kept)
    done = store.recover(known(last))
    assert isinstance(done, Recovered)
    entry = decode(list(store.entries())[done.position - 1])
    assert isinstance(entry, Recover)
    assert (entry.charges, tuple(stray.size for stray in entry.strays)) == (done.charges, done.lost)
    assert run_sql(address_of(store), "SELECT count(*) FROM strays WHERE recovered IS NULL") == [(0,)]
