"""Poisson-sampled releases whose loss has a density on an interval: moments by Gauss-Legendre rules on a bent path,
with a proven error.

Without sampling the loss l has under Q a density on (-a, b): C e^(-l/2) for Laplace noise, with atoms at both ends, and
for exponential mechanisms; C e^(-l/2 - l^2/2v) for Gaussian noise whose far tails are set aside. Sampled, the ratio of
the laws is r(l) = 1 - q + q e^l, and

    removal:  M(z) = int r(l)^(z+1) dQ        addition:  M(z) = int r(l)^(-z) dQ.

abs(r^(it)) = e^(-t arg r), and arg r has the sign of Im l while abs(Im l) < pi. So the path from -a to b goes up
(removal) or down (addition) by y, across, and back: the same points serve every height t >= 0. Source:
docs/mathematics.md, "Sampled Laplace" and "Outliers set aside".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from parco.balls import arb, precision
from parco.errors import InternalError
from parco.privacy.composition.excess import excess, log_one_and, log_rise
from parco.privacy.composition.families import Complexes, Floats, Line
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = ["Density", "SampledInterval", "exponential", "gaussian", "laplace"]

# Pieces of the path, and ellipses (foci at a piece's ends) in which the integrand is bounded: the sum of the semi-axes,
# in half-lengths. Across, half-length y/2 and semi-minor axis y; upwards, from t to 2t, semi-major axis 3/2 t.
_POINTS, _ACROSS, _UPWARDS = 18, 2 + math.sqrt(5), 3 + math.sqrt(8)
_HALVINGS, _BITS = 66, 128
_PIECES_MAX = 20_000
# A relative error of an integral beyond this is an answer no longer.
_OFF_MAX = 0.25
# Where a ratio of laws differs from 1 by less, its logarithm is taken of the difference.
_NEAR, _LOSS_MAX = 0.5, 700.0


# Up to this exponent sums of e^x - 1 stay far within doubles, and above it nothing is near 1.
_EXPONENT_MOST = 300.0
_LOG_LEAST = -690.0
_HALF = 0.5


@dataclass(frozen=True)
class Density:
    """The law of l under Q: on (-a, b), `low` -a and `high` b, the density e^(log_scale - l/2 - l^2/(2 variance)), and
    `ends`: the logarithms of the masses at both ends, or at the lower, or none.

    Numbers are off by some units, the ends by none: where nothing else says so they are where the interval is cut.
    """

    low: float
    high: float
    log_scale: float
    variance: float = math.inf
    ends: tuple[float, ...] = ()

    @property
    def width(self) -> float:
        """a + b."""
        return self.high - self.low

    @property
    def finest(self) -> float:
        """How far a path may leave the real line: less than where arg r turns, and where the density grows."""
        return min(1.2, 2 * self.width, 0.7 * math.sqrt(self.variance))

    def log_at(self, places: Complexes | Floats) -> Complexes:
        """The logarithm of the density."""
        logs: Complexes = self.log_scale - places / 2 - places**2 / (2 * self.variance) + 0j
        return logs

    def roughness(self, places: Complexes | Floats) -> Floats:
        """By how many units `log_at` may be off, its places by 4 units of the width."""
        size = np.abs(places)
        parts = abs(self.log_scale) + size / 2 + size**2 / (2 * self.variance)
        return 4 * ELEMENTARY * (1 + parts) + 4 * self.width * (0.5 + size / self.variance)

    def log_most(self, low: Floats, high: Floats, height: float) -> Floats:
        """At least log|density| where low <= Re l <= high and abs(Im l) <= height."""
        top = np.clip(-self.variance / 2, low, high)
        logs: Floats = self.log_scale - top / 2 + (height**2 - top**2) / (2 * self.variance)
        return logs


def laplace(epsilon: float) -> Density:
    """Of Laplace noise: 1/4 e^(-e/2 - l/2), and atoms 1/2 at -e, e^-e/2 at e."""
    return Density(-epsilon, epsilon, -math.log(4) - epsilon / 2, ends=(-math.log(2), -epsilon - math.log(2)))


def exponential(epsilon: float) -> Density:
    """Of exponential mechanisms: e^(-l/2)/(4 sinh(e/2))."""
    return Density(-epsilon, epsilon, -math.log(2) - epsilon / 2 - math.log(-math.expm1(-epsilon)))


def gaussian(mu: float, low: float, high: float) -> Density:
    """Of Gaussian noise, N(-mu^2/2, mu^2), without the tails beyond -mu^2/2 - low mu and mu^2/2 + high mu."""
    ends = -(mu / 2 + low) * mu, (mu / 2 + high) * mu
    return Density(*ends, -(mu**2) / 8 - math.log(2 * math.pi * mu**2) / 2, mu**2)


@dataclass(frozen=True)
class _Rule:
    """A rule for one c, relative to the least loss b: log of weight times integrand at height 0, rises of the loss with
    Im >= 0, and the logarithm of the error of the rule; `log_plain_error`: that at c = 0.

    `roughness` and `blur`: what each term and each rise is off by, as in `sampled.py`. `plain`: of removal the weights
    alone at c = 0, of addition too.
    """

    logs: Complexes
    rises: Complexes
    log_error: float
    log_plain_error: float
    roughness: Floats
    blur: Floats
    plain: Complexes


@dataclass(frozen=True)
class SampledInterval:
    """`times` releases with the same `density` and `rate` q in (0, 1), in one order of the pair.

    `log_rest` is log(1 - q); it and q are off by a unit or two as they come in. The law of l may lack
    the mass `told`, which is left out, and up to `aside`, which is counted as having the loss of the lower end: masses
    of the first law of the pair.
    """

    density: Density
    rate: float
    log_rest: float
    times: float
    removal: bool
    told: float = 0.0
    aside: float = 0.0

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
        """The sum of log(1 - q + q e^b) for removal, of -log(1 - q + q e^-a) for addition."""
        each = self._loss(self.density.high if self.removal else self.density.low)
        total = self.times * abs(each)
        return total * (1 - 256 * UNIT), total * (1 + 256 * UNIT)

    def log_mass_near(self, width: float) -> float:
        """For Laplace noise the sum of the logarithms of the largest loss's mass, else minus infinity."""
        del width
        if len(self.density.ends) < 2:
            return -math.inf
        epsilon = self.density.high
        mass = self._loss(epsilon) - epsilon - math.log(2) if self.removal else -math.log(2)
        return self.times * (mass - 256 * UNIT * (1 + epsilon))

    def log_moment(self, c: float) -> tuple[float, float]:
        """The sum of log M(c), and a bound on its error.

        M(c) = e^(cb) (1 - told + sum of masses times (e^(c rise) - 1)), where that neither overflows nor cancels.
        """
        rule = self._rule(c, 0.0)
        shift = c * self._least
        total, units = self._excess_of(rule, c)
        missed = 0.0
        if total > -_HALF:
            value = math.log1p(total)
            rounding = units / (1 + total) + 2 * ELEMENTARY * abs(value)
            # That the masses add up to 1 is exact, but not by the rule.
            missed = 2 * _exp(rule.log_plain_error)
        else:
            top = float(rule.logs.real.max())
            terms = np.exp(rule.logs.real - top)
            summed = float(terms.sum())
            value = top + math.log(summed)
            rounding = float((terms * rule.roughness).sum()) / summed + 64 + 4 * abs(value)
        off = _exp(rule.log_error - value) + _exp(self._log_aside - value) + missed
        if not off <= _OFF_MAX:
            raise InternalError("a sampled mechanism's moment could not be computed in doubles")
        error = UNIT * (rounding + 256 * abs(shift)) + 2 * off
        return self.times * (shift + value), self.times * error

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """The sum of log(M(z)/M(c)) at the nodes, up to multiples of 2 pi i, and bounds on its errors.

        M(z)/M(c) = e^(itb) (1 + X/M'(c)), X the sum of terms at c times (e^(it rise) - 1).
        """
        rule = self._rule(line.c, 1.0)
        top = float(rule.logs.real.max())
        terms = np.exp(rule.logs - top)
        values, bounds = excess(terms, rule.rises, rule.roughness, rule.blur, line)
        rough = float((np.abs(terms) * (rule.roughness + 80)).sum())
        off = 2 * _exp(rule.log_error - top) + _exp(self._log_aside - top)
        # What is set aside has rise 0, and is missing in the sum of terms alone.
        centre = float(terms.sum().real)
        moved = values / centre
        error = 2 * ((bounds + 2 * off) + np.abs(moved) * (UNIT * rough + off)) / centre
        logs, errors = log_one_and(moved, error)
        heights = line.heights
        turned: Complexes = heights * (1j * self._least)
        ratios = self.times * (logs + turned)
        return ratios, self.times * (errors + 256 * UNIT * np.abs(turned))

    def envelope(self, c: float) -> Callable[[float], float]:
        """For every height, at least the sum of log|M(c + it)/M(c)| over t >= height: by the sizes of the terms, which
        fall."""
        rule = self._rule(c, 1.0)
        value, off = self.log_moment(c)
        shift = c * self._least
        centre = (value - off) / self.times - shift - 256 * UNIT * abs(shift)
        others = [rule.log_error, max(self._log_aside, _LOG_LEAST)]
        highest = np.append(rule.logs.real + UNIT * rule.roughness, others)
        angles = np.append(np.maximum(rule.rises.imag * (1 - 4 * UNIT) - UNIT * rule.blur, 0.0), [0.0, 0.0])

        def bound(height: float) -> float:
            logs = highest - height * angles
            top = float(logs.max())
            size = top + math.log(float(np.exp(logs - top).sum()))
            return self.times * min(size - centre + 1e-12 + 16 * UNIT * abs(centre), 0.0)

        return bound

    def _excess_of(self, rule: _Rule, c: float) -> tuple[float, float]:
        """M(c) e^(-cb) - 1, and by how many units it may be off; -1 where that is not known."""
        moved = c * rule.rises.real
        if float(np.abs(moved).max()) > _EXPONENT_MOST:
            return -1.0, 0.0
        masses = np.exp(rule.plain.real)
        risen = masses * np.expm1(moved)
        units = 64 * ELEMENTARY * self.told + float((np.abs(risen) * (rule.roughness + 2 * len(masses))).sum())
        units += float((masses * np.exp(moved) * c * (rule.blur + 4 * np.abs(rule.rises))).sum())
        return float(risen.sum()) - self.told, units

    def _rule(self, c: float, share: float) -> _Rule:
        """The rule whose path goes up by this share of what it may: 0 for real z, where the straight path will do."""
        height = self._height(c)
        pieces = list(self._straight(height) if share == 0 else self._bent(height))
        if len(pieces) > _PIECES_MAX:
            raise InternalError("a sampled mechanism's loss is too wide for the integral that composes it")
        _, weights, aheads = _gauss_legendre()
        starts = np.array([piece[0] for piece in pieces])
        halves = np.array([(piece[1] - piece[0]) / 2 for piece in pieces])
        # From the lower end, and each relative to itself.
        above = (starts[:, np.newaxis] + halves[:, np.newaxis] * aheads).ravel()
        places = above + self.density.low
        log_weights = np.log(halves[:, np.newaxis] * weights + 0j).ravel()
        plain = self.density.log_at(places) + log_weights
        rough = self.density.roughness(places) + ELEMENTARY * (8 + np.abs(log_weights))
        if self.density.ends:
            ends = np.array(self.density.ends)
            above = np.append(above, [0, self.density.width][: len(ends)])
            plain, rough = np.append(plain, ends), np.append(rough, 32 + 4 * np.abs(ends))
        rises, blur = log_rise(self._log_share, self.log_rest - self._least_loss, self._share_off, above)
        if self.removal:
            # Masses are those of the mixture, r dQ.
            plain, rough = plain + rises + self._least_loss, rough + blur + 256 * abs(self._least_loss)
        else:
            rises = -rises
        logs = plain + c * rises
        roughness = rough + 2 * np.abs(logs) + c * (blur + 4 * np.abs(rises))
        error = self._rule_error(c, pieces, height) - c * self._least
        plain_error = self._rule_error(0.0, pieces, height)
        return _Rule(
            logs=logs,
            rises=rises,
            log_error=error,
            log_plain_error=plain_error,
            roughness=roughness,
            blur=blur,
            plain=plain,
        )

    @cached_property
    def _least_loss(self) -> float:
        """log r at the lower end of the interval."""
        return self._loss(self.density.low)

    @property
    def _least(self) -> float:
        """The loss at the lower end of the interval: of removal the least, of addition the largest."""
        return self._least_loss if self.removal else -self._least_loss

    @property
    def _log_aside(self) -> float:
        return math.log(self.aside) if self.aside > 0 else -math.inf

    @property
    def _log_share(self) -> float:
        """log of the share of q e^l in r at the lower end."""
        return math.log(self.rate) + self.density.low - self._least_loss

    @property
    def _share_off(self) -> float:
        """By how many units that, and log(1 - q) less the least loss, may be off."""
        logs = abs(math.log(self.rate)) + abs(self.log_rest) + 1
        return 2 * ELEMENTARY * logs + 4 * abs(self.density.low) + 256 * abs(self._least_loss)

    def _height(self, c: float) -> float:
        """y: the integrand grows by no more than some e^4 in the ellipses, 2y < pi, and the ways up and down cancel
        little.

        Along the path log r grows by no more than `_steepest`, and across it |r| shrinks by no more than
        `_log_shrinking`.
        """
        most, steepest = self.density.finest, self._steepest()
        if self.removal:
            return min(most, 4 / ((c + 1) * steepest))
        return min(most, math.sqrt(8 / (c * min(1.0, 4 * steepest))), 4 / (c * steepest))

    def _steepest(self) -> float:
        """At least the share of q e^l in r(l), as far as the ellipses reach."""
        high = self.density.high + 1
        return math.exp(min(math.log(self.rate) + high - self._loss(high), 0.0))

    def _log_shrinking(self, height: float) -> float:
        """At least log r(Re l) - log|r(l)| for abs(Im l) <= 2 height, the height below pi/2.

        |r|^2 = r(Re l)^2 (1 - 4w(1-w) sin^2(Im l/2)) with w the share of q e^l, at most `_steepest`.
        """
        steepest = self._steepest()
        share = 1.0 if steepest >= _NEAR else min(4 * steepest * (1 - steepest) * (1 + 1e-12), 1.0)
        return -math.log1p(-share * math.sin(height) ** 2) / 2 + 1e-12

    def _straight(self, height: float) -> Iterator[tuple[complex, complex]]:
        count = math.ceil(self.density.width / height)
        ends = np.linspace(0, self.density.width, min(count, _PIECES_MAX + 1) + 1)
        yield from zip(ends[:-1] + 0j, ends[1:] + 0j, strict=True)

    def _bent(self, height: float) -> Iterator[tuple[complex, complex]]:
        turn = 1j if self.removal else -1j
        width = self.density.width
        heights = [height * 2.0**-k for k in range(_HALVINGS + 1)]
        for upper, lower in pairwise(heights):
            yield turn * lower, turn * upper
            yield width + turn * upper, width + turn * lower
        for start, end in self._straight(height):
            yield start + turn * height, end + turn * height

    def _rule_error(self, c: float, pieces: list[tuple[complex, complex]], height: float) -> float:
        """log of a bound on the error of the rule: 64/15 half rho^-2n/(1 - rho^-2) times the integrand's bound, piece
        by piece.

        Source: Trefethen 2013, theorem 19.3. Left out are the first bits of both upward paths, of length y 2^-66.
        """
        starts, ends = (np.array([piece[place] for piece in pieces]) + self.density.low for place in (0, 1))
        halves = np.abs(ends - starts) / 2
        # Upwards, ellipses are 1.42 times as wide as t; t <= y/2. Across they reach 0.62 y beyond the piece.
        reach = 0.75 * height
        low = np.minimum(starts.real, ends.real) - reach
        high = np.maximum(starts.real, ends.real) + reach
        if self.removal:
            size = (c + 1) * np.logaddexp(self.log_rest, math.log(self.rate) + high)
        else:
            size = -c * (np.logaddexp(self.log_rest, math.log(self.rate) + low) - self._log_shrinking(height))
        bounds = self.density.log_most(low, high, 2 * height) + size
        upright = starts.real == ends.real
        rho = np.where(upright, _UPWARDS, _ACROSS)
        factor = math.log(64 / 15) - 2 * _POINTS * np.log(rho) - np.log1p(-(rho**-2.0))
        logs = bounds + factor + np.log(halves)
        cut = float(bounds.max()) + math.log(2 * height) - _HALVINGS * math.log(2)
        return float(np.logaddexp.reduce(np.append(logs, cut))) + 1e-9

    def _loss(self, loss: float) -> float:
        """log(1 - q + q e^loss), off by at most 256 units of itself."""
        moved = self.rate * math.expm1(min(loss, _LOSS_MAX))
        if abs(moved) < _NEAR:
            return math.log1p(moved)
        return float(np.logaddexp(self.log_rest, math.log(self.rate) + loss))


def _exp(log_value: float) -> float:
    """e^x as a bound on an error; where it is beyond doubles, a number that is no less beyond use."""
    return math.exp(min(log_value, _LOSS_MAX))


@cache
def _gauss_legendre() -> tuple[Floats, Floats, Floats]:
    """The rule of 18 points on (-1, 1), and how far each is from -1, rounded to the nearest doubles: NumPy's own
    weights are off by some 10^-13."""
    with precision(_BITS):
        roots = [arb.legendre_p_root(_POINTS, place, weight=True) for place in range(_POINTS)]
        knots, weights = (np.array([float(root[place].mid()) for root in roots]) for place in (0, 1))
        aheads = np.array([float((1 + root[0]).mid()) for root in roots])
        return knots, weights, aheads
