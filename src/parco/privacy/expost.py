"""Ex-post bounds: what may be said of the realised total at a time chosen from released output.

A transcript satisfies E[e^((alpha-1)(L-bound))] <= 1 at every stopping time, L its privacy loss and `bound` the sum of
the bounds it returned; the functions below turn that into (epsilon, delta), outcome by outcome. Source: Raisa, Koskela
& Honkela (arXiv 2509.22213); docs/mathematics.md, "Ex-post conversions".
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from parco.balls import arb, ball, precision, upper
from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import renyi

__all__ = ["Conversion", "bound_at_order", "hockey_stick_epsilon_upper", "probabilistic_epsilon_upper"]

_BITS = 256


class Conversion(Protocol):
    """Either of the two conversions below: from a bound at an order to an epsilon at delta."""

    def __call__(self, bound: Fraction, *, order: Fraction, delta: Fraction) -> Fraction: ...


def bound_at_order(measure: Measure, total: Fraction, *, order: Fraction) -> Fraction:
    """For every realised total >= 0 and order alpha > 1, returns the exact ex-post bound, or raises RequestError.

    `total`: an amount of the `measure`. gdp: alpha mu^2/2. zcdp: alpha rho. renyi: the total itself, at its own order
    and no other. pure: the sum of epsilon itself, at every order. Source: docs/mathematics.md, "Ex-post conversions".
    """
    _check_order(order)
    _check_bound(total)
    if measure.order not in (None, order):
        raise RequestError(f"the bounds of {measure} hold at its own order")
    factors = {Measure.GDP: order / 2, Measure.ZCDP: order}
    return factors.get(measure, Fraction(1)) * total


def hockey_stick_epsilon_upper(bound: Fraction, *, order: Fraction, delta: Fraction) -> Fraction:
    """For every bound >= 0, order > 1 and 0 < delta < 1, returns a hockey-stick epsilon, or raises RequestError.

    bound + log(1/delta)/(alpha-1) + log(1-1/alpha) - log(alpha)/(alpha-1), rounded up and at least 0: for every set S
    of outcomes P(S) <= integral over S of e^epsilon dQ + delta, with epsilon a function of the outcome through its
    bound. Survives post-processing. Source: the conversion of Canonne, Kamath & Steinke 2020 (proposition 12) against
    e^bound Q.
    """
    return renyi.epsilon_at_order_upper(bound, order=order, delta=delta)


def probabilistic_epsilon_upper(bound: Fraction, *, order: Fraction, delta: Fraction) -> Fraction:
    """For every bound >= 0, order > 1 and 0 < delta < 1, returns a bound on the loss, or raises RequestError.

    bound + log(1/delta)/(alpha-1), rounded up: with probability at least 1 - delta the privacy loss stays below it, at
    all times at once. Valid only when all mechanism deltas are zero; lost under post-processing that drops the bound.
    Source: Ville's inequality; docs/mathematics.md, "Ex-post conversions".
    """
    _check(bound, order, delta)
    with precision(_BITS):
        return upper(ball(bound) + _slack(order, delta))


def _slack(order: Fraction, delta: Fraction) -> arb:
    return ball(1 / delta).log() / ball(order - 1)


def _check(bound: Fraction, order: Fraction, delta: Fraction) -> None:
    _check_bound(bound)
    _check_order(order)
    if not 0 < delta < 1:
        raise RequestError("delta lies strictly between 0 and 1")


def _check_bound(bound: Fraction) -> None:
    if bound < 0:
        raise RequestError("a total is not negative")


def _check_order(order: Fraction) -> None:
    if order <= 1:
        raise RequestError("an order is greater than 1")
