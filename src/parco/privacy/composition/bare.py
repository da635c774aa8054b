"""Sampled Gaussian releases with hardly any noise: a draw shows, so that the loss is one of two simple ones.

With mu = D/s large, l ~ N(mu^2/2, mu^2) for a unit that was drawn and N(-mu^2/2, mu^2) for one that was not lie far
apart, and log(1 - q + q e^l) is l + log q or log(1 - q) but for next to nothing: this is the law of these two. Source:
docs/mathematics.md, "Outliers set aside".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parco.privacy.composition.excess import complex_expm1, log_one_and
from parco.privacy.composition.families import Complexes, Floats, Line
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = ["Bare"]


@dataclass(frozen=True)
class Bare:
    """`times` losses, each log(1 - q) with probability 1 - q, else log q + N(v/2, v); `log_rate`, `log_rest`: log q and
    log(1 - q); `variance` v. All are off by some units, the logarithms by at most 2 ELEMENTARY."""

    log_rate: float
    log_rest: float
    variance: float
    times: float

    @property
    def releases(self) -> float:
        """How many there are."""
        return self.times

    @property
    def different(self) -> int:
        """One."""
        return 1

    def sketch(self) -> Bare:
        """Itself."""
        return self

    @property
    def largest(self) -> tuple[float, float]:
        """Infinite."""
        return math.inf, math.inf

    def log_mass_near(self, width: float) -> float:
        """Minus infinity: there is no largest loss."""
        del width
        return -math.inf

    def log_moment(self, c: float) -> tuple[float, float]:
        """times log((1-q)^(c+1) + q^(c+1) e^(v(c^2+c)/2)), and a bound on its error."""
        rest, ahead = (c + 1) * self.log_rest, self._ahead(c)
        larger, log_more = max(rest, rest + ahead), -abs(ahead)
        value = larger + math.log1p(math.exp(log_more))
        share = math.exp(ahead - math.log1p(math.exp(ahead))) if ahead < 0 else 1.0
        units = 4 * ELEMENTARY * abs(rest) + share * self._units(c) + 4 * ELEMENTARY * (share + abs(value))
        return self.times * value, self.times * UNIT * units

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """M(z)/M(c) = e^(it log(1-q)) (1 + w (e^(it(log q - log(1-q)) + v(it(2c+1) - t^2)/2) - 1)), w the share at
        c."""
        ahead, heights = self._ahead(line.c), line.heights
        log_share = -float(np.logaddexp(0, -ahead))
        turn = self.log_rate - self.log_rest + self.variance * (2 * line.c + 1) / 2
        fall = self.variance * heights**2 / 2
        moved = math.exp(log_share) * complex_expm1(1j * heights * turn - fall)
        # As e^-x x <= 1, what falls is off by no more than some units where it still counts.
        reach = heights * (abs(self.log_rate) + abs(self.log_rest) + self.variance * (2 * line.c + 1))
        units = self._units(line.c) + 4 * ELEMENTARY * (4 + abs(log_share))
        error = UNIT * (np.abs(moved) * (units + 8 * ELEMENTARY) + math.exp(log_share) * (4 * ELEMENTARY * reach + 32))
        logs, errors = log_one_and(moved, error * (1 + 1e-9))
        turned: Complexes = heights * (1j * self.log_rest)
        ratios = self.times * (logs + turned)
        return ratios, self.times * (errors + 4 * ELEMENTARY * UNIT * np.abs(turned))

    def envelope(self, c: float) -> Callable[[float], float]:
        """1 - w + w e^(-v t^2/2), which falls."""
        share = math.exp(-float(np.logaddexp(0, -self._ahead(c))))

        def bound(height: float) -> float:
            moved = share * math.expm1(-self.variance * height**2 / 2)
            return self.times * min(math.log1p(moved * (1 - 1e-9)), 0.0)

        return bound

    def _ahead(self, c: float) -> float:
        """The logarithm of how much more likely a draw is than none, at c."""
        return (c + 1) * (self.log_rate - self.log_rest) + self.variance * (c * c + c) / 2

    def _units(self, c: float) -> float:
        """By how many units that may be off."""
        return 4 * ELEMENTARY * (c + 1) * (abs(self.log_rate) + abs(self.log_rest)) + 8 * self.variance * (c * c + c)
