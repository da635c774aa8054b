"""Whether what a store shows is what its entries add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, Table, func, select

from parco.errors import VerificationError
from parco.ledger.accounts import State, replay
from parco.ledger.entries import Balance
from parco.measure import Measure
from parco.stores import keys, reading, tables, texts
from parco.stores.signing import secret_of

__all__ = ["Shown", "check_kept", "shown", "verify"]


@dataclass(frozen=True)
class Shown:
    """What the tables show of the first `size` entries: everything that could be rebuilt from them.

    `answers` and `nodes` count them. `terms` gives an account's data set, label, terms and measure, `requests` state,
    settle entry, privacy, key and question, `contracts` the entry, data set, name and first account of each contract in
    force, `caps` what a `cap` entry gave an account, `strays` the entry that answered for a head, by its root,
    `schedules` data set, name and end of each, `steps` their questions and the requests that drew them, `refinements`
    the last request that refines an answered one, `corrections` each one's tag, by what it is about and its entry, and
    what a `supersede` puts instead, `recosts` what each added to an account, `ancestors` each data set with each
    account that it descends from, `quotas` the name of a quota and what replaced it, by its entry, `limits` its amount
    for an account and what is used of that, `members` its actors, `streams` the last interactive request on an account.
    Not compared by `check`: the public `keys`, and the sizes of heads that nothing has answered for, which no entry
    knows.
    """

    size: int
    answers: int
    nodes: int
    accounts: tuple[Balance, ...]
    terms: Mapping[int, tuple[str, str, str, str]]
    caps: Mapping[tuple[int, int], int]
    requests: Mapping[int, tuple[str, int | None, bool, str, str]]
    contracts: Mapping[str, tuple[int, str, str, int]]
    strays: Mapping[str, int]
    schedules: Mapping[int, tuple[str, str, int | None]]
    steps: Mapping[tuple[int, int], tuple[str, int | None]]
    refinements: Mapping[int, int]
    corrections: Mapping[tuple[int, int], tuple[str, int | None]]
    recosts: Mapping[tuple[int, int], tuple[int, int]]
    ancestors: frozenset[tuple[str, int]] = frozenset()
    quotas: Mapping[int, tuple[str, int | None]] = field(default_factory=dict)
    limits: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    members: frozenset[tuple[int, str]] = frozenset()
    streams: Mapping[int, int] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    unanswered: tuple[int, ...] = ()

    def check(self, added_up: Shown) -> None:
        """Raises VerificationError naming the first table that differs from what the entries add up to."""
        for name, what in _WORDS.items():
            _require(getattr(self, name) == getattr(added_up, name), what)


_WORDS = {
    "size": "the entries",
    "answers": "the answers",
    "nodes": "the nodes of the tree",
    "accounts": "the accounts",
    "terms": "the terms of accounts",
    "caps": "the list of caps",
    "requests": "the requests",
    "contracts": "the list of signed contracts",
    "strays": "the list of heads that were answered for",
    "schedules": "the schedules",
    "steps": "the steps of schedules",
    "refinements": "the list of refinements",
    "corrections": "the list of corrections",
    "recosts": "the list of recosts",
    "ancestors": "the lineage of data sets",
    "quotas": "the quotas",
    "limits": "the amounts of quotas",
    "members": "the members of quotas",
    "streams": "the list of interactive requests",
}


def verify(connection: Connection) -> State:
    """Returns what the entries add up to, or raises VerificationError at the first thing that disagrees with them."""
    state = replay(reading.bodies(connection))
    texts.read_all(connection)
    shown(connection).check(_added_up(state))
    for number, request in state.requests.items():
        if request.state == "settled":
            reading.stored(connection, number)
    return state


def shown(connection: Connection) -> Shown:
    """Reads the tables; nothing is checked."""
    accounts, requests, contracts, strays = (
        table.c for table in (tables.accounts, tables.requests, tables.contracts, tables.strays)
    )
    balances = select(*(accounts[name] for name in Balance.__dataclass_fields__)).order_by(accounts.account)
    terms = select(accounts.account, accounts.dataset, accounts.label, accounts.terms, accounts.measure)
    made = select(requests.request, requests.state, requests.settled, requests.private, requests.key, requests.question)
    signed = select(contracts.contract, contracts.opened, contracts.dataset, contracts.name, contracts.account)
    lost = connection.execute(select(strays.root, strays.size, strays.recovered).order_by(strays.size)).all()
    return Shown(
        size=connection.scalar(select(func.max(tables.entries.c.seq))) or 0,
        answers=connection.scalar(select(func.count()).select_from(tables.answers)) or 0,
        nodes=connection.scalar(select(func.max(tables.tree.c.size))) or 0,
        accounts=tuple(Balance(*row) for row in connection.execute(balances)),
        terms={number: tuple(fixed) for number, *fixed in connection.execute(terms)},
        caps={(row.seq, row.account): row.cap for row in connection.execute(select(tables.caps))},
        requests={
            number: (state, settled, bool(private), key, question)
            for number, state, settled, private, key, question in connection.execute(made).all()
        },
        contracts={contract: tuple(facts) for contract, *facts in connection.execute(signed)},
        strays={root: entry for root, _, entry in lost if entry is not None},
        schedules={number: tuple(facts) for number, *facts in connection.execute(select(tables.schedules))},
        steps={
            (row.schedule, row.step): (row.question, row.request) for row in connection.execute(select(tables.steps))
        },
        refinements={row.parent: row.request for row in connection.execute(select(tables.refinements))},
        corrections={
            (row.about, row.seq): (row.tag, row.stands) for row in connection.execute(select(tables.corrections))
        },
        recosts={(row.seq, row.account): (row.cost, row.delta) for row in connection.execute(select(tables.recosts))},
        **_governance(connection),
        streams={row.account: row.request for row in connection.execute(select(tables.streams))},
        keys=frozenset(connection.scalars(select(tables.keys.c.key))),
        unanswered=tuple(size for _, size, entry in lost if entry is None),
    )


def _governance(connection: Connection) -> dict[str, Any]:
    def rows(table: Table) -> Sequence[Row[Any]]:
        return connection.execute(select(table)).all()

    return {
        "ancestors": frozenset((row.dataset, row.account) for row in rows(tables.ancestors)),
        "quotas": {row.quota: (row.name, row.replaced) for row in rows(tables.quotas)},
        "limits": {(row.quota, row.account): (row.amount, row.used) for row in rows(tables.quota_amounts)},
        "members": frozenset((row.quota, row.actor) for row in rows(tables.quota_members)),
    }


def check_kept(connection: Connection, *, secrets: bool = True) -> None:
    """Raises VerificationError unless texts, secrets and signing key are those that entries and heads name.

    Without `secrets`, texts alone: for somebody who may not read the others.
    """
    texts.read_all(connection)
    if not secrets:
        return
    for account in connection.scalars(select(tables.accounts.c.account)).all():
        secret_of(connection, account)
    keys.current(connection)


def _added_up(state: State) -> Shown:
    accounts = state.accounts
    return Shown(
        size=state.size,
        nodes=state.size,
        answers=sum(one.state == "settled" for one in state.requests.values()),
        accounts=tuple(account.balance for account in accounts.values()),
        terms={
            number: (one.dataset, one.label, one.terms, str(Measure(one.measure, one.order)))
            for number, one in accounts.items()
        },
        caps=dict(state.caps),
        requests={
            number: (one.state, one.settled, one.reserve.private, one.reserve.key, one.reserve.question)
            for number, one in state.requests.items()
        },
        contracts={
            contract: (state.names[contract][0], accounts[own[0]].dataset, state.names[contract][1], own[0])
            for contract, own in state.current.items()
        },
        strays=dict(state.strays),
        schedules={
            number: (accounts[state.contracts[entry.contract][0]].dataset, entry.name, ended)
            for number, (entry, ended) in state.schedules.items()
        },
        steps=dict(state.steps),
        refinements=dict(state.refinements),
        corrections=dict(state.corrections),
        recosts=dict(state.added),
        ancestors=frozenset((data, account) for data, own in state.ancestors.items() for account in own),
        quotas={number: (share.quota.name, share.replaced) for number, share in state.shares.items()},
        limits={
            (number, row.account): (row.cap, share.used[row.account])
            for number, share in state.shares.items()
            for row in share.quota.accounts
        },
        members=frozenset((number, actor) for number, share in state.shares.items() for actor in share.quota.members),
        streams=dict(state.streams),
    )


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise VerificationError(f"{what} of this ledger differ from what its entries add up to")
