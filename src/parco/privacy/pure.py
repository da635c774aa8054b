"""Facts of eps-pure mechanisms of any kind: what they cost in other measures, each attained by randomised response.

The loss of a pair that is eps-pure lies in [-eps, eps]. Under the second law e^loss has mean 1, so that the expectation
of a convex function of it is largest for a loss of -eps or eps: randomised response is the worst of all, for every
Renyi order and at every point of the profile (docs/mathematics.md, "Pure mechanisms").
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from parco.balls import ball, bits_below_one, precision, upper
from parco.errors import InternalError, RequestError
from parco.measure import Measure

__all__ = ["check_epsilon", "check_order", "cost_of", "cost_upper", "delta_upper", "mu_squared_upper", "renyi_upper"]

_BITS, _TIGHT_BITS = 256, 60


def cost_upper(epsilon: Fraction, measure: Measure) -> Fraction:
    """For every epsilon >= 0, returns a cost that covers every epsilon-pure mechanism in the measure, rounded up.

    `measure`: pure, epsilon itself; zcdp, epsilon tanh(epsilon/2); gdp, `mu_squared_upper`; renyi, `renyi_upper` at its
    order. No smaller one covers randomised response. Raises RequestError for a negative epsilon. Source: for zcdp,
    docs/mathematics.md, "Pure mechanisms" (below the epsilon^2/2 of Bun & Steinke 2016, proposition 1.4).
    """
    return cost_of(epsilon, measure, renyi=renyi_upper, mu_squared=mu_squared_upper)


def renyi_upper(epsilon: Fraction, order: Fraction) -> Fraction:
    """For every epsilon >= 0 and order >= 1, returns the largest Renyi divergence there, or raises RequestError.

    log((e^(alpha eps) + e^((1-alpha) eps))/(1 + e^eps))/(alpha - 1), at order 1 eps tanh(eps/2), in nats, rounded up;
    randomised response attains it. Source: docs/mathematics.md, "Pure mechanisms".
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
            return min(upper(exact * (exact / 2).tanh()), epsilon)
        # Both sums are divided by their largest term, so that no exponential is large.
        top = (ball(1 - 2 * order) * exact).exp().log1p()
        return min(upper(exact + (top - (-exact).exp().log1p()) / ball(excess)), epsilon)


def mu_squared_upper(epsilon: Fraction) -> Fraction:
    """For every epsilon >= 0, returns a gdp cost that covers every epsilon-pure mechanism, or raises RequestError.

    (2 Phi^-1(e^eps/(1+e^eps)))^2, rounded up by less than one part in 2^59. No smaller cost covers randomised response.
    Source: the trade-off curve of eps-DP has its one kink at 1/(1+e^eps), and the convex Gaussian curve through that
    kink lies below both straight pieces (Dong, Roth & Su 2022, section 2); docs/mathematics.md, "Pure into gdp".
    """
    check_epsilon(epsilon)
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


def delta_upper(epsilon: Fraction, *, at: Fraction) -> Fraction:
    """For every epsilon >= 0 and `at` >= 0, returns the largest delta of an epsilon-pure mechanism at `at`, rounded up.

    (e^epsilon - e^at)/(1 + e^epsilon), and 0 from epsilon on; randomised response attains it. Raises RequestError for
    negative arguments. Source: docs/mathematics.md, "Pure mechanisms" (Kairouz, Oh & Viswanath 2015, theorem 2.1).
    """
    check_epsilon(epsilon)
    check_epsilon(at)
    if at >= epsilon:
        return Fraction(0)
    with precision(_BITS + bits_below_one(epsilon - at)):
        return upper(-ball(at - epsilon).expm1() / (1 + ball(-epsilon).exp()))


def check_epsilon(epsilon: Fraction) -> None:
    """For every epsilon >= 0 passes; raises RequestError otherwise (source: the definition)."""
    if epsilon < 0:
        raise RequestError("epsilon is not negative")


def check_order(order: Fraction) -> None:
    """For every Renyi order >= 1 passes, 1 being Kullback and Leibler's; raises RequestError otherwise.

    Source: Mironov 2017, definition 3 and its limit.
    """
    if order < 1:
        raise RequestError("the order of a Renyi divergence is at least 1")


def cost_of(
    epsilon: Fraction,
    measure: Measure,
    *,
    renyi: Callable[[Fraction, Fraction], Fraction],
    mu_squared: Callable[[Fraction], Fraction],
) -> Fraction:
    """For every epsilon >= 0 of a pure mechanism, returns its cost in the measure, or raises RequestError.

    `renyi`: the divergence at epsilon and an order, rounded up; at order 1 it is the cost in zcdp. `mu_squared`: that
    of a Gaussian above it. Source: docs/mathematics.md, "Costs".
    """
    check_epsilon(epsilon)
    if measure == Measure.PURE:
        return epsilon
    if measure == Measure.ZCDP:
        return renyi(epsilon, Fraction(1))
    if measure.order is None:
        return mu_squared(epsilon)
    return renyi(epsilon, measure.order)
