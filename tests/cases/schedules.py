"""Schedules of sampled Gaussian releases, and intervals against values of thirteen digits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from parco.privacy.composition import Interval, compose
from parco.privacy.schedule import Schedule

__all__ = ["encloses", "epsilon", "sampled"]

# The values were computed to thirteen digits or more: so far a true interval may be off from them.
_KNOWN = Fraction(1, 10**12)


def sampled(rate: str, scale: str, times: int) -> dict[str, Any]:
    """A record of Gaussian releases on Poisson samples; `scale` in units of the sensitivity."""
    sampling = {"scheme": "poisson", "rate": rate}
    return {"mechanism": "gaussian", "sensitivity": "1", "scale": scale, "times": times, "sampling": sampling}


def epsilon(*records: dict[str, Any], delta: str) -> Interval:
    """The certified interval of a schedule of these records."""
    return compose(Schedule.of(records)).epsilon(delta)


def encloses(found: Interval, truth: str, *, width: str = "1e-6") -> bool:
    """Whether the interval holds the truth, and is no wider than it promises."""
    exact = Fraction(truth)
    holds = found.lower <= exact * (1 + _KNOWN) and exact * (1 - _KNOWN) <= found.upper
    return holds and found.upper - found.lower <= Fraction(width) * max(found.upper, Fraction(1, 1000))
