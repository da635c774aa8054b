"""The test vectors of docs/ledger-format.md, worked out anew: a tiny ledger, its tree, a head, two proofs.

python -m tests.audit.vectors prints them. The key's seed is 00 01 … 1f; digests in the entries are those of their own
names.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from typing import Any

from parco.ledger import merkle
from parco.ledger.entries import (
    Balance,
    Capped,
    Charge,
    Derive,
    Entry,
    MechanismFacts,
    Open,
    Opened,
    Quota,
    Refine,
    Reserve,
    SensitivityFacts,
    Start,
    encode,
    secret_commitment,
)
from parco.ledger.heads import Head, accounts_digest
from parco.ledger.proofs import Consistency, Inclusion
from parco.stores.keys import SigningKey
from tests.ledger.build import mark

SEED = bytes(range(32))


def entries() -> list[Entry]:
    """Signed, reserved, started."""
    return [
        Open(
            seq=1,
            actor=mark("ana"),
            time=5,
            contract=mark("contract"),
            name=mark("name"),
            dataset=mark("dataset"),
            terms=mark("terms"),
            measure="gdp",
            order=None,
            accounts=(Opened(1, mark("whole"), 10**15, 0),),
            secret=secret_commitment(SEED),
        ),
        Reserve(
            seq=2,
            actor=mark("ana"),
            time=6,
            key=mark("key"),
            question=mark("question"),
            contract=mark("contract"),
            fresh=False,
            private=True,
            mechanism=MechanismFacts("gaussian", Fraction(7, 2), Fraction(1, 4)),
            sensitivity=SensitivityFacts(Fraction(1), Fraction(1)),
            cells=12,
            # 1 / (7/2)^2 = 4/49, rounded up.
            charges=(Charge(1, -(-4 * 10**15 // 49), 0),),
        ),
        Start(seq=3, actor=mark("ana"), request=2),
    ]


def refined() -> Refine:
    """What would stand as entry 5, behind the settlement of request 2."""
    _, first, _ = entries()
    assert isinstance(first, Reserve)
    return Refine(
        seq=5,
        actor=first.actor,
        time=7,
        key=mark("another key"),
        question=first.question,
        contract=first.contract,
        parent=first.seq,
        private=True,
        mechanism=MechanismFacts("gaussian", Fraction(2), Fraction(1, 4)),
        sensitivity=first.sensitivity,
        cells=first.cells,
        charges=(Charge(1, 10**15 // 4 - first.charges[0].cost, 0),),
    )


def vectors() -> str:
    """The section as it stands in the document."""
    bodies, key = [encode(entry) for entry in entries()], SigningKey(SEED)
    leaves = [merkle.leaf(body) for body in bodies]

    def node(level: int, index: int) -> bytes:
        return leaves[index] if level == 0 else merkle.parent(leaves[2 * index], leaves[2 * index + 1])

    cost = -(-4 * 10**15 // 49)
    heads: list[Head] = []
    for size, reserved in ((1, 0), (3, cost)):
        head = Head(
            size=size,
            root=merkle.root(size, node).hex(),
            accounts=accounts_digest_of(reserved),
            previous=heads[-1].digest if heads else None,
            key=key.public,
        )
        heads.append(head.signed(key.sign(head.statement)))
    first, last = heads
    inclusion = Inclusion(2, bodies[1], last, tuple(merkle.inclusion_path(1, 3, node)))
    consistency = Consistency(first, last, tuple(merkle.consistency_path(1, 3, node)))
    assert inclusion.holds
    assert consistency.holds
    export = [bodies[0], first.line, bodies[1], bodies[2], last.line]
    parts = [
        "An export of three entries under two heads; the private key is the bytes 00 to 1f.",
        "The cost in `gdp` is 1 / (7/2)^2 = 4/49, which is 0.081632653061225 rounded up.",
        "",
        *(f"    {line.decode()}" for line in export),
        "",
        "Leaf hashes of the entries, and the node over the first two:",
        "",
        *(f"    {one.hex()}" for one in [*leaves, node(1, 0)]),
        "",
        "The second head's signature is over `parco/head/1`, a byte 00 and its line without `signature`.",
        f"Its accounts are `[[1,{10**15},0,{cost},0,0,0,0,0]]`. The paths of entry 2, and from the first head:",
        "",
        f"    {json.dumps({'path': inclusion.record()['path']})}",
        f"    {json.dumps({'path': consistency.record()['path']})}",
        "",
        "What refines that answer once it is settled by entry 4, at scale 2: 1/4 is 0.25, less 0.081632653061225.",
        "",
        f"    {encode(refined()).decode()}",
    ]
    return "\n".join(parts)


def accounts_digest_of(reserved: int) -> str:
    """Of the one account, with this much reserved."""
    return accounts_digest([Balance(1, 10**15, 0, reserved, 0, 0, 0, 0, 0)])


def governing() -> str:
    """What somebody decides about data sets and actors: a lineage, a quota, and the same quota lifted."""
    facts: dict[str, Any] = {"actor": mark("ana"), "reason": mark("reason")}
    members = tuple(sorted((mark("ana"), mark("bob"))))
    shared = {**facts, "name": mark("team"), "members": members}
    made: list[Entry] = [
        Derive(seq=2, time=6, dataset=mark("view"), parents=(mark("dataset"),), **facts),
        Quota(seq=3, time=7, accounts=(Capped(1, 3 * 10**14),), **shared),
        Quota(seq=4, time=8, accounts=(), **shared),
    ]
    return "\n".join(f"    {encode(entry).decode()}" for entry in made)


if __name__ == "__main__":
    sys.stdout.write(vectors() + "\n")
