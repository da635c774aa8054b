"""Composition where |M| does not fall along the line: a little independent noise on the loss makes it fall.

Let X be a sum of m uniform variables on (-a, a), shifted so that E[e^-X] = 1. (1 - e^(eps - L))_+ is convex in e^-L, so

    delta(eps) <= E[delta with L + X in place of L]                                      (Jensen)
    delta(eps) >= the same - E[(1 - e^-X)_+] P(|L + X - eps| <= 2 w),  w the largest |X|

since smoothing changes (1 - e^(eps-L))_+ most at L = eps, and where |L - eps| > w by no more than 1 - E[e^-X], which is
rounding. Both are of second order in a.
Source: docs/mathematics.md, "Smoothing".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np

from parco.errors import InternalError
from parco.privacy.composition.contour import Profile, less, rounding
from parco.privacy.composition.families import Complexes, Family, Floats, Line, log_error
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = ["Smoothing", "smoothed"]

_UNIFORMS = 6


@dataclass(frozen=True)
class Smoothing:
    """The law of X as a family: M(z) = (sinh(az)/(az))^m e^(zs), s = m log(sinh(a)/a), `half_width` a > 0."""

    half_width: float
    releases: float = 0.0

    @property
    def shift(self) -> float:
        """s, just above m log(sinh(a)/a), so that E[e^-X] <= 1: three terms of an alternating series, rounded up."""
        square = self.half_width**2
        return _UNIFORMS * square * (1 / 6 - square / 180 + square**2 / 2835) * (1 + 1e-14)

    @property
    def lack(self) -> float:
        """At least 1 - E[e^-X] <= s - m log(sinh(a)/a): the next term of the series, and what was rounded up."""
        return _UNIFORMS * self.half_width**8 / 37800 + 4e-14 * self.shift

    @property
    def reach(self) -> float:
        """w, at least the largest |X|."""
        return (_UNIFORMS * self.half_width + self.shift) * (1 + 1e-15)

    @property
    def gap(self) -> float:
        """At least E[(1 - e^-X)_+] <= E[X_+] <= s + sqrt(m/3) a/2, as 2 E[Y_+] = E|Y| for the symmetric part Y."""
        return (self.shift + math.sqrt(_UNIFORMS / 3) * self.half_width / 2) * (1 + 1e-14)

    @property
    def falls(self) -> int:
        """The power m with which |M| falls."""
        return _UNIFORMS

    @property
    def different(self) -> int:
        """One."""
        return 1

    def sketch(self) -> Smoothing:
        """Itself."""
        return self

    @property
    def largest(self) -> tuple[float, float]:
        """w, the largest |X|."""
        return 0.0, self.reach

    def log_mass_near(self, width: float) -> float:
        """Minus infinity: nothing is claimed of the mass near the largest loss."""
        del width
        return -math.inf

    def log_moment(self, c: float) -> tuple[float, float]:
        """log M(c), and a bound on its error."""
        value = float(self._log_sinhc(np.array([complex(c)])).real[0]) + c * self.shift
        return value, UNIT * _UNIFORMS * 8 * ELEMENTARY * (1 + abs(value))

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """log(M(z)/M(c)) at the nodes, and bounds on its errors."""
        scaled = self.half_width * line.nodes
        sizes = np.sinh(scaled) / scaled
        reach = 2 * math.cosh(self.half_width * line.c) * (ELEMENTARY + np.abs(scaled)) / np.maximum(1, np.abs(scaled))
        logs, bounds = log_error(sizes / sizes[0].real, 4 * UNIT * (reach + ELEMENTARY))
        ratios = _UNIFORMS * logs + 1j * line.heights * self.shift
        return ratios, _UNIFORMS * bounds + 8 * UNIT * np.abs(ratios)

    def envelope(self, c: float) -> Callable[[float], float]:
        """m log(cosh(ac)/(at)) - log M(c) + cs: |sinh(a(c+it))| <= cosh(ac)."""
        top = self._log_top(c)

        def bound(height: float) -> float:
            return min(top - _UNIFORMS * math.log(height), 0.0)

        return bound

    def height(self, c: float) -> float:
        """From here on the envelope falls."""
        return math.exp(self._log_top(c) / _UNIFORMS) * (1 + 1e-9)

    def _log_top(self, c: float) -> float:
        centre = float(self._log_sinhc(np.array([complex(c)])).real[0])
        return _UNIFORMS * math.log(math.cosh(self.half_width * c) / self.half_width) - centre + 1e-12

    def _log_sinhc(self, nodes: Complexes) -> Complexes:
        scaled = self.half_width * nodes
        logs: Complexes = _UNIFORMS * np.log(np.sinh(scaled) / scaled)
        return logs


@dataclass(frozen=True)
class _Smoothed(Profile):
    """A profile of L + X; its bounds are those of L. `window` is the transform of |L + X - eps| <= 2w at the nodes."""

    smoothing: Smoothing
    window: Complexes
    window_errors: Floats
    window_cut_off: float

    def log_delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """As `Profile.log_delta_bounds`, for L itself: what smoothing may have added is taken off below."""
        below, above = super().log_delta_bounds(epsilon)
        near = float((self.window * np.exp(-1j * epsilon * self.line.heights)).real.sum())
        fixed, turning = self._window_rounding
        # P(L > eps) <= M(c) e^(-c eps), which is 2 pi/h in the units of these sums.
        off = self.smoothing.gap * (max(near, 0.0) + fixed + epsilon * turning + self.window_cut_off)
        off += self.smoothing.lack * 2 * math.pi / self.line.step
        if not math.isfinite(off):
            return -math.inf, above
        return less(below, sum(self._log_of(off, epsilon))), above

    def with_more(self, family: Family) -> Self:
        """As `Profile.with_more`, for the window too."""
        more = super().with_more(family)
        window, errors = _window(more.values, more.errors, self.line, self.smoothing)
        return replace(more, window=window, window_errors=errors)

    @cached_property
    def _window_rounding(self) -> tuple[float, float]:
        return rounding(self.window, self.window_errors, self.line)


def smoothed(profile: Profile, smoothing: Smoothing, envelope: Callable[[float], float]) -> Profile:
    """For the profile of a composition that contains this smoothing, returns the same with bounds for the loss itself.

    The window's transform is 2 sinh(2wz)/z. Its cut-off: beyond T the envelope falls at least as (T/t)^m, so that
    the sum of |M|/t over nodes beyond T is at most envelope(T)/(m h).
    """
    line = profile.line
    last = line.step * (line.count - 1)
    if last < smoothing.height(line.c):
        raise InternalError("a line ends before smoothing makes it fall")
    largest = 2 * math.cosh(2 * smoothing.reach * line.c)
    window, errors = _window(profile.values, profile.errors, line, smoothing)
    # Not below what a double can hold, as 0 would claim that nothing was left out.
    size = 2 * largest * math.exp(max(envelope(last), -700.0))
    return _Smoothed(
        **{field.name: getattr(profile, field.name) for field in fields(profile)},
        smoothing=smoothing,
        window=window,
        window_errors=errors,
        window_cut_off=size / (smoothing.falls * line.step) * (1 + 1e-12),
    )


def _window(values: Complexes, errors: Floats, line: Line, smoothing: Smoothing) -> tuple[Complexes, Floats]:
    nodes, reach = line.nodes, 2 * smoothing.reach
    factor = 2 * np.sinh(reach * nodes) * (nodes + 1)
    largest = 2 * math.cosh(reach * line.c) * np.abs(nodes + 1)
    own = UNIT * np.abs(values) * largest * (4 * ELEMENTARY + 4 * reach * np.abs(nodes))
    return values * factor, errors * largest + own
