"""The Gaussian profile solved in doubles: guesses that decide nothing, for `gaussian.py` to prove.

Let x = eps/mu - mu/2 and R(t) = Phi(-t)/phi(t), the Mills ratio. Since e^eps phi(x + mu) = phi(x),

    delta(eps) = phi(x) (R(x) - R(x + mu)),      1 - delta(eps) = phi(x) (R(-x) + R(x + mu))

and the smaller one is kept, as a logarithm, so that nothing underflows and nothing near 1 is lost. For small mu the
difference is the integral of S = -R' = 1 - t R over (x, x + mu), which does not cancel. As functions of x, and of
log(mu) with eps fixed, both logarithms are concave (integrals of log-concave densities), so that Newton's method
converges from every start (docs/mathematics.md, "Gaussian profile").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

__all__ = ["epsilon_near", "mu_near"]

_ROOT_TWO, _LOG_ROOT_TWO_PI = math.sqrt(2), math.log(2 * math.pi) / 2
# From here on the continued fraction of the Mills ratio is used, with this many terms: both ways give 1e-13 there.
_FRACTION_FROM, _FRACTION_TERMS = 4.0, 28
# Up to this width the drop of R is taken as an integral; the six nodes of Gauss and Legendre give it to 1e-14.
_INTEGRAL_WIDTH = 0.5
_NODES = (
    (0.2386191860831969, 0.4679139345726910),
    (0.6612093864662645, 0.3607615730481386),
    (0.9324695142031521, 0.1713244923791704),
)
_STEPS_MAX = 60
# Newton's method squares the error: after a step this short, what is left is rounding.
_STEP_LAST = 1e-8


def epsilon_near(mu_squared: Fraction, delta: Fraction) -> Fraction | None:
    """For every mu_squared > 0 and 0 < delta < 1, returns about the epsilon at delta, or None (raises nothing).

    To about 1e-13 of max(epsilon, mu^2), for mu from 1e-9 to 1e4; None where no positive epsilon was found. Source:
    Newton's method on a concave function, as above.
    """
    try:
        mu = math.sqrt(mu_squared)
        of_delta, goal = _target(delta)
        step = _step_in_x_of_delta if of_delta else _step_in_x_of_rest
        x = _newton(lambda point: step(point, mu, goal), start=_start(of_delta, goal))
        epsilon = Fraction(float(Fraction(x) * Fraction(mu) + mu_squared / 2))
    except (ArithmeticError, ValueError):
        return None
    return epsilon if epsilon > 0 else None


def mu_near(epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """For every epsilon >= 0 and 0 < delta < 1, returns about the mu at (epsilon, delta), or None (raises nothing).

    To about 1e-13, for epsilon up to 1e8. Source: as `epsilon_near`, in log(mu).
    """
    try:
        bound = float(epsilon)
        of_delta, goal = _target(delta)
        # The mu with this x, written without cancellation; where it nears 0, delta <= mu/sqrt(2 pi) leads.
        x = _start(of_delta, goal)
        sum_of_roots = math.hypot(x, math.sqrt(2 * bound)) + abs(x)
        start = max(2 * bound / sum_of_roots if x > 0 else sum_of_roots, 2.5 * float(delta))
        step = _step_in_log_mu_of_delta if of_delta else _step_in_log_mu_of_rest
        found = _newton(lambda log_mu: step(log_mu, bound, goal), start=math.log(start))
        return Fraction(math.exp(found))
    except (ArithmeticError, ValueError):
        return None


def _target(delta: Fraction) -> tuple[bool, float]:
    """Whether the logarithm of delta or that of 1 - delta is solved for, and its value."""
    return (True, _log(delta)) if delta < Fraction(1, 2) else (False, _log(1 - delta))


def _start(of_delta: bool, goal: float) -> float:
    """About the x of the root: where the Chernoff bound on Phi(-x), or on Phi(x), is the goal."""
    x = math.sqrt(-2 * goal)
    return x if of_delta else -x


def _newton(step: Callable[[float], float], *, start: float) -> float:
    point = start
    for _ in range(_STEPS_MAX):
        moved = step(point)
        point += moved
        if abs(moved) <= _STEP_LAST:
            return point
    raise ArithmeticError("no root was found in doubles")


# Newton steps. By x the derivative of delta is -mu phi(x) R(x + mu); by mu, at a fixed epsilon, it is phi(x).


def _step_in_x_of_delta(x: float, mu: float, goal: float) -> float:
    drop = _drop(x, mu)
    return (_log_density(x) + math.log(drop) - goal) * drop / (mu * _mills(x + mu)[0])


def _step_in_x_of_rest(x: float, mu: float, goal: float) -> float:
    far = _mills(x + mu)[0]
    rest = _mills(-x)[0] + far
    return -(_log_density(x) + math.log(rest) - goal) * rest / (mu * far)


def _step_in_log_mu_of_delta(log_mu: float, epsilon: float, goal: float) -> float:
    mu = math.exp(log_mu)
    x = (epsilon - mu * mu / 2) / mu
    drop = _drop(x, mu)
    return -(_log_density(x) + math.log(drop) - goal) * drop / mu


def _step_in_log_mu_of_rest(log_mu: float, epsilon: float, goal: float) -> float:
    mu = math.exp(log_mu)
    x = (epsilon - mu * mu / 2) / mu
    rest = _mills(-x)[0] + _mills(x + mu)[0]
    return (_log_density(x) + math.log(rest) - goal) * rest / mu


def _log_density(x: float) -> float:
    return -x * x / 2 - _LOG_ROOT_TWO_PI


def _drop(x: float, mu: float) -> float:
    """R(x) - R(x + mu), without cancellation."""
    if mu > _INTEGRAL_WIDTH:
        return _mills(x)[0] - _mills(x + mu)[0]
    middle, half = x + mu / 2, mu / 2
    total = 0.0
    for node, weight in _NODES:
        total += weight * (_mills(middle - half * node)[1] + _mills(middle + half * node)[1])
    return half * total


def _mills(t: float) -> tuple[float, float]:
    """R(t) and S(t) = 1 - t R(t); OverflowError far below zero."""
    if t < _FRACTION_FROM:
        ratio = math.exp(t * t / 2 + _LOG_ROOT_TWO_PI) * math.erfc(t / _ROOT_TWO) / 2
        return ratio, 1 - t * ratio
    # R = 1/(t + q) with q = 1/(t + 2/(t + 3/(t + ...))), and so S = q/(t + q).
    tail = 0.0
    for term in range(_FRACTION_TERMS, 0, -1):
        tail = term / (t + tail)
    return 1 / (t + tail), tail / (t + tail)


def _log(value: Fraction) -> float:
    """The logarithm of a fraction between 0 and 1, of any size."""
    if value > Fraction(1, 2):
        return math.log1p(-float(1 - value))
    return math.log(value.numerator) - math.log(value.denominator)
