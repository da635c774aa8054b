"""Where a ladder of refinements may stop that was reserved whole: at a coarser law of its own, for what that costs.

    reserve ──▶ start ──▶ stop

The only end of a request that gives something back once the data may have been read (docs/mathematics.md, "Settling
less than was reserved").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from parco.ledger.entries import LADDERS, Charge, Draw, MechanismFacts, Refine, Reserve

__all__ = ["why_not_stopped"]


def why_not_stopped(
    reserve: Reserve | Refine, reached: MechanismFacts, realised: Sequence[Charge], *, scales: Sequence[Fraction] = ()
) -> str | None:
    """Why a ladder that was reserved up to its finest law cannot have stopped at this law and charge; None if it can.

    `scales`: of each cell, where they are not all alike. What it costs is not worked out here, as no ledger knows the
    facts of mechanisms; verifying does. A step of a schedule is paid as it was signed, and a refinement is one draw:
    neither is a ladder. Nor is a selection of keys, whose delta would rise with the noise.
    """
    held, finest = reserve.charges, reserve.mechanism
    sharpest = min(scales, default=reached.scale)
    # One scale for all cells is told once.
    told = not scales or (len(scales) == reserve.cells and sharpest < max(scales) == reached.scale)
    lies = finest.kind in LADDERS and replace(reached, scale=finest.scale) == finest and sharpest >= finest.scale
    found = {
        "a step of a schedule, or a refinement, is charged whole": isinstance(reserve, Draw | Refine),
        "it charges other accounts than were reserved": [one.account for one in held]
        != [one.account for one in realised],
        "its law does not lie in the ladder that was reserved": not (told and lies),
        "keys that were selected at a delta are no ladder": any(charge.delta for charge in (*held, *realised)),
        "it charges more than was reserved": any(
            real.cost > one.cost for one, real in zip(held, realised, strict=False)
        ),
    }
    return next((why for why, holds in found.items() if holds), None)
