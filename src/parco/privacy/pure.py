"""Facts of eps-pure mechanisms of any kind: what they cost in other measures."""

from __future__ import annotations

from fractions import Fraction

from parco.balls import ball, precision, upper
from parco.errors import InternalError, RequestError

__all__ = ["mu_squared_upper"]

_BITS, _TIGHT_BITS = 256, 60


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
