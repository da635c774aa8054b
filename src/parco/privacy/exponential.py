"""Facts of the exponential mechanism: candidate i with probability proportional to e^(eps u_i/(2 D)).

D bounds how far one unit moves any utility u_i. Its privacy loss lies in an interval of length eps (bounded range), and
that is all these facts use: they hold for every mechanism of bounded range eps, such as the candidate of largest
utility after Gumbel noise is added, and not for permute-and-flip, whose loss spans up to 2 eps: that is an eps-pure
mechanism and no more (`pure.py`). Under the second law e^loss has mean 1, so that the expectation of a convex function
of it is largest for a loss at the two ends, t and t - eps; the largest over t is closed (docs/mathematics.md, "Bounded
range").
"""

from __future__ import annotations

from fractions import Fraction

from parco.balls import ball, bits_below_one, precision, upper
from parco.measure import Measure
from parco.privacy import pure
from parco.privacy.pure import check_epsilon, check_order, cost_of

__all__ = ["cost_upper", "delta_upper", "mu_squared_upper", "renyi_upper"]

_BITS = 256


def cost_upper(epsilon: Fraction, measure: Measure) -> Fraction:
    """For every epsilon >= 0, returns a cost that covers every mechanism of bounded range epsilon, or RequestError.

    Rounded up. `measure`: pure, epsilon itself; zcdp, log((e^epsilon-1)/epsilon) - 1 + epsilon/(e^epsilon-1), which is
    below epsilon^2/8 (Cesar & Rogers 2021) and below epsilon; gdp, `mu_squared_upper`; renyi, `renyi_upper`
    at its order. No smaller one covers them all. Source: docs/mathematics.md, "Bounded range".
    """
    return cost_of(epsilon, measure, renyi=renyi_upper, mu_squared=mu_squared_upper)


def renyi_upper(epsilon: Fraction, order: Fraction) -> Fraction:
    """For every epsilon >= 0 and order >= 1, returns the largest Renyi divergence at bounded range epsilon, in nats.

    With a = 1 - e^(-alpha eps) and b = 1 - e^(-(alpha-1) eps):

        eps + log((alpha-1) a/(alpha b)) + log(a/(alpha (1 - e^-eps)))/(alpha-1)

    and log((e^eps-1)/eps) - 1 + eps/(e^eps-1) at order 1; rounded up. A choice among two candidates attains it, and it
    is below alpha eps^2/8. Raises RequestError for arguments out of range. Source: docs/mathematics.md, "Bounded range"
    (for order 1 also Dong, Durfee & Rogers 2020).
    """
    check_epsilon(epsilon)
    check_order(order)
    if epsilon == 0:
        return Fraction(0)
    excess = order - 1
    bits = _BITS + 4 * bits_below_one(epsilon) + (4 * bits_below_one(excess) if excess else 0)
    with precision(bits):
        exact = ball(epsilon)
        near = -(-exact).expm1()
        if not excess:
            # (e^eps - 1)/eps = near e^eps/eps, and eps/(e^eps - 1) = eps e^-eps/near.
            found = exact + (near / exact).log() - 1 + exact * (-exact).exp() / near
            return min(upper(found), epsilon**2 / 8, epsilon)
        alpha, rest = ball(order), ball(excess)
        first, second = -(-alpha * exact).expm1(), -(-rest * exact).expm1()
        found = exact + (rest * first / (alpha * second)).log() + (first / (alpha * near)).log() / rest
        return min(upper(found), order * epsilon**2 / 8, epsilon)


def mu_squared_upper(epsilon: Fraction) -> Fraction:
    """For every epsilon >= 0, returns a gdp cost that covers every mechanism of bounded range epsilon, or RequestError.

    (2 Phi^-1(e^(eps/2)/(1 + e^(eps/2))))^2, what a pure mechanism of half the epsilon costs; rounded up by less than
    one part in 2^59. No smaller cost covers them all. Source: docs/mathematics.md, "Bounded range".
    """
    return pure.mu_squared_upper(epsilon / 2)


def delta_upper(epsilon: Fraction, *, at: Fraction) -> Fraction:
    """For every epsilon >= 0 and `at` >= 0, returns the largest delta at `at` for bounded range epsilon, rounded up.

    (e^(epsilon/2) - e^(at/2))^2/(e^epsilon - 1), and 0 from epsilon on. Attained at each `at`, by different mechanisms.
    Raises RequestError for negative arguments. Source: docs/mathematics.md, "Bounded range".
    """
    check_epsilon(epsilon)
    check_epsilon(at)
    if at >= epsilon:
        return Fraction(0)
    with precision(_BITS + bits_below_one(epsilon)):
        gap = ball((at - epsilon) / 2).expm1()
        return upper(-gap * gap / ball(-epsilon).expm1())
