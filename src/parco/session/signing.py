"""Putting a contract on a ledger: its first entry, accounts and secret; later its new versions and its caps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from parco import canonical
from parco.contract.budget import AMOUNTS
from parco.contract.contract import Contract
from parco.contract.fields import label
from parco.errors import ContractError
from parco.measure import Measure
from parco.session.session import default_actor, default_ledger

if TYPE_CHECKING:
    from parco.stores.records import Opening, Signed
    from parco.stores.store import Store

__all__ = ["move_cap", "revise", "sign"]


def sign(
    contract: Contract, *, ledger: str | Path | None = None, actor: str | None = None, disjoint: str | None = None
) -> Signed:
    """For every contract, makes sure that it is signed on the ledger, which is made if there is none; returns how.

    Signing the same contract again changes nothing. disjoint: beside other data sets, why no row of this one is, or is
    made from, one of theirs; a contract whose data are derived from them names them instead (`derived_from`). Raises
    ContractChangedError where another contract was signed under its name, ContractError where its terms or cap differ
    from those of the data set's account, or its lineage is not said or cannot be charged, StorageError.
    """
    from parco.stores.address import create_or_open_ledger

    store = create_or_open_ledger(default_ledger(contract) if ledger is None else ledger)
    _check_parents(contract, store)
    opening = _opening(contract, actor)
    return store.sign(replace(opening, disjoint=None if disjoint is None else _reason(disjoint)))


def _check_parents(contract: Contract, store: Store) -> None:
    """ContractError unless each parent protects the same unit, in a measure in which the noise has a cost.

    That a parent is on the ledger at all is the ledger's to say. What a parent protects never changes once signed.
    """
    names = contract.data.derived_from or ()
    first = {row.name: row.account for row in reversed(store.accounts()) if row.name in names}
    for name, account in first.items():
        parent = Contract.from_text(store.contract_texts(account)[-1])
        why = _misfit(contract, parent)
        if why is not None:
            raise ContractError(f"data.derived_from: {name!r} cannot be charged for this data set: {why}", parent=name)


def _misfit(contract: Contract, parent: Contract) -> str | None:
    """Why releases on derived data cannot be charged to a parent's account, or None."""
    own, theirs = contract.unit, parent.unit
    if own.column != theirs.column or own.normal != theirs.normal:
        return f"its unit is {theirs.column!r}, not {own.column!r}, or told apart by another normal form"
    if own.neighbours != theirs.neighbours:
        return f"its neighbours are {theirs.neighbours!r}, not {own.neighbours!r}"
    if theirs.period is not None:
        return (
            f"it protects a unit in one {theirs.period}, and rows of one {theirs.period} may change a unit's rows here"
            " without taking them out: publish from it itself"
        )
    mine, measure = contract.budget.measure, parent.budget.measure
    if (mine == Measure.PURE) != (measure == Measure.PURE):
        return (
            f"its account counts {measure}, this one {mine}: Gaussian noise has no pure cost, and what pure noise costs"
            " elsewhere cannot be checked from its facts; choose a measure of the same family"
        )
    return None


def revise(contract: Contract, *, reason: str, ledger: str | Path | None = None, actor: str | None = None) -> Signed:
    """For every changed contract, makes it the new version of the one signed under its name; returns how.

    Accounts, caps and answers stay, and old releases keep the digest they were made under. Raises NotSignedError,
    ContractError where it changes unit, neighbours, measure, deltas, receipt order, parts, periods, lineage or the cap.
    """
    return _store(contract, ledger).revise(_opening(contract, actor), reason=_reason(reason))


def move_cap(contract: Contract, *, reason: str, ledger: str | Path | None = None, actor: str | None = None) -> Signed:
    """For every contract that differs from its signed version in the budget's amount alone, makes that the cap.

    All accounts of the data set get it, and the contract's text is revised with it. Raises NotSignedError,
    ContractError where it changes something else (revise that before or afterwards), BudgetError where more is spent
    or reserved.
    """
    store = _store(contract, ledger)
    signed = Contract.from_text(store.signed(contract.data.name, contract.name).text)
    if _without_amount(signed) != _without_amount(contract):
        raise ContractError(
            "only the amount of [budget] may differ where a cap is raised or lowered: make the other changes by "
            "`parco revise`, before or afterwards"
        )
    return store.move_cap(_opening(contract, actor), reason=_reason(reason))


def _without_amount(contract: Contract) -> object:
    document = canonical.decode(contract.text.encode())
    for name in AMOUNTS:
        document["budget"].pop(name, None)
    return document


def _opening(contract: Contract, actor: str | None) -> Opening:
    from parco.stores.records import Opening

    return Opening(
        actor=label(default_actor() if actor is None else actor, "actor"),
        name=contract.name,
        dataset=contract.data.name,
        contract=contract.text,
        terms=contract.terms,
        measure=contract.budget.measure,
        cap=contract.budget.cap_units,
        delta_cap=contract.budget.delta_cap_units,
        labels=contract.accounts,
        parents=contract.data.derived_from or (),
    )


def _store(contract: Contract, ledger: str | Path | None) -> Store:
    from parco.stores.address import open_ledger

    return open_ledger(default_ledger(contract) if ledger is None else ledger)


def _reason(reason: str) -> str:
    return label(reason, "reason")
