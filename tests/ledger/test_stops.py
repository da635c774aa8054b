"""Where a ladder that was reserved whole may stop, and where not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from parco.errors import VerificationError
from parco.ledger.accounts import apply
from parco.ledger.entries import Balance, Charge, MechanismFacts, SensitivityFacts, Stop

from .build import mark, opening, reserve, start, stop
from .test_accounts import after, balance


def test_a_ladder_that_stops_early_gives_back_what_its_last_law_does_not_cost() -> None:
    state = after(opening(), reserve(), start(), stop())
    assert balance(state) == (20, 0, 1, 0)
    assert state.requests[2].state == "settled"
    assert state.accounts[1].has_room(Charge(1, 80))


FINEST = MechanismFacts("two-sided-geometric", Fraction(7, 3), Fraction(1))


@pytest.mark.parametrize(
    ("message", "bad"),
    [
        ("more than was reserved", stop(cost=41)),
        ("does not lie in the ladder", stop(scale=Fraction(2))),
        ("does not lie in the ladder", replace(stop(), mechanism=replace(FINEST, kind="gaussian"))),
        ("does not lie in the ladder", replace(stop(), mechanism=replace(FINEST, lattice=Fraction(1, 2)))),
        ("sensitivity", replace(stop(), sensitivity=SensitivityFacts(Fraction(1), Fraction(4)))),
        (
            "gives back a delta",
            replace(stop(), charges=(Charge(1, 20),), accounts=(Balance(1, 100, 20, 0, 0, 10, 0, 0, 0),)),
        ),
        ("other accounts", replace(stop(), charges=(Charge(2, 20, 1),))),
        ("not what the entries add up to", replace(stop(), accounts=(Balance(1, 100, 19, 0, 0, 10, 1, 0, 0),))),
        ("another actor", replace(stop(), actor=mark("bo"))),
    ],
)
def test_a_ladder_stops_nowhere_else(message: str, bad: Stop) -> None:
    with pytest.raises(VerificationError, match=message):
        apply(after(opening(), reserve(), start()), bad)


def test_only_noise_that_can_be_refined_stops_early_and_only_once_started() -> None:
    choice = MechanismFacts("exponential", Fraction(7, 3), Fraction(1))
    with pytest.raises(VerificationError, match="does not lie in the ladder"):
        apply(
            after(opening(), replace(reserve(), mechanism=choice), start()),
            replace(stop(), mechanism=replace(choice, scale=Fraction(3))),
        )
    with pytest.raises(VerificationError, match="is reserved, not started"):
        apply(after(opening(), reserve()), stop(3))
    with pytest.raises(VerificationError, match="is settled, not started"):
        apply(after(opening(), reserve(), start(), stop()), stop(5))
