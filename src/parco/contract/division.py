"""How a data set is divided into accounts: not at all, into parts of its units, or into calendar periods.

Under add-or-remove each unit is in one part, decided by a coin that depends on the unit and the data set's secret alone
(docs/mathematics.md, "Parts"). The coin is a whole number below 2^60; a part owns a range of them.
With periods the protected unit is one unit in one period (docs/mathematics.md, "Periods").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

__all__ = ["COIN_BITS", "WHOLE", "check_parts", "check_period", "coin_range", "part_names"]

WHOLE = "whole"
"""The label of the account of a data set that is not divided."""

COIN_BITS = 60
_SHARE_MIN = Fraction(1, 10**6)
_PARTS_MAX, _PERIODS_MAX = 100, 1000


def check_parts(parts: Mapping[str, Fraction] | None, *, neighbours: str) -> None:
    """Raises ValueError unless the shares are those of two parts or more and sum to 1, under add-or-remove."""
    if parts is None:
        return
    if neighbours != "add-or-remove":
        # A replaced unit may leave one part and enter another, so that the costs of both add up.
        raise ValueError('parts need neighbours = "add-or-remove": leave out [parts]')
    if not 2 <= len(parts) <= _PARTS_MAX:
        raise ValueError(f"parts: declare between 2 and {_PARTS_MAX} parts")
    if WHOLE in parts:
        raise ValueError(f"parts: {WHOLE!r} names the undivided data set: give the part another name")
    if any(share < _SHARE_MIN for share in parts.values()):
        raise ValueError("parts: a share is at least 1e-6")
    if sum(parts.values()) != 1:
        raise ValueError('parts: the shares must sum to 1 exactly; write thirds as "1/3"')


def check_period(keys: tuple[object, ...] | None, *, neighbours: str, parts: bool) -> None:
    """Raises ValueError unless `keys` are those of declared bins that may stand for periods, under add-or-remove."""
    if keys is None:
        raise ValueError("unit.period: name bins that the contract declares, such as month")
    if neighbours != "add-or-remove" or parts:
        raise ValueError('unit.period needs neighbours = "add-or-remove", and no [parts]')
    if len(keys) > _PERIODS_MAX:
        raise ValueError(f"unit.period: each period is an account, and there are at most {_PERIODS_MAX}")


def part_names(parts: Mapping[str, Fraction]) -> tuple[str, ...]:
    """The parts in the order of their accounts: by name, since two files that say the same may list them otherwise."""
    return tuple(sorted(parts))


def coin_range(parts: Mapping[str, Fraction], part: str) -> tuple[int, int]:
    """The half-open range of coins, in units of 2^-60, whose units are in the part.

    The ends are the sums of the shares rounded down, so that a share is met within 2^-60 and the ranges meet exactly.
    """
    names = part_names(parts)
    before = sum((parts[name] for name in names[: names.index(part)]), Fraction(0))
    return math.floor(before * 2**COIN_BITS), math.floor((before + parts[part]) * 2**COIN_BITS)
