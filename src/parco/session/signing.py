"""Putting a contract on a ledger: the first entry, the account, the data set's secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parco.contract.contract import Contract
from parco.contract.fields import label
from parco.session.session import default_actor, default_ledger

if TYPE_CHECKING:
    from parco.stores.records import Signed

__all__ = ["sign"]


def sign(contract: Contract, *, ledger: str | Path | None = None, actor: str | None = None) -> Signed:
    """For every contract, makes sure that it is signed on the ledger, which is made if there is none; returns how.

    Signing the same contract again changes nothing. Raises ContractChangedError where another contract was signed
    under its name, ContractError where its terms or cap differ from those of the data set's account, StorageError.
    """
    from parco.stores.records import Opening
    from parco.stores.sqlite import SqliteStore

    opening = Opening(
        actor=label(default_actor() if actor is None else actor, "actor"),
        name=contract.name,
        dataset=contract.data.name,
        contract=contract.text,
        terms=contract.terms,
        measure=contract.budget.measure,
        cap=contract.budget.cap_units,
        delta_cap=contract.budget.delta_cap_units,
    )
    store = SqliteStore.create_or_open(default_ledger(contract) if ledger is None else ledger)
    return store.sign(opening)
