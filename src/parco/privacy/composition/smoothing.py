"""Composition where |M| does not fall along the line: a little independent Gaussian noise on the loss makes it fall.

Let X ~ N(v/2, v), so that E[e^-X] = 1: L + X is the loss of the composition with one Gaussian release more, of
mu^2 = v. With f the density of L + X,

    delta of L + X at eps  >=  delta of L at eps  >=  delta of L + X at eps - v e^(v/8) f(eps).

Source: docs/mathematics.md, "Smoothing".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np

from parco.privacy.composition.contour import Profile, less, rounding
from parco.privacy.composition.families import Complexes, Family, Floats, GaussianSum, Line
from parco.privacy.composition.rounding import UNIT

__all__ = ["Smoothed", "noise", "smoothed", "weight"]

_LOG_LEAST = -700.0


def noise(variance: float) -> GaussianSum:
    """The law of X as a family, which counts as no release."""
    return GaussianSum(variance, 0.0)


def weight(variance: float) -> float:
    """At least v e^(v/8), by which the density counts."""
    return variance * math.exp(variance / 8) * (1 + 1e-14)


@dataclass(frozen=True)
class Smoothed(Profile):
    """A profile of L + X whose bounds are those of L. `density`: M(z)/M(c) at the nodes, as `values`, off by at most
    `density_errors`; `density_cut_off` bounds the nodes left out of their sum."""

    variance: float
    density: Complexes
    density_errors: Floats
    density_cut_off: float

    def log_delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """As `Profile.log_delta_bounds`, for L itself: what the noise may have added is taken off below."""
        below, above = super().log_delta_bounds(epsilon)
        near = float((self.density * np.exp(-1j * epsilon * self.line.heights)).real.sum())
        fixed, turning = self._density_rounding
        off = weight(self.variance) * (max(near, 0.0) + fixed + epsilon * turning + self.density_cut_off)
        if not math.isfinite(off):
            return -math.inf, above
        return less(below, sum(self._log_of(off, epsilon))), above

    def with_more(self, family: Family) -> Self:
        """As `Profile.with_more`, for the density too."""
        more = super().with_more(family)
        density, errors = _density(more.values, more.errors, self.line)
        return replace(more, density=density, density_errors=errors)

    @cached_property
    def _density_rounding(self) -> tuple[float, float]:
        return rounding(self.density, self.density_errors, self.line)


def smoothed(profile: Profile, variance: float, envelope: Callable[[float], float]) -> Smoothed:
    """For the profile of a composition that contains this noise, returns the same with bounds for the loss itself.

    Beyond the first node left out, at k = N, |M/M(c)| falls at least as e^(-v h^2 (k^2 - N^2)/2): a geometric series
    of ratio e^(-v h^2 N).
    """
    line = profile.line
    first = math.exp(max(envelope(line.step * line.count), _LOG_LEAST))
    density, errors = _density(profile.values, profile.errors, line)
    return Smoothed(
        **{field.name: getattr(profile, field.name) for field in fields(Profile)},
        variance=variance,
        density=density,
        density_errors=errors,
        density_cut_off=2 * first / -math.expm1(-variance * line.step**2 * line.count) * (1 + 1e-9),
    )


def _density(values: Complexes, errors: Floats, line: Line) -> tuple[Complexes, Floats]:
    """The values times z (z + 1), which is off by less than 8 units."""
    factor = line.nodes * (line.nodes + 1)
    density = values * factor
    return density, errors * np.abs(factor) * (1 + 8 * UNIT) + 12 * UNIT * np.abs(density)
