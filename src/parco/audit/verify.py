"""The named checks of a ledger (docs/ledger-format.md lists them): the first that fails is told, with its entry.

The entries go through the same code as an exported ledger's (`offline`, `offline_life`), which shares none with
spending: costs are worked out anew from the facts of each release, accounts from the costs. Here they are compared with
what the store shows beside them: its tables, its tree, its texts and secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from parco.audit import offline, offline_life
from parco.audit.estimates import check_estimates, check_stops
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


@dataclass
class _Quota:
    """A quota: its actors, its amount for each account, and what their requests took of it until it was replaced."""

    name: str
    members: set[str]
    amounts: dict[int, int]
    used: dict[int, int] = field(default_factory=dict)
    replaced: int | None = None

    def take(self, actor: str, charges: Iterable[Sequence[int]]) -> bool:
        """Counts a request's charges; whether there was room."""
        fits = True
        for number, cost, _ in charges if actor in self.members and self.replaced is None else ():
            self.used[number] = self.used.get(number, 0) + cost
            fits = fits and (number not in self.amounts or cost <= 0 or self.used[number] <= self.amounts[number])
        return fits


class _Ledger(offline_life.Ledger):
    """The checks of an exported ledger, with a faster library's Ed25519, and what else the tables repeat."""

    verify = staticmethod(signature_holds)

    def __init__(self, outside: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(outside)
        self.named = dict[int, tuple[str, str]]()  # key and question of a request
        self.names = dict[str, tuple[int, str]]()  # entry and name of a contract
        self.corrections = dict[tuple[int, int], tuple[str, int | None]]()  # tag, and what stands instead
        self.recosts = dict[tuple[int, int], tuple[int, int]]()  # what each added to an account
        self.quotas = dict[int, _Quota]()  # by their entries
        self.instead = dict[int, int]()  # what stands in the place of an answer: itself, another, 0 for nothing

    @property
    def underpriced(self) -> tuple[int, ...]:
        """The releases that cost more than they were charged, recosts counted."""
        return tuple(sorted({number for number, _ in self.owed}))

    def _open(self, found: re.Match[str]) -> None:
        super()._open(found)
        self.names[found["contract"]] = (self.size + 1, found["name"])

    def _revise(self, found: re.Match[str]) -> None:
        super()._revise(found)
        self.names[found["contract"]] = (self.size + 1, self.names[found["revised"]][1])

    def _reserve(self, found: re.Match[str]) -> None:
        super()._reserve(found)
        self.named[self.size + 1] = (found["key"], found["question"])
        for quota in self.quotas.values():
            fits = quota.take(found["actor"], self.rows(found["charges"]))
            self.need(fits, "shared", "a quota of its actor has no room for its charge")

    def _quota(self, found: re.Match[str]) -> None:
        super()._quota(found)
        for old in self.quotas.values():
            if old.name == found["name"] and old.replaced is None:
                old.replaced = self.size + 1
        members, amounts = set(json.loads(found["members"])), dict(self.rows(found["accounts"], least=0))
        quota = self.quotas[self.size + 1] = _Quota(found["name"], members, amounts)
        for state, _, actor, charges, *_ in self.requests.values():
            if state != "void":
                quota.take(actor, charges)

    def _void(self, found: re.Match[str]) -> None:
        super()._void(found)
        _, _, actor, charges, *_ = self.requests[int(found["request"])]
        for quota in self.quotas.values():
            quota.take(actor, [(number, -cost, 0) for number, cost, _ in charges])

    def _stop(self, found: re.Match[str]) -> None:
        held = self.requests.get(int(found["request"]), (None,) * 4)[3]
        super()._stop(found)
        paid = {number: cost for number, cost, _ in self.rows(found["charges"])}
        for quota in self.quotas.values():
            quota.take(found["actor"], [(number, paid[number] - cost, 0) for number, cost, _ in held])

    def _amend(self, found: re.Match[str]) -> None:
        super()._amend(found)
        self.corrections[int(found["entry"]), self.size + 1] = (found["tag"], None)

    _flag = _amend

    def _supersede(self, found: re.Match[str]) -> None:
        super()._supersede(found)
        number, by = int(found["request"]), int(found["by"] or 0)
        seen, after = {number}, by
        while by != number and after not in (0, *seen) and self.instead.get(after, after) != after:
            seen.add(after)
            after = self.instead[after]
        told = "that answer stands there already, or goes back to the one it stands for"
        self.need(self.instead.get(number, number) != by and (by == number or after not in seen), "amendments", told)
        self.instead[number] = by
        self.corrections[number, self.size + 1] = ("supersede", by)

    def _recost(self, found: re.Match[str]) -> None:
        super()._recost(found)
        corrects = found["corrects"]
        known = corrects is None or any(seq == int(corrects) for seq, _ in self.recosts)
        self.need(known, "amendments", "what it corrects is no recost")
        for number, _, *_ in json.loads(found["totals"]):
            self.corrections[number, self.size + 1] = ("recost", None)
        self.recosts |= {(self.size + 1, row[0]): (row[1], row[2]) for row in json.loads(found["added"])}


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
        _, *others = dict.fromkeys(str(terms[0]) for terms in self.terms.values())
        silent = [
            number for number, terms in self.terms.items() if terms[0] in others and terms[0] not in self.ancestors
        ]
        if silent:
            text = f"nobody said whether the data set of account {silent[0]} shares rows with those signed before"
            raise CheckError("strict", 0, text)
        for number, request in self.requests.items():
            if request[0] in ("reserved", "started"):
                raise CheckError("strict", number, "it is still open: it was neither settled nor forfeited")


def verify(store: Store, *, heads: Sequence[Head] = (), releases: Sequence[object] = (), strict: bool = False) -> bool:
    """For every ledger on which all checks hold, returns; else VerificationError, with `check` and `entry` as facts.

    Returns True, or False where the database's role may not read the data sets' secrets and the signing key, which were
    then not looked at; all else holds.

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
        check_estimates(store, [one for one in ledger.refinements.values() if ledger.requests[one][0] == "settled"])
        check_stops(store, sorted(ledger.stopped))
        for receipt, rows in receipts:
            check_release(store, ledger, receipt, rows)
    except CheckError as error:
        raise _fault(error, affected=ledger.underpriced if error.args[0] == "priced" else ()) from None
    with _named("kept"):
        whole = store.check_kept()
    if strict:
        with _named("strict"):
            store.check_sound()
    return whole


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
        schedules=ledger.schedules,
        steps={place: (facts[0], request) for place, (facts, request) in ledger.steps.items()},
        refinements=ledger.refinements,
        corrections=ledger.corrections,
        recosts=ledger.recosts,
        ancestors=frozenset((dataset, account) for dataset, own in ledger.ancestors.items() for account in own),
        quotas={entry: (quota.name, quota.replaced) for entry, quota in ledger.quotas.items()},
        limits={
            (entry, number): (amount, quota.used.get(number, 0))
            for entry, quota in ledger.quotas.items()
            for number, amount in quota.amounts.items()
        },
        members=frozenset((entry, actor) for entry, quota in ledger.quotas.items() for actor in quota.members),
        streams=ledger.streams,
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


def _fault(error: CheckError, *, affected: tuple[int, ...]) -> VerificationError:
    check, entry, text = error.args
    place = f"entry {entry}: " if entry else ""
    more = f" ({len(affected)} releases cost more than they were charged)" if affected else ""
    return VerificationError(f"{check}: {place}{text}{more}", check=check, entry=entry, affected=affected)
