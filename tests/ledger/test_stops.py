"""Where a ladder that was reserved whole may stop, and where not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from parco.errors import VerificationError
from parco.ledger.accounts import apply
from parco.ledger.entries import Balance, Capped, Charge, MechanismFacts, Quota, SensitivityFacts, Stop

from .build import GAUSSIAN, draw, mark, opening, recost, refine, reserve, schedule, settle, start, stop
from .test_accounts import after, balance

LADDER = reserve(delta=0)
PATH = replace(LADDER, mechanism=GAUSSIAN)


def test_a_ladder_that_stops_early_gives_back_what_its_last_law_does_not_cost() -> None:
    state = after(opening(), LADDER, start(), stop())
    assert balance(state) == (20, 0, 0, 0)
    assert state.requests[2].state == "settled"
    assert state.accounts[1].has_room(Charge(1, 80))


APART = (*(Fraction(14, 3),) * 11, Fraction(3))


def test_cells_may_stop_apart() -> None:
    assert balance(after(opening(), LADDER, start(), replace(stop(cost=30), scales=APART))) == (30, 0, 0, 0)


def test_a_selection_of_keys_is_no_ladder() -> None:
    """Its delta would rise with the noise."""
    charged = replace(stop(), charges=(Charge(1, 20, 1),), accounts=(Balance(1, 100, 20, 0, 0, 10, 1, 0, 0),))
    with pytest.raises(VerificationError, match="selected at a delta"):
        apply(after(opening(), reserve(delta=1), start()), charged)


def test_a_step_of_a_schedule_and_a_refinement_are_charged_whole() -> None:
    drawn = after(opening(), schedule(questions="q", cost=20), draw(), start(4, 3))
    spent = replace(stop(5, request=3), accounts=(Balance(1, 100, 20, 0, 0, 10, 0, 0, 0),))
    with pytest.raises(VerificationError, match="a step of a schedule, or a refinement"):
        apply(drawn, spent)
    refined = after(opening(), PATH, start(), settle(delta=0), refine(), start(6, 5))
    with pytest.raises(VerificationError, match="a step of a schedule, or a refinement"):
        apply(refined, replace(stop(7, request=5), accounts=(Balance(1, 100, 60, 0, 0, 10, 0, 0, 0),)))


def test_an_answer_at_which_a_ladder_stopped_is_not_refined() -> None:
    stopped = replace(stop(), mechanism=replace(GAUSSIAN, scale=Fraction(3)))
    with pytest.raises(VerificationError, match="request 2 is a ladder that stopped early"):
        apply(after(opening(), PATH, start(), stopped), refine())
    apply(after(opening(), PATH, start(), settle(delta=0)), refine())


def test_a_recost_counts_from_what_was_realised() -> None:
    """Of 40 reserved 20 were charged: three times that is 60."""
    stopped = (opening(), LADDER, start(), stop())
    assert balance(after(*stopped, recost(5, (2, 60, 0), added=40, factor=Fraction(3)))) == (60, 0, 0, 0)
    assert balance(after(*stopped, recost(5, (2, 30, 0), added=10))) == (30, 0, 0, 0)
    with pytest.raises(VerificationError, match="below what was charged"):
        apply(after(*stopped), recost(5, (2, 19, 0), added=-1))


def test_a_ladder_that_was_recosted_while_it_ran_is_charged_whole() -> None:
    """That total counts from what was reserved; a correction of it would take back what the stop gave back before."""
    running = after(opening(), LADDER, start(), recost(4, (2, 80, 0), added=40))
    early = replace(stop(5), accounts=(Balance(1, 100, 60, 0, 0, 10, 0, 0, 0),))
    with pytest.raises(VerificationError, match="recosted while it ran"):
        apply(running, early)
    whole = replace(settle(5, delta=0), accounts=(Balance(1, 100, 80, 0, 0, 10, 0, 0, 0),))
    assert balance(apply(running, whole)) == (80, 0, 0, 0)


def test_a_quota_counts_what_was_realised() -> None:
    limit = Quota(
        seq=2,
        actor=mark("steward"),
        time=1,
        name=mark("team"),
        members=(mark("ana"),),
        accounts=(Capped(1, 50),),
        reason=mark("why"),
    )
    ladder = replace(LADDER, seq=3)
    running = after(opening(), limit, ladder, start(4, 3))
    assert running.shares[2].used == {1: 40}
    ended = apply(running, stop(5, request=3))
    assert ended.shares[2].used == {1: 20}
    # Signed anew, it finds the same in what came before.
    assert apply(ended, replace(limit, seq=6)).shares[6].used == {1: 20}


FINEST = MechanismFacts("two-sided-geometric", Fraction(7, 3), Fraction(1))


@pytest.mark.parametrize(
    ("message", "bad"),
    [
        ("more than was reserved", stop(cost=41)),
        ("does not lie in the ladder", stop(scale=Fraction(2))),
        ("does not lie in the ladder", replace(stop(), scales=(Fraction(14, 3),) * 11 + (Fraction(2),))),
        ("does not lie in the ladder", replace(stop(), scales=(Fraction(14, 3),) * 12)),
        ("does not lie in the ladder", replace(stop(), scales=APART[:-1])),
        ("does not lie in the ladder", replace(stop(scale=Fraction(5)), scales=APART)),
        ("does not lie in the ladder", replace(stop(), mechanism=replace(FINEST, kind="gaussian"))),
        ("does not lie in the ladder", replace(stop(), mechanism=replace(FINEST, lattice=Fraction(1, 2)))),
        ("sensitivity", replace(stop(), sensitivity=SensitivityFacts(Fraction(1), Fraction(4)))),
        ("other accounts", replace(stop(), charges=(Charge(2, 20),))),
        ("not what the entries add up to", replace(stop(), accounts=(Balance(1, 100, 19, 0, 0, 10, 0, 0, 0),))),
        ("another actor", replace(stop(), actor=mark("bo"))),
    ],
)
def test_a_ladder_stops_nowhere_else(message: str, bad: Stop) -> None:
    with pytest.raises(VerificationError, match=message):
        apply(after(opening(), LADDER, start()), bad)


def test_only_noise_that_can_be_refined_stops_early_and_only_once_started() -> None:
    choice = MechanismFacts("exponential", Fraction(7, 3), Fraction(1))
    with pytest.raises(VerificationError, match="does not lie in the ladder"):
        apply(
            after(opening(), replace(LADDER, mechanism=choice), start()),
            replace(stop(), mechanism=replace(choice, scale=Fraction(3))),
        )
    with pytest.raises(VerificationError, match="is reserved, not started"):
        apply(after(opening(), LADDER), stop(3))
    with pytest.raises(VerificationError, match="is settled, not started"):
        apply(after(opening(), LADDER, start(), stop()), stop(5))
