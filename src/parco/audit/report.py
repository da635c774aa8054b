"""Whether a frozen report holds: by itself, as a stranger checks it, and against the ledger that it was made from."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from parco.audit import offline_life
from parco.audit.offline import CheckError
from parco.errors import VerificationError
from parco.reports import frozen
from parco.reports.frozen import Entries, Frozen
from parco.stores.keys import signature_holds
from parco.stores.store import Store

__all__ = ["check_report"]


class _Ledger(offline_life.Ledger):
    """The offline checks, with a faster library's Ed25519."""

    verify = staticmethod(signature_holds)


def check_report(data: bytes, *, store: Store | None = None) -> list[str]:
    """For every frozen report on which all checks hold, returns remarks on it; else VerificationError.

    By itself: its bytes are canonical and signed, its lines are a ledger up to its head, its texts are those that the
    entries name, and its claims follow from its accounts and contracts, worked out anew. With a `store`: that ledger
    gives the same bytes at the same head today. Remarks say what was not compared, and what came after.
    """
    report = frozen.read(data)
    try:
        ledger = _Ledger()
        ledger.check_report(report.record)
    except CheckError as error:
        check, entry, text = error.args
        raise VerificationError(
            f"{check}: {f'entry {entry}: ' if entry else ''}{text}", check=check, entry=entry
        ) from None
    remarks = list(_check_claims(report))
    if store is not None:
        _check_ledger(report, store)
        remarks += _corrected(report, store)
    return remarks


def _check_claims(report: Frozen) -> Iterator[str]:
    record, entries = report.record, Entries.of(report.lines)
    texts = {digest: text["text"] for digest, text in record["texts"].items()}
    other = record["parco"] != version("parco")
    if frozen.claimed(entries, texts) != record["data"]:
        by = f", which was made by parco {record['parco']}: check it with that version" if other else ""
        raise VerificationError(f"claimed: the claims are not those that follow from the report's accounts{by}")
    if record["source"] != frozen.source_digest():
        yield f"It was made by other source code than this, of parco {record['parco']}."


def _check_ledger(report: Frozen, store: Store) -> None:
    """Whether the ledger gives these bytes; of the program that made them, only the claims are compared."""
    made_by = {name: report.record[name] for name in ("parco", "source")}
    today = dict(frozen.read(frozen.rebuilt(store, report)).record) | made_by
    differing = sorted(name for name, value in today.items() if value != report.record[name])
    if differing:
        raise VerificationError(
            f"rebuilt: this ledger gives another report at that head: {', '.join(differing)} differ"
        )


def _corrected(report: Frozen, store: Store) -> Iterator[str]:
    """What corrected an entry of the report after it was frozen, by what, by whom and why."""
    size = report.head.size
    for row in store.history():
        if row.seq <= size:
            yield from (f"Entry {row.seq}: {one.in_words()}." for one in row.corrections if one.entry > size)
