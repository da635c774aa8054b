"""A ledger of forty entries in which every kind of entry occurs, and one as long as asked for."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from sqlalchemy import Connection

from parco.ledger.entries import Charge, MechanismFacts
from parco.measure import Measure
from parco.stores import heads, requests
from parco.stores.append import forget_appended
from parco.stores.owner import current_owner
from parco.stores.records import Recovery, Started, Stopped
from parco.stores.sqlite import SqliteStore
from parco.stores.store import Store
from tests.stores.build import (
    ONE,
    TENTH,
    address_of,
    anything,
    ask,
    backup,
    nothing,
    opening,
    put_back,
    quota,
    sharper,
    signed_file,
    started,
)

HUNDREDTH = ONE // 100
ANSWER = b'{"cells":[1,-2,3,4,5,6,7,8,9,10,11,12],"parco":"0.1.0"}'
RENYI = {"name": "walks", "dataset": "steps", "measure": Measure.renyi(Fraction(5, 2)), "contract": "of steps"}


def ladder_answer(mechanism: MechanismFacts, cells: int = 12) -> bytes:
    """Zeros, each of one draw, as a ladder that stopped at once has them."""
    law = [mechanism.scale.numerator, mechanism.scale.denominator]
    return json.dumps({"cells": [0] * cells, "draws": [[[0, 0]]] * cells, "laws": [law]}).encode()


def release(store: Store, question: str, cost: int = HUNDREDTH, scale: int = 100) -> int:
    """One settled release; its entry."""
    return store.settle(started(store, question=question, cost=cost, scale=scale), answer=ANSWER).position


def forty(path: Path) -> SqliteStore:
    """The forty entries in a file."""
    store = signed_file(path)
    fill(store)
    return store


def fill(store: Store) -> None:
    """Signed, released, refined, revised, capped, shared, rotated, lost and recovered, forfeited, stopped; one open."""
    for number in range(3):
        release(store, f"first {number}")
    store.sign(opening(name="other", contract="another contract"))
    store.sign(opening(**RENYI))
    gaussian = MechanismFacts("gaussian", Fraction(7, 2), Fraction(1, 4))
    contract = store.signed("steps", "walks").contract
    # Order 5/2, L2 squared 1, scale 7/2: 5/4 times 4/49, rounded up.
    charge = Charge(2, -(-(10**15) * 5 // 49))
    walk = store.begin(
        ask(store, question="walks", contract=contract, mechanism=gaussian, charges=(charge,)), serves=anything
    )
    assert isinstance(walk, Started)
    store.settle(walk.request, answer=ANSWER)
    store.revise(opening(contract="a new text"), reason="a column more")
    release(store, "under the new text", cost=TENTH, scale=10)
    store.move_cap(opening(contract="twice as much", cap=2 * ONE), reason="the board said so")
    store.forfeit(started(store, question="died", cost=HUNDREDTH, scale=100))
    store.rotate(actor="steward", reason="yearly")
    _lose(store)
    for amount in (ONE, 2 * ONE):
        store.set_quota(quota(dataset="purchases", members=("ana", "bob"), amount=amount))
    release(store, "last 0")
    ladder = started(store, question="a ladder", cost=HUNDREDTH, scale=100)
    law = MechanismFacts("two-sided-geometric", Fraction(125), Fraction(1))
    store.stop(ladder, answer=ladder_answer(law), stopped=Stopped(law, (Charge(1, HUNDREDTH * 4 // 5),)))
    _refine(store, "last 0")
    started(store, question="open", cost=HUNDREDTH, scale=100)
    assert store.head().size == 40


def _refine(store: Store, question: str) -> None:
    """A release of scale 100 at scale 50: another 1/100."""
    (old,) = store.answers(question)
    wanted = sharper(store, old.request, question=question, scale=50, cost=HUNDREDTH)
    outcome = store.begin(wanted, serves=nothing)
    assert isinstance(outcome, Started)
    store.settle(outcome.request, answer=ANSWER)


def _lose(store: Store) -> None:
    """One release is lost, found missing by its receipt, and charged again."""
    kept = backup(address_of(store))
    position = release(store, "lost", cost=2 * TENTH, scale=5)
    proof = store.evidence(position - 2, position).proof
    put_back(address_of(store), kept)
    assert store.marks_path is not None
    store.marks_path.unlink()
    assert store.witness([proof.head]) == [proof.head]
    store.recover(Recovery(actor="steward", reason="a disk failed", receipts=(proof,), unshown=0))


def filled(path: Path, releases: int) -> SqliteStore:
    """Many releases, with a head behind each of their two commits, written in one transaction to save time."""
    store = signed_file(path, cap=9000 * ONE)
    wanted = ask(store, cost=HUNDREDTH, scale=100, fresh=True)
    with store._writing() as connection:
        standing = heads.check(connection)
        for _ in range(releases):
            outcome = requests.decide(
                connection, requests.look(connection, wanted), serves=anything, holder=current_owner()
            )
            standing = _sealed(connection, standing)
            assert isinstance(outcome, Started)
            requests.settle(connection, outcome.request, answer=ANSWER)
            standing = _sealed(connection, standing)
    return store


def _sealed(connection: Connection, standing: heads.Standing) -> heads.Standing:
    """What each commit does at its end, and the next at its beginning."""
    heads.seal(connection, standing)
    forget_appended(connection)
    return heads.check(connection)
