"""Refinements before the verifiers: charges that telescope, paths that do not fork, estimates that draws make."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parco
from parco import canonical
from parco.audit import estimates, offline, offline_life
from parco.audit.offline import CheckError
from parco.audit.verify import verify
from parco.errors import VerificationError
from parco.ledger.entries import Balance, Charge, Entry, Forfeit, MechanismFacts, Refine, Settle, Void, encode
from parco.mechanisms.mechanism import Gaussian, root_upper
from parco.mechanisms.refinement import RefinedGaussian
from parco.session.session import Session
from parco.stores.keys import signature_holds
from tests.ledger.build import GAUSSIAN, mark, opening, recover, refine, reserve, start
from tests.shop import open_shop
from tests.stores.build import harm

CAP = 10**16


class Feeding(offline_life.Ledger):
    """Takes entries, with an answer behind each that settles one; heads are left to other tests."""

    verify = staticmethod(signature_holds)

    def take(self, entry: Entry) -> None:
        self.feed(encode(entry))
        self.waiting.clear()


def price(mechanism: MechanismFacts, *, pure: bool = False) -> int:
    """What `reserve` of the builder costs: L1 2 and L2^2 4, in gdp or pure, rounded up."""
    exact = 2 / mechanism.scale if pure else 4 / mechanism.scale**2
    return -(-(10**15) * exact.numerator // exact.denominator)


def settled(seq: int, request: int, cost: int, spent: int) -> Settle:
    return Settle(
        seq=seq, actor=mark("ana"), request=request, answer=mark("answer"),
        charges=(Charge(1, cost, 0),), accounts=(Balance(1, CAP, spent, 0, 0, 10, 0, 0, 0),),
    )  # fmt: skip


def answered(mechanism: MechanismFacts = GAUSSIAN, measure: str = "gdp") -> list[Entry]:
    cost = price(mechanism, pure=measure == "pure")
    first = replace(reserve(cost=cost, delta=0), mechanism=mechanism)
    return [replace(opening(cap=CAP), measure=measure), first, start(), settled(4, 2, cost, cost)]


def sharper(seq: int = 5, *, parent: int = 2, old: MechanismFacts = GAUSSIAN, **changes: Any) -> Refine:
    """The refinement of a builder's answer, charged the difference."""
    entry = refine(seq, parent=parent, **changes)
    if "charges" in changes or "cost" in changes:
        return entry
    pure = entry.mechanism.kind != "gaussian"
    return replace(entry, charges=(Charge(1, price(entry.mechanism, pure=pure) - price(old, pure=pure), 0),))


FINE = refine().mechanism
WIDE_GEOMETRIC = MechanismFacts("two-sided-geometric", Fraction(8), Fraction(1))
FINE_GEOMETRIC = replace(WIDE_GEOMETRIC, scale=Fraction(5))


def feed(*entries: Entry) -> Feeding:
    ledger = Feeding()
    for entry in entries:
        ledger.take(entry)
    return ledger


def test_a_chain_telescopes_and_a_lost_step_counts_from_the_last_answer() -> None:
    ledger = feed(*answered(), sharper())
    assert ledger.accounts[1][offline.RESERVED] == price(FINE) - price(GAUSSIAN)
    done = settled(7, 5, price(FINE) - price(GAUSSIAN), price(FINE))
    finest = replace(FINE, scale=Fraction(1))
    chain = [*answered(), sharper(), start(6, 5), done, sharper(8, parent=5, old=FINE, key="s", mechanism=finest)]
    ledger = feed(*chain)
    account = ledger.accounts[1]
    assert account[offline.SPENT] + account[offline.RESERVED] == price(finest)
    assert ledger.refinements == {2: 5, 5: 8}
    for ended in (
        [start(6, 5), Forfeit(seq=7, actor=mark("ana"), request=5)],
        [Void(seq=6, actor=mark("ana"), request=5)],
    ):
        again = [*answered(), sharper(), *ended]
        assert feed(*again, sharper(len(again) + 1, key="s")).refinements == {2: len(again) + 1}
    pure = answered(WIDE_GEOMETRIC, "pure")
    assert feed(*pure, sharper(mechanism=FINE_GEOMETRIC, old=WIDE_GEOMETRIC)).refinements == {2: 5}


FALSE: list[tuple[str, Callable[[], list[Entry]]]] = [
    ("priced", lambda: [*answered(), sharper(cost=price(FINE))]),
    ("priced", lambda: [*answered(), sharper(charges=(Charge(1, price(FINE) - price(GAUSSIAN), 1),))]),
    ("refined once", lambda: [*answered(), sharper(parent=3)]),
    ("refined once", lambda: [*answered(), sharper(parent=9)]),
    ("refined once", lambda: [*answered()[:3], sharper(4)]),
    ("refined once", lambda: [*answered(), sharper(), sharper(6, key="s")]),
    ("refined once", lambda: [*answered(), sharper(question=mark("other"))]),
    ("refined once", lambda: [*answered(), sharper(private=False)]),
    ("refined once", lambda: [*answered(), sharper(cells=13)]),
    ("refined once", lambda: [*answered(), sharper(mechanism=GAUSSIAN)]),
    ("refined once", lambda: [*answered(), sharper(mechanism=replace(GAUSSIAN, scale=Fraction(3)), cost=0)]),
    ("refined once", lambda: [*answered(), sharper(mechanism=FINE_GEOMETRIC, cost=1)]),
    ("refined once", lambda: [*answered(), sharper(charges=(Charge(1, 1, 0), Charge(2, 1, 0)))]),
    ("refined once", lambda: [*answered(), recover(5), sharper(6)]),
    (
        "refined once",
        lambda: [
            *answered(WIDE_GEOMETRIC, "pure"),
            sharper(mechanism=replace(FINE_GEOMETRIC, lattice=Fraction(1, 2)), old=WIDE_GEOMETRIC),
        ],
    ),
    ("keyed once", lambda: [*answered(), sharper(key="k")]),
    ("lineage", lambda: [*answered(), sharper(contract=mark("x"))]),
]


@pytest.mark.parametrize("cost", [0, price(FINE) - price(GAUSSIAN) - 1])
def test_what_a_refinement_was_charged_too_little_is_owed_until_a_recost(cost: int) -> None:
    assert feed(*answered(), sharper(cost=cost)).owed == {(5, 1): price(FINE) - price(GAUSSIAN)}


@pytest.mark.parametrize(("check", "entries"), FALSE)
def test_false_refinements_are_found_by_name(check: str, entries: Callable[[], list[Entry]]) -> None:
    *good, bad = entries()
    ledger = feed(*good)
    with pytest.raises(CheckError) as caught:
        ledger.take(bad)
    assert caught.value.args[:2] == (check, bad.seq)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    contract = open_shop(tmp_path, budget='measure = "zcdp"\nrho = "4"\ndelta = "1e-6"')
    with Session(contract, actor="ana") as session:
        release = session.count(by="month", error="60")
        for error in (40, 20):
            release = session.refine(release, error=error)
        verify(session._store, strict=True, releases=[release.record()])
    return tmp_path / "shop.ledger"


def test_an_estimate_that_its_draws_do_not_make_is_found(shop: Path) -> None:
    """Written by a faulty program with all digests right: only who works it out anew can tell."""
    contract = parco.Contract.read(shop.parent / "contract.toml")
    with Session(contract, actor="ana") as session, pytest.MonkeyPatch.context() as patched:
        patched.setattr(RefinedGaussian, "cells", lambda _, drawn: [steps + 1 for steps in drawn[-1]])
        session.refine(2, error="10")
        with pytest.raises(VerificationError, match=r"estimated: entry .*draws") as caught:
            verify(session._store)
        assert caught.value.facts["check"] == "estimated"


def test_a_list_of_refinements_that_was_changed_is_found(shop: Path) -> None:
    harm(shop, "DELETE FROM refinements WHERE parent = 2")
    with Session(parco.Contract.read(shop.parent / "contract.toml")) as session:
        for check in (lambda: verify(session._store), session._store.verify):
            with pytest.raises(VerificationError, match="refinements"):
                check()


def test_the_export_is_taken_by_the_offline_verifier_and_every_edit_is_found(shop: Path) -> None:
    with Session(parco.Contract.read(shop.parent / "contract.toml")) as session:
        lines = list(session._store.export())
    feed_all(lines)
    refined = [place for place, line in enumerate(lines) if b'"tag":"refine"' in line]
    assert len(refined) == 2
    for place in refined:
        record = json.loads(lines[place])
        for name in record:
            others = {"parent": record["parent"] + 1, "private": 1 - record["private"], "cells": record["cells"] + 1}
            value = others.get(name, 1 if isinstance(record[name], int) else record[name])
            if value == record[name]:
                continue
            bad = canonical.encode(record | {name: value})
            with pytest.raises(CheckError):
                feed_all([*lines[:place], bad, *lines[place + 1 :]])


def feed_all(lines: list[bytes]) -> None:
    ledger = Feeding()
    for line in lines:
        ledger.feed(line)
    ledger.end()


@given(square=st.fractions(Fraction(1, 10**12), Fraction(10**18)))
def test_the_verifiers_root_is_the_one_that_is_drawn_with(square: Fraction) -> None:
    for value in (square, square**2):
        assert estimates._root(value) == root_upper(value)
        assert estimates._root(value) ** 2 >= value


def test_the_verifiers_draws_are_those_that_are_drawn() -> None:
    laws = [Gaussian(Fraction(scale), Fraction(1, 2)) for scale in (100, 41, 7, 3)]
    law = RefinedGaussian(laws[-1].scale, laws[-1].lattice, before=tuple(laws[:-1]))

    class Link:
        def __init__(self, law: Gaussian) -> None:
            self.reserve = self
            self.mechanism = MechanismFacts("gaussian", law.scale, law.lattice)

    found = list(estimates._draws([Link(one) for one in laws]))  # type: ignore[misc]
    assert found == [(draw.scale, draw.lattice) for draw in law.path.draws]
