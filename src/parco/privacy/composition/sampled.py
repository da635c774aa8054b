"""Poisson-sampled Gaussian releases: moments by a trapezoid rule on a shifted line, with a proven error.

With b(x) = 1 - q + q e^((2x-1)/(2 s^2)), the ratio of the mixture (1-q) N(0,s^2) + q N(1,s^2) to N(0,s^2),

    removal:  M(z) = int N(x; 0, s^2) b(x)^(z+1) dx        addition:  M(z) = int N(x; 0, s^2) b(x)^(-z) dx.

b has no zero with abs(Im x) < pi s^2, and the argument of b(x + iy) has the sign of y. So the integral may be taken
along Im x = y (removal) or -y (addition), on which abs(b^(it)) falls as t grows: the same points serve every height t,
and the sum of absolute values bounds abs(M) from any height on. Source: docs/mathematics.md, "Sampled Gaussian".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from parco.errors import InternalError
from parco.privacy.composition.families import Complexes, Floats, Line, sum_of_logs
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = ["SampledGaussian", "log_mixture", "weighted_sums"]

# The error of the trapezoid rule and the tails cut off are each kept below e^-42 < 10^-18 of M(c).
_LOG_SMALL = 42.0
# The same where an envelope is wanted of few releases: it is not known to fall any further.
_LOG_SMALL_DEEP, _VERY_FEW = 140.0, 16
# How far up the line is shifted, in scales: a longer shift needs fewer points and cancels more.
_SHIFT = 1.5
# Twice the shift stays within this share of the strip abs(Im x) < pi s^2.
_STRIP = 0.96
_SHARES, _SHARES_OF_MANY = 2.0 ** -np.arange(0, 9), np.array([1.0, 0.35])
# More different releases than this are computed more coarsely, some rows at a time.
_FEW, _ROWS = 64, 256
# Up to this many nodes the turns of many releases are multiplied up one by one.
_SHORT = 64
# So many stand for all in a search.
_SKETCHED = 16
# e to this is a double.
_EXP_MOST = 700.0
_BLOCK, _CHUNK = 1 << 21, 1 << 22
_WIDENINGS_MAX = 16
_POINTS_MAX = 1 << 17


@dataclass(frozen=True)
class _Points:
    """A trapezoid sum: `logs` = log of weight times b^(c+1) or b^-c, `losses` = L; shape (releases, points)."""

    logs: Complexes | Floats
    losses: Complexes | Floats
    roughness: Floats
    """Relative rounding error of each term at height 0, in units of u; same shape."""
    blur: Floats
    """Absolute rounding error of each loss, in units of u: at height t the phase t L is off by t times that; same
    shape."""


@dataclass(frozen=True)
class SampledGaussian:
    """Poisson-sampled Gaussian releases in one order of the pair; arrays of shape (different releases,).

    `rates` q in (0, 1), `log_rests` log(1 - q), `scales` s = standard deviation / sensitivity > 0, all off by a unit or
    two as they come in; `times` how often each occurs; `removal`: the mixture comes first.
    """

    rates: Floats
    log_rests: Floats
    scales: Floats
    times: Floats
    removal: bool
    log_small: float = _LOG_SMALL
    crowd: int = 0
    """How many different releases these are taken from."""

    @property
    def releases(self) -> float:
        """How many there are."""
        return float(self.times.sum())

    @property
    def largest(self) -> tuple[float, float]:
        """Infinite for removal; for addition the sum of -log(1-q)."""
        if self.removal:
            return math.inf, math.inf
        total, off = -float(self.times @ self.log_rests), UNIT * (len(self.times) + 8 * ELEMENTARY)
        return total * (1 - off), total * (1 + off)

    def log_mass_near(self, width: float) -> float:
        """Minus infinity: nothing is claimed of the mass near the largest loss."""
        del width
        return -math.inf

    @property
    def different(self) -> int:
        """How many different ones there are."""
        return len(self.rates)

    def sketch(self) -> SampledGaussian:
        """A few releases in place of many, about as private together: to search with, never to claim with."""
        if self.different <= _FEW:
            return self
        blocks = np.array_split(np.argsort(self.rates / self.scales), _SKETCHED)
        middles = np.array([block[len(block) // 2] for block in blocks])
        times = np.array([self.times[block].sum() for block in blocks])
        return replace(self._rows(middles), times=times, crowd=self.different)

    def log_moment(self, c: float) -> tuple[float, float]:
        """The sum of log M(c), and a bound on its error."""
        total = error = 0.0
        for some in self._parts(_ROWS):
            points = some._real_points(c, 0.0)
            top = points.logs.max(axis=1)
            terms = np.exp(points.logs - top[:, np.newaxis])
            sums = terms.sum(axis=1)
            logs = top + np.log(sums)
            rounding = (terms * points.roughness).sum(axis=1) / sums + 2 * ELEMENTARY + 64 + np.abs(top) + np.abs(logs)
            bounds = UNIT * (rounding + (self.different + 4) * np.abs(logs)) + 4 * math.exp(-self.log_small)
            total += float(some.times @ logs)
            error += float(some.times @ bounds)
        return total, error

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """The sum of log(M(z)/M(c)) at the nodes, up to multiples of 2 pi i, and bounds on its errors."""
        total, error = np.zeros(line.count, dtype=complex), np.zeros(line.count)
        for some in self._parts(_ROWS if line.count <= _SHORT else max(1, _ROWS // (math.isqrt(line.count) + 1))):
            points = some._points_for(line)
            terms = np.exp(points.logs - points.logs.real.max(axis=1)[:, np.newaxis])
            values, bounds = weighted_sums(terms, points.losses, points.roughness, points.blur, line)
            # At height 0 the sum is M(c) itself, by the same points.
            centre = values[:, :1].real
            off = 2 * bounds / centre + 8 * math.exp(-self.log_small)
            logs, bounds = sum_of_logs(values / centre, off, some.times)
            total += logs
            error += bounds + 2 * UNIT * np.abs(total)
        return total, error

    def _rows(self, rows: slice | Floats) -> SampledGaussian:
        return replace(
            self,
            rates=self.rates[rows],
            log_rests=self.log_rests[rows],
            scales=self.scales[rows],
            times=self.times[rows],
        )

    def _parts(self, rows: int) -> Iterator[SampledGaussian]:
        """The releases, a few at a time: what is computed of them stays in the processor's cache."""
        for first in range(0, self.different, rows):
            yield replace(self._rows(slice(first, first + rows)), crowd=max(self.crowd, self.different))

    def _points_for(self, line: Line) -> _Points:
        """Points on the real line where the nodes are low and releases many, else on the shifted line."""
        if self.crowd <= _FEW:
            return self._points(line.c, 1.0)
        height = line.step * line.count
        real, shifted = self._real_grid(line.c, height)[2], self._grid(line.c)[2]
        return self._real_points(line.c, height) if real < 2 * shifted else self._points(line.c, 1.0)

    def envelope(self, c: float) -> Callable[[float], float]:
        """For every height, at least the sum of log|M(c + it)/M(c)| over t >= height; the best of several shifts.

        On the line shifted by y the integrand has size e^(y^2/2s^2) N(x) |b|^(c+1) e^(-t arg b), which falls in t. As a
        product of powers of b(x+iy) and b(x-iy) it is analytic for abs(Im x) < pi s^2 - y, and its integral grows by no
        more than e^(a^2/2s^2) when x is moved up by a <= pi s^2/2: the trapezoid rule is as good for it as for M
        itself. What the rule leaves open, relative to M(c), does not fall with t.
        """
        shares = _SHARES if self.different <= _FEW else _SHARES_OF_MANY
        sure = replace(self, log_small=_LOG_SMALL_DEEP) if self.different <= _VERY_FEW else self
        lines = [_above(sure._points(c, share)) for share in shares]
        middle = sure._real_points(c, 0.0)
        centre = _log_sum(middle.logs.real - UNIT * middle.roughness)
        slack = 1e-12 + 16 * UNIT * np.abs(centre)

        def bound(height: float) -> float:
            sizes = [_log_sum(logs - height * angles) for logs, angles in lines]
            best = np.logaddexp(np.min(sizes, axis=0) - centre, 1 - sure.log_small) + slack
            return float(self.times @ np.minimum(best, 0.0))

        return bound

    def _points(self, c: float, share: float) -> _Points:
        """The trapezoid points, the line shifted by this share of the largest shift: up (removal) or down
        (addition)."""
        first, step, count, shift = self._grid(c)
        sign = 1 if self.removal else -1
        places = (first[:, np.newaxis] + np.arange(count)) * step[:, np.newaxis] + (1j * sign * share) * shift[
            :, np.newaxis
        ]
        scale = self.scales[:, np.newaxis]
        exponents = (2 * places - 1) / (2 * scale**2)
        # A point is off by a unit of itself, its exponent by that and what dividing adds.
        off = 10 * np.abs(exponents) + np.abs(places) / scale**2
        losses, blur = log_mixture(self.rates[:, np.newaxis], self.log_rests[:, np.newaxis], exponents, off)
        square = (places / scale) ** 2 / 2
        weight = np.log(step / (self.scales * math.sqrt(2 * math.pi)))[:, np.newaxis]
        power = c + 1 if self.removal else -c
        logs = weight - square + power * losses
        roughness = 2 * ELEMENTARY * (1 + np.abs(weight)) + 20 * np.abs(square) + 2 * np.abs(logs)
        roughness += abs(power) * (blur + 4 * np.abs(losses))
        return _Points(logs=logs, losses=sign * losses, roughness=roughness, blur=blur)

    def _real_points(self, c: float, height: float) -> _Points:
        """The trapezoid points on the real line, good for abs(Im z) <= height."""
        first, step, count = self._real_grid(c, height)
        places = (first[:, np.newaxis] + np.arange(count)) * step[:, np.newaxis]
        scale = self.scales[:, np.newaxis]
        exponents = (2 * places - 1) / (2 * scale**2)
        losses, blur = self._real_losses(exponents, np.abs(places) / scale**2)
        square: Floats = (places / scale) ** 2 / 2
        weight = np.log(step / (self.scales * math.sqrt(2 * math.pi)))[:, np.newaxis]
        power = c + 1 if self.removal else -c
        logs = weight - square + power * losses
        size, rough = (np.abs(losses), square) if self.crowd <= _FEW else (_most(losses), _most(square))
        roughness = 4 * ELEMENTARY * (1 + np.abs(weight)) + 24 * rough + abs(power) * (blur + 6 * size)
        return _Points(logs=logs, losses=losses if self.removal else -losses, roughness=roughness, blur=blur)

    def _real_losses(self, exponents: Floats, off: Floats) -> tuple[Floats, Floats]:
        """log b at real points, and its absolute errors in units of u; `off`: what the points add to those of v.

        Of many releases the errors are those of the largest in its row: enough where each occurs a few times only.
        """
        log_rates, log_rests = np.log(self.rates)[:, np.newaxis], self.log_rests[:, np.newaxis]
        if self.crowd <= _FEW:
            drift = log_rates + exponents
            losses: Floats = np.logaddexp(log_rests, drift)
            share = np.exp(np.minimum(drift - losses, 0))
            blur = 6 * np.abs(exponents) + off + 1 + 2 * ELEMENTARY * (2 + np.abs(log_rates)) + 4 * np.abs(drift)
            return losses, share * blur + 4 * ELEMENTARY * np.abs(log_rests) + 2 * np.abs(losses)
        most = _most(exponents)
        if float(most.max()) < _EXP_MOST:
            losses = np.log(np.exp(log_rests) + self.rates[:, np.newaxis] * np.exp(exponents))
        else:
            losses = np.logaddexp(log_rests, log_rates + exponents)
        blur = 10 * most + _most(off) + 1 + 2 * ELEMENTARY * (2 + np.abs(log_rates)) + 4 * np.abs(log_rates)
        return losses, blur + 4 * ELEMENTARY * np.abs(log_rests) + ELEMENTARY * _most(losses)

    def _real_grid(self, c: float, height: float) -> tuple[Floats, Floats, int]:
        """As `_grid`, unshifted: at a distance a the integrand grows by e^(a^2/2s^2), and on one side by e^(height
        a/s^2)."""
        variances, (low, high) = self.scales**2, self._range(c)
        reach = np.minimum(self.scales * math.sqrt(2 * self.log_small), _STRIP * math.pi * variances)
        if not self.removal:
            reach = np.minimum(reach, 2 * variances * min(1.4, math.sqrt(8 / c)))
        growth = reach**2 / (2 * variances) + height * reach / variances
        if not self.removal:
            growth = growth - c * np.log(np.cos(reach / (2 * variances)))
        count = _checked(np.ceil((high - low) * (self.log_small + 1 + growth) / (2 * math.pi * reach)).max())
        step = (high - low) / (count - 1)
        return np.floor(low / step), step, count + 1

    def grid(self, c: float) -> tuple[float, float, int, float]:
        """First point, step, count and shift of the trapezoid rule at c, of the first release."""
        first, step, count, shift = self._grid(c)
        return float(first[0] * step[0]), float(step[0]), count, float(shift[0])

    def _grid(self, c: float) -> tuple[Floats, Floats, int, Floats]:
        """Which multiple of the step comes first, the step, how many points, and the shift."""
        shift, (low, high) = self._shift(c), self._range(c)
        count = _checked(np.ceil((high - low) / self._step(c, shift)).max())
        step = (high - low) / (count - 1)
        return np.floor(low / step), step, count + 1, shift

    def _shift(self, c: float) -> Floats:
        """How far the line may be shifted: less than half the strip, and so that little cancels."""
        variances = self.scales**2
        shift: Floats = np.minimum(_SHIFT * self.scales, _STRIP / 2 * math.pi * variances)
        if not self.removal:
            # |b(x+iy)|^-c may exceed b(x)^-c by the factor cos(y/(2s^2))^-c, and up to twice the shift counts.
            shift = np.minimum(shift, variances * min(1.4, math.sqrt(8 / c)))
        return shift

    def _step(self, c: float, shift: Floats) -> Floats:
        """The trapezoid step: error at most (growth below + growth above)/(e^(2 pi shift/step) - 1) of M(c)."""
        variances = self.scales**2
        growth = 2 * shift**2 / variances
        if not self.removal:
            growth = growth - c * np.log(np.cos(shift / variances))
        step: Floats = 2 * math.pi * shift / (self.log_small + 1 + growth)
        return step

    def _range(self, c: float) -> tuple[Floats, Floats]:
        """Ends beyond which the integrand falls faster than a geometric series that starts below e^-42 of M(c) >= 1."""
        scales, rates = self.scales, self.rates
        cut = self.log_small + 2 * _SHIFT**2
        if not self.removal:
            # To the left b^-c <= (1-q)^-c, to the right of 1/2 it is at most 1.
            low = -scales * np.sqrt(2 * (cut - c * self.log_rests))
            for _ in range(_WIDENINGS_MAX):
                slope = np.minimum(np.exp(np.log(rates) - self.log_rests + (2 * low - 1) / (2 * scales**2)), 1)
                if (c * slope < -low / 2).all():
                    return low, scales * math.sqrt(2 * cut) + 0.5
                low = np.where(c * slope < -low / 2, low, 2 * low)
            raise InternalError("the range of an integral could not be bounded")
        # b <= 1 left of 1/2. To the right b <= e^((2x-1)/2s^2), and b <= 2 max(1-q, q e^((2x-1)/2s^2)); the slope of
        # the integrand's logarithm is below (c+1-x)/s^2.
        bump = cut + c * (c + 1) / (2 * scales**2) + (c + 1) * np.minimum(0, np.log(2 * rates))
        plain = scales * np.sqrt(2 * (cut + (c + 1) * math.log(2)))
        high = np.maximum(c + 1 + scales * np.sqrt(2 * np.maximum(bump, 1)), plain)
        return -scales * math.sqrt(2 * cut), high


def _checked(steps: float) -> int:
    if not steps < _POINTS_MAX:
        raise InternalError("a sampled Gaussian's integral needs more points than memory should hold")
    return int(steps) + 1


def weighted_sums(
    terms: Complexes | Floats, losses: Complexes | Floats, roughness: Floats, blur: Floats, line: Line
) -> tuple[Complexes, Floats]:
    """For terms and losses of shape (releases, points), sum of terms e^(itL) at each height, and a bound on its
    rounding.

    `roughness` and `blur` as in `_Points`. Shapes (releases, count). Heights are i h = (a B + b) h, so that all phases
    are products of few; Im L >= 0.
    """
    turn = 1j * line.step * losses
    size = np.abs(terms)
    # A sum of n complex products is off by at most (n + 2) sqrt 2 units of the sum of sizes.
    fixed = (size * (roughness + 1.5 * terms.shape[1] + 12)).sum(axis=1)[:, np.newaxis]
    turning = (size * (blur + 6 * np.abs(losses))).sum(axis=1)[:, np.newaxis]
    if line.count <= _SHORT and len(terms) > _FEW:
        values = _step_by_step(terms, np.exp(turn), line.count)
        units = (2 * ELEMENTARY + 4) * np.arange(line.count)
    else:
        line.check_work(terms.size)
        block = math.isqrt(line.count - 1) + 1
        rows = -(-line.count // block)
        sums, most = np.zeros((len(terms), rows, block), dtype=complex), 0.0
        # Some points at a time, for memory: the sum of n products is off by no more, whatever is added first.
        points = max(1, _CHUNK // (len(terms) * block))
        for first in range(0, terms.shape[1], points):
            some = slice(first, first + points)
            low, low_units = _powers(turn[:, some], block)
            high, high_units = _powers(block * turn[:, some], rows)
            sums += np.matmul(high * terms[:, np.newaxis, some], low.transpose(0, 2, 1))
            most = max(most, low_units + high_units)
        values = sums.reshape(len(terms), -1)[:, : line.count]
        units = np.full(line.count, most)
    return values, UNIT * (fixed + size.sum(axis=1)[:, np.newaxis] * units + turning * line.heights)


def _step_by_step(terms: Complexes | Floats, turn: Complexes, count: int) -> Complexes:
    """The sums of terms turn^k for k < count, shape (releases, count): for many releases and few heights."""
    values, turned = np.empty((len(terms), count), dtype=complex), terms.astype(complex)
    for k in range(count):
        values[:, k] = turned.sum(axis=1)
        turned *= turn
    return values


def _powers(turn: Complexes, count: int) -> tuple[Complexes, float]:
    """e^(k turn) for k < count, shape (releases, count, points), and their relative error in units of u."""
    if turn.size * count <= _BLOCK // 4:
        return np.exp(turn[:, np.newaxis, :] * np.arange(count)[:, np.newaxis]), 2 * ELEMENTARY
    once = np.exp(turn)[:, np.newaxis, :]
    powers = np.cumprod(np.broadcast_to(once, (len(turn), count, turn.shape[1])), axis=1)
    return np.concatenate([np.ones_like(once), powers[:, :-1]], axis=1), count * (2 * ELEMENTARY + 4)


def log_mixture(
    rates: Floats | float, log_rests: Floats | float, exponents: Complexes | Floats, off: Floats | float
) -> tuple[Complexes, Floats]:
    """log(1 - q + q e^v) for every v with abs(Im v) < pi, without overflow, and its error in units of u.

    `off` is that of v, in units of u. With r the smaller of the two terms over the larger, log(A + B) = log of the
    larger + log(1 + r); where abs(Im v) <= pi/2 no part of 1 + r is near 0. The error is small where q is.
    """
    log_rates = np.log(rates)
    drift = log_rates + exponents
    above = drift.real > log_rests
    larger, smaller = np.where(above, drift, log_rests), np.where(above, log_rests, drift)
    ratio = np.exp(smaller - larger)
    # NumPy's complex log1p rounds 1 + r first, whatever r is.
    real = np.log1p(ratio.real * (2 + ratio.real) + ratio.imag**2) / 2
    logs = larger + (real + 1j * np.arctan2(ratio.imag, 1 + ratio.real))
    size, spread = np.abs(ratio), np.abs(drift)
    # A/(A+B) and B/(A+B) are how far an error of the logarithm of either counts: at most 1.42 by the angle.
    share = np.exp(np.minimum(drift.real - logs.real, 0.36))
    blur = share * (off + 1 + ELEMENTARY * np.abs(log_rates) + 2 * spread) + 2 * ELEMENTARY * np.abs(log_rests)
    return logs, blur + size * (2 * spread + 8 * ELEMENTARY) + 2 * np.abs(logs)


def _above(points: _Points) -> tuple[Floats, Floats]:
    """Logarithms of the sizes of the terms at height 0, and how fast they fall: what is surely above and below them."""
    angles = points.losses.imag * (1 - 4 * UNIT) - UNIT * points.blur
    return points.logs.real + UNIT * points.roughness, np.maximum(angles, 0.0)


def _most(values: Floats) -> Floats:
    """The largest size in each row, of values that rise, fall, or have one valley: one of the ends."""
    most: Floats = np.maximum(np.abs(values[:, :1]), np.abs(values[:, -1:]))
    return most


def _log_sum(logs: Floats) -> Floats:
    """log of the sum of e^logs over the last axis."""
    top = logs.max(axis=-1)
    total: Floats = top + np.log(np.exp(logs - top[..., np.newaxis]).sum(axis=-1))
    return total
