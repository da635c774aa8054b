"""Facts of Laplace noise, continuous or rounded to a lattice: density proportional to e^(-|x|/scale).

Everything depends on epsilon = L1 sensitivity/scale alone. All lines but that of the profile are attained when the
statistic moves in one cell; when it moves in several by amounts that add up to the sensitivity, none is exceeded.
Rounding is post-processing. Not the two-sided geometric law, whose profile is larger: that is `geometric.py`
(docs/mathematics.md, "Laplace noise").
"""

from __future__ import annotations

from fractions import Fraction

from parco.balls import ball, bits_below_one, precision, upper
from parco.errors import InternalError, RequestError
from parco.measure import Measure
from parco.privacy.pure import check_epsilon, check_order, cost_of
from parco.privacy.sensitivity import Sensitivity

__all__ = ["cost_upper", "delta_upper", "epsilon", "mu_squared_upper", "renyi_upper"]

_BITS, _TIGHT_BITS = 256, 60


def epsilon(sensitivity: Sensitivity, scale: Fraction) -> Fraction:
    """For every scale > 0, returns the exact pure cost L1/scale in nats, or raises RequestError.

    `sensitivity` and `scale` in the statistic's units. Source: Dwork, McSherry, Nissim & Smith 2006, proposition 1.
    """
    if scale <= 0:
        raise RequestError("the scale of noise is a positive number")
    return sensitivity.l1 / scale


def cost_upper(epsilon: Fraction, measure: Measure) -> Fraction:
    """For every epsilon >= 0, returns the cost of Laplace noise of this epsilon in the measure, or raises RequestError.

    Rounded up. `measure`: pure, epsilon itself; zcdp, epsilon + e^-epsilon - 1; gdp, `mu_squared_upper`; renyi,
    `renyi_upper` at its order; no smaller one holds. Source: docs/mathematics.md, "Laplace noise".
    """
    return cost_of(epsilon, measure, renyi=renyi_upper, mu_squared=mu_squared_upper)


def renyi_upper(epsilon: Fraction, order: Fraction) -> Fraction:
    """For every epsilon >= 0 and order >= 1, returns the Renyi divergence in nats, rounded up, or RequestError.

    log[alpha/(2 alpha-1) e^((alpha-1) eps) + (alpha-1)/(2 alpha-1) e^(-alpha eps)]/(alpha-1), at order 1
    eps + e^-eps - 1. Source: Mironov 2017, proposition 6; docs/mathematics.md, "Laplace noise".
    """
    check_epsilon(epsilon)
    check_order(order)
    if epsilon == 0:
        return Fraction(0)
    excess = order - 1
    bits = _BITS + 2 * bits_below_one(epsilon) + (2 * bits_below_one(excess) if excess else 0)
    with precision(bits):
        exact = ball(epsilon)
        if not excess:
            return min(upper(exact + (-exact).expm1()), epsilon)
        # The larger exponential is taken out, so that none is large.
        small = ball(excess / (2 * order - 1)) * (ball(1 - 2 * order) * exact).expm1()
        return min(upper(exact + small.log1p() / ball(excess)), epsilon)


def mu_squared_upper(epsilon: Fraction) -> Fraction:
    """For every epsilon >= 0, returns the least gdp cost of Laplace noise of this epsilon, or raises RequestError.

    (2 Phi^-1(1 - e^(-epsilon/2)/2))^2, rounded up by less than one part in 2^59. Source: docs/mathematics.md, "Laplace
    noise": the steepest point of its trade-off curve is the one on the diagonal.
    """
    check_epsilon(epsilon)
    if epsilon == 0:
        return Fraction(0)
    with precision(_BITS):
        # Phi^-1(1 - t/2) = sqrt(2) erfcinv(t) = sqrt(2) erfinv(1 - t): the first far out, the second near the middle.
        half = -ball(epsilon) / 2
        root = (-half.expm1()).erfinv() if epsilon < 1 else half.exp().erfcinv()
        cost = 8 * root * root
        if cost.rel_accuracy_bits() < _TIGHT_BITS:
            raise InternalError("the gdp cost of Laplace noise could not be computed to the accuracy promised")
        return upper(cost)


def delta_upper(epsilon: Fraction, *, at: Fraction) -> Fraction:
    """For every epsilon >= 0 and `at` >= 0, returns the profile of Laplace noise at `at`, rounded up, or RequestError.

    1 - e^((at - epsilon)/2), and 0 from epsilon on; both orders of the pair alike. Source: docs/mathematics.md,
    "Laplace noise".
    """
    check_epsilon(epsilon)
    check_epsilon(at)
    if at >= epsilon:
        return Fraction(0)
    with precision(_BITS):
        return upper(-ball((at - epsilon) / 2).expm1())
