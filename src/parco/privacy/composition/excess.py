"""Moments less what they are where the loss hardly moves: digits that a moment near 1 does not keep.

A loss that rises by d above its least value b is log(1 - w + w e^d), w the share of q e^l there, and M(z) = e^(zb)
times E[e^(z rise)]. Most of the mass rises little where units are seldom drawn or losses are faint, so that the sum of
mass times (e^(it rise) - 1) is small, and known relative to itself. Source: docs/mathematics.md, "Moments less one".
"""

from __future__ import annotations

import math

import numpy as np

from parco.privacy.composition.families import Complexes, Floats, Line, log_error
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = ["complex_expm1", "complex_log1p", "excess", "log_one_and", "log_rise"]

# Up to this size of w e^d the logarithm is taken of 1 + x, beyond it that of a sum.
_LOG_SMALL = math.log(0.5)
# Where a ratio is nearer to 1, its logarithm is known relative to itself.
_EXCESS = 0.25
# So many points at a time: a sum of so many products is off by no more than their number allows.
_POINTS = 1 << 6


def complex_expm1(values: Complexes) -> Complexes:
    """e^x - 1, off by at most 6 ELEMENTARY units of itself where Re x <= 0 or abs(Im x) <= 1.2: its parts do not cancel
    there."""
    real, imaginary = values.real, values.imag
    half = np.sin(imaginary / 2)
    parts = np.expm1(real) * np.cos(imaginary) - 2 * half * half, np.exp(real) * np.sin(imaginary)
    risen: Complexes = parts[0] + 1j * parts[1]
    return risen


def complex_log1p(values: Complexes) -> Complexes:
    """log(1 + x), off by at most 6 ELEMENTARY units of itself where abs(1 + x) > 1/4."""
    real, imaginary = values.real, values.imag
    logs: Complexes = np.log1p(real * (2 + real) + imaginary**2) / 2 + 1j * np.arctan2(imaginary, 1 + real)
    return logs


def log_rise(log_share: float, log_rest: float, off: float, rises: Complexes | Floats) -> tuple[Complexes, Floats]:
    """log(1 - w + w e^d) for Re d >= 0 and abs(Im d) <= 1.2, and its error in units of u: small where it is small.

    `log_share`, `log_rest`: log w and log(1 - w), each off by at most `off` units of 1; d is off by at most 8 units of
    itself.
    """
    drift = log_share + rises
    near = rises.real < 1
    far = ~near & (drift.real >= _LOG_SMALL)
    share = math.exp(log_share)
    moved = np.where(near, share * complex_expm1(np.where(near, rises, 0)), np.exp(np.where(far, 0, drift)) - share)
    small = complex_log1p(np.where(far, 0, moved))
    # An error of log w counts as the result's own size, one of d as at most 3 w e^d d.
    blur = np.abs(moved) * 3 * (off + 2 * ELEMENTARY * abs(log_share) + 16 * ELEMENTARY)
    blur += 32 * np.exp(np.where(far, 0, drift.real)) * np.abs(rises)
    ratio = np.exp(log_rest - np.where(far, drift, 0))
    large = drift + complex_log1p(ratio)
    # Neither term is more than 1.5 times their sum, as their angle is at most 1.2.
    large_blur = 1.5 * (2 * off + 10 * np.abs(rises) + 4 * np.abs(drift) + 2 * abs(log_rest)) + 2 * np.abs(large)
    large_blur += 16 * ELEMENTARY
    return np.where(far, large, small), np.where(far, large_blur, blur)


def log_one_and(moved: Complexes, error: Floats) -> tuple[Complexes, Floats]:
    """log(1 + x) for x off by at most `error`, and bounds on its errors: relative to itself where x is small."""
    logs, bounds = log_error(1 + moved, error + UNIT * (1 + np.abs(moved)))
    near = np.abs(moved) + error < _EXCESS
    fine = complex_log1p(np.where(near, moved, 0))
    close = error / (1 - _EXCESS) + 8 * ELEMENTARY * UNIT * np.abs(fine)
    return np.where(near, fine, logs), np.where(near, close, bounds)


def excess(
    terms: Complexes, losses: Complexes, roughness: Floats, blur: Floats, line: Line
) -> tuple[Complexes, Floats]:
    """For terms and losses of shape (points,), the sum of terms (e^(itL) - 1) at each height, and a bound on its
    rounding.

    `roughness`: relative error of each term, `blur`: absolute error of each loss, in units of u; Im L >= 0. With A and
    B those of a part of the height each, e^(i(a+b)L) - 1 = AB + A + B.
    """
    line.check_work(len(terms))
    block = math.isqrt(line.count - 1) + 1
    rows, columns = np.arange(-(-line.count // block))[:, np.newaxis], np.arange(block)[:, np.newaxis]
    values = np.zeros((len(rows), block), dtype=complex)
    for first in range(0, len(terms), _POINTS):
        some, turn = terms[first : first + _POINTS], 1j * line.step * losses[first : first + _POINTS]
        low, high = complex_expm1(columns * turn), complex_expm1(rows * (block * turn))
        values += np.matmul(high * some, low.T) + np.matmul(high, some)[:, np.newaxis] + np.matmul(low, some)
    return values.reshape(-1)[: line.count], _rounding(terms, losses, roughness, blur, line)


def _rounding(terms: Complexes, losses: Complexes, roughness: Floats, blur: Floats, line: Line) -> Floats:
    """The sum of size times the units of each term, where it turns by less than 1 times how far it turns; and what the
    losses' own errors turn it by.

    abs(AB) + abs(A) + abs(B) <= 8 min(tL, 1), and a sum of n complex products is off by (n + 2) sqrt 2 units of theirs;
    so many at a time, and then these sums.
    """
    reach, size = np.abs(losses), np.abs(terms)
    summed = min(len(terms), _POINTS) + len(terms) / _POINTS
    units = size * (2 * roughness + 100 * ELEMENTARY + 12 * summed + 200)
    order = np.argsort(reach)
    still = np.concatenate([[0.0], np.cumsum((units * reach)[order])])
    turned = np.concatenate([np.cumsum(units[order][::-1])[::-1], [0.0]])
    heights = line.heights
    with np.errstate(divide="ignore"):
        place = np.searchsorted(reach[order], 1 / heights)
    turning = float((size * (blur + 6 * reach)).sum())
    bounds: Floats = UNIT * (heights * (still[place] + turning) + turned[place]) * (1 + 1e-9)
    return bounds
