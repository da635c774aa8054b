"""Renyi bounds into (epsilon, delta): the improved conversion at one order, and the best over all orders.

A mechanism with Renyi bound eps_alpha at order alpha satisfies (epsilon, delta) with

    epsilon = eps_alpha + log(1/delta)/(alpha-1) + log(1-1/alpha) - log(alpha)/(alpha-1)

(Canonne, Kamath & Steinke 2020, proposition 12; docs/mathematics.md, "Renyi conversions"). Every order gives a valid
bound, so a double finds a good order and a ball proves the bound there: the order may be off, the bound is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from parco.balls import arb, ball, lower, precision, upper
from parco.errors import RequestError

__all__ = ["epsilon_at_order_upper", "epsilon_upper", "order_budget_lower", "rho_lower"]

_BITS = 256
_SEARCH_STEPS = 200
# Orders searched, as log(alpha - 1): from 1 + 1e-9 to 1 + 1e12, beyond which no budget of an account lies.
_LOG_ORDER_MIN, _LOG_ORDER_MAX = math.log(1e-9), math.log(1e12)
_GOLDEN = (math.sqrt(5) - 1) / 2


def epsilon_at_order_upper(bound: Fraction, *, order: Fraction, delta: Fraction) -> Fraction:
    """For every bound >= 0, order > 1 and 0 < delta < 1, returns an epsilon that holds, or raises RequestError.

    The improved conversion at this one order, rounded up, and at least 0.
    """
    _check(bound, delta)
    _check_order(order)
    with precision(_BITS):
        return max(upper(ball(bound) + _slack(order, delta)), Fraction(0))


def epsilon_upper(rho: Fraction, delta: Fraction) -> Fraction:
    """For every rho >= 0 and 0 < delta < 1, returns an epsilon of rho-zCDP at delta, or raises RequestError.

    The improved conversion, minimised over continuous orders up to one part in 10^12, rounded up.
    """
    _check(rho, delta)
    if rho == 0:
        return Fraction(0)
    cost, log_delta = float(rho), _log(delta)
    order = _best_order(lambda alpha: alpha * cost + _slack_float(alpha, log_delta))
    return epsilon_at_order_upper(order * rho, order=order, delta=delta)


def rho_lower(epsilon: Fraction, delta: Fraction) -> Fraction:
    """For every epsilon > 0 and 0 < delta < 1, returns a rho whose zCDP implies (epsilon, delta), or RequestError.

    max over orders of (epsilon - slack(alpha))/alpha, the side for a cap: rounded down. Proven at the order chosen.
    """
    _check(epsilon, delta)
    target, log_delta = float(epsilon), _log(delta)
    order = _best_order(lambda alpha: (_slack_float(alpha, log_delta) - target) / alpha)
    return order_budget_lower(epsilon, order=order, delta=delta) / order


def order_budget_lower(epsilon: Fraction, *, order: Fraction, delta: Fraction) -> Fraction:
    """For every epsilon >= 0, order > 1 and 0 < delta < 1, returns the largest Renyi bound there that implies it.

    epsilon - slack(order), rounded down; 0 where even a bound of 0 does not imply (epsilon, delta) by this conversion.
    """
    _check(epsilon, delta)
    _check_order(order)
    with precision(_BITS):
        return max(lower(ball(epsilon) - _slack(order, delta)), Fraction(0))


def _slack(order: Fraction, delta: Fraction) -> arb:
    """What the improved conversion adds to a Renyi bound, as a ball of the current precision; may be negative."""
    alpha = ball(order)
    return ball(1 / delta).log() / (alpha - 1) + (1 - 1 / alpha).log() - alpha.log() / (alpha - 1)


def _slack_float(alpha: float, log_delta: float) -> float:
    return (-log_delta - math.log(alpha)) / (alpha - 1) + math.log1p(-1 / alpha)


def _best_order(value: Callable[[float], float]) -> Fraction:
    """About the order > 1 at which `value` is least, by golden sections in log(alpha - 1), where it has one valley."""
    low, high = _LOG_ORDER_MIN, _LOG_ORDER_MAX
    for _ in range(_SEARCH_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if value(1 + math.exp(left)) <= value(1 + math.exp(right)):
            high = right
        else:
            low = left
    return 1 + Fraction(math.exp((low + high) / 2)).limit_denominator(10**12 if low > 0 else 10**18)


def _log(delta: Fraction) -> float:
    return math.log(delta.numerator) - math.log(delta.denominator)


def _check(amount: Fraction, delta: Fraction) -> None:
    if amount < 0:
        raise RequestError("a bound is not negative")
    if not 0 < delta < 1:
        raise RequestError("delta lies strictly between 0 and 1")


def _check_order(order: Fraction) -> None:
    if order <= 1:
        raise RequestError("an order is greater than 1")
