"""Poisson-sampled Laplace and exponential mechanisms: moments by Gauss-Legendre rules on a bent path, with a proven
error.

Without sampling the loss l has under Q the density C e^(-l/2) on (-e, e), and for Laplace noise atoms at both ends.
Sampled, the ratio of the laws is r(l) = 1 - q + q e^l, and

    removal:  M(z) = int r(l)^(z+1) dQ        addition:  M(z) = int r(l)^(-z) dQ.

abs(r^(it)) = e^(-t arg r), and arg r has the sign of Im l while abs(Im l) < pi. So the path from -e to e goes up
(removal) or down (addition) by y, across, and back: the same points serve every height t >= 0. Source:
docs/mathematics.md, "Sampled Laplace".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from parco.balls import arb, precision
from parco.errors import InternalError
from parco.privacy.composition.families import Complexes, Floats, Line, log_error
from parco.privacy.composition.rounding import ELEMENTARY, UNIT
from parco.privacy.composition.sampled import log_mixture, weighted_sums

__all__ = ["SampledInterval"]

# Pieces of the path, and ellipses (foci at a piece's ends) in which the integrand is bounded: the sum of the semi-axes,
# in half-lengths. Across, half-length y/2 and semi-minor axis y; upwards, from t to 2t, semi-major axis 3/2 t.
_POINTS, _ACROSS, _UPWARDS = 18, 2 + math.sqrt(5), 3 + math.sqrt(8)
_HALVINGS, _BITS = 66, 128
_PIECES_MAX = 20_000
# A relative error of an integral beyond this is an answer no longer.
_OFF_MAX = 0.25
# Where a ratio of laws differs from 1 by less, its logarithm is taken of the difference.
_NEAR, _LOSS_MAX = 0.5, 700.0


@dataclass(frozen=True)
class _Rule:
    """A rule for one c: log of weight times integrand at height 0, losses L with Im L >= 0, and the error of the rule.

    `roughness` and `blur`: what each term and each loss is off by, as in `sampled.py`.
    """

    logs: Complexes
    losses: Complexes
    log_error: float
    roughness: Floats
    blur: Floats


@dataclass(frozen=True)
class SampledInterval:
    """`times` releases with the same e = `epsilon` and `rate` q in (0, 1); `atoms`: Laplace, else bounded range.

    `log_rest` is log(1 - q); it, e and q are off by a unit or two as they come in.
    """

    epsilon: float
    rate: float
    log_rest: float
    times: float
    atoms: bool
    removal: bool

    @property
    def releases(self) -> float:
        """How many there are."""
        return self.times

    @property
    def different(self) -> int:
        """One."""
        return 1

    def sketch(self) -> SampledInterval:
        """Itself."""
        return self

    @property
    def largest(self) -> tuple[float, float]:
        """The sum of log(1 - q + q e^e) for removal, of -log(1 - q + q e^-e) for addition."""
        each = self._loss(self.epsilon if self.removal else -self.epsilon)
        total = self.times * abs(each)
        return total * (1 - 256 * UNIT), total * (1 + 256 * UNIT)

    def log_mass_near(self, width: float) -> float:
        """For Laplace noise the sum of the logarithms of the largest loss's mass, else minus infinity."""
        del width
        if not self.atoms:
            return -math.inf
        mass = self._loss(self.epsilon) - self.epsilon - math.log(2) if self.removal else -math.log(2)
        return self.times * (mass - 256 * UNIT * (1 + self.epsilon))

    def log_moment(self, c: float) -> tuple[float, float]:
        """The sum of log M(c), and a bound on its error."""
        rule = self._rule(c, 0.0)
        top = float(rule.logs.real.max())
        terms = np.exp(rule.logs.real - top)
        total = float(terms.sum())
        value = top + math.log(total)
        rounding = float((terms * rule.roughness).sum()) / total + 64 + 4 * abs(value)
        off = math.exp(min(rule.log_error - value, 0.0))
        if off > _OFF_MAX:
            raise InternalError("a sampled mechanism's moment could not be computed in doubles")
        error = UNIT * rounding + 2 * off
        return self.times * value, self.times * error

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """The sum of log(M(z)/M(c)) at the nodes, up to multiples of 2 pi i, and bounds on its errors."""
        rule = self._rule(line.c, 1.0)
        top = float(rule.logs.real.max())
        terms = np.exp(rule.logs - top)[np.newaxis, :]
        rough, blur = rule.roughness[np.newaxis, :], rule.blur[np.newaxis, :]
        values, bounds = weighted_sums(terms, rule.losses[np.newaxis, :], rough, blur, line)
        centre = values[:, :1].real
        off = 2 * math.exp(rule.log_error - top)
        ratios, errors = log_error(values / centre, 2 * (bounds + off) / centre)
        return self.times * ratios[0], self.times * errors[0]

    def envelope(self, c: float) -> Callable[[float], float]:
        """For every height, at least the sum of log|M(c + it)/M(c)| over t >= height: by the sizes of the terms, which
        fall."""
        rule = self._rule(c, 1.0)
        value, off = self.log_moment(c)
        centre = (value - off) / self.times
        highest = np.append(rule.logs.real + UNIT * rule.roughness, rule.log_error)
        angles = np.append(np.maximum(rule.losses.imag * (1 - 4 * UNIT) - UNIT * rule.blur, 0.0), 0.0)

        def bound(height: float) -> float:
            logs = highest - height * angles
            top = float(logs.max())
            size = top + math.log(float(np.exp(logs - top).sum()))
            return self.times * min(size - centre + 1e-12 + 16 * UNIT * abs(centre), 0.0)

        return bound

    def _rule(self, c: float, share: float) -> _Rule:
        """The rule whose path goes up by this share of what it may: 0 for real z, where the straight path will do."""
        height = self._height(c)
        pieces = list(self._straight(height) if share == 0 else self._bent(height))
        if len(pieces) > _PIECES_MAX:
            raise InternalError("a sampled mechanism's loss is too wide for the integral that composes it")
        knots, weights = _gauss_legendre()
        starts = np.array([piece[0] for piece in pieces])
        halves = np.array([(piece[1] - piece[0]) / 2 for piece in pieces])
        places = (starts + halves)[:, np.newaxis] + halves[:, np.newaxis] * knots
        power = c + 1 if self.removal else -c
        # A place is off by some units of e + 2, whatever it is itself.
        near = self.epsilon + 2
        ratio, blur = log_mixture(self.rate, self.log_rest, places.ravel(), 6 * near)
        weight = np.log(halves[:, np.newaxis] * weights + 0j)
        logs = (self._log_density() - places / 2 + weight).ravel() + power * ratio
        error = self._rule_error(c, pieces, height)
        if self.atoms:
            ends = np.array([self._loss(self.epsilon), self._loss(-self.epsilon)])
            masses = np.array([-self.epsilon - math.log(2), -math.log(2)])
            logs = np.concatenate([logs, masses + power * ends])
            ratio, blur = np.concatenate([ratio, ends]), np.concatenate([blur, 256 * np.abs(ends)])
        roughness = 4 * ELEMENTARY + 8 * near + 4 * np.abs(logs) + (c + 1) * (blur + 4 * np.abs(ratio))
        return _Rule(
            logs=logs, losses=ratio if self.removal else -ratio, log_error=error, roughness=roughness, blur=blur
        )

    def _height(self, c: float) -> float:
        """y: the integrand grows by no more than some e^4 in the ellipses, 2y < pi, and the ways up and down cancel
        little.

        Along the path log r grows by no more than `_steepest`, and across it |r| shrinks by no more than
        `_log_shrinking`.
        """
        most, steepest = min(1.2, 4 * self.epsilon), self._steepest()
        if self.removal:
            return min(most, 4 / ((c + 1) * steepest))
        return min(most, math.sqrt(8 / (c * min(1.0, 4 * steepest))), 4 / (c * steepest))

    def _steepest(self) -> float:
        """At least the share of q e^l in r(l), as far as the ellipses reach."""
        return math.exp(min(math.log(self.rate) + self.epsilon + 1 - self._loss(self.epsilon + 1), 0.0))

    def _log_shrinking(self, height: float) -> float:
        """At least log r(Re l) - log|r(l)| for abs(Im l) <= 2 height, the height below pi/2.

        |r|^2 = r(Re l)^2 (1 - 4w(1-w) sin^2(Im l/2)) with w the share of q e^l, at most `_steepest`.
        """
        steepest = self._steepest()
        share = 1.0 if steepest >= _NEAR else min(4 * steepest * (1 - steepest) * (1 + 1e-12), 1.0)
        return -math.log1p(-share * math.sin(height) ** 2) / 2 + 1e-12

    def _straight(self, height: float) -> Iterator[tuple[complex, complex]]:
        count = math.ceil(2 * self.epsilon / height)
        ends = np.linspace(-self.epsilon, self.epsilon, min(count, _PIECES_MAX + 1) + 1)
        yield from zip(ends[:-1] + 0j, ends[1:] + 0j, strict=True)

    def _bent(self, height: float) -> Iterator[tuple[complex, complex]]:
        turn = 1j if self.removal else -1j
        heights = [height * 2.0**-k for k in range(_HALVINGS + 1)]
        for upper, lower in pairwise(heights):
            yield -self.epsilon + turn * lower, -self.epsilon + turn * upper
            yield self.epsilon + turn * upper, self.epsilon + turn * lower
        for start, end in self._straight(height):
            yield start + turn * height, end + turn * height

    def _rule_error(self, c: float, pieces: list[tuple[complex, complex]], height: float) -> float:
        """log of a bound on the error of the rule: 64/15 half rho^-2n/(1 - rho^-2) times the integrand's bound, piece
        by piece.

        Source: Trefethen 2013, theorem 19.3. Left out are the first bits of both upward paths, of length y 2^-66.
        """
        starts, ends = (np.array([piece[place] for piece in pieces]) for place in (0, 1))
        halves = np.abs(ends - starts) / 2
        # Upwards, ellipses are 1.42 times as wide as t; t <= y/2. Across they reach 0.62 y beyond the piece.
        reach = 0.75 * height
        low = np.minimum(starts.real, ends.real) - reach
        high = np.maximum(starts.real, ends.real) + reach
        if self.removal:
            size = (c + 1) * np.logaddexp(self.log_rest, math.log(self.rate) + high)
        else:
            size = -c * (np.logaddexp(self.log_rest, math.log(self.rate) + low) - self._log_shrinking(height))
        bounds = self._log_density() - low / 2 + size
        upright = starts.real == ends.real
        rho = np.where(upright, _UPWARDS, _ACROSS)
        factor = math.log(64 / 15) - 2 * _POINTS * np.log(rho) - np.log1p(-(rho**-2.0))
        logs = bounds + factor + np.log(halves)
        cut = float(bounds.max()) + math.log(2 * height) - _HALVINGS * math.log(2)
        return float(np.logaddexp.reduce(np.append(logs, cut))) + 1e-9

    def _log_density(self) -> float:
        """log C: 1/4 e^(-e/2) for Laplace, 1/(4 sinh(e/2)) for bounded range."""
        if self.atoms:
            return -math.log(4) - self.epsilon / 2
        return -math.log(2) - self.epsilon / 2 - math.log(-math.expm1(-self.epsilon))

    def _loss(self, loss: float) -> float:
        """log(1 - q + q e^loss), off by at most 256 units of itself."""
        moved = self.rate * math.expm1(min(loss, _LOSS_MAX))
        if abs(moved) < _NEAR:
            return math.log1p(moved)
        return float(np.logaddexp(self.log_rest, math.log(self.rate) + loss))


@cache
def _gauss_legendre() -> tuple[Floats, Floats]:
    """The rule of 18 points on (-1, 1), rounded to the nearest doubles: NumPy's own weights are off by some 10^-13."""
    with precision(_BITS):
        roots = [arb.legendre_p_root(_POINTS, place, weight=True) for place in range(_POINTS)]
        knots, weights = (np.array([float(root[place].mid()) for root in roots]) for place in (0, 1))
        return knots, weights
