"""The table that make_figures.py made, as exact numbers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

__all__ = ["EPSILONS", "PRINTED", "WITNESS", "is_just_above"]

_TABLE = json.loads((Path(__file__).parents[1] / "data" / "figures.json").read_text(encoding="utf-8"))

WITNESS: list[dict[str, str]] = _TABLE["witness"]
PRINTED = [(row["printed_closed_form"], row["printed_dense_search"]) for row in WITNESS]
EPSILONS = {
    (row["releases"], row["scale"]): (Fraction(row["valid"]), Fraction(row["tight"])) for row in _TABLE["epsilon"]
}
"""(releases, scale) -> (closed form, exact), to thirty digits."""

_TRUSTED = Fraction(1, 10**28)


def is_just_above(bound: Fraction, truth: Fraction, *, slack: Fraction) -> bool:
    """Whether a bound is not below the truth, as far as thirty digits tell, and above it by at most `slack` of it."""
    return truth * (1 - _TRUSTED) <= bound <= truth * (1 + slack)
