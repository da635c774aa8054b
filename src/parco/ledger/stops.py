"""Where a ladder of refinements may stop that was reserved whole: at a coarser law of its own, for what that costs.

    reserve ──▶ start ──▶ stop

The only end of a request that gives something back once the data may have been read (docs/mathematics.md, "Settling
less than was reserved").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parco.ledger.entries import LADDERS, Charge, Draw, MechanismFacts, Refine, Reserve

__all__ = ["why_not_stopped"]


def why_not_stopped(reserve: Reserve | Refine, reached: MechanismFacts, realised: Sequence[Charge]) -> str | None:
    """Why a ladder that was reserved up to its finest law cannot have stopped at this law and charge; None if it can.

    What the law costs is not worked out here, as no ledger knows the facts of mechanisms; verifying does. A step of a
    schedule is paid as it was signed, and a refinement is one draw: neither is a ladder. Nor is a selection of keys,
    whose delta would rise with the noise.
    """
    if isinstance(reserve, Draw | Refine):
        return "a step of a schedule, or a refinement, is charged whole"
    held, finest = reserve.charges, reserve.mechanism
    if [one.account for one in held] != [one.account for one in realised]:
        return "it charges other accounts than were reserved"
    if finest.kind not in LADDERS or replace(reached, scale=finest.scale) != finest or reached.scale < finest.scale:
        return "its law does not lie in the ladder that was reserved"
    if any(real.cost > one.cost for one, real in zip(held, realised, strict=True)):
        return "it charges more than was reserved"
    if any(charge.delta for charge in (*held, *realised)):
        return "keys that were selected at a delta are no ladder"
    return None
