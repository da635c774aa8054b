"""Composition of losses that all lie on one lattice: the same nodes, finitely many, and nothing to cut off.

For losses that are whole multiples of g, M has period 2 pi/g along the line, and with m0 = floor(eps/g) + 1, r = m0 g -
eps, delta(eps) is the sum over m >= m0 of P(L = mg)(1 - e^(eps - mg)), whose transform has instead of 1/(z (z+1)) the
kernel

    g [e^(-zr)/(1 - e^(-zg)) - e^(-(z+1)r)/(1 - e^(-(z+1)g))].

N nodes over one period give exactly the sum over k of e^(ckP) delta(eps + kP), P = Ng: only aliases and rounding
remain. Source: docs/mathematics.md, "Losses on a lattice".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from parco.privacy.composition.contour import Aim, Moments, Profile, aliases_of, mean_loss, period, rounding
from parco.privacy.composition.families import Complexes, Floats, Line
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = ["LatticeProfile", "lattice_profile"]


@dataclass(frozen=True)
class LatticeProfile(Profile):
    """As `Profile`, for losses on the lattice of step `lattice`; `values` are M(z)/M(c), doubled off the real axis."""

    lattice: Fraction

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """As `Profile.log_delta`; the derivative is that within the cell of eps, in which delta(eps) = A - B e^eps."""
        ahead, behind, spread = self._sums(epsilon)
        if ahead - behind <= spread:
            return -math.inf, -self.line.c
        return self._log_scale(epsilon) + math.log(ahead - behind), -behind / (ahead - behind)

    def log_delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """As `Profile.log_delta_bounds`."""
        ahead, behind, spread = self._sums(epsilon)
        return self._bounds(epsilon, ahead - behind, spread)

    def takes(self, lattice: Fraction | None) -> bool:
        """Whether losses on that lattice are on this one too: off it M has not the period that these nodes rely on."""
        return lattice is not None and (lattice / self.lattice).denominator == 1

    def _sums(self, epsilon: float) -> tuple[float, float, float]:
        """A and B e^eps in the scale of the sums, and what their difference may be off by."""
        first, second = self._kernels(epsilon)
        size = np.abs(first) + np.abs(second)
        reach = float(self.lattice) * (np.abs(self.line.nodes) + 1)
        off = size * (self.errors + UNIT * np.abs(self.values) * (6 * ELEMENTARY + 8 * reach))
        # The step of the line is 2 pi/(Ng) but for three units: each phase is off by that too.
        fixed, turning = rounding(self.values * size, off, self.line)
        turned = self.values * np.exp(-1j * epsilon * self.line.heights)
        return float((turned * first).real.sum()), float((turned * second).real.sum()), fixed + 3 * epsilon * turning

    def _kernels(self, epsilon: float) -> tuple[Complexes, Complexes]:
        exact = Fraction(epsilon)
        ahead = float((math.floor(exact / self.lattice) + 1) * self.lattice - exact)
        step, nodes = float(self.lattice), self.line.nodes
        first = step * np.exp(-nodes * ahead) / -np.expm1(-nodes * step)
        second = step * np.exp(-(nodes + 1) * ahead) / -np.expm1(-(nodes + 1) * step)
        return first, second


def lattice_profile(
    moments: Moments, c: float, aim: Aim, *, lattice: Fraction, nodes_max: int
) -> LatticeProfile | None:
    """The profile by a line at c > 0 that reaches the aim, or None when it would need more than `nodes_max` nodes."""
    log_share = aim.log_delta + math.log(aim.share / 4)
    aliases = aliases_of(moments, c, aim.epsilon, log_share)
    least = period(c, aim.epsilon, aliases, log_share)
    cells = math.ceil(least / float(lattice)) + 1
    if cells > nodes_max:
        return None
    line = Line(c=c, step=2 * math.pi / (cells * float(lattice)), count=cells // 2 + 1)
    moment, moment_error = moments.log_moment(c)
    ratios, bounds = moments.log_ratios(line)
    values = np.exp(ratios)
    values[1:] *= 2
    if cells % 2 == 0:
        # The node half-way round is its own mirror image.
        values[-1] /= 2
    errors: Floats = np.abs(values) * np.expm1(bounds + UNIT * 2 * ELEMENTARY)
    return LatticeProfile(
        line=line,
        log_moment=moment,
        log_moment_error=moment_error,
        values=values,
        errors=errors,
        cut_off=0.0,
        aliases=aliases,
        centre=mean_loss(ratios, line) - 1 / c - 1 / (c + 1),
        lattice=lattice,
    )
