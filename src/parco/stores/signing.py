"""Signing: the first entry of a contract, the account of its data set, and the data set's secret."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from sqlalchemy import Connection, Row, func, insert, select

from parco.errors import ContractChangedError, ContractError, NotSignedError, VerificationError
from parco.ledger.entries import WHOLE, Entry, Open, Opened, encode, secret_commitment
from parco.measure import UNITS_MAX
from parco.stores import reading, tables, texts
from parco.stores.records import Opening, Signed

__all__ = ["append", "contract_text", "contract_texts", "find_signed", "secret_of", "sign"]

_SECRET_BYTES = 32


def append(connection: Connection, make: Callable[[int], Entry]) -> int:
    """Stores the next entry and returns its sequence; the caller's transaction holds the write lock."""
    last = connection.scalar(select(func.max(tables.entries.c.seq)))
    seq = 1 if last is None else last + 1
    connection.execute(insert(tables.entries).values(seq=seq, body=encode(make(seq))))
    return seq


def sign(connection: Connection, opening: Opening) -> Signed:
    """For every contract, the contract as signed: now, or the first time if it was signed before.

    Raises ContractChangedError if another text was signed under this name, ContractError if the data set has an
    account on other terms.
    """
    _check_amounts(opening)
    old = _find(connection, opening.dataset, opening.name)
    if old is not None:
        if old.text != texts.normal(opening.contract):
            raise ContractChangedError(
                f"another contract was signed as {opening.name!r} on this ledger: give the changed one another name at"
                " its top, and keep the name in [data], so that both share one budget"
            )
        return old
    dataset = texts.intern(connection, "dataset", opening.dataset)
    row = connection.execute(select(tables.accounts).where(tables.accounts.c.dataset == dataset)).one_or_none()
    terms = texts.intern(connection, "terms", opening.terms)
    if row is not None:
        _check_terms(row, opening, terms)
    return _open(connection, opening, dataset=dataset, terms=terms, account=None if row is None else row.account)


def find_signed(connection: Connection, dataset: str, name: str) -> Signed:
    """The contract signed under this name for this data set, or NotSignedError."""
    found = _find(connection, dataset, name)
    if found is None:
        raise NotSignedError(f"the contract {name!r} was never signed on this ledger: run `parco sign`")
    return found


def contract_text(connection: Connection, contract: str) -> str:
    """The text whose digest entries name a contract by, or VerificationError if it was removed."""
    text = texts.read(connection, contract)
    if text is None:
        raise VerificationError("the text of a signed contract was removed from the ledger")
    return text


def contract_texts(connection: Connection, account: int) -> list[str]:
    """The texts of all contracts signed on an account, the latest last."""
    columns = tables.contracts.c
    query = select(columns.contract).where(columns.account == account).order_by(columns.opened)
    return [contract_text(connection, digest) for digest in connection.scalars(query)]


def secret_of(connection: Connection, account: int) -> bytes:
    """The secret of an account's data set, or VerificationError if it is lost or not the one bound at signing."""
    query = select(tables.accounts.c.opened).where(tables.accounts.c.account == account)
    opened = connection.scalar(query)
    if opened is None:
        raise VerificationError(f"there is no account {account} on this ledger")
    commitment = reading.entry(connection, opened, Open).secret
    secret = connection.scalar(select(tables.secrets.c.secret).where(tables.secrets.c.account == account))
    if secret is None or not hmac.compare_digest(secret_commitment(secret), commitment):
        raise VerificationError(
            f"the secret of account {account} is lost or was changed: no new release on that account;"
            " stored answers can still be read"
        )
    return bytes(secret)


def _open(connection: Connection, opening: Opening, *, dataset: str, terms: str, account: int | None) -> Signed:
    secret = secrets.token_bytes(_SECRET_BYTES) if account is None else secret_of(connection, account)
    number = account or 1 + (connection.scalar(select(func.max(tables.accounts.c.account))) or 0)
    actor = texts.intern(connection, "actor", opening.actor)
    name = texts.intern(connection, "name", opening.name)
    contract = texts.intern(connection, "contract", opening.contract)
    label = texts.intern(connection, "label", WHOLE)
    seq = append(
        connection,
        lambda seq: Open(
            seq=seq,
            actor=actor,
            time=opening.time,
            contract=contract,
            name=name,
            dataset=dataset,
            terms=terms,
            measure=opening.measure.tag,
            order=opening.measure.order,
            accounts=(Opened(number, label, opening.cap, opening.delta_cap),),
            secret=secret_commitment(secret),
        ),
    )
    if account is None:
        _new_account(connection, opening, number=number, opened=seq, digests=(dataset, label, terms))
        connection.execute(insert(tables.secrets).values(account=number, secret=secret))
    row = {"opened": seq, "dataset": dataset, "name": name, "contract": contract, "account": number}
    connection.execute(insert(tables.contracts).values(row))
    return find_signed(connection, opening.dataset, opening.name)


def _new_account(
    connection: Connection, opening: Opening, *, number: int, opened: int, digests: tuple[str, str, str]
) -> None:
    row = {
        "account": number,
        "opened": opened,
        **dict(zip(("dataset", "label", "terms"), digests, strict=True)),
        "measure": str(opening.measure),
        "cap": opening.cap,
        "delta_cap": opening.delta_cap,
        **dict.fromkeys(("spent", "reserved", "excess", "delta_spent", "delta_reserved", "delta_excess"), 0),
    }
    connection.execute(insert(tables.accounts).values(row))


def _check_amounts(opening: Opening) -> None:
    for name, value in (("total", opening.cap), ("delta", opening.delta_cap)):
        if not 0 <= value <= UNITS_MAX:
            raise ContractError(f"the contract's {name} is outside what a ledger can hold")


def _check_terms(row: Row[tuple[object, ...]], opening: Opening, terms: str) -> None:
    """Two contracts on one data set share its account, so they must promise alike what the account counts."""
    differing = {
        "the measure": row.measure != str(opening.measure),
        "the terms (protected unit, neighbours, deltas, receipt order)": row.terms != terms,
        "the total": row.cap != opening.cap,
        "the delta": row.delta_cap != opening.delta_cap,
    }
    names = [name for name, differs in differing.items() if differs]
    if names:
        raise ContractError(
            f"the data set {opening.dataset!r} has an account on this ledger already, and this contract differs from it"
            f" in {', '.join(names)}: contracts on one data set share one account",
            differs=tuple(names),
        )


def _find(connection: Connection, dataset: str, name: str) -> Signed | None:
    columns = tables.contracts.c
    of_dataset = columns.dataset == texts.find(connection, "dataset", dataset)
    of_name = columns.name == texts.find(connection, "name", name)
    row = connection.execute(select(tables.contracts).where(of_dataset, of_name)).one_or_none()
    if row is None:
        return None
    text = contract_text(connection, row.contract)
    return Signed(
        account=row.account, position=row.opened, contract=row.contract, name=name, dataset=dataset, text=text
    )
