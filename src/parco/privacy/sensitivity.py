"""How far one protected unit can move a statistic, in the two norms that mechanisms need."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from parco.errors import RequestError

__all__ = ["Sensitivity"]


@dataclass(frozen=True)
class Sensitivity:
    """For every pair of neighbours, bounds the distance of their statistics, or raises RequestError if not positive.

    `l1`: in the L1 norm, in the statistic's own units. `l2_squared`: the square of the L2 norm (the square, because it
    is rational where the norm is not). Zero is refused: it would ask for no noise at all, and is always a mistake
    upstream. Source: docs/mathematics.md, "Sensitivity".
    """

    l1: Fraction
    l2_squared: Fraction

    def __post_init__(self) -> None:
        if self.l1 <= 0 or self.l2_squared <= 0:
            raise RequestError("a sensitivity is a positive number: with zero the answer would carry no noise")
