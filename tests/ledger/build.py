"""Small valid entries, to be bent by tests."""

from __future__ import annotations

import hashlib
from fractions import Fraction

from parco.ledger.entries import (
    Balance,
    Cap,
    Capped,
    Charge,
    MechanismFacts,
    Open,
    Opened,
    Recover,
    Reserve,
    Revise,
    Rotate,
    SensitivityFacts,
    Settle,
    Start,
    Stop,
    Stray,
)


def mark(text: str) -> str:
    """Some digest, the same for the same text."""
    return hashlib.sha256(text.encode()).hexdigest()


def opening(seq: int = 1, *, account: int = 1, cap: int = 100, contract: str = "c", dataset: str = "d") -> Open:
    return Open(
        seq=seq,
        actor=mark("ana"),
        time=5,
        contract=mark(contract),
        name=mark("name of " + contract),
        dataset=mark(dataset),
        terms=mark("terms"),
        measure="gdp",
        order=None,
        accounts=(Opened(account, mark("whole"), cap, 10),),
        secret=mark("secret"),
    )


def reserve(seq: int = 2, *, cost: int = 40, delta: int = 1, key: str = "k", account: int = 1) -> Reserve:
    return Reserve(
        seq=seq,
        actor=mark("ana"),
        time=6,
        key=mark(key),
        question=mark("q"),
        contract=mark("c"),
        fresh=False,
        private=True,
        mechanism=MechanismFacts("two-sided-geometric", Fraction(7, 3), Fraction(1)),
        sensitivity=SensitivityFacts(Fraction(2), Fraction(4)),
        cells=12,
        charges=(Charge(account, cost, delta),),
    )


def start(seq: int = 3, request: int = 2) -> Start:
    return Start(seq=seq, actor=mark("ana"), request=request)


def settle(seq: int = 4, *, request: int = 2, cost: int = 40, delta: int = 1, spent: int | None = None) -> Settle:
    total = cost if spent is None else spent
    return Settle(
        seq=seq,
        actor=mark("ana"),
        request=request,
        answer=mark("answer"),
        charges=(Charge(1, cost, delta),),
        accounts=(Balance(1, 100, total, 0, 0, 10, delta, 0, 0),),
    )


def stop(seq: int = 4, *, request: int = 2, cost: int = 20, scale: Fraction = Fraction(14, 3)) -> Stop:
    """The ladder of `reserve` stopped at twice its finest scale, which costs half."""
    return Stop(
        seq=seq,
        actor=mark("ana"),
        request=request,
        answer=mark("answer"),
        charges=(Charge(1, cost, 1),),
        accounts=(Balance(1, 100, cost, 0, 0, 10, 1, 0, 0),),
        mechanism=MechanismFacts("two-sided-geometric", scale, Fraction(1)),
        sensitivity=SensitivityFacts(Fraction(2), Fraction(4)),
    )


def revise(seq: int = 2, *, contract: str = "c2", revised: str = "c", cap: int = 100) -> Revise:
    return Revise(
        seq=seq,
        actor=mark("ana"),
        time=7,
        contract=mark(contract),
        revised=mark(revised),
        terms=mark("terms"),
        accounts=(Opened(1, mark("whole"), cap, 10),),
        reason=mark("why"),
    )


def cap(seq: int = 2, to: int = 200, *, account: int = 1) -> Cap:
    return Cap(seq=seq, actor=mark("ana"), time=7, accounts=(Capped(account, to),), reason=mark("why"))


def recover(seq: int = 2, *, cost: int = 40, delta: int = 0, lost: str = "lost", account: int = 1) -> Recover:
    return Recover(
        seq=seq,
        actor=mark("ana"),
        time=8,
        strays=(Stray(9, mark(lost)),),
        charges=(Charge(account, cost, delta),),
        reason=mark("why"),
    )


def rotate(seq: int = 2, *, old: str = "old", new: str = "new") -> Rotate:
    signatures = {"by_old": mark(old) * 2, "by_new": mark(new) * 2}
    return Rotate(seq=seq, actor=mark("ana"), time=8, old=mark(old), new=mark(new), reason=mark("why"), **signatures)
