"""Whether a release that somebody holds says what the ledger says: every figure of its receipt, claims included."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from parco.audit.offline import CheckError, Ledger, salted, walk
from parco.contract.contract import Contract
from parco.errors import RequestError, VerificationError
from parco.ledger.proofs import Inclusion, inclusion_of
from parco.measure import COST_UNIT, decimal_text
from parco.session.receipt import receipt_of
from parco.stores.store import Store

__all__ = ["check_release", "corrections_of", "proofs_of", "releases_of"]


def releases_of(tree: object) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]] | None]]:
    """Every receipt in what `parco release --json` printed, with its rows; None for a part of another answer."""
    for record in walk(tree):
        receipt = record.get("receipt")
        if isinstance(receipt, dict) and "evidence" in receipt:
            yield receipt, record.get("rows")
        for part in record["parts"] if isinstance(record.get("parts"), list) else ():
            if isinstance(part, dict) and "evidence" in part:
                yield part, None


def proofs_of(tree: object) -> list[Inclusion]:
    """The proofs in what `parco release --json` printed; VerificationError if there is none, or one does not hold."""
    proofs = [inclusion_of(_evidence(receipt).get("proof")) for receipt, _ in releases_of(tree)]
    if not proofs or not all(proof.holds for proof in proofs):
        raise VerificationError("a release comes without a proof, or its proof does not show what it says")
    return proofs


def _evidence(receipt: Mapping[str, Any]) -> dict[str, Any]:
    evidence = receipt["evidence"]
    return evidence if isinstance(evidence, dict) else {}


def check_release(store: Store, ledger: Ledger, receipt: Mapping[str, Any], rows: list[dict[str, Any]] | None) -> None:
    """Raises CheckError unless a receipt, and the rows beside it, say what the ledger at hand says of that release."""
    try:
        differing = _differing(store, ledger, receipt, rows)
    except (KeyError, TypeError, ValueError, AttributeError, RequestError):
        differing = ["a field that is missing, or is not what it should be"]
    if differing:
        position = receipt.get("position")
        place = position if isinstance(position, int) else 0
        raise CheckError("released", place, f"the ledger says otherwise of: {', '.join(differing)}")


def _differing(
    store: Store, ledger: Ledger, receipt: Mapping[str, Any], rows: list[dict[str, Any]] | None
) -> list[str]:
    """The names of what differs, as far as it can be read."""
    evidence = receipt["evidence"]
    found = ledger.check_proof(evidence["proof"])
    if found is None or found["answer"] != salted(evidence["salt"], evidence["answer"]):
        return ["the answer"]
    if rows is not None:
        ledger.check_release({"receipt": receipt, "rows": rows})
    if evidence["proof"]["head"]["root"] in ledger.strays:
        return []  # of a past that was lost and charged again: there is nothing here to compare it with
    stored = store.stored(int(found["request"]))
    question = store.text(stored.reserve.question)
    name = Contract.from_text(store.contract_text(stored.reserve.contract)).data.name
    # Question and limits are told in words, which follow from the canonical text; they are taken as they are.
    mine = receipt_of(
        store,
        stored,
        question=receipt["question"],
        limits=receipt["limits"],
        # An erased question has taken the version with it.
        version=receipt["version"] if question is None else json.loads(question)["version"],
        labels={row.account: row.label for row in store.accounts() if row.name == name},
        # A receipt is compared with what it could know when it was made: one made before a correction still holds.
        until=receipt["since"]["until"] if "since" in receipt else stored.position,
    ).record()
    names = (name for name in mine.keys() | receipt.keys() if name != "since")
    differing = sorted(name for name in names if mine.get(name) != receipt.get(name))
    return differing if _agree(mine.get("since"), receipt.get("since")) else [*differing, "since"]


def _agree(mine: object, theirs: object) -> bool:
    """Whether two records of corrections are the same; a text that was erased here agrees with any."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        names = mine.keys() | theirs.keys()
        return all(
            _agree(mine.get(name), theirs.get(name)) or (name in _TEXTS and mine.get(name) is None) for name in names
        )
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(_agree, mine, theirs))
    return mine == theirs


_TEXTS = ("actor", "reason", "text")


def corrections_of(store: Store, receipt: Mapping[str, Any]) -> list[str]:
    """What corrected a release since somebody was given its receipt, in words; nothing where it stands as it was.

    Nor of a release of a past that was lost: another may have its number here.
    """
    number, position = receipt["release"], receipt["position"]
    try:
        stored, entry = store.stored(number), store.evidence(number, position).proof.entry
    except VerificationError:
        return []
    if entry.decode() != receipt["evidence"]["proof"]["entry"]:
        return []
    told = [f"release {number}: {one.in_words()}" for one in store.corrections(number)]
    since = store.added_since(after=position)
    for charge in stored.charges:
        added, _ = since.get(charge.account, (0, 0))
        if added:
            told.append(f"release {number}: recosts since added {decimal_text(added * COST_UNIT)} to its account")
    return told
