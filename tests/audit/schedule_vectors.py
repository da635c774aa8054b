"""The lines of a schedule in docs/ledger-format.md, worked out anew: they go on where the test vectors end.

python -m tests.audit.schedule_vectors prints them.
"""

from __future__ import annotations

import sys
from fractions import Fraction

from parco.ledger import merkle
from parco.ledger.entries import (
    Balance,
    Charge,
    Draw,
    Entry,
    Leave,
    MechanismFacts,
    Schedule,
    SensitivityFacts,
    Steps,
    encode,
)
from parco.ledger.heads import Head, accounts_digest
from parco.stores.keys import SigningKey
from tests.ledger.build import mark

from .vectors import SEED, entries

COST = -(-(10**15) // 100)
"""(1/10)^2, at a scale of 10."""


def more() -> list[Entry]:
    """A schedule of two steps, its first drawn, and left."""
    noise, norms = MechanismFacts("gaussian", Fraction(10), Fraction(1)), SensitivityFacts(Fraction(1), Fraction(1))
    charges, questions = (Charge(1, COST, 0),), (mark("week 1"), mark("week 2"))
    schedule = Schedule(
        seq=4,
        actor=mark("ana"),
        time=7,
        contract=mark("contract"),
        name=mark("weekly"),
        steps=(Steps(questions, noise, norms, 12, charges),),
    )
    return [
        schedule,
        Draw(
            seq=5,
            actor=mark("ana"),
            time=8,
            key=mark("another key"),
            question=questions[0],
            contract=mark("contract"),
            fresh=False,
            private=True,
            mechanism=noise,
            sensitivity=norms,
            cells=12,
            charges=charges,
            schedule=4,
            step=1,
        ),
        Leave(seq=6, actor=mark("ana"), time=9, schedule=4, reason=mark("reason")),
    ]


def lines(previous: str) -> list[bytes]:
    """The three entries and their head; `previous` is the digest of the head before."""
    bodies = [encode(entry) for entry in (*entries(), *more())]
    leaves = [merkle.leaf(body) for body in bodies]
    pairs = [merkle.parent(leaves[place], leaves[place + 1]) for place in (0, 2, 4)]
    root = merkle.parent(merkle.parent(pairs[0], pairs[1]), pairs[2])
    reserved = -(-4 * 10**15 // 49) + COST
    key = SigningKey(SEED)
    head = Head(
        size=6,
        root=root.hex(),
        accounts=accounts_digest([Balance(1, 10**15, 0, reserved, 0, 0, 0, 0, 0)]),
        previous=previous,
        key=key.public,
    )
    return [*bodies[3:], head.signed(key.sign(head.statement)).line]


def vectors(previous: str) -> str:
    """The lines as they stand in the document."""
    return "\n".join(f"    {line.decode()}" for line in lines(previous))


if __name__ == "__main__":
    sys.stdout.write(vectors(sys.argv[1]) + "\n")
