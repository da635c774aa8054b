"""Revision: a signed contract gets a new text, and caps move, each as an act with actor and reason.

Accounts, secret and answers stay. A revision never moves a cap; where a cap moves, the contract that says the new one
is revised in the same transaction, so that its text and its account agree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, or_, update

from parco.errors import BudgetError, ContractError, RequestError
from parco.ledger.entries import Cap, Capped, Opened, Revise
from parco.measure import COST_UNIT, decimal_text
from parco.stores import tables, texts
from parco.stores.append import append
from parco.stores.records import Opening, Signed
from parco.stores.signing import accounts_of, check_amounts, check_terms, find_signed

__all__ = ["move_cap", "revise"]

_ACCOUNTS = tables.accounts.c


def revise(connection: Connection, opening: Opening, *, reason: str) -> Signed:
    """For every contract whose earlier version is signed, makes `opening` its text; the same text changes nothing.

    Raises NotSignedError, ContractError if it differs in what no revision can change, or was signed before.
    """
    old = find_signed(connection, opening.dataset, opening.name)
    if old.text == texts.normal(opening.contract):
        return old
    check_amounts(opening)
    check_terms(connection, _rows(connection, opening), opening)
    return _revise(connection, opening, old, reason=reason)


def move_cap(connection: Connection, opening: Opening, *, reason: str) -> Signed:
    """Gives all accounts of the data set the cap of `opening`, whose text becomes the contract's.

    Raises NotSignedError, ContractError, RequestError if the cap is that already, BudgetError if more is spent or
    reserved; then nothing was changed.
    """
    old = find_signed(connection, opening.dataset, opening.name)
    check_amounts(opening)
    rows = _rows(connection, opening)
    check_terms(connection, rows, opening, cap_moves=True)
    if all(row.cap == opening.cap for row in rows):
        raise RequestError("the budget is what the account has already: there is no cap to raise or lower")
    for row in rows:
        _set_cap(connection, row, opening.cap)
    capped = tuple(Capped(row.account, opening.cap) for row in rows)
    names = {"actor": opening.actor, "reason": reason}
    digests = {kind: texts.intern(connection, kind, text) for kind, text in names.items()}
    seq = append(connection, lambda seq: Cap(seq=seq, time=opening.time, accounts=capped, **digests))
    connection.execute(insert(tables.caps), [{"seq": seq, **vars(one)} for one in capped])
    if old.text == texts.normal(opening.contract):
        return old
    return _revise(connection, opening, old, reason=reason)


def _revise(connection: Connection, opening: Opening, old: Signed, *, reason: str) -> Signed:
    if texts.find(connection, "contract", opening.contract) is not None:
        raise ContractError(
            "this very text was signed before, and was replaced: give the new version a difference, such as its purpose"
        )
    names = {"actor": opening.actor, "contract": opening.contract, "reason": reason, "terms": opening.terms}
    digests: dict[str, Any] = {kind: texts.intern(connection, kind, text) for kind, text in names.items()}
    accounts = tuple(Opened(row.account, row.label, row.cap, row.delta_cap) for row in _rows(connection, opening))
    seq = append(
        connection,
        lambda seq: Revise(seq=seq, time=opening.time, revised=old.contract, accounts=accounts, **digests),
    )
    columns = tables.contracts.c
    changed = update(tables.contracts).where(columns.contract == old.contract)
    connection.execute(changed.values(contract=digests["contract"], opened=seq))
    return replace(old, contract=digests["contract"], position=seq, text=texts.normal(opening.contract))


def _rows(connection: Connection, opening: Opening) -> list[Row[Any]]:
    return accounts_of(connection, texts.find(connection, "dataset", opening.dataset) or "")


def _set_cap(connection: Connection, row: Row[Any], cap: int) -> None:
    """One conditional UPDATE, as for spending: a reservation made meanwhile is seen, not overwritten."""
    roomy = or_(_ACCOUNTS.cap <= cap, _ACCOUNTS.spent <= cap - _ACCOUNTS.reserved)
    moved = update(tables.accounts).where(_ACCOUNTS.account == row.account, roomy).values(cap=cap)
    if connection.execute(moved).rowcount != 1:
        used = decimal_text((row.spent + row.reserved) * COST_UNIT)
        raise BudgetError(
            f"the cap cannot be {decimal_text(cap * COST_UNIT)}: {used} of {row.measure} is spent or reserved already;"
            " nothing was changed"
        )
