"""Releases whose privacy loss takes few values: randomised response, pure and approximate mechanisms, tables of
points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parco.privacy.composition.families import Complexes, Floats, Line, sum_of_logs
from parco.privacy.composition.rounding import ELEMENTARY, UNIT
from parco.privacy.composition.sampled import weighted_sums

__all__ = ["FiniteLosses"]

_BLOCK = 1 << 21
# How far off a loss and the logarithm of a mass are as they come in, relatively, in units of u.
_INPUT = 32.0


@dataclass(frozen=True)
class FiniteLosses:
    """Releases whose loss L takes the value losses[r, i] with probability e^log_masses[r, i] under P.

    Arrays of shape (different releases, values), `times` (different releases,); both are rounded from exact numbers,
    off by at most 32 parts in 2^53. A mass of zero has log_mass minus infinity.
    """

    losses: Floats
    log_masses: Floats
    times: Floats

    @property
    def releases(self) -> float:
        """How many there are."""
        return float(self.times.sum())

    def sketch(self) -> FiniteLosses:
        """Itself."""
        return self

    @property
    def largest(self) -> tuple[float, float]:
        """The sum of the largest losses that have a mass."""
        tops = np.where(np.isfinite(self.log_masses), self.losses, -np.inf).max(axis=1)
        total, off = float(self.times @ tops), UNIT * (len(self.times) + 2 * _INPUT) * float(self.times @ np.abs(tops))
        return total - off, total + off

    def log_mass_near(self, width: float) -> float:
        """The sum of the logarithms of the largest losses' masses."""
        del width
        tops = np.where(np.isfinite(self.log_masses), self.losses, -np.inf).argmax(axis=1)
        masses = np.take_along_axis(self.log_masses, tops[:, np.newaxis], axis=1)[:, 0]
        return float(self.times @ masses) * (1 + UNIT * (len(tops) + 2 * _INPUT)) - UNIT * _INPUT * self.releases

    @property
    def different(self) -> int:
        """How many different ones there are."""
        return len(self.times)

    def log_moment(self, c: float) -> tuple[float, float]:
        """The sum of log M(c), and a bound on its error."""
        logs, roughness = self._terms(c)
        top = logs.max(axis=1)
        terms = np.exp(logs - top[:, np.newaxis])
        sums = terms.sum(axis=1)
        values = top + np.log(sums)
        rounding = (terms * roughness).sum(axis=1) / sums + 2 * ELEMENTARY + 64 + np.abs(top) + np.abs(values)
        spread = UNIT * (rounding + len(values) * np.abs(values))
        return float(self.times @ values), float(self.times @ spread)

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """The sum of log(M(z)/M(c)) at the nodes, up to multiples of 2 pi i, and bounds on its errors."""
        logs, roughness = self._terms(line.c)
        # Turning all losses by one of them leaves small phases where the losses are near each other.
        main = np.take_along_axis(self.losses, logs.argmax(axis=1)[:, np.newaxis], axis=1)
        terms = np.exp(logs - logs.max(axis=1)[:, np.newaxis]) + 0j
        total, error = np.zeros(line.count, dtype=complex), np.zeros(line.count)
        rows = max(1, _BLOCK // (line.count + terms.shape[1] * 1024))
        for first in range(0, self.different, rows):
            part = slice(first, first + rows)
            turned = self.losses[part] - main[part]
            rough = roughness[part] + _INPUT * abs(line.c) * np.abs(turned)
            blur = _INPUT * (np.abs(self.losses[part]) + np.abs(main[part]))
            values, bounds = weighted_sums(terms[part], turned + 0j, rough, blur, line)
            centre = values[:, :1].real
            ratios, bounds = sum_of_logs(values / centre, 2 * bounds / centre, self.times[part])
            total += ratios
            error += bounds + 2 * UNIT * np.abs(total)
        shift = float(self.times @ main[:, 0])
        off = UNIT * (len(self.times) + _INPUT) * float(self.times @ np.abs(main[:, 0]))
        return total + 1j * line.heights * shift, error + off * line.heights

    def envelope(self, c: float) -> Callable[[float], float]:
        """0 at every height: the sizes come back to that of M(c) again and again."""
        del c
        return lambda _: 0.0

    def _terms(self, c: float) -> tuple[Floats, Floats]:
        logs = self.log_masses + c * self.losses
        finite = np.where(np.isfinite(self.log_masses), self.log_masses, 0.0)
        roughness = ELEMENTARY + _INPUT + (_INPUT + 4) * (np.abs(finite) + abs(c) * np.abs(self.losses))
        return logs, roughness
