"""Streams of checks for both verifiers: their price in every measure, and that they were alone on their accounts."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import parco
from parco.accuracy.run import accuracy_first
from parco.accuracy.validation import Validation
from parco.audit import offline, offline_life
from parco.audit.controls import controls
from parco.audit.offline import CheckError
from parco.audit.verify import verify
from parco.ledger.entries import Refine, Reserve, Settle, Stop, decode, encode
from parco.measure import Measure
from parco.mechanisms.mechanism import AboveThreshold
from parco.privacy.sensitivity import Sensitivity
from parco.stores.sqlite import SqliteStore
from tests.accuracy.test_sessions import PARTS, purchases
from tests.audit.test_choices import MEASURES, fed, least
from tests.shop import open_shop

BUDGETS = {
    "pure": 'epsilon = "5"',
    "zcdp": 'rho = "3"\nreceipt_order = 8\ndelta = "1e-6"',
    "gdp": 'mu = "3"\nreceipt_order = 8\ndelta = "1e-6"',
    "renyi": 'epsilon = "20"\norder = 8\ndelta = "1e-6"',
}


@pytest.fixture(scope="module", params=BUDGETS)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    budget = f'measure = "{request.param}"\n{BUDGETS[request.param]}'
    session = parco.Session(open_shop(folder, purchases=purchases(120), budget=budget, columns=PARTS))
    session.count(part="validation", cost="0.01")
    validation = Validation("0.8", check="sparse-vector", epsilon="0.75")
    ladder = parco.Geometric("0.01", 2, count=3)
    with accuracy_first(session, [parco.Ask("count", part="fit")], ladder=ladder, validation=validation) as run:
        for attempt in run:
            attempt.check("items = 2")
    session.sum("items", part="validation", cost="0.01")
    return folder


def lines_of(shop: Path) -> list[bytes]:
    return [line for line in SqliteStore.open(shop / "shop.ledger").export() if b'"tag":"head"' not in line]


def place_of(lines: list[bytes]) -> int:
    return next(place for place, line in enumerate(lines) if b'"kind":"sparse-vector"' in line)


def test_both_verifiers_take_it_and_the_controls_bite(shop: Path) -> None:
    store = SqliteStore.open(shop / "shop.ledger")
    verify(store, strict=True)
    place = shop / "x.export"
    place.write_bytes(b"\n".join(store.export()) + b"\n")
    command = [sys.executable, "-I", "-S", str(offline_life.__file__), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    lines = lines_of(shop)
    with pytest.raises(CheckError, match="offline_life"):
        offline.read(lines[place_of(lines)], 1)
    assert all(control.bites is not False for control in controls(store))


def test_a_charge_too_small_is_owed_and_one_too_large_refused(shop: Path) -> None:
    lines = lines_of(shop)
    place = place_of(lines)
    found = re.search(rb'"charges":\[\[(\d),(\d+),0\]\]', lines[place])
    assert found is not None
    number, cost = map(int, found.groups())
    for bent, is_owed in ((cost, False), (cost - cost // 10**9, True)):
        line = lines[place].replace(found[0], b'"charges":[[%d,%d,0]]' % (number, bent))
        assert (fed([*lines[:place], line]).owed != {}) is is_owed
    dear = lines[place].replace(found[0], b'"charges":[[%d,%d,0]]' % (number, cost + cost // 10**9 + 2))
    with pytest.raises(CheckError, match="priced"):
        fed([*lines[:place], dear])


@pytest.mark.parametrize(
    "bent",
    [
        # The sensitivity 4 off the lattice, where no epsilon holds; and two scores at a time.
        (rb'"lattice":\[\d+,\d+\]', b'"lattice":[3,1]'),
        (rb'"l1":\[4,1\],"l2_squared":\[16,1\]', b'"l1":[4,1],"l2_squared":[8,1]'),
    ],
)
def test_facts_of_no_stream_have_no_price(shop: Path, bent: tuple[bytes, bytes]) -> None:
    lines = lines_of(shop)
    place = place_of(lines)
    line = re.sub(*bent, lines[place])
    assert line != lines[place]
    with pytest.raises(CheckError, match="priced"):
        fed([*lines[:place], line])


def test_a_release_beside_an_open_stream_is_found(shop: Path) -> None:
    """The later release on the same account moved between the stream's start and its end."""
    lines = [line for line in lines_of(shop) if b'"tag":"answer"' not in line]
    place = place_of(lines)
    (account,) = re.findall(rb'"charges":\[\[(\d),', lines[place])
    later = next(
        line for line in reversed(lines) if b'"tag":"reserve"' in line and b'"charges":[[%s,' % account in line
    )
    assert later != lines[place]
    moved = re.sub(rb'"seq":\d+', b'"seq":%d' % (place + 3), later)
    start = lines[place + 1]
    assert b'"tag":"start"' in start
    with pytest.raises(CheckError, match="alone"):
        fed_without_answers([*lines[: place + 2], moved])
    # The stream itself moved behind the start of an open release.
    first = next(place for place, line in enumerate(lines) if b'"tag":"reserve"' in line)
    beside = re.sub(rb'"seq":\d+', b'"seq":%d' % (first + 3), lines[place])
    with pytest.raises(CheckError, match="alone"):
        fed_without_answers([*lines[: first + 2], beside])


def fed_without_answers(lines: list[bytes]) -> offline_life.Ledger:
    ledger = offline_life.Ledger()
    for line in lines:
        ledger.waiting.clear()
        ledger.feed(line)
    return ledger


def test_verdicts_are_neither_refined_nor_stopped(shop: Path) -> None:
    """Forged lines, as for noise of which a path costs what its last law does."""
    lines = lines_of(shop)
    place = place_of(lines)
    number = place + 1 - sum(b'"tag":"answer"' in line for line in lines[:place])
    asked = decode(lines[place])
    settled = next(line for line in lines if b'"tag":"settle"' in line and b'"request":%d,' % number in line)
    end, facts = lines.index(settled), decode(settled)
    assert isinstance(asked, Reserve)
    assert isinstance(facts, Settle)
    coarser = replace(asked.mechanism, scale=asked.mechanism.scale * 2)
    stop = Stop(**vars(facts), mechanism=coarser, sensitivity=asked.sensitivity)
    with pytest.raises(CheckError, match="it stops where"):
        fed([*lines[:end], encode(stop)])
    finer = replace(asked.mechanism, scale=asked.mechanism.scale / 2)
    given = {name: value for name, value in vars(asked).items() if name not in ("fresh", "mechanism", "seq", "key")}
    refine = Refine(**given, parent=number, mechanism=finer, seq=facts.seq + 1, key="0" * 64)
    with pytest.raises(CheckError, match="refined once"):
        fed([*lines[: end + 2], encode(refine)])


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@settings(max_examples=25, deadline=None)
@given(top=st.integers(1, 10**6), bottom=st.integers(1, 10**6), distance=st.integers(1, 50))
def test_the_price_is_the_librarys(measure: Measure, top: int, bottom: int, distance: int) -> None:
    """Two roads to one number: balls of flint there, decimals here."""
    scale = Fraction(top, bottom) + Fraction(1, 100)
    sensitivity = Sensitivity(l1=Fraction(distance), l2_squared=Fraction(distance**2))
    charged = AboveThreshold(scale, Fraction(1)).cost_units(sensitivity, measure)
    if charged >= 10**19:
        return
    mine = least(measure, "sparse-vector", scale, sensitivity)
    assert mine <= charged <= mine + (mine >> 40) + 1


@pytest.mark.parametrize("epsilon", ["1e-6", "0.001", "0.5", "3", "40"])
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_the_price_is_that_of_the_formulas(measure: Measure, epsilon: str) -> None:
    """mpmath, an oracle of its own: an eps-pure mechanism, or eps/2 more than Laplace noise of eps/2."""
    with mp.workdps(80):
        eps = mpf(epsilon)
        if measure == Measure.PURE:
            exact = eps
        elif measure == Measure.ZCDP:
            exact = min(eps * mp.tanh(eps / 2), eps + mp.exp(-eps / 2) - 1)
        elif measure.order is None:
            # Phi(mu/2) = e^eps/(1 + e^eps), by bisection on the complement.
            low, high = mpf(0), mpf(400)
            for _ in range(260):
                middle = (low + high) / 2
                far = mp.erfc(middle / 2 / mp.sqrt(2)) / 2
                low, high = (middle, high) if far > 1 / (1 + mp.exp(eps)) else (low, middle)
            exact = high**2
        else:
            alpha = mpf(measure.order.numerator) / measure.order.denominator
            pure = mp.log((mp.exp(alpha * eps) + mp.exp((1 - alpha) * eps)) / (1 + mp.exp(eps))) / (alpha - 1)
            half = eps / 2
            share = alpha / (2 * alpha - 1)
            laplace = mp.log(share * mp.exp((alpha - 1) * half) + (1 - share) * mp.exp(-alpha * half)) / (alpha - 1)
            exact = min(pure, half + laplace)
        found = least(
            measure,
            "sparse-vector",
            Fraction(2) / Fraction(epsilon),
            Sensitivity(l1=Fraction(1), l2_squared=Fraction(1)),
        )
        assert abs(found - exact * 10**15) <= 1 + exact * mpf(10) ** -20
