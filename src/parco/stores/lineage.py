"""Lineage: of which data sets another one is made. Declared at its signing, never found by comparing contents.

Whoever compared two data sets would release something about both. So a person says it, once, and the ledger holds every
release to it: it charges the accounts of the data set and all accounts that it descends from, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, ScalarSelect, bindparam, insert, select

from parco.errors import ContractError
from parco.ledger.entries import Derive
from parco.measure import Measure
from parco.stores import tables, texts
from parco.stores.append import append
from parco.stores.records import Opening
from parco.stores.statements import ONE

__all__ = ["ancestors", "check", "missing", "write"]

_ACCOUNTS, _ANCESTORS = tables.accounts.c, tables.ancestors.c

DECLARED = "declared in its contract"
"""The reason on the entry of a derived data set."""


def missing(charged: Sequence[BindParameter[int]]) -> ScalarSelect[Any]:
    """Some account that the data set of `:contract` descends from and that is not among these, null if none is."""
    return (
        select(_ANCESTORS.account)
        .join(tables.contracts, tables.contracts.c.dataset == _ANCESTORS.dataset)
        .where(tables.contracts.c.contract == bindparam("contract"), _ANCESTORS.account.not_in(charged))
        .limit(ONE)
        .scalar_subquery()
    )


def check(connection: Connection, opening: Opening) -> None:
    """ContractError unless a new data set names parents that are signed, or says that it shares no row with others."""
    if opening.parents and opening.disjoint is not None:
        raise ContractError("a data set that is derived from others shares their rows: leave out --disjoint")
    for parent in opening.parents:
        if not _accounts(connection, parent):
            raise ContractError(
                f"data.derived_from: no data set {parent!r} was signed on this ledger: sign its contract first"
            )
    if not opening.parents and opening.disjoint is None and (others := _names(connection)):
        raise ContractError(
            f"other data sets are on this ledger: {', '.join(others)}. If this one is made of rows of theirs (a copy,"
            " view, subset or join, or the same under another name), name them in derived_from under [data], so that"
            " its releases charge their accounts, too; if no row of it is, or is made from, one of theirs, say why"
            " with --disjoint REASON. parco never compares them: that would be a release"
        )


def write(connection: Connection, opening: Opening, *, actor: str, dataset: str) -> None:
    """The entry behind the one that opened a data set, once `check` has passed; none where it is alone."""
    parents = {texts.intern(connection, "dataset", parent): parent for parent in opening.parents}
    if not parents and (opening.disjoint is None or _names(connection) == [texts.normal(opening.dataset)]):
        return
    reason = texts.intern(connection, "reason", opening.disjoint or DECLARED)
    append(
        connection,
        lambda seq: Derive(
            seq=seq,
            actor=actor,
            time=opening.time,
            dataset=dataset,
            parents=tuple(sorted(parents)),
            reason=reason,
        ),
    )
    found = {number for parent in parents.values() for number in _accounts(connection, parent)}
    found.update(connection.scalars(select(_ANCESTORS.account).where(_ANCESTORS.dataset.in_(parents))))
    if found:
        connection.execute(
            insert(tables.ancestors), [{"dataset": dataset, "account": account} for account in sorted(found)]
        )


def ancestors(connection: Connection, dataset: str) -> dict[int, Measure]:
    """The measure of each account that the data set of this digest descends from, rising."""
    query = (
        select(_ACCOUNTS.account, _ACCOUNTS.measure)
        .join(tables.ancestors, _ANCESTORS.account == _ACCOUNTS.account)
        .where(_ANCESTORS.dataset == dataset)
        .order_by(_ACCOUNTS.account)
    )
    return {row.account: Measure.parse(row.measure) for row in connection.execute(query)}


def _accounts(connection: Connection, name: str) -> list[int]:
    digest = texts.find(connection, "dataset", name)
    return list(connection.scalars(select(_ACCOUNTS.account).where(_ACCOUNTS.dataset == digest)))


def _names(connection: Connection) -> list[str]:
    """The data sets that have accounts, in the order in which they were opened."""
    digests = dict.fromkeys(connection.scalars(select(_ACCOUNTS.dataset).order_by(_ACCOUNTS.account)))
    return [texts.read(connection, digest) or "(erased)" for digest in digests]
