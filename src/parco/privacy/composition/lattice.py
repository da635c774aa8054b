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

from parco.privacy.composition.contour import Aim, Moments, Profile, aliases_of, centre, period, rounding
from parco.privacy.composition.families import Complexes, Floats, Line
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = ["LatticeProfile", "lattice_profile"]


@dataclass(frozen=True)
class LatticeProfile(Profile):
    """As `Profile`, for losses on the lattice of step `lattice`; `values` are M(z)/M(c), doubled off the real axis."""

    lattice: Fraction

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """As `Profile.log_delta`; the derivative is that within the cell of eps, in which delta(eps) = A - B e^eps."""
        total, spread = self._sum(epsilon)
        if total <= spread:
            return -math.inf, -self.line.c
        ahead, _ = self._to_next(epsilon)
        step, after = float(self.lattice), self.line.nodes + 1
        behind = self._turned(epsilon) * (step * np.exp(-after * ahead) / -np.expm1(-after * step))
        return self._log_scale(epsilon) + math.log(total), -float(behind.real.sum()) / total

    def log_delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """As `Profile.log_delta_bounds`."""
        return self._bounds(epsilon, *self._sum(epsilon))

    def log_blur(self, epsilon: float) -> float:
        """As `Profile.log_blur`."""
        return self._log_scale(epsilon) + math.log(self._sum(epsilon)[1])

    def takes(self, lattice: Fraction | None) -> bool:
        """Whether losses on that lattice are on this one too: off it M has not the period that these nodes rely on."""
        return lattice is not None and (lattice / self.lattice).denominator == 1

    def _sum(self, epsilon: float) -> tuple[float, float]:
        """delta(eps) in the scale of the sums, and what it may be off by."""
        kernel, size = self._kernel(epsilon)
        reach = float(self.lattice) * (np.abs(self.line.nodes) + 1)
        off = size * (self.errors + UNIT * np.abs(self.values) * (8 * ELEMENTARY + 8 * reach))
        # The step of the line is 2 pi/(Ng) but for four units: each phase is off by that too.
        fixed, turning = rounding(self.values * size, off, self.line)
        return float((self._turned(epsilon) * kernel).real.sum()), fixed + 4 * epsilon * turning

    def _turned(self, epsilon: float) -> Complexes:
        turned: Complexes = self.values * np.exp(-1j * epsilon * self.line.heights)
        return turned

    def _kernel(self, epsilon: float) -> tuple[Complexes, Floats]:
        """The kernel as one fraction, and the sum of the sizes of its terms over that of its denominator.

        g e^(-zr) (1 - e^-r + e^(-zg) (e^-r - e^-g))/((1 - e^(-zg)) (1 - e^(-(z+1)g))): as a difference of two fractions
        it would cancel wherever abs(z) is large.
        """
        ahead, rest = self._to_next(epsilon)
        step, nodes = float(self.lattice), self.line.nodes
        own, next_one = -math.expm1(-ahead), -math.exp(-ahead) * math.expm1(-rest)
        below = step / (np.expm1(-nodes * step) * np.expm1(-(nodes + 1) * step))
        kernel: Complexes = np.exp(-nodes * ahead) * below * (own + next_one * np.exp(-nodes * step))
        size: Floats = math.exp(-self.line.c * ahead) * np.abs(below) * (own + next_one * math.exp(-self.line.c * step))
        return kernel, size

    def _to_next(self, epsilon: float) -> tuple[float, float]:
        """How far eps is from the next point of the lattice above it, and that point's cell's rest."""
        exact = Fraction(epsilon)
        ahead = (math.floor(exact / self.lattice) + 1) * self.lattice - exact
        return float(ahead), float(self.lattice - ahead)


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
        centre=centre(moments, c),
        lattice=lattice,
    )
