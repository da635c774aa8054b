"""Whether what a store shows is what its entries add up to."""

from __future__ import annotations

from sqlalchemy import Connection, func, inspect, select

from parco.errors import VerificationError
from parco.ledger.accounts import State, replay
from parco.ledger.entries import Balance
from parco.stores import reading, tables, texts

__all__ = ["verify"]


def verify(connection: Connection) -> State:
    """Returns what the entries add up to, or raises VerificationError at the first thing that disagrees with them."""
    state = replay(reading.bodies(connection))
    texts.read_all(connection)
    _check_accounts(connection, state)
    _check_requests(connection, state)
    rows = connection.execute(select(tables.contracts.c.contract, tables.contracts.c.account))
    first = {contract: accounts[0] for contract, accounts in state.current.items()}
    _require({row.contract: row.account for row in rows} == first, "the list of signed contracts")
    return state


def _check_accounts(connection: Connection, state: State) -> None:
    columns = [tables.accounts.c[name] for name in Balance.__dataclass_fields__]
    rows = connection.execute(select(*columns).order_by(tables.accounts.c.account))
    shown = [Balance(*row) for row in rows]
    _require(shown == [account.balance for account in state.accounts.values()], "the accounts")
    caps = {}
    if inspect(connection).has_table(tables.caps.name):
        caps = {(row.seq, row.account): row.cap for row in connection.execute(select(tables.caps))}
    _require(caps == dict(state.caps), "the list of caps")


def _check_requests(connection: Connection, state: State) -> None:
    columns = tables.requests.c
    rows = connection.execute(select(columns.request, columns.state, columns.settled, columns.private)).all()
    shown = {row.request: (row.state, row.settled, bool(row.private)) for row in rows}
    added_up = {number: (one.state, one.settled, one.reserve.private) for number, one in state.requests.items()}
    _require(shown == added_up, "the requests")
    settled = [number for number, request in state.requests.items() if request.state == "settled"]
    for number in settled:
        reading.stored(connection, number)
    answers = connection.scalar(select(func.count()).select_from(tables.answers))
    _require(answers == len(settled), "the answers")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise VerificationError(f"{what} of this ledger differ from what its entries add up to")
