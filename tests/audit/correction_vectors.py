"""The vectors of docs/ledger-format.md with each kind of correction: the ledger of `vectors`, settled and corrected.

python -m tests.audit.correction_vectors prints them.
"""

from __future__ import annotations

import sys
from fractions import Fraction

from parco import canonical
from parco.ledger import merkle
from parco.ledger.entries import (
    Added,
    Amend,
    Balance,
    Entry,
    Flag,
    Recost,
    Reserve,
    Settle,
    Supersede,
    Total,
    encode,
)
from parco.ledger.heads import Head, accounts_digest
from parco.stores.keys import SigningKey
from tests.ledger.build import mark

from .vectors import SEED, entries

SALT = bytes(range(16))
ANSWER = '{"cells":[1],"parco":"0.1.0"}'
FACTOR = 13


def corrected_entries() -> list[Entry]:
    """Signed, reserved, started, settled; then recosted, withdrawn, given a title that is erased, flagged."""
    first = entries()
    reserve = first[1]
    assert isinstance(reserve, Reserve)
    cost, common = reserve.charges[0].cost, {"actor": mark("ana"), "time": 9, "reason": mark("reason")}
    settle = Settle(
        seq=4,
        actor=mark("ana"),
        request=2,
        answer=canonical.salted_digest(SALT, ANSWER),
        charges=reserve.charges,
        accounts=(Balance(1, 10**15, cost, 0, 0, 0, 0, 0, 0),),
    )
    recost = Recost(
        seq=5,
        mechanism="gaussian",
        factor=Fraction(FACTOR),
        corrects=None,
        totals=(Total(2, 1, FACTOR * cost, 0),),
        added=(Added(1, (FACTOR - 1) * cost, 0),),
        **common,  # type: ignore[arg-type]
    )
    return [
        *first,
        settle,
        recost,
        Supersede(seq=6, request=2, by=None, **common),  # type: ignore[arg-type]
        Amend(seq=7, entry=2, field="title", text=mark("title"), **common),  # type: ignore[arg-type]
        Amend(seq=8, entry=2, field="title", text=None, **common),  # type: ignore[arg-type]
        Flag(seq=9, entry=5, **common),  # type: ignore[arg-type]
    ]


def vectors() -> str:
    """The section as it stands in the document."""
    bodies, key = [encode(entry) for entry in corrected_entries()], SigningKey(SEED)
    leaves = [merkle.leaf(body) for body in bodies]

    def node(level: int, index: int) -> bytes:
        if level == 0:
            return leaves[index]
        return merkle.parent(*(node(level - 1, 2 * index + side) for side in (0, 1)))

    spent = FACTOR * -(-4 * 10**15 // 49)
    balance = Balance(1, 10**15, spent, 0, spent - 10**15, 0, 0, 0, 0)
    size = len(bodies)
    root = merkle.root(size, node).hex()
    head = Head(size=size, root=root, accounts=accounts_digest([balance]), previous=None, key=key.public)
    signed = head.signed(key.sign(head.statement))
    answer = canonical.encode({"answer": ANSWER, "format": 1, "request": 2, "salt": SALT.hex(), "tag": "answer"})
    lines = [*bodies[:4], answer, *bodies[4:], signed.line]
    shown = str([list(vars(balance).values())]).replace(" ", "")
    return "\n".join(
        [
            f"The same release, settled, then found to cost {FACTOR} times as much, withdrawn, given a title that is",
            f"erased, and its recost flagged. The account then is `{shown}`: overdrawn.",
            "",
            *(f"    {line.decode()}" for line in lines),
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(vectors() + "\n")
