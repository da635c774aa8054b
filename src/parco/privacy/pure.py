"""Facts of eps-pure mechanisms of any kind: what they cost in other measures."""

from __future__ import annotations

from fractions import Fraction

from parco.balls import ball, precision, upper
from parco.errors import InternalError, RequestError
from parco.measure import Measure

__all__ = ["cost_upper", "mu_squared_upper"]

_BITS, _TIGHT_BITS = 256, 60


def cost_upper(epsilon: Fraction, measure: Measure) -> Fraction:
    """For every epsilon >= 0, returns a cost that covers every epsilon-pure mechanism in the measure, rounded up.

    zcdp: min(epsilon^2/2, epsilon) (Bun & Steinke 2016, proposition 1.4; and D_alpha <= epsilon <= alpha epsilon).
    renyi: the divergence of randomised response, which is the largest. RequestError for a negative epsilon.
    """
    if epsilon < 0:
        raise RequestError("epsilon is not negative")
    if measure == Measure.PURE:
        return epsilon
    if measure == Measure.ZCDP:
        return min(epsilon**2 / 2, epsilon)
    if measure.order is None:
        return mu_squared_upper(epsilon)
    return _renyi_upper(epsilon, measure.order)


def mu_squared_upper(epsilon: Fraction) -> Fraction:
    """For every epsilon >= 0, returns a gdp cost that covers every epsilon-pure mechanism, or raises RequestError.

    (2 Phi^-1(e^eps/(1+e^eps)))^2, rounded up by less than one part in 2^59. No smaller cost covers randomised response.
    Source: the trade-off curve of eps-DP has its one kink at 1/(1+e^eps), and the convex Gaussian curve through that
    kink lies below both straight pieces (Dong, Roth & Su 2022, section 2); docs/mathematics.md, "Pure into gdp".
    """
    if epsilon < 0:
        raise RequestError("epsilon is not negative")
    if epsilon == 0:
        return Fraction(0)
    with precision(_BITS):
        # Phi^-1(p) = sqrt(2) erfinv(2p-1). Near p = 1/2 take 2p-1 = tanh(eps/2); near p = 1, where 2p-1 would round to
        # one, take the complement 2(1-p) = 2/(1+e^eps).
        exact = ball(epsilon)
        root = (exact / 2).tanh().erfinv() if epsilon < 1 else (2 / (1 + exact.exp())).erfcinv()
        cost = 8 * root * root
        if cost.rel_accuracy_bits() < _TIGHT_BITS:
            raise InternalError("the gdp cost of a pure mechanism could not be computed to the accuracy promised")
        return upper(cost)


def _renyi_upper(epsilon: Fraction, order: Fraction) -> Fraction:
    """log((e^(alpha eps) + e^((1-alpha) eps))/(1 + e^eps))/(alpha - 1): randomised response at order alpha.

    Both sums are divided by their largest term, so that no exponential is large.
    """
    if epsilon == 0:
        return Fraction(0)
    bits = _BITS + max(0, -2 * (epsilon.numerator.bit_length() - epsilon.denominator.bit_length()))
    with precision(bits):
        alpha, exact = ball(order), ball(epsilon)
        top = ((1 - 2 * alpha) * exact).exp().log1p()
        cost = ((alpha - 1) * exact + top - (-exact).exp().log1p()) / (alpha - 1)
        return min(upper(cost), epsilon)
