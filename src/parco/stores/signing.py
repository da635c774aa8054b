"""Signing: the first entry of a contract, the account of its data set, and the data set's secret."""

from __future__ import annotations

import hmac
import secrets
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select

from parco.errors import ContractChangedError, ContractError, NotSignedError, VerificationError
from parco.ledger.entries import Open, Opened, secret_commitment
from parco.measure import UNITS_MAX
from parco.stores import lineage, reading, tables, texts
from parco.stores.append import append
from parco.stores.records import Opening, Signed

__all__ = [
    "accounts_of",
    "check_amounts",
    "check_secret",
    "check_terms",
    "contract_text",
    "contract_texts",
    "find_signed",
    "secret_of",
    "sign",
]

_SECRET_BYTES = 32

_SECRET = (
    select(tables.accounts.c.opened, tables.secrets.c.secret)
    .join_from(tables.accounts, tables.secrets, isouter=True)
    .where(tables.accounts.c.account == bindparam("account"))
)


def sign(connection: Connection, opening: Opening) -> Signed:
    """For every contract, the contract as signed: now, or the first time if it was signed before.

    Raises ContractChangedError if another text was signed under this name, ContractError if the data set has an
    account on other terms, or is new beside others and nobody says whether it shares rows with them.
    """
    check_amounts(opening)
    old = _find(connection, opening.dataset, opening.name)
    if old is not None:
        if old.text != texts.normal(opening.contract):
            raise ContractChangedError(
                f"another contract was signed as {opening.name!r} on this ledger: make the changed one its new version"
                " with `parco revise`; or give it another name at its top, and keep the name in [data], so that both"
                " share one budget"
            )
        return old
    dataset = texts.intern(connection, "dataset", opening.dataset)
    rows = accounts_of(connection, dataset)
    terms = texts.intern(connection, "terms", opening.terms)
    if rows:
        check_terms(connection, rows, opening)
    else:
        lineage.check(connection, opening)
    return _open(connection, opening, dataset=dataset, terms=terms, old=[row.account for row in rows])


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
    """The texts of all contracts on an account's data set, each in its latest version, the latest signed last."""
    columns = tables.contracts.c
    dataset = select(tables.accounts.c.dataset).where(tables.accounts.c.account == account).scalar_subquery()
    query = select(columns.contract).where(columns.dataset == dataset).order_by(columns.opened)
    return [contract_text(connection, digest) for digest in connection.scalars(query)]


def accounts_of(connection: Connection, dataset: str) -> list[Row[Any]]:
    """The accounts of the data set with this digest, rising."""
    query = select(tables.accounts).where(tables.accounts.c.dataset == dataset).order_by(tables.accounts.c.account)
    return list(connection.execute(query).all())


def secret_of(connection: Connection, account: int) -> bytes:
    """The secret of an account's data set, or VerificationError if it is lost or not the one bound at signing."""
    row = connection.execute(_SECRET, {"account": account}).one_or_none()
    if row is None:
        raise VerificationError(f"there is no account {account} on this ledger")
    return check_secret(reading.entry(connection, row.opened, Open), row.secret)


def check_secret(entry: Open, secret: bytes | None) -> bytes:
    """The secret stored for the accounts that `entry` opened, found to be the one bound there."""
    if secret is None or not hmac.compare_digest(secret_commitment(secret), entry.secret):
        raise VerificationError(
            f"the secret of account {entry.accounts[0].account} is lost or was changed: no new release on its data set;"
            " stored answers can still be read"
        )
    return bytes(secret)


def _open(connection: Connection, opening: Opening, *, dataset: str, terms: str, old: list[int]) -> Signed:
    secret = secret_of(connection, old[0]) if old else secrets.token_bytes(_SECRET_BYTES)
    first = 1 + (connection.scalar(select(func.max(tables.accounts.c.account))) or 0)
    numbers = old or list(range(first, first + len(opening.labels)))
    actor = texts.intern(connection, "actor", opening.actor)
    name = texts.intern(connection, "name", opening.name)
    contract = texts.intern(connection, "contract", opening.contract)
    labels = [texts.intern(connection, "label", label) for label in opening.labels]
    opened = tuple(
        Opened(number, label, opening.cap, opening.delta_cap) for number, label in zip(numbers, labels, strict=True)
    )
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
            accounts=opened,
            secret=secret_commitment(secret),
        ),
    )
    if not old:
        for number, label in zip(numbers, labels, strict=True):
            _new_account(connection, opening, number=number, opened=seq, digests=(dataset, label, terms))
            connection.execute(insert(tables.secrets).values(account=number, secret=secret))
        lineage.write(connection, opening, actor=actor, dataset=dataset)
    row = {"opened": seq, "dataset": dataset, "name": name, "contract": contract, "account": numbers[0]}
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


def check_amounts(opening: Opening) -> None:
    """Raises ContractError for caps that no account can hold, or labels that do not name accounts one by one."""
    for name, value in (("total", opening.cap), ("delta", opening.delta_cap)):
        if not 0 <= value <= UNITS_MAX:
            raise ContractError(f"the contract's {name} is outside what a ledger can hold")
    if not opening.labels or len(set(opening.labels)) < len(opening.labels):
        raise ContractError("the data set's parts or periods must have names that differ")


def check_terms(connection: Connection, rows: list[Row[Any]], opening: Opening, *, cap_moves: bool = False) -> None:
    """Raises ContractError unless a contract promises what its data set's accounts count; the cap as it now stands.

    Two contracts on one data set share its accounts. With `cap_moves` the cap may differ.
    """
    row = rows[0]
    differing = {
        "the measure": row.measure != str(opening.measure),
        "the terms (protected unit, neighbours, deltas, receipt order, parts, periods, lineage)": texts.read(
            connection, row.terms
        )
        != texts.normal(opening.terms),
        "the parts": [texts.read(connection, one.label) for one in rows] != [*map(texts.normal, opening.labels)],
        "the total": not cap_moves and any(one.cap != opening.cap for one in rows),
        "the delta": row.delta_cap != opening.delta_cap,
    }
    names = [name for name, differs in differing.items() if differs]
    if names:
        total = "; a total is raised or lowered by `parco cap`" if "the total" in names else ""
        raise ContractError(
            f"the data set {opening.dataset!r} has an account on this ledger already, and this contract differs from it"
            f" in {', '.join(names)}: contracts on one data set share one account{total}",
            differs=tuple(names),
        )


def _find(connection: Connection, dataset: str, name: str) -> Signed | None:
    columns = tables.contracts.c
    of_dataset = columns.dataset == texts.find(connection, "dataset", dataset)
    of_name = columns.name == texts.find(connection, "name", name)
    row = connection.execute(select(tables.contracts).where(of_dataset, of_name)).one_or_none()
    if row is None:
        return None
    accounts = {_label(connection, one): one.account for one in accounts_of(connection, row.dataset)}
    text = contract_text(connection, row.contract)
    return Signed(
        accounts=accounts,
        position=row.opened,
        contract=row.contract,
        name=name,
        dataset=dataset,
        text=text,
        ancestors=lineage.ancestors(connection, row.dataset),
    )


def _label(connection: Connection, row: Row[Any]) -> str:
    label = texts.read(connection, row.label)
    if label is None:
        raise VerificationError(f"the label of account {row.account} was removed from the ledger")
    return label
