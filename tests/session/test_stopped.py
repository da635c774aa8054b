"""A ladder that was reserved whole and stopped early, as a session and its receipts see it afterwards."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco import canonical
from parco.audit.verify import verify
from parco.ledger.entries import Charge, MechanismFacts, SensitivityFacts
from parco.mechanisms.mechanism import Gaussian
from parco.mechanisms.stopping import StoppedGaussian
from parco.privacy.expost import ExPost
from parco.stores.records import Request, Started, Stopped
from parco.stores.sqlite import SqliteStore
from tests.shop import open_shop

ORDER = Fraction(20)


def stopped_count(session: parco.Session, store: SqliteStore, cost: str) -> tuple[Gaussian, Gaussian]:
    """A count by month whose finest law costs this much, stopped at four times the variance; both laws."""
    plan = session.plan.count(by="month", cost=cost)
    finest = Gaussian(plan.mechanism.scale, plan.mechanism.lattice)
    reached = Gaussian(2 * finest.scale, finest.lattice)
    begun = store.begin(
        Request(
            actor="ana",
            question=plan.question,
            contract=store.signed("shop", "shop").contract,
            mechanism=MechanismFacts("gaussian", finest.scale, finest.lattice),
            sensitivity=SensitivityFacts(plan.sensitivity.l1, plan.sensitivity.l2_squared),
            cells=4,
            charges=(Charge(1, finest.cost_units(plan.sensitivity, parco.Measure.GDP)),),
        ),
        serves=lambda _: False,
    )
    assert isinstance(begun, Started)
    charge = Charge(1, reached.cost_units(plan.sensitivity, parco.Measure.GDP))
    law = MechanismFacts("gaussian", reached.scale, reached.lattice)
    cells = [1, -2, 3, 4]
    drawn = {"draws": [[[0, 64 * cell]] for cell in cells], "laws": [list(reached.scale.as_integer_ratio())]}
    answer = canonical.encode({"cells": cells, "parco": "0.1.0", **drawn})
    store.stop(begun.request, answer=answer, stopped=Stopped(law, (charge,)))
    return finest, reached


def test_a_receipt_keeps_what_was_reserved_and_what_was_realised(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, budget='epsilon = "1"\ndelta = "1e-6"\nreceipt_order = 20')
    session, store = parco.Session(contract), SqliteStore.open(tmp_path / "shop.ledger")
    finest, reached = stopped_count(session, store, "0.04")
    # A repeat: as sharp as the law that was reached, and no sharper.
    with pytest.raises(parco.SharperError):
        session.count(by="month", cost="0.02")
    release = session.count(by="month", cost="0.009")
    assert release.repeat
    receipt = release.receipt
    assert receipt.mechanism == StoppedGaussian(reached.scale, reached.lattice)
    # Its rounding is taken at its worst.
    assert 0 <= release.value.half_width - reached.half_width(Fraction(95, 100)) <= reached.lattice
    assert receipt.reserved is not None
    assert receipt.cost.value <= Fraction(1, 100) < Fraction(39, 1000) < receipt.reserved.value
    assert receipt.reserved.units == finest.cost_units(receipt.sensitivity, parco.Measure.GDP)
    assert receipt.ex_post == ExPost(parco.Measure.GDP, ORDER, ORDER / 2 * receipt.cost.value)
    assert receipt.spent == receipt.cost
    realised = [claim for claim in receipt.claims() if claim.basis == "realised"]
    assert [claim.total for claim in realised] == [receipt.cost.value] * 2
    record = receipt.record()
    assert (record["cost"], record["reserved"]) == (str(receipt.cost), str(receipt.reserved))
    assert f"reserved   {receipt.reserved} before the data were read; what the steps" in str(receipt)
    assert "(realised: what the steps that ran cost); " in str(receipt)
    assert "adds up over releases" in str(receipt)
    verify(store, releases=[json.loads(json.dumps(release.record()))])


FIXED_ONLY = "fixed without a look at noisy values"


def test_a_repeat_of_a_stopped_answer_does_not_promise_plain_coverage(tmp_path: Path) -> None:
    """The rule stopped where noise made it look sharp: its own, wider intervals hold, plain ones do not."""
    session = parco.Session(open_shop(tmp_path, budget='measure = "gdp"\nmu = "3"\nreceipt_order = 8\ndelta = "1e-6"'))
    ask = parco.Ask("count", by="month")
    found = parco.release_until(session, ask, parco.AbsoluteError("20"), at_most="2", reserve=True).release
    again = session.count(by="month")
    assert again.repeat
    assert again.value.half_width < found.value.half_width
    assert FIXED_ONLY in again.promise
    assert FIXED_ONLY not in found.promise
    assert found.promise == found.value.promise
    assert (again.record()["promise"], found.record()["promise"]) == (again.promise, found.promise)
    assert again.map(str).promise == ""
    other = session.count(by="month", cost="0.1", fresh=True)
    assert FIXED_ONLY in parco.combine([found, other]).promise


def test_what_is_made_of_a_refined_answer_says_so_too(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path, budget='measure = "gdp"\nmu = "3"\nreceipt_order = 8\ndelta = "1e-6"'))
    count = session.count("dollars", by="month", cost="0.1")
    assert count.promise == count.value.promise
    refined = session.refine(count, cost="0.1")
    assert FIXED_ONLY in refined.promise
    mean = session.mean("dollars", by="month", cost="0.2")
    assert refined.receipt.release in mean.receipt.releases
    assert FIXED_ONLY in mean.promise


def test_an_ordinary_receipt_reserved_what_it_cost(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path))
    receipt = session.mean("dollars", cost="0.2").receipt
    assert receipt.reserved is None
    assert receipt.record()["reserved"] == receipt.record()["cost"] == "0.2"
    assert "before the data were read" not in str(receipt)
    assert "of the budget, all that was reserved; " in str(receipt)
    assert "never larger" in str(receipt)
