"""From an account's amount to (epsilon, delta) and back, by the sharpest conversion of its measure.

One door for what depends on the measure: gdp by the exact Gaussian profile, zcdp by the improved Renyi conversion over
continuous orders, renyi by the same at its one order, pure as it stands (docs/mathematics.md, "Renyi conversions").
"""

from __future__ import annotations

from fractions import Fraction

from parco.measure import Measure
from parco.privacy import gaussian, renyi

__all__ = ["ACCOUNTANTS", "amount_lower", "epsilon_upper"]

ACCOUNTANTS = {"pure": "basic", "gdp": "gaussian-profile", "zcdp": "zcdp-improved", "renyi": "renyi-improved"}
"""How a claim names the conversion of each measure."""


def epsilon_upper(measure: Measure, amount: Fraction, delta: Fraction) -> Fraction:
    """For every amount >= 0 of a measure, returns an epsilon that holds at delta, or raises RequestError.

    0 < `delta` < 1, unused for pure. Rounded up. Source: `gaussian.epsilon_upper` (gdp), `renyi.epsilon_upper` (zcdp),
    `renyi.epsilon_at_order_upper` (renyi).
    """
    if measure == Measure.PURE:
        return amount
    if measure == Measure.GDP:
        return gaussian.epsilon_upper(amount, delta)
    if measure.order is None:
        return renyi.epsilon_upper(amount, delta)
    return renyi.epsilon_at_order_upper(amount, order=measure.order, delta=delta)


def amount_lower(measure: Measure, epsilon: Fraction, delta: Fraction) -> Fraction:
    """For every epsilon > 0, returns an amount of the measure that implies (epsilon, delta), or raises RequestError.

    0 < `delta` < 1, unused for pure. The side for a cap: rounded down by less than one part in 10^12; 0 where a renyi
    order is too small for the delta. Source: as `epsilon_upper`, turned round.
    """
    if measure == Measure.PURE:
        return epsilon
    if measure == Measure.GDP:
        return gaussian.mu_squared_lower(epsilon, delta)
    if measure.order is None:
        return renyi.rho_lower(epsilon, delta)
    return renyi.order_budget_lower(epsilon, order=measure.order, delta=delta)
