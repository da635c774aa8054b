"""Texts: equal text has one row, erasing leaves nothing behind, changing is found."""

from __future__ import annotations

import pytest

from parco.errors import InternalError, RequestError, VerificationError
from parco.stores import texts
from parco.stores.records import Started, Stored

from .build import ACT, Address, anything, ask, harm, signed_store, started, stored_bytes


def test_equal_text_has_one_digest_and_kinds_are_apart(address: Address) -> None:
    store = signed_store(address)
    with store._writing() as connection:
        one = texts.intern(connection, "question", "caf\u00e9")
        assert texts.intern(connection, "question", "cafe\u0301") == one
        assert texts.intern(connection, "actor", "caf\u00e9") != one
        assert texts.find(connection, "key", "caf\u00e9") is None
        assert texts.read(connection, one) == "caf\u00e9"
        with pytest.raises(InternalError):
            texts.find(connection, "colour", "red")


def test_an_erased_question_is_gone_from_the_file_and_all_digests_hold(address: Address) -> None:
    store = signed_store(address)
    # Long enough for pages of its own: those are freed as they are, unless secure_delete clears them.
    name = "count where " + "x or " * 3000 + "customer = 'Ada Lovelace'"
    store.settle(started(store, question=name), answer=b"[1]")
    assert b"Ada Lovelace" in stored_bytes(address)
    before = list(store.entries())
    assert store.amend(ACT, entry=2, field="question", text=None) == 5
    with pytest.raises(RequestError, match="no question of entry 2 to erase"):
        store.amend(ACT, entry=2, field="question", text=None)
    assert b"Ada Lovelace" not in stored_bytes(address)
    assert list(store.entries())[:4] == before
    store.verify()
    assert store.answers(name) == []
    assert store.history()[1].question is None
    assert isinstance(store.begin(ask(store, question=name), serves=anything), Started)


def test_what_holds_the_budget_together_cannot_be_erased(address: Address) -> None:
    store = signed_store(address)
    before = stored_bytes(address)
    for field in ("dataset", "contract", "name", "terms", "label"):
        with pytest.raises(RequestError, match="none of this kind"):
            store.amend(ACT, entry=1, field=field, text=None)
    assert stored_bytes(address) == before


def test_an_erased_actor_and_key(address: Address) -> None:
    store = signed_store(address)
    store.settle(started(store, key="k1"), answer=b"[1]")
    store.amend(ACT, entry=2, field="actor", text=None)
    store.amend(ACT, entry=2, field="key", text=None)
    assert store.history()[1].actor is None
    assert isinstance(store.begin(ask(store), serves=anything), Stored)


def test_a_changed_or_missing_text_is_found(address: Address) -> None:
    store = signed_store(address)
    harm(address, "UPDATE texts SET text = 'another contract' WHERE text = 'the contract'")
    with pytest.raises(VerificationError, match="differs"):
        store.signed("purchases", "sales")
    with pytest.raises(VerificationError, match="differs"):
        store.verify()
    harm(address, "DELETE FROM texts WHERE text = 'another contract'")
    with pytest.raises(VerificationError, match="missing"):
        store.signed("purchases", "sales")
