"""Facts of the sparse vector technique: the first of a stream of scores that passes a threshold, epsilon in all.

Threshold noise Laplace(2 D/eps), fresh query noise Laplace(4 D/eps) for each score, D the sensitivity of every score;
stops at the first pass and returns only which it was. The noisy threshold is kept, secret, until then. With rounded
noise, scores, D and threshold are multiples of the lattice step: off the lattice nothing here holds. One interactive
mechanism: no other release on the same account runs in between (docs/mathematics.md, "Sparse vector").
"""

from __future__ import annotations

from fractions import Fraction

from parco.measure import Measure
from parco.privacy import laplace, pure

__all__ = ["cost_upper", "renyi_upper"]


def cost_upper(epsilon: Fraction, measure: Measure) -> Fraction:
    """For every epsilon >= 0, returns the cost of the whole, however many scores there are, or raises RequestError.

    Rounded up. `measure`: pure, epsilon itself; gdp, as any pure mechanism; zcdp, the less of any pure mechanism's and
    epsilon/2 + that of Laplace noise at epsilon/2; renyi, `renyi_upper` at its order. Source: Dwork & Roth 2014,
    theorem 3.23; docs/mathematics.md, "Sparse vector".
    """
    if measure == Measure.ZCDP:
        return renyi_upper(epsilon, Fraction(1))
    return pure.cost_upper(epsilon, measure) if measure.order is None else renyi_upper(epsilon, measure.order)


def renyi_upper(epsilon: Fraction, order: Fraction) -> Fraction:
    """For every epsilon >= 0 and order >= 1, returns a bound on the Renyi divergence in nats, or raises RequestError.

    The less of any pure mechanism's at epsilon and epsilon/2 + that of Laplace noise at epsilon/2, rounded up. Source:
    Zhu & Wang 2020; docs/mathematics.md, "Sparse vector".
    """
    return min(pure.renyi_upper(epsilon, order), epsilon / 2 + laplace.renyi_upper(epsilon / 2, order))
