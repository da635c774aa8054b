"""Renyi bounds into (epsilon, delta): two conversions at one order, and their best over all continuous orders.

A mechanism whose Renyi divergence at order alpha > 1 is at most r, in both orders of the pair, satisfies (epsilon,
delta) with

    plain       epsilon = r + log(1/delta)/(alpha-1)
    improved    epsilon = r + log(1/delta)/(alpha-1) + log(1-1/alpha) - log(alpha)/(alpha-1)

(Mironov 2017, proposition 3; Canonne, Kamath & Steinke 2020, proposition 12).

Every order gives a valid bound, so a double finds a good order and a ball proves the bound there: the order may be off,
the bound is not. For a true Renyi curve (alpha-1) epsilon is convex in alpha, so that epsilon has one valley
(docs/mathematics.md, "Renyi conversions"). At order 1 the divergence is that of Kullback and Leibler, which implies no
epsilon in this way: orders up to 1 are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from parco.balls import arb, ball, lower, precision, upper
from parco.errors import RequestError
from parco.privacy.search import lowest

__all__ = [
    "ORDER_MAX",
    "Converted",
    "Curve",
    "best_epsilon_upper",
    "epsilon_at_order_upper",
    "epsilon_upper",
    "order_budget_lower",
    "rho_lower",
]

Curve = Callable[[Fraction], Fraction]
"""A Renyi curve: for an order alpha > 1, an upper bound on the divergence at alpha, in both orders of the pair."""

ORDER_MAX = Fraction(10**12)
"""The largest order searched unless another is named; no budget of an account has its best order beyond."""

_BITS = 256
# The smallest order searched, as log(alpha - 1).
_LOG_ORDER_MIN = math.log(1e-9)
# Near its least value epsilon is flat, so that an order found to this (in the logarithm) gives it to the square of it;
# closer orders doubles cannot tell apart.
_WIDTH = 1e-7
# An order this close to the largest one allowed, by what exceeds 1, is limited by it.
_ALMOST = 1 - Fraction(1, 10**5)


@dataclass(frozen=True)
class Converted:
    """An epsilon that holds at the delta asked for, and where it came from.

    `epsilon` >= 0, rounded up. `order` > 1: the Renyi order at which it is proven. `limited`: whether that order is the
    largest one allowed (or as good as), so that a larger one might give a smaller epsilon.
    """

    epsilon: Fraction
    order: Fraction
    limited: bool


def best_epsilon_upper(
    curve: Curve, delta: Fraction, *, order_max: Fraction = ORDER_MAX, improved: bool = True
) -> Converted:
    """For every Renyi curve and 0 < delta < 1, returns the least epsilon over orders up to order_max, or RequestError.

    `curve` is asked at orders in (1, order_max] only and returns upper bounds in nats. Within one part in 10^12 of the
    continuous optimum where the curve is exact, and valid in any case. `improved` chooses the conversion. Raises
    RequestError for order_max <= 1, a delta out of range, or a curve that returns a negative bound. Source: Canonne,
    Kamath & Steinke 2020, proposition 12, or Mironov 2017, proposition 3; docs/mathematics.md, "Renyi conversions".
    """
    _check_delta(delta)
    _check_order(order_max)
    log_delta = _log(delta)

    def value(order: Fraction) -> float:
        return float(curve(order)) + _slack_float(float(order - 1), log_delta, improved=improved)

    order = _best_order(value, order_max)
    epsilon = epsilon_at_order_upper(curve(order), order=order, delta=delta, improved=improved)
    return Converted(epsilon, order, limited=order - 1 >= (order_max - 1) * _ALMOST)


def epsilon_at_order_upper(bound: Fraction, *, order: Fraction, delta: Fraction, improved: bool = True) -> Fraction:
    """For every bound >= 0, order > 1 and 0 < delta < 1, returns an epsilon that holds, or raises RequestError.

    `bound`: on the Renyi divergence at `order`, in nats. The conversion at this one order (`improved`: which), rounded
    up, and at least 0. Source: Canonne, Kamath & Steinke 2020, proposition 12, or Mironov 2017, proposition 3.
    """
    _check(bound, delta)
    _check_order(order)
    with precision(_BITS):
        return max(upper(ball(bound) + _slack(order, delta, improved=improved)), Fraction(0))


def epsilon_upper(rho: Fraction, delta: Fraction) -> Fraction:
    """For every rho >= 0 and 0 < delta < 1, returns an epsilon of rho-zCDP at delta, or raises RequestError.

    `best_epsilon_upper` of the curve alpha rho, rounded up. Source: Bun & Steinke 2016, definition 1.1; Canonne, Kamath
    & Steinke 2020, proposition 12.
    """
    _check(rho, delta)
    return best_epsilon_upper(lambda order: order * rho, delta).epsilon if rho else Fraction(0)


def rho_lower(epsilon: Fraction, delta: Fraction) -> Fraction:
    """For every epsilon > 0 and 0 < delta < 1, returns a rho whose zCDP implies (epsilon, delta), or RequestError.

    max over orders of (epsilon - slack(alpha))/alpha, the side for a cap: rounded down. Proven at the order chosen.
    Source: as `epsilon_upper`, turned round.
    """
    _check(epsilon, delta)
    target, log_delta = float(epsilon), _log(delta)

    def value(order: Fraction) -> float:
        return (_slack_float(float(order - 1), log_delta, improved=True) - target) / float(order)

    order = _best_order(value, ORDER_MAX)
    return order_budget_lower(epsilon, order=order, delta=delta) / order


def order_budget_lower(epsilon: Fraction, *, order: Fraction, delta: Fraction) -> Fraction:
    """For every epsilon >= 0, order > 1 and 0 < delta < 1, returns the largest Renyi bound there that implies it.

    epsilon - slack(order), rounded down; 0 where even a bound of 0 does not imply (epsilon, delta) by the improved
    conversion; raises RequestError for arguments out of range. Source: as `epsilon_at_order_upper`, turned round.
    """
    _check(epsilon, delta)
    _check_order(order)
    with precision(_BITS):
        return max(lower(ball(epsilon) - _slack(order, delta, improved=True)), Fraction(0))


def _slack(order: Fraction, delta: Fraction, *, improved: bool) -> arb:
    """What a conversion adds to a Renyi bound, as a ball of the current precision; the improved one may be negative."""
    alpha = ball(order)
    plain = ball(1 / delta).log() / (alpha - 1)
    return plain + (1 - 1 / alpha).log() - alpha.log() / (alpha - 1) if improved else plain


def _slack_float(excess: float, log_delta: float, *, improved: bool) -> float:
    """The same for a guess, at the order 1 + excess."""
    plain = -log_delta / excess
    return plain - math.log1p(1 / excess) - math.log1p(excess) / excess if improved else plain


def _best_order(value: Callable[[Fraction], float], order_max: Fraction) -> Fraction:
    """About the order in (1, order_max] at which `value`, which has one valley, is least."""
    top = math.log(order_max - 1)
    found = _order(lowest(lambda point: value(_order(point)), min(_LOG_ORDER_MIN, top - 1), top, width=_WIDTH))
    return found if value(found) < value(order_max) else order_max


def _order(point: float) -> Fraction:
    """1 + e^point as a short fraction: rounded to a mantissa of forty bits, which moves the order less than _WIDTH."""
    mantissa, exponent = math.frexp(math.exp(point))
    return 1 + Fraction(round(mantissa * 2**40)) * Fraction(2) ** (exponent - 40)


def _log(delta: Fraction) -> float:
    return math.log(delta.numerator) - math.log(delta.denominator)


def _check(amount: Fraction, delta: Fraction) -> None:
    if amount < 0:
        raise RequestError("a bound is not negative")
    _check_delta(delta)


def _check_delta(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise RequestError("delta lies strictly between 0 and 1")


def _check_order(order: Fraction) -> None:
    if order <= 1:
        raise RequestError("an order is greater than 1; at 1 the divergence implies no epsilon by this conversion")
