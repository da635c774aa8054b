"""Facts of the sparse vector technique: the first of a stream of scores that passes a threshold, epsilon in all.

Threshold noise Laplace(2 D/eps), fresh query noise Laplace(4 D/eps) for each score, D the sensitivity of every score;
stops at the first pass and returns only which it was. The noisy threshold is kept, secret, until then. With rounded
noise, scores, D and threshold are multiples of the lattice step: off the lattice nothing here holds. One interactive
mechanism: no other release on the same account runs in between (docs/mathematics.md, "Sparse vector").
"""

from __future__ import annotations

from fractions import Fraction

from parco.balls import ball, precision, upper
from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import gaussian, laplace, pure
from parco.privacy.pure import check_order

__all__ = ["cost_upper", "gaussian_cost_upper", "gaussian_renyi_upper", "renyi_upper"]

_BITS = 256


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


def gaussian_cost_upper(measure: Measure, *, threshold: Fraction, score: Fraction, scores: int) -> Fraction:
    """For every two ratios D^2/s^2 > 0 and scores >= 1, returns the cost with Gaussian noise, or raises RequestError.

    `threshold` and `score`: of the threshold's noise and of each score's; `scores`: how many there may be. Rounded up.
    `measure`: renyi, `gaussian_renyi_upper` at its order; gdp and zcdp, that of so many Gaussian answers, of which the
    stream is post-processing; pure, refused. Source: docs/mathematics.md, "Sparse vector".
    """
    _check_ratios(threshold, score, scores)
    if measure.order is not None:
        return gaussian_renyi_upper(measure.order, threshold=threshold, score=score, scores=scores)
    return gaussian.cost_factor(measure) * scores * score


def gaussian_renyi_upper(order: Fraction, *, threshold: Fraction, score: Fraction, scores: int) -> Fraction:
    """For every order > 1, returns a bound on the Renyi divergence in nats with Gaussian noise, or RequestError.

    `threshold` and `score` are D^2/s^2 > 0, `scores` >= 1 how many there may be. The less of order scores score/2, that
    of so many Gaussian answers, and

        order threshold/2 + log(scores e^((order-1) 2 order score) + 1)/(order-1)

    rounded up. Source: docs/mathematics.md, "Sparse vector" (after Zhu & Wang 2020, theorem 8).
    """
    check_order(order)
    _check_ratios(threshold, score, scores)
    if order == 1:
        raise RequestError("with Gaussian noise a sparse vector has no line at order 1")
    with precision(_BITS):
        excess = ball((order - 1) * 2 * order * score)
        # log(m e^x + 1) = x + log(m + e^-x), which does not overflow.
        line = ball(order * threshold / 2) + (excess + (scores + (-excess).exp()).log()) / ball(order - 1)
        return min(upper(line), order * scores * score / 2)


def _check_ratios(threshold: Fraction, score: Fraction, scores: int) -> None:
    if threshold <= 0 or score <= 0 or scores < 1:
        raise RequestError("a sparse vector has ratios of sensitivity and scale above 0, and one score or more")
