"""How often intervals miss at their worst, when each next variance is chosen after seeing the estimates so far.

With u_k = (m_k - f)/sqrt(t_k), and rho = t_k/t_(k-1) chosen by released values, u_k = sqrt(rho) u_(k-1) + sqrt(1-rho) Z
with Z normal and new. Whoever chooses may know f for this bound. A dynamic program, rounded up at each of its steps.
Source: docs/mathematics.md, "Variances chosen on the way".
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parco.accuracy.bands import check_adaptive
from parco.errors import InternalError

__all__ = ["adaptive_quantile_upper", "miss_upper"]

_BINS = 64
"""Of abs(u), and of the angle whose squared cosine is rho: bounds are then some 2 % above the least possible."""
_ROUNDING = 1e-9
"""Above all errors of doubles here: sums of fewer than 10^5 numbers below 1, each off by some 2^-50."""
_CLOSE, _TRIES_MAX = 0.99, 50


@lru_cache(maxsize=64)
def adaptive_quantile_upper(miss: Fraction, steps: int) -> Fraction:
    """For every `miss` in [1e-6, 1) and 1 to 40 steps, a z that all steps keep but with chance `miss`; or RequestError.

    P(abs(u_k) > z for some k <= steps) <= miss, however variances are chosen: `miss_upper` says so at z, and says no
    less than 0.99 miss, or 0.99/2 for a larger miss.
    """
    check_adaptive(miss, steps)
    miss = min(miss, Fraction(1, 2))
    aim, square = float(miss) * (1 + _CLOSE) / 2, 1.0
    low, high = 0.0, math.inf
    for _ in range(_TRIES_MAX):
        found = miss_upper(math.sqrt(square), steps)
        if _CLOSE * miss <= found <= miss:
            return Fraction(math.sqrt(square))
        low, high = (square, high) if found > miss else (low, square)
        # About e^(-z^2/2) in z; halfway where that leads out of what is known.
        square = max(square / 4, square + 2 * math.log(found / aim))
        if not low < square < high:
            square = (low + high) / 2
    raise InternalError("the quantile of an adaptive ladder was not found")


def miss_upper(z: float, steps: int) -> float:
    """For every z > 0, a bound on the chance that abs(u_k) > z for some k <= steps, however variances are chosen.

    worst(u) is the chance of a miss in the steps that are left, given u now. It rises with abs(u); in each bin it is
    taken at the upper edge, and in each bin of angles at the worst angle for every level by itself.
    """
    edges = z * np.sin(np.linspace(0, math.pi / 2, _BINS + 1))
    reached = _reached(edges)
    worst = np.zeros(_BINS)
    for _ in range(steps - 1):
        worst = np.minimum(1, (reached @ _jumps(worst)).max(axis=1) + _ROUNDING)
    return float(2 * _tail(edges) @ _jumps(np.maximum.accumulate(worst))) + _ROUNDING


def _jumps(worst: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much `worst` rises at each edge; above the last it is 1."""
    jumps: NDArray[np.float64] = np.diff(np.concatenate([[0.0], np.maximum.accumulate(worst), [1.0]]))
    return jumps


def _reached(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """At least P(abs(u cos a + Z sin a) > x) for every u in a bin and angle a in a bin: shape (u, angle, x).

    One side is largest where (x - u cos a)/sin a is least: at cos a = u/x for u < x, at a = 0 for u >= x, between which
    and the ends it is monotone. The other side grows with a.
    """
    angles = np.linspace(0, math.pi / 2, _BINS + 1)
    u, x = edges[1:, np.newaxis, np.newaxis], edges[np.newaxis, np.newaxis, :]
    low, high = angles[np.newaxis, :-1, np.newaxis], angles[np.newaxis, 1:, np.newaxis]
    least = np.where(u < x, np.arccos(np.minimum(1, u / np.maximum(x, u))), 0.0)
    at = np.maximum(np.clip(least, low, high), 1e-12)
    near = _tail((x - u * np.cos(at)) / np.sin(at))
    far = _tail((x + u * np.cos(high)) / np.sin(high))
    # At angle 0 nothing moves: a u at the level itself counts as above it.
    stays = (u >= x) & (low == 0)
    return np.minimum(1, np.where(stays, 1.0, near + far))


def _tail(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Z > x)."""
    flat = (x / math.sqrt(2)).ravel().tolist()
    return np.fromiter(map(math.erfc, flat), np.float64, len(flat)).reshape(x.shape) / 2
