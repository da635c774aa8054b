"""The classical closed form for Gaussian composition: a valid bound, never a tight one."""

from __future__ import annotations

from fractions import Fraction

from parco.balls import ball, lower, precision, upper
from parco.errors import RequestError

__all__ = ["epsilon_upper", "mu_squared_lower"]

_BITS = 256


def epsilon_upper(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """For every mu_squared >= 0 and 0 < delta < 1, returns a + 2 sqrt(a log(1/delta)), a = mu^2/2, or RequestError.

    Valid: the Gaussian profile at the number returned is at most delta. Not tight: at delta = 1e-6 a fifth above the
    truth is usual. Rounded up. Source: Renyi bound alpha a converted at its best order (Mironov 2017, proposition 3);
    docs/mathematics.md, "Closed form".
    """
    _check(mu_squared, delta, "mu squared")
    with precision(_BITS):
        half = ball(mu_squared) / 2
        return upper(half + 2 * (half * ball(1 / delta).log()).sqrt())


def mu_squared_lower(epsilon: Fraction, delta: Fraction) -> Fraction:
    """For every epsilon >= 0 and 0 < delta < 1, returns mu^2 with closed form <= epsilon, or raises RequestError.

    The largest, rounded down: sqrt(a) = sqrt(log(1/delta) + epsilon) - sqrt(log(1/delta)), written without the
    difference, which would cancel. Source: as `epsilon_upper`, turned round.
    """
    _check(epsilon, delta, "epsilon")
    with precision(_BITS):
        log_slack = ball(1 / delta).log()
        root = ball(epsilon) / ((log_slack + ball(epsilon)).sqrt() + log_slack.sqrt())
        return max(lower(2 * root * root), Fraction(0))


def _check(value: Fraction, delta: Fraction, name: str) -> None:
    if value < 0:
        raise RequestError(f"{name} is not negative")
    if not 0 < delta < 1:
        raise RequestError("delta lies strictly between 0 and 1")
