"""Heads as the ledger grows: each commit is signed, proofs hold, and nothing is added to what is not as it was left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from parco.errors import BudgetError, RequestError, VerificationError
from parco.ledger import merkle
from parco.ledger.entries import Rotate, decode, rotation_statement
from parco.ledger.heads import Head, accounts_digest, head_of
from parco.stores import keys
from parco.stores.address import open_ledger
from parco.stores.sqlite import SqliteStore
from parco.stores.store import Store

from .build import (
    ACT,
    TENTH,
    Address,
    address_of,
    anything,
    ask,
    harm,
    opening,
    run_sql,
    signed_file,
    signed_store,
    started,
)


@pytest.fixture
def store(address: Address) -> Store:
    """Signed, and two releases settled: seven entries in five commits."""
    store = signed_store(address)
    for question in ("one", "two"):
        store.settle(started(store, question=question), answer=b'{"cells":[7],"parco":"0.1.0"}')
    return store


def heads(store: Store) -> list[Head]:
    rows = run_sql(address_of(store), "SELECT size, root, accounts, previous, key, signature FROM heads ORDER BY size")
    return [
        Head(**dict(zip(("size", "root", "accounts", "previous", "key", "signature"), row, strict=True)))
        for row in rows
    ]


def test_every_commit_is_signed_and_holds_the_one_before(store: Store) -> None:
    found = heads(store)
    assert [head.size for head in found] == [1, 3, 4, 6, 7]
    assert [head.previous for head in found] == [None, *(head.digest for head in found[:-1])]
    assert len({head.key for head in found}) == 1
    assert all(keys.verified(head) for head in found)
    assert store.head() == found[-1]
    bodies = list(store.entries())
    for head in found:
        leaves = [merkle.leaf(body) for body in bodies[: head.size]]
        assert head.root == _root(leaves).hex()
    assert found[-1].accounts == accounts_digest([store.verify().accounts[1].balance])


def _root(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << ((len(leaves) - 1).bit_length() - 1)
    return merkle.parent(_root(leaves[:k]), _root(leaves[k:]))


def test_a_head_and_its_line_are_each_others_inverse(store: Store) -> None:
    head = store.head()
    assert head_of(json.loads(head.line)) == head
    for change in ({"size": 0}, {"root": "x"}, {"tag": "tail"}, {"format": True}, {"signature": None}, {"more": 1}):
        with pytest.raises(VerificationError):
            head_of({**head.record(), **change})
    with pytest.raises(VerificationError, match="upgrade parco"):
        head_of({**head.record(), "format": 2})


def test_every_entry_and_every_earlier_head_can_be_proven(store: Store) -> None:
    for position, body in enumerate(store.entries(), start=1):
        proof = store.prove(position)
        assert (proof.entry, proof.head) == (body, store.head())
        assert proof.holds
    for head in heads(store):
        assert store.prove_from(head.size).holds
    with pytest.raises(VerificationError, match="entry 8 is missing"):
        store.prove(8)
    with pytest.raises(VerificationError, match="no head of this ledger has 2 entries"):
        store.prove_from(2)


def test_the_evidence_of_a_release_is_its_entry_under_its_own_commit(store: Store) -> None:
    evidence = store.evidence(2, 4)
    assert (evidence.proof.head.size, evidence.proof.position) == (4, 4)
    assert evidence.proof.holds
    assert keys.verified(evidence.proof.head)
    assert evidence == store.evidence(2, 4)


@settings(deadline=None, max_examples=8)
@given(st.lists(st.sampled_from(["start", "settle", "forfeit", "refused"]), max_size=12))
def test_whatever_happens_the_last_head_covers_all(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    store = signed_file(tmp_path_factory.mktemp("life") / "x.ledger", cap=100 * TENTH)
    running: list[int] = []
    for number, step in enumerate(steps):
        if step == "start":
            running.append(started(store, question=str(number)))
        elif step == "settle" and running:
            store.settle(running.pop(), answer=b"[]")
        elif step == "forfeit" and running:
            store.forfeit(running.pop())
        elif step == "refused":
            before = store.head()
            with pytest.raises(BudgetError):
                store.begin(ask(store, question="too much", cost=101 * TENTH), serves=anything)
            assert store.head() == before
    assert store.head().size == len(list(store.entries()))
    assert all(keys.verified(head) for head in heads(store))


HARM = {
    "an account": "UPDATE accounts SET spent = spent - 1",
    "a cap": "UPDATE accounts SET cap = cap + 1",
    "the last entry": "UPDATE entries SET body = x'7b7d' WHERE seq = 7",
    "an entry gone": "DELETE FROM entries WHERE seq = 7",
    "a head gone": "DELETE FROM heads WHERE size = 7",
    "a head's root": "UPDATE heads SET root = accounts WHERE size = 7",
    "a head's signature": "UPDATE heads SET signature = (SELECT signature FROM heads WHERE size = 6) WHERE size = 7",
    "a node": f"UPDATE tree SET nodes = x'{bytes(96).hex()}' WHERE size = 4",
    "the key": f"UPDATE keys SET private = x'{bytes(32).hex()}'",
    "the key gone": "UPDATE keys SET private = NULL",
}


@pytest.mark.parametrize("what", HARM)
def test_nothing_is_added_to_a_ledger_that_is_not_as_it_was_left(store: Store, what: str) -> None:
    harm(address_of(store), HARM[what])
    before = list(store.entries())
    for act in (
        lambda: store.begin(ask(store, question="three"), serves=anything),
        lambda: store.sign(opening(name="other", contract="other")),
        lambda: store.rotate(actor="ana", reason="why"),
        lambda: store.flag(ACT, entry=2),
    ):
        with pytest.raises(VerificationError, match=r"as it was left|signing key"):
            act()
    assert list(store.entries()) == before
    assert len(open_ledger(address_of(store)).accounts()) == 1  # it can still be read
    assert store.answers("one")[0].answer == b'{"cells":[7],"parco":"0.1.0"}'


def test_what_was_stored_otherwise_than_written_is_not_signed(tmp_path: Path) -> None:
    """A trigger stands for the disk: the entry that is read back is not the one that was written."""
    store = signed_file(tmp_path / "x.ledger")
    for question in ("one", "two"):
        store.settle(started(store, question=question), answer=b"[7]")
    run_sql(
        store.path,
        "DROP TRIGGER entries_are_never_changed",
        "CREATE TRIGGER liar AFTER INSERT ON entries BEGIN"
        " UPDATE entries SET body = CAST(replace(NEW.body, '\"fresh\":0', '\"fresh\":1') AS BLOB) WHERE seq = NEW.seq;"
        " END",
    )
    with pytest.raises(VerificationError, match="what follows entry 7 was not stored as it was written"):
        store.begin(ask(store, question="three"), serves=anything)
    assert len(list(store.entries())) == 7


def test_appending_takes_as_many_statements_however_long_the_ledger(address: Address) -> None:
    """O(log n): what a commit checks and adds is read by key, one statement for all nodes."""

    def statements(store: Store) -> int:
        count = 0

        def step(*_: object) -> None:
            nonlocal count
            count += 1

        event.listen(Engine, "before_cursor_execute", step)
        try:
            request = started(store, question=f"from {store.head().size}")
        finally:
            event.remove(Engine, "before_cursor_execute", step)
        store.settle(request, answer=b"[]")
        return count

    store = signed_store(address, cap=100 * TENTH)
    counts = [statements(store) for _ in range(22)]
    assert max(counts) - min(counts) <= 2  # an entry of even number reads its neighbours


def test_a_rotated_key_is_signed_by_both_and_the_old_one_is_gone(store: Store) -> None:
    old = store.head().key
    position = store.rotate(actor="ana", reason="yearly")
    entry = decode(list(store.entries())[position - 1])
    assert isinstance(entry, Rotate)
    assert (entry.old, entry.new) == (old, store.head().key)
    assert entry.new != old
    statement = rotation_statement(entry)
    assert keys.signature_holds(entry.old, entry.by_old, statement)
    assert keys.signature_holds(entry.new, entry.by_new, statement)
    assert not keys.signature_holds(entry.new, entry.by_old, statement)
    assert dict(run_sql(address_of(store), "SELECT key, private FROM keys"))[old] is None
    assert store.history()[-1].reason == "yearly"
    started(store, question="three")
    assert store.head().key == entry.new
    store.verify()


def test_a_ledger_without_a_signature_cannot_rotate(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="parco sign"):
        SqliteStore.create_or_open(tmp_path / "x.ledger").rotate(actor="ana", reason="why")
