"""Derived data: each of their releases charges all accounts that they descend from, or none is charged."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from parco.audit import offline, offline_life
from parco.audit.verify import verify
from parco.errors import BudgetError, ContractError, InternalError, RequestError, VerificationError
from parco.ledger.accounts import EMPTY, apply
from parco.ledger.entries import Charge, Derive, Entry, decode, encode
from parco.measure import Measure
from parco.stores import lineage
from parco.stores.store import Store

from .build import ONE, TENTH, Address, harm, opening, scheduling, signed_store, started

ANSWER = b'{"cells":[1,2,3,4,5,6,7,8,9,10,11,12]}'


def derive(store: Store, name: str, *parents: str, **changes: object) -> str:
    store.sign(opening(dataset=name, contract=f"of {name}", parents=parents, disjoint=None, **changes))
    return store.signed(name, "sales").contract


def spent(store: Store) -> list[int]:
    return [(row.spent + row.reserved) // TENTH for row in store.accounts()]


def charges(*accounts: int) -> tuple[Charge, ...]:
    return tuple(Charge(account, TENTH) for account in accounts)


def test_a_chain_charges_every_account_up_to_its_first(address: Address) -> None:
    store = signed_store(address)
    derive(store, "view", "purchases")
    contract = derive(store, "copy", "view")
    assert dict(store.signed("copy", "sales").ancestors) == {1: Measure.PURE, 2: Measure.PURE}
    for missing in ((3,), (2, 3), (1, 3)):
        with pytest.raises(InternalError, match="descend"):
            started(store, contract=contract, charges=charges(*missing))
    store.settle(started(store, contract=contract, charges=charges(1, 2, 3)), answer=ANSWER)
    assert spent(store) == [1, 1, 1]
    started(store, question="another")
    assert spent(store) == [2, 1, 1]
    store.verify()
    verify(store)


def test_a_join_charges_both_and_a_join_of_relatives_each_once(address: Address) -> None:
    store = signed_store(address)
    store.sign(opening(dataset="visits", contract="of visits"))
    derive(store, "view", "visits")
    assert list(store.signed("visits", "sales").ancestors) == []
    contract = derive(store, "join", "purchases", "view", "visits")
    assert list(store.signed("join", "sales").ancestors) == [1, 2, 3]
    store.forfeit(started(store, contract=contract, charges=charges(1, 2, 3, 4)))
    assert spent(store) == [1, 1, 1, 1]
    store.verify()


def test_all_or_nothing_where_one_of_them_is_short(address: Address) -> None:
    store = signed_store(address)
    contract = derive(store, "view", "purchases")
    started(store, cost=ONE, scale=1)
    before = store.accounts()
    with pytest.raises(BudgetError, match="'purchases'"):
        started(store, question="b", contract=contract, charges=charges(1, 2))
    assert store.accounts() == before


def test_lineage_is_said_at_signing_and_is_not_guessed(address: Address) -> None:
    store = signed_store(address, disjoint=None)
    size = len(list(store.entries()))
    with pytest.raises(ContractError, match=r"purchases.*derived_from.*--disjoint.*never compares"):
        store.sign(opening(dataset="visits", contract="of visits", disjoint=None))
    with pytest.raises(ContractError, match="no data set 'nowhere' was signed"):
        derive(store, "view", "nowhere")
    with pytest.raises(ContractError, match="leave out --disjoint"):
        store.sign(opening(dataset="view", contract="of view", parents=("purchases",), disjoint="none"))
    assert len(list(store.entries())) == size == 1
    store.sign(opening(dataset="visits", contract="of visits", disjoint="other people", actor="steward"))
    store.sign(opening(name="second", contract="a second contract on the first data set", disjoint=None))
    row = next(row for row in store.history() if row.state == "derive")
    assert (row.actor, row.name, row.parents, row.reason) == ("steward", "visits", (), "other people")
    assert len(list(store.entries())) == size + 3
    store.verify()
    verify(store, strict=True)


def test_strict_tells_of_data_sets_about_which_nothing_was_said(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = signed_store(address)
    monkeypatch.setattr(lineage, "check", lambda *_: None)
    store.sign(opening(dataset="visits", contract="of visits", disjoint=None))
    verify(store)
    with pytest.raises(VerificationError, match="strict: nobody said whether the data set of account 2"):
        verify(store, strict=True)


def _entries(tmp_path: Path) -> list[Entry]:
    """Two data sets, a view of both, and a release on it."""
    store = signed_store(tmp_path / "x.ledger")
    store.sign(opening(dataset="visits", contract="of visits"))
    contract = derive(store, "view", "purchases", "visits")
    store.settle(started(store, contract=contract, charges=charges(1, 2, 3)), answer=ANSWER)
    return [decode(body) for body in store.entries()]


def _refused(entries: list[Entry]) -> bool:
    """Whether the state machine and the offline verifier both refuse these entries, or neither does."""
    state, ledger, refusals = EMPTY, offline_life.Ledger(), set[str]()
    for entry in entries:
        try:
            state = apply(state, entry)
        except VerificationError:
            refusals.add("state machine")
        try:
            ledger.feed(encode(entry))
        except offline.CheckError as error:
            refusals.add(f"offline: {error.args[0]}")
    assert refusals in (set(), {"state machine", "offline: lineage"})
    return bool(refusals)


def test_both_verifiers_refuse_a_release_that_leaves_out_an_ancestor(tmp_path: Path) -> None:
    good = _entries(tmp_path)[:6]
    assert not _refused(good)
    for left_out in (0, 1):
        record = json.loads(encode(good[-1]))
        del record["charges"][left_out]
        bad = decode(json.dumps(record, sort_keys=True, separators=(",", ":")).encode())
        assert _refused([*good[:-1], bad])


def test_both_verifiers_refuse_a_lineage_out_of_place(tmp_path: Path) -> None:
    good = _entries(tmp_path)[:5]
    assert isinstance(good[-1], Derive)
    facts = vars(good[-1])
    assert _refused([*good, Derive(**{**facts, "seq": 6})])
    assert _refused([*good[:-1], Derive(**{**facts, "parents": (facts["dataset"],)})])
    assert _refused([*good[:-1], Derive(**{**facts, "parents": ("0" * 64,)})])
    assert _refused([*good[:-1], Derive(**{**facts, "dataset": good[0].dataset})])  # type: ignore[union-attr]
    assert not _refused([*good[:-1], Derive(**{**facts, "parents": ()})])


def test_an_ancestor_is_charged_by_the_facts_in_its_own_measure(tmp_path: Path) -> None:
    """The verifier works out each account's cost from the noise, so that a smaller charge of an ancestor is found."""
    from parco.ledger.entries import MechanismFacts

    store = signed_store(tmp_path / "x.ledger", measure=Measure.ZCDP, terms="zcdp")
    contract = derive(store, "view", "purchases", measure=Measure.GDP, terms="gdp")
    noise = MechanismFacts("gaussian", Fraction(4), Fraction(1))
    rows = (Charge(1, ONE // 32), Charge(2, ONE // 16))
    store.settle(started(store, contract=contract, mechanism=noise, charges=rows), answer=ANSWER)
    verify(store)
    cheap = (Charge(1, ONE // 64), Charge(2, ONE // 16))
    store.settle(started(store, question="b", contract=contract, mechanism=noise, charges=cheap), answer=ANSWER)
    with pytest.raises(VerificationError, match="priced"):
        verify(store)


def test_verify_compares_the_table_with_the_entries(address: Address) -> None:
    store = signed_store(address)
    derive(store, "view", "purchases")
    harm(address, "DELETE FROM ancestors")
    with pytest.raises(VerificationError, match="lineage"):
        store.verify()
    with pytest.raises(VerificationError, match="lineage"):
        verify(store)


def test_no_schedule_is_signed_on_derived_data(address: Address) -> None:
    """Whoever asks the store itself is refused as well, and nothing is set aside."""
    store = signed_store(address)
    store.sign(opening(dataset="view", contract="of the view", parents=("purchases",), disjoint=None))
    contract = store.signed("view", "sales").contract
    charges = tuple(Charge(number, TENTH) for number in (1, 2))
    with pytest.raises(RequestError, match="derived from no other"):
        store.sign_schedule(scheduling(store, "a", contract=contract, charges=charges))
    assert [row.reserved for row in store.accounts()] == [0, 0]
    store.verify()
