"""Poisson-sampled Laplace and exponential mechanisms: moments by Gauss-Legendre rules on a bent path, with a proven error.

Without sampling the loss l has under Q the density C e^(-l/2) on (-e, e), and for Laplace noise atoms at both ends. Sampled,
the ratio of the laws is r(l) = 1 - q + q e^l, and

    removal:  M(z) = int r(l)^(z+1) dQ        addition:  M(z) = int r(l)^(-z) dQ.

abs(r^(it)) = e^(-t arg r), and arg r has the sign of Im l while abs(Im l) < pi. So the path from -e to e goes up (removal)
or down (addition) by y, across, and back: the same points serve every height t >= 0. Source: docs/mathematics.md,
"Sampled Laplace".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from parco.balls import arb, precision
from parco.errors import InternalError
from parco.privacy.composition.families import Complexes, Floats, Line, log_error
from parco.privacy.composition.rounding import ELEMENTARY, UNIT
from parco.privacy.composition.sampled import weighted_sums

__all__ = ["SampledInterval"]

# Pieces of the path, and ellipses (foci at a piece's ends) in which the integrand is bounded: the sum of the semi-axes, in
# half-lengths. Across, half-length y/2 and semi-minor axis y; upwards, from t to 2t, semi-major axis 3/2 t.
_POINTS, _ACROSS, _UPWARDS = 18, 2 + math.sqrt(5), 3 + math.sqrt(8)
_HALVINGS = 66
_BITS = 128
_PIECES_MAX = 20_000


@dataclass(frozen=True)
class _Rule:
    """A rule for one c: log of weight times integrand at height 0, losses L with Im L >= 0, and the error of the rule."""

    logs: Complexes
    losses: Complexes
    log_error: float


@dataclass(frozen=True)
class SampledInterval:
    """`times` releases with the same e = `epsilon` and `rate` q in (0, 1); `atoms`: Laplace, else bounded range."""

    epsilon: float
    rate: float
    times: float
    atoms: bool
    removal: bool

    @property
    def releases(self) -> float:
        """How many there are."""
        return self.times

    @property
    def largest(self) -> tuple[float, float]:
        """The sum of log(1 - q + q e^e) for removal, of -log(1 - q + q e^-e) for addition."""
        each = self._loss(self.epsilon if self.removal else -self.epsilon)
        total = self.times * abs(each)
        return total * (1 - 64 * UNIT), total * (1 + 64 * UNIT)

    def log_mass_near(self, width: float) -> float:
        """For Laplace noise the sum of the logarithms of the largest loss's mass, else minus infinity."""
        del width
        if not self.atoms:
            return -math.inf
        mass = self._loss(self.epsilon) - self.epsilon - math.log(2) if self.removal else -math.log(2)
        return self.times * (mass - 64 * UNIT * (1 + self.epsilon))

    def log_moment(self, c: float) -> tuple[float, float]:
        """The sum of log M(c), and a bound on its error."""
        rule = self._rule(c, 0.0)
        top = float(rule.logs.real.max())
        terms = np.exp(rule.logs.real - top)
        total = float(terms.sum())
        value = top + math.log(total)
        rounding = float((terms * self._roughness(rule, c)).sum()) / total + 64 + 4 * abs(value)
        error = UNIT * rounding + 2 * math.exp(min(rule.log_error - value, 0.0))
        return self.times * value, self.times * error

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """The sum of log(M(z)/M(c)) at the nodes, up to multiples of 2 pi i, and bounds on its errors."""
        rule = self._rule(line.c, 1.0)
        top = float(rule.logs.real.max())
        terms = np.exp(rule.logs - top)[np.newaxis, :]
        rough = self._roughness(rule, line.c)[np.newaxis, :]
        values, bounds = weighted_sums(terms, rule.losses[np.newaxis, :], rough, line)
        centre = values[:, :1].real
        off = 2 * math.exp(rule.log_error - top)
        ratios, errors = log_error(values / centre, 2 * (bounds + off) / centre)
        return self.times * ratios[0], self.times * errors[0]

    def envelope(self, c: float) -> Callable[[float], float]:
        """For every height, at least the sum of log|M(c + it)/M(c)| over t >= height: by the sizes of the terms, which fall."""
        rule = self._rule(c, 1.0)
        centre = self.log_moment(c)[0] / self.times

        def bound(height: float) -> float:
            logs = np.append(rule.logs.real - height * rule.losses.imag, rule.log_error)
            top = float(logs.max())
            size = top + math.log(float(np.exp(logs - top).sum()))
            return self.times * min(size - centre + 1e-12, 0.0)

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
        ratio = self._complex_loss(places)
        weight = np.log(halves[:, np.newaxis] * weights + 0j)
        logs = (self._log_density() - places / 2 + power * ratio + weight).ravel()
        losses = (ratio if self.removal else -ratio).ravel()
        error = self._rule_error(c, pieces, height)
        if self.atoms:
            ends = np.array([self._loss(self.epsilon), self._loss(-self.epsilon)])
            masses = np.array([-self.epsilon - math.log(2), -math.log(2)])
            logs = np.concatenate([logs, masses + power * ends])
            losses = np.concatenate([losses, ends if self.removal else -ends])
        return _Rule(logs=logs, losses=losses, log_error=error)

    def _height(self, c: float) -> float:
        """y: the integrand grows by no more than some e^4 in the ellipses, and 2y < pi."""
        return min(1.2, 4 / (c + 1)) if self.removal else min(1.2, math.sqrt(8 / c), 4 / c)

    def _straight(self, height: float) -> Iterator[tuple[complex, complex]]:
        count = math.ceil(2 * self.epsilon / height)
        ends = np.linspace(-self.epsilon, self.epsilon, min(count, _PIECES_MAX + 1) + 1)
        yield from zip(ends[:-1] + 0j, ends[1:] + 0j, strict=True)

    def _bent(self, height: float) -> Iterator[tuple[complex, complex]]:
        turn = 1j if self.removal else -1j
        heights = [height * 2.0**-k for k in range(_HALVINGS + 1)]
        for upper, lower in zip(heights[:-1], heights[1:], strict=True):
            yield -self.epsilon + turn * lower, -self.epsilon + turn * upper
            yield self.epsilon + turn * upper, self.epsilon + turn * lower
        for start, end in self._straight(height):
            yield start + turn * height, end + turn * height

    def _rule_error(self, c: float, pieces: list[tuple[complex, complex]], height: float) -> float:
        """log of a bound on the error of the rule: 64/15 half rho^-2n/(1 - rho^-2) times the integrand's bound, piece by piece.

        Source: Trefethen 2013, theorem 19.3. Left out are the first bits of both upward paths, of length y 2^-66.
        """
        starts, ends = (np.array([piece[place] for piece in pieces]) for place in (0, 1))
        halves = np.abs(ends - starts) / 2
        # Upwards, ellipses are 1.42 times as wide as t; t <= y/2. Across they reach 0.62 y beyond the piece.
        reach = 0.75 * height
        low = np.minimum(starts.real, ends.real) - reach
        high = np.maximum(starts.real, ends.real) + reach
        if self.removal:
            size = (c + 1) * np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + high)
        else:
            size = -c * (np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + low) + math.log(math.cos(height)))
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
        """log(1 - q + q e^loss)."""
        if loss < 1:
            return math.log1p(self.rate * math.expm1(loss))
        return float(np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + loss))

    def _complex_loss(self, places: Complexes) -> Complexes:
        rest, drift = math.log1p(-self.rate), math.log(self.rate) + places
        above = drift.real > rest
        larger, smaller = np.where(above, drift, rest), np.where(above, rest, drift)
        logs: Complexes = larger + np.log1p(np.exp(smaller - larger))
        return logs

    def _roughness(self, rule: _Rule, c: float) -> Floats:
        # The loss is off by some units of itself and of the place, of which abs(place) <= e + 2.
        blur = 4 * ELEMENTARY * (1 + np.abs(rule.losses)) + 8 * (self.epsilon + 2)
        return 4 * ELEMENTARY + (c + 1) * blur + 4 * np.abs(rule.logs) + 8 * (self.epsilon + 2)


@cache
def _gauss_legendre() -> tuple[Floats, Floats]:
    """The rule of 18 points on (-1, 1), each knot and weight off by a unit at most: NumPy's weights are off by hundreds."""
    with precision(_BITS):
        roots = [arb.legendre_p_root(_POINTS, place, weight=True) for place in range(_POINTS)]
        knots, weights = (np.array([float(root[part].mid()) for root in roots]) for part in (0, 1))
    return knots, weights
