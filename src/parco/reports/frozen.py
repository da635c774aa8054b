"""The frozen report: what may be claimed, with all it was worked out from, in bytes that never change.

It holds the claims in numbers and in words, the accounts and contracts that they follow from, the texts that entries
name, the digest of the program's source, and the whole ledger as exported, up to a signed head. It has no time and
nothing random in it, so that the same ledger gives the same bytes at the same head, whenever it is asked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from parco import canonical
from parco.contract.contract import Contract
from parco.errors import RequestError, VerificationError
from parco.ledger.accounts import State, replay
from parco.ledger.entries import Open, decode
from parco.ledger.heads import Head, head_of
from parco.measure import Measure
from parco.privacy.claim import Claim
from parco.session.receipt import claims_to_date
from parco.stores.keys import REPORT_LABEL
from parco.stores.records import AccountRow
from parco.stores.store import Store

__all__ = ["Entries", "Frozen", "claimed", "freeze", "read", "rebuilt", "source_digest", "statement"]

FORMAT = 1
_DIGEST = re.compile(b'(?<=")[0-9a-f]{64}(?=")')
_FIELDS = frozenset({"format", "tag", "parco", "source", "head", "data", "texts", "lines", "key", "signature"})


@dataclass(frozen=True)
class Frozen:
    """A frozen report as read: `record`, the tree that its bytes encode. Reading checks its form and nothing else."""

    record: Mapping[str, Any]

    @property
    def head(self) -> Head:
        """The head that it was frozen at."""
        return head_of(self.record["head"])

    @property
    def lines(self) -> list[bytes]:
        """The ledger up to there, as exported."""
        return [line.encode() for line in self.record["lines"]]

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return canonical.encode(self.record)


@dataclass(frozen=True)
class Entries:
    """What the entries of an export add up to, the cap that each account was opened with, and the texts they name.

    `named` leaves out idempotency keys and answers: the first are nobody's business, the second stand in the export.
    """

    state: State
    caps: Mapping[int, int]
    named: frozenset[str]

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> Entries:
        """For every export, returns what its entries say, or raises VerificationError."""
        bodies = [line for line in lines if not line.endswith((b'"tag":"head"}', b'"tag":"answer"}'))]
        caps: dict[int, int] = {}
        named = set[str]()
        for body in bodies:
            entry = decode(body)
            if isinstance(entry, Open):
                caps |= {one.account: one.cap for one in entry.accounts if one.account not in caps}
            unsaid = {getattr(entry, name, "") for name in ("key", "answer")}
            named |= {digest.decode() for digest in _DIGEST.findall(body)} - unsaid
        return cls(replay(bodies), caps, frozenset(named))

    @property
    def private(self) -> bool:
        """Whether the noise of every release came from the kernel."""
        return all(request.reserve.private for request in self.state.requests.values())


def freeze(store: Store) -> bytes:
    """For every ledger of private releases, returns its frozen report at the last head, or raises RequestError.

    Canonical JSON, signed by the key that signed the head, over `statement`.
    """
    head = store.head()
    record = _record(store, head)
    return canonical.encode(record | store.sign_report(head, statement(record)))


def rebuilt(store: Store, report: Frozen) -> bytes:
    """The bytes that the ledger gives at the report's head today, under the report's own signature.

    Texts that were erased since are taken from the report, whose digests the entries hold.
    """
    head = report.head
    if store.head().size < head.size:
        raise VerificationError(f"the report was frozen at entry {head.size}, which this ledger does not have")
    signature = {name: report.record[name] for name in ("key", "signature")}
    return canonical.encode(_record(store, head, kept=report.record["texts"]) | signature)


def read(data: bytes) -> Frozen:
    """For every report that `freeze` wrote, returns it, or raises VerificationError."""
    record = canonical.decode(data)
    if not isinstance(record, dict) or record.get("tag") != "report" or record.get("format") != FORMAT:
        raise VerificationError("this is no frozen report of a format that this version reads")
    if record.keys() != _FIELDS:
        raise VerificationError("a frozen report has a field too many or too few")
    return Frozen(record)


def statement(record: Mapping[str, Any]) -> bytes:
    """The bytes that are signed: the report without its signature, behind a label of their own."""
    return REPORT_LABEL + canonical.encode({name: value for name, value in record.items() if name != "signature"})


def claimed(ledger: Entries, texts: Mapping[str, str]) -> list[dict[str, object]]:
    """For each data set of a ledger, what may be claimed of it, and the accounts and contracts that this follows from.

    `texts` gives the texts that the entries name. Raises VerificationError where one that a claim needs is missing.
    """
    datasets: dict[str, list[AccountRow]] = {}
    for row in _account_rows(ledger, texts):
        datasets.setdefault(row.name, []).append(row)
    return [_of_dataset(ledger.state, texts, rows) for rows in datasets.values()]


def source_digest() -> str:
    """SHA-256 over the names and contents of the program's own source files, in the order of their names."""
    whole = hashlib.sha256()
    for name, content in sorted(_sources(files("parco"), "")):
        whole.update(f"{name}\x00{len(content)}\x00".encode() + content)
    return whole.hexdigest()


def _sources(folder: Traversable, prefix: str) -> Iterable[tuple[str, bytes]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _sources(one, f"{prefix}{one.name}/")
        elif one.name.endswith(".py"):
            yield f"{prefix}{one.name}", one.read_bytes()


def _record(store: Store, head: Head, kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    lines = [line.decode() for line in store.export(until=head.size)]
    ledger = Entries.of(line.encode() for line in lines)
    if not ledger.private:
        raise RequestError("releases with noise from a tape are not private: no claim is made of this ledger")
    there = {**(kept or {}), **store.salted_texts()}
    texts = {digest: there[digest] for digest in ledger.named if digest in there}
    return {
        "format": FORMAT,
        "tag": "report",
        "parco": version("parco"),
        "source": source_digest(),
        "head": head.record(),
        "data": claimed(ledger, {digest: text["text"] for digest, text in texts.items()}),
        "texts": texts,
        "lines": lines,
        "key": head.key,
    }


def _of_dataset(state: State, texts: Mapping[str, str], rows: list[AccountRow]) -> dict[str, object]:
    numbers = tuple(row.account for row in rows)
    digests = [contract for contract, own in state.current.items() if own == numbers]
    # The one that was signed or revised last speaks for all: they share everything that a claim follows from.
    latest = max(digests, key=lambda digest: state.names[digest][0])
    contract = Contract.from_text(_text(texts, latest))
    claims = claims_to_date(contract, *rows)
    if contract.unit.period is not None:
        claims += claims_to_date(contract, *rows, all_periods=True)
    return {
        "name": rows[0].name,
        "accounts": [list(vars(state.accounts[number].balance).values()) for number in numbers],
        "labels": [row.label for row in rows],
        "fixed_caps": [row.fixed_cap for row in rows],
        "contracts": sorted(digests),
        "contract": latest,
        "claims": [_told(claim) for claim in claims],
        "unprotected": contract.unprotected_words,
    }


def _told(claim: Claim) -> dict[str, object]:
    """A claim in numbers, and in the words of whom it protects, what it says, and what must be said beside it."""
    words = {"protected": claim.context.in_words(), "words": claim.statement(), "caveats": claim.caveats()}
    return claim.record() | words


def _account_rows(ledger: Entries, texts: Mapping[str, str]) -> Iterable[AccountRow]:
    for account in ledger.state.accounts.values():
        moved = [cap for (_, number), cap in ledger.state.caps.items() if number == account.account]
        first = ledger.caps[account.account]
        held = account.excess == 0 and all(cap <= first for cap in moved)
        yield AccountRow(
            name=_text(texts, account.dataset),
            label=_text(texts, account.label),
            measure=Measure(account.measure, account.order),
            fixed_cap=first if held else None,
            **vars(account.balance),
        )


def _text(texts: Mapping[str, str], digest: str) -> str:
    if digest not in texts:
        raise VerificationError("a text that a claim follows from is missing: the name of a data set, or a contract")
    return texts[digest]
