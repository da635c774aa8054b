"""Where a ladder of refinements may stop that was reserved whole: at a coarser law of its own, for what that costs.

    reserve ──▶ start ──▶ stop

The only end of a request that gives something back once the data may have been read (docs/mathematics.md, "Settling
less than was reserved").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parco.ledger.entries import LADDERS, Charge, MechanismFacts, Reserve

__all__ = ["why_not_stopped"]


def why_not_stopped(reserve: Reserve, reached: MechanismFacts, realised: Sequence[Charge]) -> str | None:
    """Why a ladder that was reserved up to its finest law cannot have stopped at this law and charge; None if it can.

    What the law costs is not worked out here, as no ledger knows the facts of mechanisms; verifying does.
    """
    held, finest = reserve.charges, reserve.mechanism
    if [one.account for one in held] != [one.account for one in realised]:
        return "it charges other accounts than were reserved"
    if finest.kind not in LADDERS or replace(reached, scale=finest.scale) != finest or reached.scale < finest.scale:
        return "its law does not lie in the ladder that was reserved"
    if any(real.cost > one.cost or real.delta != one.delta for one, real in zip(held, realised, strict=True)):
        return "it charges more than was reserved, or gives back a delta"
    return None
