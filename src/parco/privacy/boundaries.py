"""Boundaries of a refinement: what the privacy loss of a path stays below at all times at once, but for probability
delta, as a function of what the path has cost so far.

The loss of a Gaussian path that has cost v = D^2/t (mu squared; t the variance it has reached) is v/2 plus a Brownian
motion at time v. A boundary is an upper one, fixed before the run in all but v, and rounded up. These are statements
about the loss of the very output that came, as `expost.probabilistic_epsilon_upper` is, and as little survives of them
in post-processing (`expost.Uncertified`). Source: Whitehouse, Ramdas, Rogers & Wu 2022; docs/mathematics.md,
"Boundaries of a path".
"""

from __future__ import annotations

from fractions import Fraction

from parco.balls import ball, precision, upper
from parco.errors import RequestError

__all__ = ["linear_loss_upper", "mixture_loss_upper", "mu_squared_at"]

_BITS = 256


def mu_squared_at(variance: Fraction, *, l2_squared: Fraction) -> Fraction:
    """For every variance t > 0, returns exactly what a path that reached it has cost, D^2/t, or raises RequestError.

    `l2_squared`: the square D^2 >= 0 of the L2 sensitivity, in the square of the statistic's units, as t is. Source:
    docs/mathematics.md, "Refinement by Gaussian draws".
    """
    if variance <= 0 or l2_squared < 0:
        raise RequestError("a variance is positive, and the square of a sensitivity is not negative")
    return l2_squared / variance


def linear_loss_upper(mu_squared: Fraction, *, slope: Fraction, delta: Fraction) -> Fraction:
    """For every mu_squared v >= 0, slope c > 0 and 0 < delta < 1, returns v/2 + c v + log(1/delta)/(2c), rounded up.

    With c = b/D it is the boundary (D/t)(D/2 + b) + a D, 2ab = log(1/delta), of a path at variance t. With c =
    (alpha-1)/2 it is the probabilistic conversion at order alpha of the ex-post bound alpha v/2. The slope is fixed
    before the run: the least over slopes, at each v anew, is no boundary. Raises RequestError. Source: Whitehouse et
    al. 2022; docs/mathematics.md, "Boundaries of a path".
    """
    _check(mu_squared, slope, delta)
    with precision(_BITS):
        return upper(ball(mu_squared * (Fraction(1, 2) + slope)) + ball(1 / delta).log() / ball(2 * slope))


def mixture_loss_upper(mu_squared: Fraction, *, tuned_at: Fraction, delta: Fraction) -> Fraction:
    """For every mu_squared v >= 0, tuned_at r > 0 and 0 < delta < 1, returns the mixture boundary, rounded up.

    v/2 + sqrt(2 (v+r) log(sqrt((v+r)/r)/delta)), r fixed before the run, about the v at which it shall be sharp. Raises
    RequestError. Source: Whitehouse et al. 2022; docs/mathematics.md, "Boundaries of a path", which also proves it for
    values on a lattice.
    """
    _check(mu_squared, tuned_at, delta)
    with precision(_BITS):
        whole = ball(mu_squared + tuned_at)
        grown = (whole / ball(tuned_at)).sqrt() / ball(delta)
        return upper(ball(mu_squared / 2) + (2 * whole * grown.log()).sqrt())


def _check(mu_squared: Fraction, parameter: Fraction, delta: Fraction) -> None:
    if mu_squared < 0 or parameter <= 0:
        raise RequestError("a cost is not negative, and the parameter of a boundary is positive")
    if not 0 < delta < 1:
        raise RequestError("delta lies strictly between 0 and 1")
