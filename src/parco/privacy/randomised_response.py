"""Facts of randomised response: the true one of two answers with probability p > 1/2, else the other.

Its loss is log(p/(1-p)) up or down, so that it is pure with equality: `pure.cost_upper`, `pure.renyi_upper` and
`pure.delta_upper` at that epsilon are its own cost, divergence and profile, not only bounds on them.
"""

from __future__ import annotations

from fractions import Fraction

from parco.balls import ball, bits_below_one, precision, upper
from parco.errors import RequestError

__all__ = ["epsilon_upper"]

_BITS = 256


def epsilon_upper(probability: Fraction) -> Fraction:
    """For every `probability` of the true answer in (1/2, 1), returns log(p/(1-p)) in nats, or raises RequestError.

    Rounded up by less than one part in 2^200. Source: Warner 1965; docs/mathematics.md, "Pure mechanisms".
    """
    if not Fraction(1, 2) < probability < 1:
        raise RequestError("the probability of the true answer lies strictly between 1/2 and 1")
    with precision(_BITS + bits_below_one(2 * probability - 1)):
        return upper(ball(probability / (1 - probability)).log())
