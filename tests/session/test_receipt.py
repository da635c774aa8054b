"""What a receipt says, recomputed by hand."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import mpmath

import parco
from tests.shop import open_shop


def test_the_claims_of_a_gdp_account(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, budget='epsilon = "1"\ndelta = "1e-6"\nreceipt_order = 20')
    session = parco.Session(contract)
    session.count(cost="0.01")
    receipt = session.count_units(by="month", cost="0.02").receipt
    record = receipt.record()
    assert json.loads(json.dumps(record)) == record
    assert receipt.spent.value == Fraction(3, 100)
    assert receipt.bound == 20 * Fraction(2, 100) / 2
    cap, *realised = receipt.claims()
    assert cap.epsilon + Fraction(1, 10**12) >= 1
    assert cap.epsilon <= 1
    assert (cap.basis, cap.status, cap.delta) == ("cap", "valid", Fraction(1, 10**6))
    by_name = {claim.accountant: claim for claim in realised}
    mpmath.mp.dps = 40
    slack = mpmath.log(10**6) / 19
    bound = mpmath.mpf(20) * 3 / 100 / 2
    improved = bound + slack + mpmath.log(mpmath.mpf(19) / 20) - mpmath.log(20) / 19
    for name, truth in (("ex-post-hockey-stick", improved), ("ex-post-probabilistic", bound + slack)):
        claimed = by_name[name].epsilon
        assert truth <= mpmath.mpf(claimed.numerator) / claimed.denominator <= truth * (1 + mpmath.mpf(10) ** -12)


def test_a_claim_never_travels_without_what_it_depends_on(tmp_path: Path) -> None:
    receipt = parco.Session(open_shop(tmp_path)).count(cost="0.1").receipt
    for claim in receipt.record()["claims"]:  # type: ignore[attr-defined]
        for field in (
            "unit",
            "neighbours",
            "bounds",
            "measure",
            "accountant",
            "fixed_in_advance",
            "sampling",
            "status",
        ):
            assert claim[field] not in ("", None)
    for name in ("contract_digest", "version", "mechanism", "scale", "lattice", "position", "parco", "unprotected"):
        assert receipt.record()[name]
    assert "0.9 of 1" in str(receipt)


def test_reserved_amounts_of_others_count_as_spent_in_the_claim(tmp_path: Path) -> None:
    """A request in flight may have touched the data: the claim at this position must cover it."""
    from parco.ledger.entries import Charge, MechanismFacts, SensitivityFacts
    from parco.stores.records import Request, Started
    from parco.stores.sqlite import SqliteStore

    contract = open_shop(tmp_path)
    store = SqliteStore.open(tmp_path / "shop.ledger")
    request = Request(
        actor="other",
        question="another question",
        contract=store.signed("shop", "shop").contract,
        mechanism=MechanismFacts("two-sided-geometric", Fraction(40), Fraction(1)),
        sensitivity=SensitivityFacts(Fraction(4), Fraction(8)),
        cells=1,
        charges=(Charge(1, 10**14, 0),),
    )
    assert isinstance(store.begin(request, serves=lambda _: False), Started)
    receipt = parco.Session(contract).count(cost="0.2").receipt
    assert receipt.spent.value == Fraction(3, 10)
    assert receipt.claims()[-1].epsilon == Fraction(3, 10)
