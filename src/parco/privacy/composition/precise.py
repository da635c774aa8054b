"""The same sums in ball arithmetic, for the few compositions whose profile doubles cannot tell from their rounding.

Where a rare outlier decides (tiny rates and tiny deltas), delta(eps) is far smaller than M(c) e^(-c eps) at every c,
and the sum over nodes cancels. Nodes, points and bounds are those of `contour.py` and `sampled.py`; every number is a
ball.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import acb, acb_mat

from parco.balls import arb, ball, precision, upper
from parco.errors import InternalError
from parco.privacy.composition.contour import Profile, less, log_alias
from parco.privacy.composition.families import Line
from parco.privacy.composition.outcomes import FINITE, narrow_outcomes
from parco.privacy.composition.rounding import log_rest
from parco.privacy.composition.sampled import SampledGaussian
from parco.privacy.composition.smoothing import Smoothed, weight
from parco.privacy.facts import Exponential, Facts, Gaussian, Laplace
from parco.privacy.schedule import ScheduledRelease

__all__ = ["PreciseProfile", "precise_profile"]

_BITS = 224
_LOG_SMALL = 140.0
_NODES_MAX = 1 << 17
# Nodes times points of a quadrature: what a few seconds allow.
_WORK_MAX = 1 << 25


@dataclass(frozen=True)
class PreciseProfile:
    """As `Profile`, with balls for `log_moment` and `values`; `rough` holds the line, its cut-off and its aliases.

    `values` has the nodes row by row: that of index a B + b in row a and column b.
    """

    rough: Profile
    log_moment: arb
    values: acb_mat

    @property
    def line(self) -> Line:
        """The nodes."""
        return self.rough.line

    @property
    def centre(self) -> float:
        """As `Profile.centre`."""
        return self.rough.centre

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """About log delta(eps), and its derivative; minus infinity where even balls hide the value."""
        with precision(_BITS):
            total, moved, _ = self._sums(epsilon)
            if not total > arb(self.rough.cut_off):
                return -math.inf, -self.rough.line.c
            return float(self._scaled(epsilon, total).mid()), -float((moved / total).mid())

    def log_delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """For every epsilon >= 0, doubles at most and at least log delta(eps)."""
        with precision(_BITS):
            total, moved, twice = self._sums(epsilon)
            cut_off = arb(self.rough.cut_off)
            low, high = total - cut_off, total + cut_off
            if isinstance(self.rough, Smoothed):
                density = twice + moved + arb(self.rough.density_cut_off)
                low -= arb(weight(self.rough.variance)) * density
            if not high.is_finite():
                return -math.inf, math.inf
            if high < 0:
                raise InternalError("a probability is proven to be negative: some bound on an error is wrong")
            above = _float_above(self._scaled(epsilon, arb(high.upper())))
            if not low > 0:
                return -math.inf, above
            below = -_float_above(-self._scaled(epsilon, arb(low.lower())))
        return less(below, log_alias(self.rough.line, epsilon, self.rough.aliases)), above

    def _scaled(self, epsilon: float, total: arb) -> arb:
        line = self.rough.line
        return self.log_moment - arb(line.c) * arb(epsilon) + (arb(line.step) / (2 * arb.pi()) * total).log()

    def _sums(self, epsilon: float) -> tuple[arb, arb, arb]:
        """The sums over the nodes z of the values turned, of these times z, and times z^2."""
        line = self.rough.line
        rows, columns = self.values.nrows(), self.values.ncols()
        turn = acb(0, -1) * arb(epsilon) * arb(line.step)
        # Not by multiplying up: a ball that is turned grows by up to the square root of 2 each time.
        turns = [(turn * b).exp() for b in range(columns)]
        inner = self.values * acb_mat([[one, one * b, one * (b * b)] for b, one in enumerate(turns)])
        outer = [(turn * (a * columns)).exp() for a in range(rows)]
        plain, first, second = acb(0), acb(0), acb(0)
        for a, one in enumerate(outer):
            start, still, by, square = a * columns, inner[a, 0], inner[a, 1], inner[a, 2]
            plain += one * still
            first += one * (start * still + by)
            second += one * (start * start * still + 2 * start * by + square)
        # z = c + i h k.
        c, step = arb(line.c), acb(0, 1) * arb(line.step)
        moved, twice = c * plain + step * first, c * c * plain + 2 * c * step * first + step * step * second
        return plain.real, moved.real, twice.real


def precise_profile(rough: Profile, groups: Sequence[ScheduledRelease], *, removal: bool) -> PreciseProfile | None:
    """The profile by the line of `rough`, or None where a release has no moments in balls, or the line is long."""
    line = rough.line
    if line.count > _NODES_MAX or type(rough) not in (Profile, Smoothed):
        return None
    with precision(_BITS):
        product = [acb(1)] * line.count
        for release in groups:
            moments = _moments(release.facts, release.rate, line, removal=removal)
            if moments is None:
                return None
            product = [so_far * moment**release.times for so_far, moment in zip(product, moments, strict=True)]
        if isinstance(rough, Smoothed):
            product = [so_far * more for so_far, more in zip(product, _noise(rough.variance, line), strict=True)]
        centre = product[0].real
        columns = _columns(line)
        values = [acb(0)] * (-(-line.count // columns) * columns)
        for index, moment in enumerate(product):
            node = acb(arb(line.c), arb(line.step) * index)
            values[index] = moment / centre / (node * (node + 1)) * (2 if index else 1)
        rows = [values[first : first + columns] for first in range(0, len(values), columns)]
        return PreciseProfile(rough=rough, log_moment=centre.log(), values=acb_mat(rows))


def _columns(line: Line) -> int:
    return math.isqrt(line.count - 1) + 1


def _nodes(line: Line) -> list[acb]:
    return [acb(arb(line.c), arb(line.step) * index) for index in range(line.count)]


def _noise(mu_squared: arb | float, line: Line) -> list[acb]:
    """The moments of one Gaussian release."""
    half = arb(mu_squared) / 2
    return [(half * (node * node + node)).exp() for node in _nodes(line)]


def _moments(facts: Facts, rate: Fraction, line: Line, *, removal: bool) -> list[acb] | None:
    """M at the nodes, in balls of the current precision."""
    if isinstance(facts, Gaussian):
        if rate != 1:
            return _sampled_gaussian(facts, rate, line, removal=removal)
        return _noise(ball(facts.mu_squared), line)
    nodes = _nodes(line)
    if rate == 1 and isinstance(facts, Laplace):
        size = ball(facts.epsilon)
        return [
            ((node + 1) * (node * size).exp() + node * (-(node + 1) * size).exp()) / (2 * node + 1) for node in nodes
        ]
    if rate == 1 and isinstance(facts, Exponential):
        size = ball(facts.epsilon)
        return [((node + arb(0.5)) * size).sinh() / ((2 * node + 1) * (size / 2).sinh()) for node in nodes]
    if type(facts) in FINITE:
        losses, log_masses = narrow_outcomes(facts, rate, removal=removal)
        terms = [acb((mass + arb(line.c) * loss).exp()) for loss, mass in zip(losses, log_masses, strict=True)]
        return _weighted_sums(terms, [acb(loss) for loss in losses], line)
    return None


def _weighted_sums(terms: list[acb], losses: list[acb], line: Line) -> list[acb]:
    """The sum of terms e^(itL) at each height t = (a B + b) h, by one product of matrices."""
    columns = _columns(line)
    turns = [acb(0, 1) * arb(line.step) * loss for loss in losses]
    first = acb_mat(
        [
            [term * (turn * (columns * a)).exp() for term, turn in zip(terms, turns, strict=True)]
            for a in range(-(-line.count // columns))
        ]
    )
    second = acb_mat([[(turn * b).exp() for b in range(columns)] for turn in turns])
    return (first * second).entries()[: line.count]


def _sampled_gaussian(facts: Gaussian, rate: Fraction, line: Line, *, removal: bool) -> list[acb] | None:
    """The trapezoid sum of `sampled.py` on its shifted line, closer together; what it may be off by is in the balls.
    None where that would take too long."""
    scale = facts.scale / facts.sensitivity
    rates, log_rests, scales, times = (
        np.array([number]) for number in (float(rate), log_rest(rate), float(scale), 1.0)
    )
    family = SampledGaussian(rates, log_rests, scales, times, removal, log_small=_LOG_SMALL)
    low, step, count, shift = family.grid(line.c)
    if count * line.count > _WORK_MAX:
        return None
    variance, share = ball(scale) ** 2, ball(rate)
    weight = arb(step) / (ball(scale) * (2 * arb.pi()).sqrt())
    power, sign = (arb(line.c) + 1, 1) if removal else (-arb(line.c), -1)
    terms, losses = [], []
    for index in range(count):
        place = acb(arb(low) + arb(step) * index, arb(sign * shift))
        loss = (1 - share + share * ((2 * place - 1) / (2 * variance)).exp()).log()
        terms.append(weight * (power * loss - place * place / (2 * variance)).exp())
        losses.append(loss * sign)
    sums = _weighted_sums(terms, losses, line)
    off = 4 * abs(sums[0]).upper() * (-arb(_LOG_SMALL)).exp()
    blur = acb(arb(0, off), arb(0, off))
    return [value + blur for value in sums]


def _float_above(value: arb) -> float:
    """A double at least as large as every number in the ball."""
    return math.nextafter(float(upper(value)), math.inf)
