"""Signing: once for each contract, one account for each data set, one secret that is never lost unseen."""

from __future__ import annotations

from typing import Any

import pytest

from parco.errors import ContractChangedError, ContractError, NotSignedError, VerificationError
from parco.ledger.entries import Open, decode, secret_commitment
from parco.measure import Measure
from parco.stores.address import open_ledger

from .build import Address, amounts, anything, ask, harm, opening, signed_store, started, stored_bytes


def test_signing_again_changes_nothing(address: Address) -> None:
    store = signed_store(address)
    first = store.signed("purchases", "sales")
    before = stored_bytes(address)
    assert store.sign(opening(actor="someone else", time=1)) == first
    assert stored_bytes(address) == before
    assert (first.account, first.position, first.text) == (1, 1, "the contract")


def test_a_changed_contract_under_the_same_name_is_refused(address: Address) -> None:
    store = signed_store(address)
    with pytest.raises(ContractChangedError, match="sales"):
        store.sign(opening(contract="the contract, edited"))
    assert len(list(store.entries())) == 1


def test_two_contracts_on_one_data_set_share_its_account(address: Address) -> None:
    store = signed_store(address)
    second = store.sign(opening(name="audit", contract="another"))
    assert (second.account, second.position) == (1, 2)
    started(store)
    started(store, name="audit", question="another")
    assert amounts(store) == (0, 2 * 10**14)
    assert len(store.accounts()) == 1
    store.verify()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cap": 2 * 10**15}, "the total"),
        ({"delta_cap": 0}, "the delta"),
        ({"terms": "household, add-or-remove, pure"}, "the terms"),
        ({"measure": Measure.GDP}, "the measure"),
    ],
)
def test_terms_that_differ_from_the_account_are_refused(address: Address, change: dict[str, Any], named: str) -> None:
    store = signed_store(address)
    with pytest.raises(ContractError, match=named):
        store.sign(opening(name="audit", contract="another", **change))
    assert len(list(store.entries())) == 1


@pytest.mark.parametrize("cap", [-1, 2**63])
def test_a_total_no_ledger_can_hold_is_refused(address: Address, cap: int) -> None:
    with pytest.raises(ContractError, match="total"):
        signed_store(address, cap=cap)


def test_another_data_set_has_another_account_and_secret(address: Address) -> None:
    store = signed_store(address)
    assert store.sign(opening(dataset="returns", contract="another")).account == 2
    assert store.secret(1) != store.secret(2)
    assert [row.name for row in store.accounts()] == ["purchases", "returns"]
    store.verify()


def test_unknown_contracts_and_accounts(address: Address) -> None:
    store = signed_store(address)
    for dataset, name in (("purchases", "other"), ("other", "sales")):
        with pytest.raises(NotSignedError, match="parco sign"):
            store.signed(dataset, name)
    with pytest.raises(NotSignedError):
        store.begin(ask(store, contract="0" * 64), serves=anything)
    with pytest.raises(VerificationError):
        store.secret(7)


def test_the_secret_is_bound_at_signing(address: Address) -> None:
    store = signed_store(address)
    secret = store.secret(1)
    assert len(secret) == 32
    first = decode(next(store.entries()))
    assert isinstance(first, Open)
    assert first.secret == secret_commitment(secret)
    assert all(secret not in body and secret.hex().encode() not in body for body in store.entries())


@pytest.mark.parametrize("statement", ["DELETE FROM secrets", f"UPDATE secrets SET secret = x'{'5a' * 32}'"])
def test_without_the_secret_nothing_new_and_the_old_still_readable(address: Address, statement: str) -> None:
    store = signed_store(address)
    store.settle(started(store), answer=b"[1]")
    harm(address, statement)
    again = open_ledger(address)
    with pytest.raises(VerificationError, match="no new release"):
        again.begin(ask(again, fresh=True), serves=anything)
    with pytest.raises(VerificationError, match="no new release"):
        again.sign(opening(name="audit", contract="another"))
    assert again.answers("count by month")[0].answer == b"[1]"
    assert amounts(again) == (10**14, 0)
