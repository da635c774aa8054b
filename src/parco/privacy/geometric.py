"""Facts of two-sided geometric noise, P(k) proportional to e^(-|k| lattice/scale) on the lattice."""

from __future__ import annotations

from fractions import Fraction

from parco.errors import RequestError
from parco.privacy.sensitivity import Sensitivity

__all__ = ["epsilon"]


def epsilon(sensitivity: Sensitivity, scale: Fraction, *, lattice: Fraction) -> Fraction:
    """For every scale and lattice step > 0, returns the exact pure cost L1/scale, or raises RequestError.

    `sensitivity`, `scale` and `lattice` in the statistic's units. L1 must be a whole number of steps: then statistics
    of neighbours differ by whole steps and the ratio of their probabilities is at most e^(L1/scale). Off the lattice
    the supports differ and no epsilon holds. Source: Ghosh, Roughgarden & Sundararajan 2012; docs/mathematics.md,
    "Two-sided geometric".
    """
    if scale <= 0 or lattice <= 0:
        raise RequestError("scale and lattice step of noise are positive numbers")
    if (sensitivity.l1 / lattice).denominator != 1:
        raise RequestError("two-sided geometric noise needs an L1 sensitivity of whole lattice steps")
    return sensitivity.l1 / scale
