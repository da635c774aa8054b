"""The named checks of a ledger (docs/ledger-format.md lists them): the first that fails is told, with its entry.

The entries go through the same code as an exported ledger's (`offline`), which shares none with spending: costs are
worked out anew from the facts of each release, accounts from the costs. Here they are compared with what the store
shows beside them: its tables, its tree, its texts and secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from parco.audit import offline
from parco.audit.offline import CheckError
from parco.audit.releases import check_release, proofs_of, releases_of
from parco.errors import VerificationError
from parco.ledger.entries import Balance
from parco.ledger.heads import Head
from parco.measure import Measure
from parco.stores.keys import signature_holds
from parco.stores.store import Store
from parco.stores.verify import Shown

__all__ = ["verify"]


class _Ledger(offline.Ledger):
    """The checks of an exported ledger, with a faster library's Ed25519, and what else the tables repeat."""

    verify = staticmethod(signature_holds)

    def __init__(self, outside: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(outside)
        self.named = dict[int, tuple[str, str]]()  # key and question of a request
        self.names = dict[str, tuple[int, str]]()  # entry and name of a contract

    def _open(self, found: re.Match[str]) -> None:
        super()._open(found)
        self.names[found["contract"]] = (self.size + 1, found["name"])

    def _revise(self, found: re.Match[str]) -> None:
        super()._revise(found)
        self.names[found["contract"]] = (self.size + 1, self.names[found["revised"]][1])

    def _reserve(self, found: re.Match[str]) -> None:
        super()._reserve(found)
        self.named[self.size + 1] = (found["key"], found["question"])


class _StrictLedger(_Ledger):
    """Also each head's own signature and accounts, and what is odd without being wrong."""

    def __init__(self, outside: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(outside)
        self.time = 0

    def _head(self, found: re.Match[str]) -> None:
        super()._head(found)
        accounts = offline.sha256(offline.ENCODE(list(self.accounts.values())).encode()).hex()
        self.need(found["accounts"] == accounts, "balanced", "the accounts are not those that its head signed")
        self.need(self.signed(json.loads(found.string)), "signed", "its head has a false signature")

    def _reserve(self, found: re.Match[str]) -> None:
        super()._reserve(found)
        self.need(found["private"] == "1", "strict", "its noise came from a tape: it is not private")
        self.need(int(found["time"]) >= self.time, "strict", "its time is before that of an earlier request")
        self.time = int(found["time"])

    def end(self) -> None:
        super().end()
        for number, request in self.requests.items():
            if request[0] in ("reserved", "started"):
                raise CheckError("strict", number, "it is still open: it was neither settled nor forfeited")


def verify(store: Store, *, heads: Sequence[Head] = (), releases: Sequence[object] = (), strict: bool = False) -> None:
    """For every ledger on which all checks hold, returns; else VerificationError, with `check` and `entry` as facts.

    heads: seen outside; the ledger has to extend them, as well as the file of heads beside it. releases: records as
    `Release.record` makes them, which have to say what the ledger does. strict: also every signature, the database's
    check of its pages, and what is odd without being wrong (open requests, times that run backwards, releases that are
    not private).
    """
    shown, mark = store.shown(), store.mark()
    receipts = list(releases_of(list(releases)))
    seen = [*heads, *([mark] if mark else []), *(proof.head for one in releases for proof in proofs_of(one))]
    ledger = (_StrictLedger if strict else _Ledger)([head.record() for head in seen])
    try:
        _feed(store, ledger, shown.size)
        if shown.size:
            ledger.end()
        _check_tables(shown, ledger)
        for receipt, rows in receipts:
            check_release(store, ledger, receipt, rows)
    except CheckError as error:
        raise _fault(error, affected=_underpriced(store) if error.args[0] == "priced" else ()) from None
    with _named("kept"):
        store.check_kept()
    if strict:
        with _named("strict"):
            store.check_sound()


def _feed(store: Store, ledger: _Ledger, size: int) -> None:
    """Every line, and beside it the row of the tree that its entry completed."""
    rows = store.tree(size)
    for line in store.export(until=size):
        before = ledger.size
        ledger.feed(line)
        if ledger.size > before and next(rows, None) != (ledger.size, b"".join(ledger.made)):
            raise CheckError("rooted", ledger.size, "the tree of this ledger has other nodes for it")


def _check_tables(shown: Shown, ledger: _Ledger) -> None:
    """The tables that could be rebuilt from the entries, against what the entries add up to."""
    added_up = Shown(
        size=ledger.size,
        answers=sum(settled is not None for _, settled, *_ in ledger.requests.values()),
        nodes=ledger.size,
        accounts=tuple(Balance(*account) for account in ledger.accounts.values()),
        terms={number: _terms(facts) for number, facts in ledger.terms.items()},
        caps=ledger.caps,
        requests={
            number: (state, settled, private == "1", *ledger.named[number])
            for number, (state, settled, _, _, private, *_) in ledger.requests.items()
        },
        contracts={
            contract: (ledger.names[contract][0], str(ledger.terms[own[0]][0]), ledger.names[contract][1], own[0])
            for contract, own in ledger.contracts.items()
        },
        strays=ledger.strays,
    )
    with _named("tables"):
        shown.check(added_up)
    if shown.keys != {key for _, key in ledger.keys}:
        raise CheckError("tables", 0, "the keys of this ledger are not those that signed its heads")
    for size in shown.unanswered:
        raise CheckError("witnessed", size, "a head seen outside is not extended, and was not answered for")


@contextmanager
def _named(check: str) -> Iterator[None]:
    """Gives the store's own findings the name of a check."""
    try:
        yield
    except VerificationError as error:
        raise VerificationError(f"{check}: {error}", check=check, **{"entry": 0, **error.facts}) from None


def _terms(facts: Sequence[str | None]) -> tuple[str, str, str, str]:
    dataset, measure, order, _, terms, label = facts
    exact = None if order is None else Fraction(*json.loads(order))
    return str(dataset), str(label), str(terms), str(Measure(str(measure), exact))


def _underpriced(store: Store) -> tuple[int, ...]:
    """Every request that is charged less than its facts cost, by the checker's own reckoning."""
    measures: dict[int, tuple[str, str | None]] = {}
    found = []
    for line in store.entries():
        fields = offline.read(line, 0)
        if fields["tag"] == "open":
            rows = json.loads(fields["accounts"])
            measures |= {row[0]: (fields["measure"], fields["order"]) for row in rows}
        elif fields["tag"] in ("reserve", "stop"):
            charges = json.loads(fields["charges"])
            exact = [offline.price(*measures[row[0]], fields) for row in charges]
            if any(price is None or row[1] < price for row, price in zip(charges, exact, strict=True)):
                found.append(int(fields["request" if fields["tag"] == "stop" else "seq"]))
    return tuple(found)


def _fault(error: CheckError, *, affected: tuple[int, ...]) -> VerificationError:
    check, entry, text = error.args
    place = f"entry {entry}: " if entry else ""
    more = f" ({len(affected)} releases cost more than they were charged)" if affected else ""
    return VerificationError(f"{check}: {place}{text}{more}", check=check, entry=entry, affected=affected)
