"""Whole curves of the Gaussian profile in doubles, each number an upper (or lower) bound with a proven margin.

For figures and searches: from a thousand points on, twenty to fifty times faster than `gaussian.py`. Nothing is assumed
of a processor but IEEE 754: double-precision + - * / and square root rounded to nearest, with unit roundoff u = 2^-53.
Exponential and Mills ratio are computed here, so that their errors can be bounded; docs/mathematics.md, "Curves in
doubles", derives every constant below. In short, with x = eps/mu - mu/2, phi the normal density, R(t) = Phi(-t)/phi(t):

    delta = phi(x) (R(x) - R(x + mu)) = phi(x) (integral of S = 1 - t R over (x, x + mu)),
    1 - delta = phi(x) (R(-x) + R(x + mu))

R and S are sums of positive terms (a midpoint rule that is exact to 1e-16), the integral is taken by a rule of Lobatto,
which is never below it because all even derivatives of S are positive, and a solution is returned only after the bound
on delta at the very x returned was compared with delta. What cannot be proven so is left to `gaussian.py`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parco.balls import arb, precision, upper
from parco.errors import RequestError
from parco.privacy import gaussian

__all__ = ["deltas_upper", "epsilons_upper", "mu_squareds_lower"]

Array = NDArray[np.float64]

# Where the derivation holds; what lies outside is left to balls.
_MU_MIN, _MU_MAX = 1e-9, 1e4
_DELTA_MIN, _REST_MIN = 1e-300, 1e-12
# Beyond this x, delta <= Phi(-x) is below 1e-300; below its negative, 1 - delta is.
_X_MAX = 37.1

_U = 2.0**-53
# Relative errors in units of u: of R and S for t >= -1, of phi(x) apart from x^2/2, of the rule of Lobatto.
_MILLS_ERROR, _PHI_ERROR, _DROP_ERROR = 32, 8, 48

_STEPS_MAX, _STEP_LAST = 40, 1e-9
_MARGINS = (1.5, 6.0, 24.0)  # tried in turn, in units of the error bound


def epsilons_upper(mu_squared: ArrayLike, delta: ArrayLike) -> Array:
    """For every mu_squared >= 0 and 0 < delta < 1, returns epsilons with profile <= delta, or raises RequestError.

    Both: doubles (taken as they are) that broadcast; the result has their common shape. Always an upper bound on the
    least such epsilon. For mu in [1e-9, 1e4] and delta in [1e-300, 1 - 1e-12] at most that of delta (1 - 5e-12), or
    where delta >= 1/2 of 1 - (1 - delta)(1 + 5e-12), plus 2^-49 max(epsilon, mu_squared); elsewhere as tight as
    `gaussian.epsilon_upper`, rounded up. Source: docs/mathematics.md, "Curves in doubles".
    """
    squares, deltas = _arrays(mu_squared, delta)
    _check(squares >= 0, "mu squared is not negative")
    _check((deltas > 0) & (deltas < 1), "delta lies strictly between 0 and 1")
    return _filled(_epsilons, gaussian.epsilon_upper, squares, deltas, inside=_inside(squares) & _solvable(deltas))


def deltas_upper(mu_squared: ArrayLike, epsilon: ArrayLike) -> Array:
    """For every mu_squared >= 0 and epsilon >= 0, returns upper bounds on the profile, or raises RequestError.

    Both: doubles (taken as they are) that broadcast; the result has their common shape. For mu in [1e-9, 1e4] above the
    truth by less than 4e-12 delta, and by less than 4e-12 (1 - delta) + 2^-52, but never below 1e-300; elsewhere as
    tight as `gaussian.delta_upper`, rounded up. Source: docs/mathematics.md, "Curves in doubles".
    """
    squares, epsilons = _arrays(mu_squared, epsilon)
    _check((squares >= 0) & (epsilons >= 0), "mu squared and epsilon are not negative")
    return _filled(_deltas, gaussian.delta_upper, squares, epsilons, inside=_inside(squares))


def mu_squareds_lower(epsilon: ArrayLike, delta: ArrayLike) -> Array:
    """For every epsilon >= 0 and 0 < delta < 1, returns mu^2 with profile(epsilon) <= delta, or raises RequestError.

    Both: doubles (taken as they are) that broadcast; the result has their common shape. Always a lower bound on the
    largest such mu^2. For mu in [1e-9, 1e4] and delta in [1e-300, 1 - 1e-12] at least that of delta (1 - 2e-11), or
    where delta >= 1/2 of 1 - (1 - delta)(1 + 2e-11); elsewhere as tight as `gaussian.mu_squared_lower`, rounded down.
    Source: docs/mathematics.md, "Curves in doubles".
    """
    epsilons, deltas = _arrays(epsilon, delta)
    _check(epsilons >= 0, "epsilon is not negative")
    _check((deltas > 0) & (deltas < 1), "delta lies strictly between 0 and 1")
    return _filled(_mu_squareds, gaussian.mu_squared_lower, epsilons, deltas, inside=_solvable(deltas), up=False)


def _epsilons(squares: Array, deltas: Array) -> Array:
    """Epsilons, or NaN where nothing was proven."""
    mu = _root_upper(squares)
    # A profile that is at most delta at 0, or below 0 where x was rounded down, needs no epsilon.
    found = np.where(_at_most(-mu / 2, mu, deltas), 0.0, np.nan)
    x, margin = _solved_in_x(mu, deltas)
    for factor in _MARGINS:
        right = x + factor * margin
        proven = np.isnan(found) & _at_most(right, mu, deltas)
        found[proven] = _epsilon_at_upper(right, mu, squares)[proven]
    return np.maximum(found, 0.0)


def _epsilon_at_upper(x: Array, mu: Array, squares: Array) -> Array:
    """mu x + mu^2/2, rounded up, for the exact root of `squares`, which lies at most two roundings below `mu`."""
    product = mu * x
    return (product + squares / 2) + 8 * _U * (np.abs(product) + squares)


def _deltas(squares: Array, epsilons: Array) -> Array:
    mu = _root_upper(squares)
    # At a fixed x delta rises in mu, at a fixed mu it falls in x: so mu is rounded up and x down.
    x = (epsilons - squares / 2) / mu
    x -= 8 * _U * np.abs(x)
    found = np.ones_like(x)
    found[x > _X_MAX] = _DELTA_MIN
    near = np.abs(x) <= _X_MAX
    for part, bound in ((near & (x > -0.5), _delta_upper), (near & (x <= -0.5), _one_minus_rest_lower)):
        found[part] = np.maximum(bound(x[part], mu[part]), _DELTA_MIN)
    return found


def _mu_squareds(epsilons: Array, deltas: Array) -> Array:
    """Squares of mu, or NaN where nothing was proven."""
    mu, margin = _solved_in_mu(epsilons, deltas)
    found = np.full_like(mu, np.nan)
    for factor in _MARGINS:
        squares = np.square(mu * (1 - factor * margin))
        inside = np.isnan(found) & _inside(squares)
        proven = np.flatnonzero(inside)
        proven = proven[_deltas(squares[proven], epsilons[proven]) <= deltas[proven]]
        found[proven] = squares[proven]
    return found


# Solving: Newton's method on the logarithm of delta, or of 1 - delta, whichever is smaller (both concave, in x and in
# log mu), each started on the side from which it does not pass the root. Guesses: what is returned is proven later.


def _solved_in_x(mu: Array, deltas: Array) -> tuple[Array, Array]:
    """About the x at which delta is reached, at least -mu/2, and the step in x that covers the error bounds."""
    start, goal = _start(deltas)
    x, margin, moving = np.maximum(start, -mu / 2), np.zeros_like(mu), np.ones(mu.shape, dtype=bool)
    for _ in range(_STEPS_MAX):
        log, error, slope = _log_and_slopes(x[moving], mu[moving], deltas[moving] < 0.5)
        slope *= mu[moving] * _mills(x[moving] + mu[moving])
        margin[moving] = error / slope
        moved = np.maximum(x[moving] + (log - goal[moving]) / slope * _sign(deltas[moving]), -mu[moving] / 2)
        still = np.abs(moved - x[moving]) > _STEP_LAST
        x[moving] = moved
        moving[moving] = still
        if not moving.any():
            break
    return x, margin


def _solved_in_mu(epsilons: Array, deltas: Array) -> tuple[Array, Array]:
    """About the mu at which delta is reached, and the relative step that covers the error bounds."""
    start, goal = _start(deltas)
    roots = np.hypot(start, np.sqrt(2 * epsilons)) + np.abs(start)
    mu = np.maximum(np.where(start > 0, 2 * epsilons / roots, roots), 2.5 * deltas)
    margin, moving = np.zeros_like(mu), np.ones(mu.shape, dtype=bool)
    for _ in range(_STEPS_MAX):
        now = mu[moving]
        x = (epsilons[moving] - now * now / 2) / now
        log, error, slope = _log_and_slopes(x, now, deltas[moving] < 0.5)
        slope *= now
        margin[moving] = (error + 8 * _U * x * x) / slope
        step = (goal[moving] - log) / slope * _sign(deltas[moving])
        mu[moving] = now * np.exp(np.clip(step, -2, 2))
        moving[moving] = np.abs(step) > _STEP_LAST
        if not moving.any():
            break
    return mu, margin


def _start(deltas: Array) -> tuple[Array, Array]:
    """Where the Chernoff bound on Phi(-x), or on Phi(x), reaches the goal; and the goal."""
    goal = np.log(np.where(deltas < 0.5, deltas, 1 - deltas))
    return np.sqrt(-2 * goal) * _sign(deltas), goal


def _sign(deltas: Array) -> Array:
    return np.where(deltas < 0.5, 1.0, -1.0)


def _log_and_slopes(x: Array, mu: Array, of_delta: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """The logarithm solved for, its error bound, and phi(x) over its argument (the slope by mu)."""
    part, error = np.empty_like(x), np.empty_like(x)
    for chosen, bracket in ((of_delta, _drop_upper), (~of_delta, _rest_lower)):
        part[chosen], error[chosen] = bracket(x[chosen], mu[chosen])
    return np.log(part) - x * x / 2 - np.log(2 * np.pi) / 2, error + _phi_error(x), 1 / part


# Bounds. `x` and `mu` are exact doubles here; errors are relative.


def _at_most(x: Array, mu: Array, deltas: Array) -> NDArray[np.bool_]:
    """Whether delta at (x, mu) is proven to be at most `deltas`; 1 - deltas is exact from 1/2 on."""
    proven = np.zeros(x.shape, dtype=bool)
    low = deltas < 0.5
    part = low & (x >= -1) & (x <= _X_MAX)
    proven[part] = _delta_upper(x[part], mu[part]) <= deltas[part]
    part = ~low & (x >= -_X_MAX) & (x <= 0)
    proven[part] = _rest_bound_lower(x[part], mu[part]) >= 1 - deltas[part]
    return proven


def _delta_upper(x: Array, mu: Array) -> Array:
    """An upper bound on delta, x >= -1."""
    drop, error = _drop_upper(x, mu)
    return _phi(x) * drop * (1 + error + _phi_error(x))


def _one_minus_rest_lower(x: Array, mu: Array) -> Array:
    """An upper bound on delta, x <= 0, that keeps 1 - delta."""
    return np.nextafter(1 - _rest_bound_lower(x, mu), 1.0)


def _rest_bound_lower(x: Array, mu: Array) -> Array:
    rest, error = _rest_lower(x, mu)
    return _phi(x) * rest * (1 - error - _phi_error(x))


def _drop_upper(x: Array, mu: Array) -> tuple[Array, Array]:
    """R(x) - R(x + mu), x >= -1, and the relative error by which the truth may be above it."""
    drop, error = np.empty_like(x), np.empty_like(x)
    narrow = mu <= 0.5
    drop[narrow], error[narrow] = _drop_by_lobatto(x[narrow], mu[narrow]), (_DROP_ERROR + 2) * _U
    near, far = _mills(x[~narrow]), _mills(x[~narrow] + mu[~narrow])
    drop[~narrow] = near - far
    error[~narrow] = ((_MILLS_ERROR + 2) * (near + far) / (near - far) + 4) * _U
    return drop, error


def _rest_lower(x: Array, mu: Array) -> tuple[Array, Array]:
    """R(-x) + R(x + mu), x <= 0 <= x + mu, and the relative error by which the truth may be below it."""
    return _mills(-x) + _mills(x + mu), np.full_like(x, (_MILLS_ERROR + 4) * _U)


def _phi_error(x: Array) -> Array:
    return (_PHI_ERROR + x * x / 2) * _U


# Functions with proven errors.

# Lobatto's rule with eight points on (-1, 1): the positive points with their weights.
_LOBATTO = (
    (0.20929921790247888, 0.4124587946587039),
    (0.5917001814331423, 0.34112269248350435),
    (0.8717401485096066, 0.21070422714350603),
    (1.0, 0.03571428571428571),
)

# R(t) = E[t/(t^2 + T^2)] for a normal T, by the midpoint rule with this step; the pole at t = i T adds a term.
_STEP, _POINTS, _POLE_UNTIL = 0.625, 14, 7.0


def _nearest(value: arb) -> float:
    return float(upper(value.mid()))


with precision(128):
    _SQUARES = [((2 * k + 1) * _STEP / 2) ** 2 for k in range(_POINTS)]  # exact
    _ROOT_TWO_PI, _LOG_TWO = (2 * arb.pi()).sqrt(), arb(2).log()
    _WEIGHTS = [_nearest(2 * arb(_STEP) * (-arb(square) / 2).exp() / _ROOT_TWO_PI) for square in _SQUARES]
    _POLE_RATE, _POLE_FACTOR = _nearest(2 * arb.pi() / arb(_STEP)), _nearest(_ROOT_TWO_PI)
    _PHI_FACTOR = _nearest(1 / _ROOT_TWO_PI)
    # log 2 in two parts, the first of 32 bits, so that its multiples up to 2^20 are exact.
    _LOG_TWO_HIGH = round(_nearest(_LOG_TWO) * 2**32) / 2**32
    _LOG_TWO_LOW = _nearest(_LOG_TWO - arb(_LOG_TWO_HIGH))
    _EXP_TERMS = [_nearest(1 / arb(math.factorial(power))) for power in range(14)]


def _mills(t: Array) -> Array:
    """R(t), t >= -1, with a relative error of at most _MILLS_ERROR u."""
    square, total = t * t, np.zeros_like(t)
    for weight, point in zip(_WEIGHTS, _SQUARES, strict=True):
        total += weight / (square + point)
    return t * total + _pole(t)


def _minus_mills_slope(t: Array) -> Array:
    """S(t) = 1 - t R(t) = E[T^2/(t^2 + T^2)], t >= -1/2, with a relative error of at most _MILLS_ERROR u."""
    square, total = t * t, np.zeros_like(t)
    for weight, point in zip(_WEIGHTS, _SQUARES, strict=True):
        total += weight * point / (square + point)
    return total - t * _pole(t)


def _pole(t: Array) -> Array:
    """sqrt(2 pi) e^(t^2/2)/(1 + e^(2 pi t/step)); from 7 on it is below what is kept."""
    kept = np.minimum(t, _POLE_UNTIL)
    value = _POLE_FACTOR * _exp(kept * kept / 2) / (1 + _exp(_POLE_RATE * kept))
    return np.where(t <= _POLE_UNTIL, value, 0.0)


def _drop_by_lobatto(x: Array, mu: Array) -> Array:
    """The integral of S over (x, x + mu), 0 < mu <= 1/2, x >= -1/4: at most _DROP_ERROR u below the truth."""
    half = mu / 2
    total = np.zeros_like(x)
    for node, weight in _LOBATTO:
        total += weight * (_minus_mills_slope(x + half * (1 - node)) + _minus_mills_slope(x + half * (1 + node)))
    return half * total


def _phi(x: Array) -> Array:
    """The normal density, with a relative error of at most (_PHI_ERROR + x^2/2) u."""
    return _PHI_FACTOR * _exp(-x * x / 2)


def _exp(value: Array) -> Array:
    """e^value for abs(value) <= 700, with a relative error of at most 4 u."""
    twos = np.rint(value / _LOG_TWO_HIGH)
    rest = (value - twos * _LOG_TWO_HIGH) - twos * _LOG_TWO_LOW
    total = np.full_like(rest, _EXP_TERMS[-1])
    for term in _EXP_TERMS[-2::-1]:
        total = total * rest + term
    return np.ldexp(total, twos.astype(np.int32))


def _root_upper(squares: Array) -> Array:
    """A double at least the exact root, and at most two roundings above it."""
    return np.nextafter(np.sqrt(squares), np.inf)


# Doors and the way out.


def _arrays(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    one, two = np.broadcast_arrays(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))
    _check(np.isfinite(one) & np.isfinite(two), "the numbers of a curve are finite")
    return one, two


def _check(holds: NDArray[np.bool_], message: str) -> None:
    if not holds.all():
        raise RequestError(message)


def _inside(squares: Array) -> NDArray[np.bool_]:
    return (squares >= _MU_MIN**2) & (squares <= _MU_MAX**2)


def _solvable(deltas: Array) -> NDArray[np.bool_]:
    return (deltas >= _DELTA_MIN) & (1 - deltas >= _REST_MIN)


def _filled(
    fast: Callable[[Array, Array], Array],
    exact: Callable[[Fraction, Fraction], Fraction],
    first: Array,
    second: Array,
    *,
    inside: NDArray[np.bool_],
    up: bool = True,
) -> Array:
    """`fast` where it holds; `exact` for what is outside its range, and where it proved nothing (NaN)."""
    found = np.full(first.shape, np.nan)
    with np.errstate(all="ignore"):
        found[inside] = fast(first[inside], second[inside])
    flat = found.reshape(-1)
    for place in np.flatnonzero(np.isnan(flat)):
        value = exact(Fraction(float(first.flat[place])), Fraction(float(second.flat[place])))
        flat[place] = _rounded(value, up=up)
    return found


def _rounded(value: Fraction, *, up: bool) -> float:
    """The nearest double, moved outward where it is on the wrong side."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if up else sys.float_info.max
    wrong = Fraction(near) < value if up else Fraction(near) > value
    return math.nextafter(near, math.inf if up else -math.inf) if wrong else near
