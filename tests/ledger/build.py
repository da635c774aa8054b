"""Small valid entries, to be bent by tests."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction

from parco.ledger.entries import (
    Added,
    Amend,
    Balance,
    Cap,
    Capped,
    Charge,
    Draw,
    Flag,
    Leave,
    MechanismFacts,
    Open,
    Opened,
    Recost,
    Recover,
    Refine,
    Reserve,
    Revise,
    Rotate,
    Schedule,
    SensitivityFacts,
    Settle,
    Start,
    Steps,
    Stop,
    Stray,
    Supersede,
    Total,
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


GAUSSIAN = MechanismFacts("gaussian", Fraction(7, 3), Fraction(1))


def refine(seq: int = 5, *, parent: int = 2, cost: int = 20, key: str = "r", **changes: object) -> Refine:
    """What makes the answer to `reserve` sharper, where that one's noise is GAUSSIAN."""
    entry = Refine(
        seq=seq,
        actor=mark("ana"),
        time=7,
        key=mark(key),
        question=mark("q"),
        contract=mark("c"),
        parent=parent,
        private=True,
        mechanism=replace(GAUSSIAN, scale=Fraction(3, 2)),
        sensitivity=SensitivityFacts(Fraction(2), Fraction(4)),
        cells=12,
        charges=(Charge(1, cost, 0),),
    )
    return replace(entry, **changes)  # type: ignore[arg-type]


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
    """The ladder of `reserve(delta=0)` stopped at twice its finest scale, which costs half."""
    return Stop(
        seq=seq,
        actor=mark("ana"),
        request=request,
        answer=mark("answer"),
        charges=(Charge(1, cost, 0),),
        accounts=(Balance(1, 100, cost, 0, 0, 10, 0, 0, 0),),
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


def amend(seq: int = 2, *, entry: int = 1, text: str | None = "text") -> Amend:
    named = None if text is None else mark(text)
    return Amend(seq=seq, actor=mark("ana"), time=9, entry=entry, field="title", text=named, reason=mark("why"))


def supersede(seq: int, request: int, by: int | None) -> Supersede:
    return Supersede(seq=seq, actor=mark("ana"), time=9, request=request, by=by, reason=mark("why"))


def recost(
    seq: int,
    *totals: tuple[int, int, int],
    added: int,
    delta: int = 0,
    factor: Fraction | None = None,
    corrects: int | None = None,
) -> Recost:
    """Totals are request, cost and delta, all on account 1."""
    return Recost(
        seq=seq,
        actor=mark("ana"),
        time=9,
        mechanism="two-sided-geometric",
        factor=factor,
        corrects=corrects,
        totals=tuple(Total(request, 1, cost, delta) for request, cost, delta in totals),
        added=(Added(1, added, delta),),
        reason=mark("why"),
    )


def flag(seq: int = 2, *, entry: int = 1) -> Flag:
    return Flag(seq=seq, actor=mark("ana"), time=9, entry=entry, reason=mark("why"))


def rotate(seq: int = 2, *, old: str = "old", new: str = "new") -> Rotate:
    signatures = {"by_old": mark(old) * 2, "by_new": mark(new) * 2}
    return Rotate(seq=seq, actor=mark("ana"), time=8, old=mark(old), new=mark(new), reason=mark("why"), **signatures)


def schedule(seq: int = 2, *, questions: str = "qr", cost: int = 20, name: str = "weekly", more: str = "") -> Schedule:
    """Steps for each letter of `questions`, then for each of `more` at a cost of 1."""
    one = reserve()
    kinds = [
        Steps(
            tuple(mark(letter) for letter in letters), one.mechanism, one.sensitivity, one.cells, (Charge(1, each, 1),)
        )
        for letters, each in ((questions, cost), (more, 1))
        if letters
    ]
    return Schedule(seq=seq, actor=mark("ana"), time=6, contract=mark("c"), name=mark(name), steps=tuple(kinds))


def draw(seq: int = 3, *, step: int = 1, question: str = "q", cost: int = 20, of: int = 2, key: str = "k") -> Draw:
    facts = {**vars(reserve(seq, cost=cost, key=key)), "question": mark(question)}
    return Draw(**facts, schedule=of, step=step)


def leave(seq: int = 3, *, of: int = 2) -> Leave:
    return Leave(seq=seq, actor=mark("ana"), time=9, schedule=of, reason=mark("why"))
