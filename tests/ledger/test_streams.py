"""An interactive request has its accounts to itself, from its reservation to its end."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from parco.errors import VerificationError
from parco.ledger.accounts import apply, sharpens
from parco.ledger.entries import INTERACTIVE, KINDS, Forfeit, MechanismFacts, Reserve, SensitivityFacts, Void
from parco.ledger.stops import why_not_stopped

from .build import mark, opening, reserve, settle, start
from .test_accounts import after

STREAM = MechanismFacts("sparse-vector", Fraction(8), Fraction(1))


def stream(seq: int, key: str = "stream", **changes: object) -> Reserve:
    one = reserve(seq, cost=1, delta=0, key=key, **changes)  # type: ignore[arg-type]
    return replace(one, mechanism=STREAM, sensitivity=SensitivityFacts(Fraction(4), Fraction(16)))


def test_its_kind_is_one_of_the_closed_list() -> None:
    assert set(INTERACTIVE) < set(KINDS)


def test_its_verdicts_are_no_ladder_and_no_answer_to_sharpen() -> None:
    one = stream(2)
    coarser, finer = (replace(STREAM, scale=STREAM.scale * factor) for factor in (2, Fraction(1, 2)))
    assert "does not lie in the ladder" in (why_not_stopped(one, coarser, one.charges) or "")
    assert not sharpens(one, replace(one, mechanism=finer))


@pytest.mark.parametrize("started", [False, True])
def test_nothing_is_admitted_beside_it(started: bool) -> None:
    state = after(opening(), stream(2), *([start(3)] if started else []))
    assert state.streams == {1: 2}
    for other in (reserve(3 + started, cost=1, key="other"), stream(3 + started, key="other")):
        with pytest.raises(VerificationError, match="alone"):
            apply(state, other)


def test_it_is_not_admitted_beside_what_is_open() -> None:
    with pytest.raises(VerificationError, match="alone"):
        apply(after(opening(), reserve(2, cost=1, delta=0), start(3)), stream(4))
    done = after(opening(), reserve(2, cost=1, delta=0), start(3), settle(4, cost=1, delta=0), stream(5))
    assert done.requests[5].state == "reserved"


@pytest.mark.parametrize(
    "end", [Void(seq=3, actor=mark("ana"), request=2), Forfeit(seq=4, actor=mark("ana"), request=2)]
)
def test_once_it_has_ended_others_come(end: Void | Forfeit) -> None:
    before = [] if isinstance(end, Void) else [start(3)]
    state = after(opening(), stream(2), *before, end, reserve(end.seq + 1, cost=1, key="other"))
    assert state.requests[end.seq + 1].state == "reserved"
    assert after(*[opening(), stream(2), *before, end, stream(end.seq + 1, key="other")]).streams == {1: end.seq + 1}
