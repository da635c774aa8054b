"""Choices and selected keys before the verifiers: their prices are worked out anew, in every measure."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from parco.audit import offline, offline_life, offline_prices
from parco.audit.offline import CheckError
from parco.audit.verify import verify
from parco.measure import Measure
from parco.mechanisms.mechanism import Exponential
from parco.privacy.sensitivity import Sensitivity
from parco.session.session import Session
from parco.stores.keys import signature_holds
from parco.stores.sqlite import SqliteStore
from tests.shop import COLUMNS, HEADER, ROWS, open_shop, write_csv

DELTAS = 'delta = "1e-6"\ndelta_mechanisms = "1e-7"'
BUDGETS = {
    "pure": 'measure = "pure"\nepsilon = "3"\ndelta = "1e-7"\ndelta_mechanisms = "1e-7"',
    "zcdp": f'measure = "zcdp"\nepsilon = "3"\n{DELTAS}\nreceipt_order = 20',
    "gdp": f'measure = "gdp"\nepsilon = "3"\n{DELTAS}\nreceipt_order = 20',
    "renyi": f'measure = "renyi"\norder = 4\ntotal = "2"\n{DELTAS}',
}
SELECTED = COLUMNS + '\n[columns.town]\ntype = "text"\nkeys = "select"\n'
MEASURES = [Measure.PURE, Measure.ZCDP, Measure.GDP, Measure.renyi(Fraction(20)), Measure.renyi(Fraction(3, 2))]


class FastLedger(offline_life.Ledger):
    """The offline verifier with a faster library's Ed25519."""

    verify = staticmethod(signature_holds)


def fed(lines: list[bytes]) -> FastLedger:
    ledger = FastLedger()
    for line in lines:
        ledger.feed(line)
    return ledger


@pytest.fixture(scope="module", params=BUDGETS)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with each statistic that chooses, and one that selects keys."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    contract = open_shop(folder, budget=BUDGETS[request.param], columns=SELECTED)
    write_csv(folder / "purchases.csv", [(*row, "Roma") for row in ROWS], header=(*HEADER, "town"))
    with Session(contract) as session:
        session.quantile("dollars", at=["0.25", "0.5"], cost="0.01")
        session.top("channel", k=2, cost="0.01")
        session.suggest_bounds("dollars", by="month", cost="0.01")
        session.select_keys("town", cost="0.02", delta="1e-8")
        session.count(cost="0.01")
    return folder


def test_both_verifiers_take_every_statistic(shop: Path) -> None:
    store = SqliteStore.open(shop / "shop.ledger")
    verify(store, strict=True)
    kinds = {row.mechanism.kind for row in store.history() if row.mechanism is not None}
    assert "exponential" in kinds
    assert sum(charge.delta for row in store.history() for charge in row.charges) > 0
    place = shop / "x.export"
    place.write_bytes(b"\n".join(store.export()) + b"\n")
    command = [sys.executable, "-I", "-S", str(offline_life.__file__), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    chosen = next(line for line in store.export() if b'"kind":"exponential"' in line)
    with pytest.raises(CheckError, match="offline_life"):
        offline.read(chosen, 1)


def test_a_charge_too_small_by_a_billionth_is_owed_and_one_too_large_refused(shop: Path) -> None:
    lines = [line for line in SqliteStore.open(shop / "shop.ledger").export() if b'"tag":"head"' not in line]
    place = next(place for place, line in enumerate(lines) if b'"kind":"exponential"' in line)
    found = re.search(rb'"charges":\[\[1,(\d+),0\]\]', lines[place])
    assert found is not None
    cost = int(found[1])
    for bent, is_owed in ((cost, False), (cost - cost // 10**9, True)):
        line = lines[place].replace(found[0], b'"charges":[[1,%d,0]]' % bent)
        assert (fed([*lines[:place], line]).owed != {}) is is_owed
    with pytest.raises(CheckError, match="priced"):
        fed([*lines[:place], lines[place].replace(found[0], b'"charges":[[1,%d,0]]' % (cost + cost // 10**9))])


def test_a_delta_has_to_fit_under_its_cap(shop: Path) -> None:
    lines = [line for line in SqliteStore.open(shop / "shop.ledger").export() if b'"tag":"head"' not in line]
    place = next(place for place, line in enumerate(lines) if re.search(rb'"charges":\[\[1,\d+,[1-9]', line))
    found = re.search(rb"(\[\[1,\d+,)(\d+)\]\]", lines[place])
    assert found is not None
    for delta, fits in ((10**11, True), (10**11 + 1, False)):
        line = lines[place].replace(found[0], found[1] + b"%d]]" % delta)
        if fits:
            fed([*lines[:place], line])
        else:
            with pytest.raises(CheckError, match="capped"):
                fed([*lines[:place], line])


def text(value: Fraction) -> str:
    return f"[{value.numerator},{value.denominator}]"


def least(measure: Measure, kind: str, scale: Fraction, sensitivity: Sensitivity) -> int:
    """The offline verifier's price of a mechanism on the lattice of step 1."""
    order = None if measure.order is None else text(measure.order)
    ratios = (scale, Fraction(1), sensitivity.l1, sensitivity.l2_squared)
    found = offline_prices.least(measure.tag, order, kind, *map(text, ratios))
    assert found is not None
    return found


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@settings(max_examples=25, deadline=None)
@given(top=st.integers(1, 10**6), bottom=st.integers(1, 10**6), choices=st.integers(1, 50))
def test_the_price_is_the_librarys(measure: Measure, top: int, bottom: int, choices: int) -> None:
    """Two roads to one number: balls of flint there, decimals here."""
    scale = Fraction(top, bottom) + Fraction(1, 100)
    sensitivity = Sensitivity(l1=Fraction(choices), l2_squared=Fraction(choices))
    charged = Exponential(scale, Fraction(1)).cost_units(sensitivity, measure)
    if charged >= 10**19:
        return
    mine = least(measure, "exponential", scale, sensitivity)
    assert mine <= charged <= mine + (mine >> 40) + 1


@pytest.mark.parametrize("epsilon", ["1e-6", "0.001", "0.5", "3", "40", "1200"])
def test_gdp_is_the_gaussian_through_the_kink(epsilon: str) -> None:
    """mpmath's inverse, an oracle of its own."""
    with mp.workdps(700):
        target = 1 / (1 + mp.exp(-mpf(epsilon) / 2))
        found = offline_prices.least(
            "gdp", None, "exponential", *map(text, (Fraction(2) / Fraction(epsilon), *[Fraction(1)] * 3))
        )
        assert found is not None
        # Phi rises: what is least lies above the target, and a unit less below.
        phi = [mp.erfc(-mp.sqrt(mpf(units) / 10**15) / 2 / mp.sqrt(2)) / 2 for units in (found - 1, found)]
        assert phi[0] < target <= phi[1]


def test_a_scale_that_no_account_could_pay_is_dear() -> None:
    assert (
        offline_prices.least("gdp", None, "exponential", "[1,10000]", "[1,1]", "[1,1]", "[1,1]")
        == offline_prices.UNITS_MAX
    )
