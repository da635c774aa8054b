"""The interval in which epsilon lies, for a delta: a double finds the root, the certificate decides.

The upper end is a number at which delta(eps) is proven to be at most delta, the lower end one at which it is proven to
be at least delta. Which line, how many nodes and which method: whatever reaches the width asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from parco.errors import InternalError
from parco.privacy.composition.contour import Aim, Chernoff, Moments, Profile, kappa_log, log_chernoff, profile
from parco.privacy.composition.lattice import lattice_profile
from parco.privacy.composition.precise import PreciseProfile
from parco.privacy.composition.rounding import UNIT
from parco.privacy.composition.smoothing import noise, smoothed

__all__ = ["Order", "Solved", "best_order", "enclose", "is_near", "solve", "solve_delta"]

_SEARCH = 100
# The line stands at this share of the best order less one: never above it.
_POSITION = 0.8
_GOLDEN = (math.sqrt(5) - 1) / 2
_LOG_C_MIN, _LOG_C_MAX, _STRIDE = math.log(1e-9), math.log(1e15), 1.5
_NODES_PLAIN, _NODES_MAX = 1 << 14, 1 << 21
# Of smoothing: its lower bound is loose where the noise is not small beside a loss of 1.
_VARIANCE_MOST = 4.0
_WIDENINGS = 50
_ATTEMPTS = 5
_SEPARATION = 30.0
_SMALL, _COARSE = 1e-3, 0.5
# Of delta, what errors may come to; more where the slope is known, and so that they move epsilon by little.
_SHARE_MOST, _SHARE_KNOWN = 0.05, 0.5


AnyProfile = Profile | PreciseProfile


@dataclass(frozen=True)
class Order:
    """One order of the pair: its moments, and the step of the lattice on which all its losses lie, if there is one.

    `precise` makes the same profile in balls, or None where it cannot.
    """

    moments: Moments
    lattice: Fraction | None = None
    precise: Callable[[Profile], PreciseProfile | None] = lambda _: None


def best_order(moments: Moments, log_delta: float, *, accuracy: float) -> tuple[float, float]:
    """About the c > 0 (order less one) whose bound (log M(c) + log kappa(c) - log delta)/c is least, and that bound.

    log M and log kappa are convex in c, so the bound has one valley. The bound is proven at the c returned, rounded up.
    """

    def bound(log_c: float, exact: Moments) -> float:
        c = math.exp(log_c)
        value, error = exact.log_moment(c)
        return (value + error + kappa_log(c) - log_delta + 32 * UNIT * (abs(value) + c + 1 - log_delta)) / c

    sketch = moments.sketch()
    log_c = _valley(_where_known(lambda at: bound(at, sketch)), accuracy=accuracy)[0]
    proven = bound(log_c, moments)
    if math.isnan(proven):
        # Every comparison with it is false, so that it would pass for a small number.
        raise InternalError("a moment of the composition is not a number")
    return math.exp(log_c), proven


def _where_known(value: Callable[[float], float]) -> Callable[[float], float]:
    """The same, and infinity where it cannot be computed: a search keeps away from there."""

    def known(at: float) -> float:
        try:
            return value(at)
        except InternalError:
            return math.inf

    return known


def _valley(value: Callable[[float], float], *, accuracy: float) -> tuple[float, float]:
    """About where a function of log c with one valley is least, and its value there; golden sections."""
    middle, at_middle = 0.0, value(0.0)
    low, high = middle - _STRIDE, middle + _STRIDE
    at_low, at_high = value(low), value(high)
    while at_low < at_middle and low > _LOG_C_MIN:
        high, middle, at_middle = middle, low, at_low
        low = middle - _STRIDE
        at_low = value(low)
    while at_high < at_middle and high < _LOG_C_MAX:
        low, middle, at_middle = middle, high, at_high
        high = middle + _STRIDE
        at_high = value(high)
    while high - low > accuracy:
        left = high - middle < middle - low
        point = middle - (1 - _GOLDEN) * (middle - low) if left else middle + (1 - _GOLDEN) * (high - middle)
        at_point = value(point)
        if at_point < at_middle:
            low, high = (low, middle) if left else (middle, high)
            middle, at_middle = point, at_point
        elif left:
            low = point
        else:
            high = point
    return middle, at_middle


@dataclass(frozen=True)
class Solved:
    """lower <= eps(delta) <= upper, and what proved it, where something was computed for it."""

    lower: float
    upper: float
    profile: Profile | Chernoff | None = None


def solve(order: Order, log_deltas: tuple[float, float], tolerance: float, *, ceiling: float = 0.0) -> Solved:
    """For every composition, returns doubles with lower <= eps(delta) <= upper, proven.

    upper - lower <= tolerance * max(upper, 0.001); or, where eps(delta) <= ceiling, just that (lower is then 0).
    `log_deltas`: doubles at most and at least log delta. Raises InternalError where the tolerance is not reached.
    """
    bottom, top = order.moments.largest
    near = tolerance * max(bottom, _SMALL) / 2
    if top <= ceiling:
        return Solved(0.0, ceiling)
    if top < math.inf and _is_near_top(order.moments, near, log_deltas[1]):
        return Solved(max(bottom - near, 0.0), top)
    c_best, bound = best_order(order.moments, log_deltas[0], accuracy=0.05)
    if bound <= max(ceiling, tolerance * _SMALL):
        return Solved(0.0, max(ceiling, bound), Chernoff(c_best, log_chernoff(order.moments, c_best)))
    bound = min(bound, top)
    best = _POSITION * c_best
    # Where many faint losses decide beside a bounded one, it is the line beyond the limit that shows them.
    for c in sorted({min(best, _c_limit(order, bound if top < math.inf else top, tolerance)), best}):
        found = _solve_at(order, c, log_deltas, tolerance, ceiling=ceiling, bound=bound)
        if found is not None:
            return found
    raise InternalError("the composition could not be computed to the tolerance asked for")


def _solve_at(
    order: Order, c: float, log_deltas: tuple[float, float], tolerance: float, *, ceiling: float, bound: float
) -> Solved | None:
    """As `solve`, by lines at this c, or None; `bound`: an epsilon that holds."""
    top = order.moments.largest[1]
    aim = Aim(log_deltas[0], max(bound - 4 / c, 0.0), min(max(tolerance * bound * c / 4, 1e-12), _SHARE_MOST))
    for attempt in range(_ATTEMPTS):
        rough = _profile(order, c, aim)
        for made in _sharper(order, rough, late=attempt > 0):
            if made.log_delta_bounds(ceiling)[1] <= log_deltas[0]:
                return Solved(0.0, ceiling, rough)
            found = enclose(made, log_deltas, top=top, start=bound)
            if is_near(found, tolerance):
                return Solved(found.lower, found.upper, rough)
        without_balls = made is rough and _are_balls_due(rough, late=attempt > 0)
        if without_balls and _is_hidden_at(rough, found.upper, log_deltas[0], tolerance):
            break
        aim = _nearer(aim, made, found, tolerance, Aim(log_deltas[0], _below(aim, found, bound, c), _SHARE_MOST))
    return None


def _is_hidden_at(rough: Profile, epsilon: float, log_delta: float, tolerance: float) -> bool:
    """Whether rounding alone leaves epsilon more open than the tolerance: more nodes of this line would not help."""
    if epsilon == math.inf:
        return False
    value, slope = rough.log_delta(epsilon)
    return _is_hidden(rough, epsilon, value, log_delta, -slope * tolerance * max(epsilon, _SMALL))


def _is_hidden(rough: Profile, epsilon: float, value: float, log_delta: float, width: float) -> bool:
    """Whether rounding alone leaves a delta of e^log_delta more open than this width of its logarithm."""
    if value == -math.inf:
        return rough.is_blurred(epsilon)
    return 2 * math.exp(min(rough.log_blur(epsilon) - log_delta, 0.0)) > width


def _below(aim: Aim, found: Solved, bound: float, c: float) -> float:
    """An epsilon below the root, as far as is known."""
    if found.lower <= 0:
        return 0.9 * min(aim.epsilon, found.upper / 2)
    low = min(found.lower, bound)
    return max(0.9 * low, low - 2 * min(found.upper - found.lower, low) - 4 / c)


def _nearer(aim: Aim, made: AnyProfile, found: Solved, tolerance: float, following: Aim) -> Aim:
    """What to aim at next: a smaller share, or the same where the slope had not been known."""
    slope = -made.log_delta(found.upper)[1]
    share = min(0.4 * tolerance * found.upper * slope, _SHARE_KNOWN)
    known = slope <= 2 * max(aim.slope, made.line.c)
    return replace(following, share=max(min(share, aim.share / 4) if known else share, 1e-15), slope=slope)


def _sharper(order: Order, rough: Profile, *, late: bool) -> Iterator[AnyProfile]:
    """The profile in doubles, then the same in balls, where there is one and doubles seem to be what fails."""
    yield rough
    made = order.precise(rough) if _are_balls_due(rough, late=late) else None
    if made is not None:
        yield made


def _are_balls_due(rough: Profile, *, late: bool) -> bool:
    """Whether doubles seem to be what fails."""
    return late or rough.is_blurred(rough.centre)


def is_near(found: Solved, tolerance: float) -> bool:
    """Whether the ends are as near to each other as the tolerance promises; below 0.001 the promise is absolute."""
    return found.upper < math.inf and found.upper - found.lower <= tolerance * max(found.upper, _SMALL)


def enclose(made: AnyProfile, log_deltas: tuple[float, float], *, top: float, start: float) -> Solved:
    """The proven ends that one profile gives, near enough or not; `start`: an epsilon not far from the root.

    delta(eps) is 0 from `top` on.
    """
    root = _root(made, log_deltas[0], start, top)
    below, above = made.log_delta_bounds(root)
    slope = max(-made.log_delta(root)[1], 1e-300)
    step_up = max(above - log_deltas[0], 0.0) / slope
    step_down = max(log_deltas[1] - below, 0.0) / slope if below > -math.inf else 0.0
    ups, downs = _ends(root, 1.01 * step_up, 1), _ends(root, 1.01 * step_down, -1)
    upper = next((end for end in ups if made.log_delta_bounds(end)[1] <= log_deltas[0]), math.inf)
    lower = next((end for end in downs if end <= 0 or made.log_delta_bounds(end)[0] >= log_deltas[1]), 0.0)
    return Solved(max(lower, 0.0), min(upper, top))


def solve_delta(order: Order, epsilons: tuple[float, float], tolerance: float) -> tuple[float, float]:
    """For every composition and epsilon >= 0, returns doubles at most and at least log delta(eps), proven.

    `epsilons`: doubles at most and at least epsilon, next to each other or equal. The two returned are at most the
    tolerance apart. Minus infinity twice where eps is at least the largest loss. Raises InternalError where the
    tolerance is not reached.
    """
    epsilon, beyond = epsilons
    if epsilon >= order.moments.largest[1]:
        return -math.inf, -math.inf
    c_best, bound = _best_at(order.moments, epsilon)
    c = max(_POSITION * c_best, _cheap_c(order.moments.sketch()))
    c = min(c, _c_limit(order, order.moments.largest[1], tolerance))
    aim = Aim(bound - 4, epsilon, tolerance / 4)
    for attempt in range(_ATTEMPTS):
        rough = _profile(order, c, aim)
        for made in _sharper(order, rough, late=attempt > 0):
            above = made.log_delta_bounds(epsilon)[1]
            below = made.log_delta_bounds(beyond)[0]
            if above - below <= tolerance:
                return below, min(above, 0.0)
        value = rough.log_delta(epsilon)[0]
        without_balls = made is rough and _are_balls_due(rough, late=attempt > 0)
        if without_balls and _is_hidden(rough, epsilon, value, value, tolerance):
            break
        aim = Aim(made.log_delta(epsilon)[0] if below > -math.inf else aim.log_delta - 4, epsilon, aim.share / 8)
    raise InternalError("the composition could not be computed to the tolerance asked for")


def _cheap_c(moments: Moments) -> float:
    """About the c with log M(c) = 1: up to there a line costs no digit, and a smaller c only more nodes."""
    low, high = _LOG_C_MIN, _LOG_C_MAX
    while high - low > _COARSE:
        middle = (low + high) / 2
        low, high = (low, middle) if moments.log_moment(math.exp(middle))[0] > 1 else (middle, high)
    return math.exp(low)


def _best_at(moments: Moments, epsilon: float) -> tuple[float, float]:
    """About the c > 0 at which log kappa(c) M(c) - c eps, which is convex in c, is least, and that value."""

    def bound(log_c: float) -> float:
        c = math.exp(log_c)
        return moments.log_moment(c)[0] + kappa_log(c) - c * epsilon

    log_c, value = _valley(_where_known(bound), accuracy=0.05)
    return math.exp(log_c), value


def _is_near_top(moments: Moments, width: float, log_delta: float) -> bool:
    """Whether delta(largest - width) is proven to be at least delta: P(L >= largest - width/2)(1 - e^(-width/2)) is."""
    return moments.log_mass_near(width / 2) + math.log(-math.expm1(-width / 2)) - 1e-9 >= log_delta


def _c_limit(order: Order, top: float, tolerance: float) -> float:
    """Beyond this c nothing is gained: it tells apart what is nearer than the lattice, or than the tolerance."""
    if order.lattice is not None:
        return _SEPARATION / float(order.lattice)
    return 1 / (tolerance * top) if top < math.inf else math.inf


def _profile(order: Order, c: float, aim: Aim) -> Profile:
    if order.lattice is not None:
        made = lattice_profile(order.moments, c, aim, lattice=order.lattice, nodes_max=_NODES_MAX)
        if made is not None:
            return made
    plain = profile(order.moments, c, aim, nodes_max=_NODES_PLAIN)
    return plain if plain is not None else _smooth(order, c, aim)


def _smooth(order: Order, c: float, aim: Aim) -> Profile:
    # What smoothing adds is about (v/2) s (s+1) of delta.
    slope = max(c, aim.slope)
    variance = min(aim.share / (slope * (slope + 1)), _VARIANCE_MOST)
    moments = Moments([*order.moments.families, noise(variance)])
    made = profile(moments, c, aim, nodes_max=_NODES_MAX)
    if made is None:
        raise InternalError("the composition needs more nodes than memory should hold: ask for a larger tolerance")
    return smoothed(made, variance, moments.envelope(c))


def _ends(root: float, step: float, sign: int) -> Iterator[float]:
    step = max(step, 4 * UNIT * root, 1e-300)
    for _ in range(_WIDENINGS):
        yield root + sign * step
        step *= 2


def _root(made: AnyProfile, target: float, start: float, top: float) -> float:
    """About the epsilon in [0, top] at which log delta is the target, by Newton's steps kept inside a bracket.

    Where the value is hidden, the root lies towards the profile's centre: there it can be seen.
    """
    low, high, point = 0.0, top, start
    for _ in range(_SEARCH):
        value, slope = made.log_delta(point)
        hidden = value == -math.inf
        above = made.log_delta_bounds(point)[1] > target and point <= made.centre if hidden else value > target
        low, high = (point, high) if above else (low, point)
        following = math.inf if hidden or not slope else point + (target - value) / slope
        if not low < following < high:
            following = (low + high) / 2 if high < math.inf else 2 * point + _SMALL
        if abs(following - point) <= 4e-16 * point:
            return following
        point = following
    return point
