"""Putting a contract on a ledger: its first entry, accounts and secret; later its new versions and its caps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parco import canonical
from parco.contract.budget import AMOUNTS
from parco.contract.contract import Contract
from parco.contract.fields import label
from parco.errors import ContractError
from parco.session.session import default_actor, default_ledger

if TYPE_CHECKING:
    from parco.stores.records import Opening, Signed
    from parco.stores.store import Store

__all__ = ["move_cap", "revise", "sign"]


def sign(contract: Contract, *, ledger: str | Path | None = None, actor: str | None = None) -> Signed:
    """For every contract, makes sure that it is signed on the ledger, which is made if there is none; returns how.

    Signing the same contract again changes nothing. Raises ContractChangedError where another contract was signed
    under its name, ContractError where its terms or cap differ from those of the data set's account, StorageError.
    """
    from parco.stores.address import create_or_open_ledger

    store = create_or_open_ledger(default_ledger(contract) if ledger is None else ledger)
    return store.sign(_opening(contract, actor))


def revise(contract: Contract, *, reason: str, ledger: str | Path | None = None, actor: str | None = None) -> Signed:
    """For every changed contract, makes it the new version of the one signed under its name; returns how.

    Accounts, caps and answers stay, and old releases keep the digest they were made under. Raises NotSignedError,
    ContractError where it changes unit, neighbours, measure, deltas, receipt order, parts, periods or the cap.
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
    )


def _store(contract: Contract, ledger: str | Path | None) -> Store:
    from parco.stores.address import open_ledger

    return open_ledger(default_ledger(contract) if ledger is None else ledger)


def _reason(reason: str) -> str:
    return label(reason, "reason")
