"""Ladders that were reserved whole and stopped early: both verifiers work out what the law that was reached costs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from parco.audit import offline, offline_life
from parco.audit.offline import CheckError
from parco.audit.verify import verify
from parco.errors import InternalError, RequestError, VerificationError
from parco.ledger.entries import Balance, Charge, Entry, MechanismFacts, SensitivityFacts, Stop, encode
from parco.measure import Measure
from parco.mechanisms.mechanism import Additive, Gaussian, TwoSidedGeometric
from parco.mechanisms.refinement import GaussianPath
from parco.mechanisms.stopping import units_apart
from parco.privacy.sensitivity import Sensitivity
from parco.stores.keys import signature_holds
from parco.stores.records import Started, Stopped
from parco.stores.sqlite import SqliteStore
from tests.ledger.build import GAUSSIAN, recost, reserve, start, stop
from tests.ledger.build import opening as opened
from tests.stores.build import ONE, anything, ask, opening

from .build import ladder_answer
from .test_refined import CAP, answered, price, sharper
from .test_refined import feed as feed_all

MEASURES = (Measure.PURE, Measure.GDP, Measure.ZCDP, Measure.renyi(Fraction(5, 2)))
DISTANCE = Sensitivity(l1=Fraction(3), l2_squared=Fraction(5))
STEP = Fraction(1, 2)


class FastLedger(offline_life.Ledger):
    """The offline verifier with a faster library's Ed25519."""

    verify = staticmethod(signature_holds)


def law(measure: Measure, scale: int) -> Additive:
    return (TwoSidedGeometric if measure == Measure.PURE else Gaussian)(Fraction(scale), STEP)


def facts(mechanism: Additive) -> MechanismFacts:
    return MechanismFacts(mechanism.kind, mechanism.scale, mechanism.lattice)


def reserved(path: Path, measure: Measure, distance: Sensitivity = DISTANCE) -> tuple[SqliteStore, int]:
    """A ledger on which a ladder down to scale 6 was reserved whole, and started."""
    path.mkdir(exist_ok=True)
    store = SqliteStore.create_or_open(path / "x.ledger")
    store.sign(opening(measure=measure, cap=5 * ONE))
    outcome = store.begin(
        ask(
            store,
            mechanism=facts(law(measure, 6)),
            sensitivity=SensitivityFacts(distance.l1, distance.l2_squared),
            charges=(Charge(1, law(measure, 6).cost_units(distance, measure)),),
        ),
        serves=anything,
    )
    assert isinstance(outcome, Started)
    return store, outcome.request


def stopped(measure: Measure, *, scale: int = 12, less: int = 0) -> Stopped:
    mechanism = law(measure, scale)
    return Stopped(facts(mechanism), (Charge(1, mechanism.cost_units(DISTANCE, measure) - less),))


APART = (Fraction(12), *(Fraction(9),) * 2, *(Fraction(12),) * 9)
BOTH = Sensitivity(l1=Fraction(6), l2_squared=Fraction(18))
"""Two cells, by 3 each."""


@pytest.mark.parametrize(
    ("measure", "exact"),
    [
        (Measure.PURE, Fraction(3, 9) * 2),
        (Measure.GDP, Fraction(9, 81) * 2),
        (Measure.ZCDP, Fraction(9, 81)),
        (Measure.renyi(Fraction(5, 2)), Fraction(9, 81) * 2 * Fraction(5, 4)),
    ],
    ids=str,
)
def test_cells_that_stop_apart_cost_what_the_sharpest_do(tmp_path: Path, measure: Measure, exact: Fraction) -> None:
    """A unit is in two cells: those of the two sharpest, worked out by hand."""
    store, request = reserved(tmp_path, measure, BOTH)
    reached = law(measure, 12)
    units = units_apart(reached, APART, BOTH, measure)
    assert units == math.ceil(exact * ONE)
    one_less = Stopped(facts(reached), (Charge(1, units - 1),), APART)
    scales = [[one.numerator, one.denominator] for one in (Fraction(9), Fraction(12))]
    draws = [[[int(scale == 12), 0]] for scale in APART]
    answer = json.dumps({"cells": [0] * 12, "draws": draws, "laws": scales}).encode()
    stored = store.stop(request, answer=answer, stopped=replace(one_less, charges=(Charge(1, units),)))
    assert stored == store.stored(request)
    assert stored.stopped is not None
    assert stored.stopped.scales == APART
    verify(store, strict=True)
    check(list(store.export()))
    cheaper, request = reserved(tmp_path / "b", measure, BOTH)
    cheaper.stop(request, answer=answer, stopped=one_less)
    with pytest.raises(VerificationError, match="priced: entry 2"):
        verify(cheaper)


def test_cells_stop_apart_only_where_a_unit_moves_them_alike(tmp_path: Path) -> None:
    """L1 = 3 and L2^2 = 5 are of no whole number of equal cells: nobody could say what the sharpest cost."""
    with pytest.raises(RequestError, match="refine them together"):
        units_apart(law(Measure.GDP, 12), APART, DISTANCE, Measure.GDP)
    store, request = reserved(tmp_path, Measure.GDP)
    apart = replace(stopped(Measure.GDP), scales=APART)
    store.stop(request, answer=b"[1]", stopped=apart)
    with pytest.raises(VerificationError, match="priced: entry 4"):
        verify(store)


@pytest.mark.parametrize(
    "changes",
    [
        {"draws": [[[0, 1]], *[[[0, 0]]] * 11]},
        {"draws": [[[0, 0], [0, 0]], *[[[0, 0]]] * 11]},
        {"draws": [[], *[[[0, 0]]] * 11]},
        {"draws": [[[1, 0]], *[[[0, 0]]] * 11]},
        {"laws": [[11, 1]]},
        {"laws": [[0, 1]]},
        {"cells": [0] * 11},
        {"draws": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("measure", [Measure.PURE, Measure.GDP], ids=str)
def test_an_answer_that_its_draws_do_not_make_is_found(
    tmp_path: Path, measure: Measure, changes: dict[str, object]
) -> None:
    """A draw of 40 steps moves a cell of Gaussian noise, one of a single step that of geometric noise."""
    store, request = reserved(tmp_path, measure)
    body = json.loads(ladder_answer(facts(law(measure, 12)))) | changes
    if measure != Measure.PURE and "draws" in changes and changes["draws"] and changes["draws"][0] == [[0, 1]]:  # type: ignore[index]
        body["draws"][0] = [[0, 40]]
    store.stop(request, answer=json.dumps(body).encode(), stopped=stopped(measure))
    with pytest.raises(VerificationError, match="estimated: entry 4"):
        verify(store)


def check(lines: list[bytes]) -> None:
    ledger = FastLedger()
    for line in lines:
        ledger.feed(line)
    ledger.end()


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_what_was_realised_is_charged_and_the_rest_is_free_again(tmp_path: Path, measure: Measure) -> None:
    store, request = reserved(tmp_path, measure)
    before = store.accounts()[0].reserved
    stored = store.stop(request, answer=ladder_answer(facts(law(measure, 12))), stopped=stopped(measure))
    account = store.accounts()[0]
    assert (account.spent, account.reserved) == (stored.charges[0].cost, 0)
    assert 0 < account.spent < before
    assert stored == store.stored(request)
    assert stored.mechanism == facts(law(measure, 12))
    assert store.history()[-1].charges == stored.charges
    verify(store, strict=True)
    check(list(store.export()))


def test_the_law_that_was_reached_costs_what_the_draws_did() -> None:
    """Draws at 15 and 20 reach scale 12, in each measure that has Gaussian noise."""
    path = GaussianPath((Gaussian(Fraction(15), STEP), Gaussian(Fraction(20), STEP)))
    assert path.variance == 144
    for measure in MEASURES[1:]:
        assert path.cost_units(DISTANCE, measure) == law(measure, 12).cost_units(DISTANCE, measure)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_stop_that_pays_less_is_found_by_both(tmp_path: Path, measure: Measure) -> None:
    store, request = reserved(tmp_path, measure)
    store.stop(request, answer=b'{"cells":[1]}', stopped=stopped(measure, less=1))
    with pytest.raises(VerificationError, match=r"priced: entry 2: .*\(1 releases cost more") as caught:
        verify(store)
    assert caught.value.facts["affected"] == (request,)
    with pytest.raises(CheckError) as found:
        check(list(store.export()))
    assert found.value.args[:2] == ("priced", request)


def bent(store: SqliteStore, **changes: Any) -> list[bytes]:
    """The entries with another `stop`, and without heads, which would be found first."""
    lines = [json.loads(line) for line in store.export()]
    kept = [{**line, **(changes if line["tag"] == "stop" else {})} for line in lines if line["tag"] != "head"]
    return [offline.ENCODE(line).encode() for line in kept]


def feed(lines: list[bytes]) -> None:
    ledger = FastLedger()
    for line in lines:
        ledger.feed(line)


def whole(kind: str = "gaussian", *, scale: Any = (12, 1), lattice: Any = (1, 2)) -> dict[str, Any]:
    return {"kind": kind, "lattice": list(lattice), "scale": list(scale)}


@pytest.mark.parametrize(
    "changes",
    [
        {"mechanism": whole(scale=(13, 1))},
        {"mechanism": whole(scale=(24, 2))},
        {"mechanism": whole("two-sided-geometric")},
        {"mechanism": whole("two-sided-geometric"), "charges": [[1, 0, 0]]},
        {"mechanism": whole(lattice=(1, 4))},
        {"sensitivity": {"l1": [3, 1], "l2_squared": [4, 1]}, "charges": [[1, -(-4 * ONE // 144), 0]]},
        {"sensitivity": {"l1": [2, 1], "l2_squared": [5, 1]}},
        # Finer than what was reserved, at its own price.
        {"mechanism": whole(scale=(5, 1)), "charges": [[1, ONE // 5, 0]]},
        {"charges": [[1, -(-5 * ONE // 144), 1]]},
        {"scales": [[12, 1]]},
        {"scales": [[12, 1]] * 12},
        {"scales": [[12, 1]] * 11 + [[5, 1]]},
        {"charges": [[2, -(-5 * ONE // 144), 0]]},
        {"charges": [[1, -(-5 * ONE // 144), 0], [2, 0, 0]]},
    ],
    ids=str,
)
def test_a_stop_at_another_law_than_a_coarser_one_of_its_ladder_is_found(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    store, request = reserved(tmp_path, Measure.GDP)
    store.stop(request, answer=b'{"cells":[1]}', stopped=stopped(Measure.GDP))
    feed(bent(store))
    with pytest.raises(CheckError) as found:
        feed(bent(store, **changes))
    assert found.value.args[:2] == ("priced", 4)


def test_a_stop_happens_once_to_a_request_that_started(tmp_path: Path) -> None:
    store, request = reserved(tmp_path, Measure.GDP)
    for wrong in (
        stopped(Measure.GDP, scale=5),
        replace(stopped(Measure.GDP), mechanism=facts(law(Measure.PURE, 12))),
        replace(stopped(Measure.GDP), charges=(Charge(1, ONE),)),
        replace(stopped(Measure.GDP), charges=(Charge(2, 1),)),
    ):
        with pytest.raises(InternalError, match="does not end so"):
            store.stop(request, answer=b"[1]", stopped=wrong)
    assert store.accounts()[0].spent == 0
    store.stop(request, answer=b"[1]", stopped=stopped(Measure.GDP))
    with pytest.raises(InternalError, match="is settled"):
        store.stop(request, answer=b"[1]", stopped=stopped(Measure.GDP))
    lines = bent(store)
    with pytest.raises(CheckError) as found:
        feed([*lines[:2], *lines[3:]])
    assert found.value.args[0] in ("canonical", "resolved once")


LADDER = replace(GAUSSIAN, scale=Fraction(1))
"""What was reserved; the builder's refinement is finer than GAUSSIAN, at which it stops, and coarser than this."""


def halted(seq: int = 4, request: int = 2, *, scale: Fraction = GAUSSIAN.scale, spent: int | None = None) -> Stop:
    """At GAUSSIAN, for what that costs."""
    cost = price(replace(GAUSSIAN, scale=scale))
    account = Balance(1, CAP, cost if spent is None else spent, 0, 0, 10, 0, 0, 0)
    entry = stop(seq, request=request, cost=cost, scale=scale)
    return replace(entry, accounts=(account,), mechanism=replace(GAUSSIAN, scale=scale))


def ladder() -> list[Entry]:
    """Reserved whole, and started."""
    first = replace(reserve(cost=price(LADDER), delta=0), mechanism=LADDER)
    return [replace(opened(cap=CAP), measure="gdp"), first, start()]


def test_entries_alone_say_what_stops_and_what_then_cannot_be() -> None:
    fed = feed_all(*ladder(), halted())
    assert fed.accounts[1][2:4] == [price(GAUSSIAN), 0]
    assert fed.stopped == {2}
    refined = [*answered(), sharper(), start(6, 5)]
    false: list[tuple[str, list[Entry]]] = [
        ("refined once", [*ladder(), halted(), sharper()]),
        ("resolved once", [*ladder()[:2], halted(3)]),
        ("resolved once", [*ladder(), halted(), halted(5)]),
        ("resolved once", [*refined, halted(7, 5, spent=2 * price(GAUSSIAN))]),
        ("priced", [*ladder(), halted(scale=Fraction(1, 2))]),
        ("balanced", [*ladder(), halted(spent=price(LADDER))]),
    ]
    for check_name, entries in false:
        feed_all(*entries[:-1])
        with pytest.raises(CheckError) as found:
            feed_all(*entries)
        assert found.value.args[:2] == (check_name, len(entries))


def test_a_recost_counts_from_what_the_ladder_was_charged() -> None:
    cost = price(GAUSSIAN)
    facts = {"factor": Fraction(3), "added": 2 * cost}
    tripled = replace(recost(5, (2, 3 * cost, 0), **facts), mechanism="gaussian")  # type: ignore[arg-type]
    fed = feed_all(*ladder(), halted(), tripled)
    assert fed.accounts[1][2] == 3 * cost
    whole = replace(recost(5, (2, 3 * price(LADDER), 0), **facts), mechanism="gaussian")  # type: ignore[arg-type]
    with pytest.raises(CheckError):
        feed_all(*ladder(), halted(), whole)


def test_a_ladder_that_was_reserved_for_too_little_is_made_good_by_its_stop() -> None:
    """An old fault under-charged the reservation; what it stopped at is charged in full, and nothing is owed."""
    short = replace(reserve(cost=price(LADDER) - 5, delta=0), mechanism=LADDER)
    entries = [ladder()[0], short, start()]
    assert feed_all(*entries).owed == {(2, 1): price(LADDER)}
    assert feed_all(*entries, halted()).owed == {}


def test_the_first_file_sends_whoever_has_a_stop_to_the_second() -> None:
    with pytest.raises(CheckError) as found:
        offline.read(encode(halted()), 4)
    assert found.value.args[0] == "parseable"
    assert "offline_life.py" in found.value.args[2]
    assert offline_life.read(encode(halted()), 4)["scales"] == "[]"


def test_a_ladder_that_was_recosted_while_it_ran_does_not_stop() -> None:
    whole, cost = price(LADDER), price(GAUSSIAN)
    raised = replace(recost(4, (2, 2 * whole, 0), added=whole), mechanism="gaussian")
    feed_all(*ladder(), raised)
    with pytest.raises(CheckError, match="recosted while it ran") as found:
        feed_all(*ladder(), raised, halted(5, spent=whole + cost))
    assert found.value.args[:2] == ("priced", 5)
