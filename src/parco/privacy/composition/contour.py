"""The privacy profile of a composition as a sum over nodes of a vertical line, with everything that it may be off by.

For every c > 0 with M(c) finite, delta(eps) = (1/2 pi) int M(z) e^(-z eps)/(z (z+1)) dt, z = c + it. The infinite
trapezoid sum with step h is exactly sum over integers k of e^(ckP) delta(eps + kP), P = 2 pi/h: no term is negative, so
the sum is above the truth, and what it is above by is bounded. Cutting the sum off, rounding and aliases together make
the certificate. Source: docs/mathematics.md, "Composition by a contour".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from parco.errors import InternalError
from parco.privacy.composition.families import Complexes, Family, Floats, Line
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = [
    "Aim",
    "Chernoff",
    "Moments",
    "Profile",
    "aliases_of",
    "centre",
    "kappa_log",
    "less",
    "log_chernoff",
    "period",
    "profile",
    "rounding",
]

_GROWTH, _LOG_LEAST, _NUDGE = 1.15, -700.0, 1e-3
# Multiples of c at which aliases are bounded.
_HIGHER = (1.25, 1.6, 2.5, 5.0)
# Envelopes of families with more different releases than this cost more than some hundred nodes.
_MANY, _NODES_CHEAP = 64, 512


class Moments:
    """The whole composition in one order of the pair: sums over its families."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.families = tuple(families)

    @property
    def largest(self) -> tuple[float, float]:
        """At most and at least the largest loss of the composition; infinite where there is none."""
        low, high = (math.fsum(ends) for ends in zip(*(family.largest for family in self.families), strict=True))
        if low == math.inf:
            return low, high
        return low - 2 * UNIT * abs(low), high + 2 * UNIT * abs(high)

    def log_mass_near(self, width: float) -> float:
        """At most log P(L >= largest - width); minus infinity where it is not known."""
        each = width / sum(family.releases for family in self.families)
        return sum(family.log_mass_near(each) for family in self.families)

    def log_moment(self, c: float) -> tuple[float, float]:
        """log M(c) of the composition, and a bound on its error."""
        parts = [family.log_moment(c) for family in self.families]
        value = math.fsum(part[0] for part in parts)
        return value, math.fsum(part[1] for part in parts) + UNIT * abs(value)

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """log(M(z)/M(c)) of the composition at the nodes, and bounds on its errors."""
        total, error = np.zeros(line.count, dtype=complex), np.zeros(line.count)
        for family in self.families:
            part, bound = family.log_ratios(line)
            total += part
            error += bound + 2 * UNIT * np.abs(total)
        return total, error

    def sketch(self) -> Moments:
        """About the same, quicker: to search with, never to claim with."""
        return Moments([family.sketch() for family in self.families])

    def envelope(self, c: float, *, different_max: float = math.inf) -> Callable[[float], float]:
        """For every height, at least log|M(c + it)/M(c)| of the composition for every t >= height; at most 0.

        Families with more than `different_max` different releases are counted as 0, which they never exceed.
        """
        bounds = [family.envelope(c) for family in self.families if family.different <= different_max]
        return lambda height: sum(bound(height) for bound in bounds)


def kappa_log(c: float) -> float:
    """log of c^c/(1+c)^(1+c): delta(eps) <= kappa(c) M(c) e^(-c eps) for every c > 0."""
    return -c * math.log1p(1 / c) - math.log1p(c)


@dataclass(frozen=True)
class Chernoff:
    """The bound delta(eps) <= kappa(c) M(c) e^(-c eps) at one c > 0: all that is needed of the lesser order of a
    pair."""

    c: float
    log_bound: float

    def log_delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """Minus infinity, and at least log delta(eps)."""
        above = self.log_bound - self.c * epsilon
        return -math.inf, above + 4 * UNIT * (abs(self.log_bound) + self.c * epsilon)

    def takes(self, lattice: Fraction | None) -> bool:
        """Whether `with_more` holds for losses on that lattice (None: on no lattice): always."""
        del lattice
        return True

    def with_more(self, family: Family) -> Chernoff:
        """The bound of the composition with one family more."""
        value, error = family.log_moment(self.c)
        return replace(self, log_bound=self.log_bound + value + error + 2 * UNIT * abs(self.log_bound + value))


@dataclass(frozen=True)
class Profile:
    """delta(eps) by the nodes of one line; all sums are relative to M(c) e^(-c eps) h/(2 pi).

    `values` are M(z)/(M(c) z (z+1)), doubled off the real axis, and `errors` bound what each is off by; `cut_off`
    bounds the nodes left out. `aliases` are (c', log kappa(c') M(c')) with c' > c. `centre`: about the epsilon near
    which the sums cancel least, and rounding and cut-off hide least.
    """

    line: Line
    log_moment: float
    log_moment_error: float
    values: Complexes
    errors: Floats
    cut_off: float
    aliases: tuple[tuple[float, float], ...]
    centre: float

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """About log delta(eps), and its derivative: for root finding, without a claim.

        Minus infinity where rounding or the cut-off hide the value: far from the centre.
        """
        terms = self.values * np.exp(-1j * epsilon * self.line.heights)
        total = float(terms.real.sum())
        if total <= self._spread(epsilon) + self.cut_off:
            return -math.inf, -self.line.c
        slope = float((terms * self.line.nodes).real.sum()) / total
        return self._log_scale(epsilon) + math.log(total), -slope

    def log_delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """For every epsilon >= 0, doubles at most and at least log delta(eps); minus infinity below where nothing is
        left."""
        total = float((self.values * np.exp(-1j * epsilon * self.line.heights)).real.sum())
        return self._bounds(epsilon, total, self._spread(epsilon) + self.cut_off)

    def takes(self, lattice: Fraction | None) -> bool:
        """Whether `with_more` holds for losses on that lattice (None: on no lattice): always."""
        del lattice
        return True

    def with_more(self, family: Family) -> Self:
        """The profile of the composition with one family more, by the same nodes; the cut-off can only have fallen."""
        ratios, bounds = family.log_ratios(self.line)
        factors = np.exp(ratios)
        values = self.values * factors
        grown = np.expm1(bounds + UNIT * (16 + 2 * ELEMENTARY))
        moment, moment_error = family.log_moment(self.line.c)
        aliases = []
        for higher, bound in self.aliases:
            value, error = family.log_moment(higher)
            aliases.append((higher, bound + value + error + 4 * UNIT * abs(bound)))
        return replace(
            self,
            log_moment=self.log_moment + moment,
            log_moment_error=self.log_moment_error + moment_error + UNIT * abs(self.log_moment + moment),
            values=values,
            errors=self.errors * np.abs(factors) * (1 + grown) + np.abs(values) * grown,
            aliases=tuple(aliases),
            centre=self.centre + (float(ratios[1].imag) / self.line.step if self.line.count > 1 else 0.0),
        )

    def is_blurred(self, epsilon: float) -> bool:
        """Whether rounding hides more of delta(epsilon) than the cut-off does."""
        return self._spread(epsilon) > self.cut_off

    def log_blur(self, epsilon: float) -> float:
        """log of what rounding hides of delta(epsilon)."""
        return self._log_scale(epsilon) + math.log(self._spread(epsilon))

    def _spread(self, epsilon: float) -> float:
        fixed, turning = self._rounding
        return fixed + epsilon * turning

    @cached_property
    def _rounding(self) -> tuple[float, float]:
        return rounding(self.values, self.errors, self.line)

    def _bounds(self, epsilon: float, total: float, spread: float) -> tuple[float, float]:
        """log of total -+ spread in the scale of the sums, aliases taken off below."""
        if not math.isfinite(total + spread):
            # Errors beyond doubles, or 0 times infinity: then nothing is known.
            return -math.inf, math.inf
        if total + spread <= 0:
            raise InternalError("a probability is proven to be negative: some bound on an error is wrong")
        above = sum(self._log_of(total + spread, epsilon))
        if total - spread <= 0:
            return -math.inf, above
        log_value, off = self._log_of(total - spread, epsilon)
        return less(log_value - off, log_alias(self.line, epsilon, self.aliases)), above

    def _log_scale(self, epsilon: float) -> float:
        return self.log_moment - self.line.c * epsilon + math.log(self.line.step / (2 * math.pi))

    def _log_of(self, size: float, epsilon: float) -> tuple[float, float]:
        """The logarithm of `size` > 0 in the scale of the sums, and a bound on its error."""
        log_size = math.log(size)
        parts = abs(self.log_moment) + self.line.c * epsilon + abs(math.log(self.line.step)) + abs(log_size) + 8
        return self._log_scale(epsilon) + log_size, self.log_moment_error + 4 * ELEMENTARY * UNIT * parts


def rounding(values: Complexes, errors: Floats, line: Line) -> tuple[float, float]:
    """What the sum of values e^(-i eps t) may be off by: the first, plus eps times the second.

    NumPy's pairwise sum is off by less than 64 units of the sum of sizes, for as many terms as memory holds.
    """
    sizes = np.abs(values)
    fixed = float(errors.sum()) + UNIT * (ELEMENTARY + 68) * float(sizes.sum())
    return fixed * (1 + 1e-12), 2 * UNIT * float((sizes * line.heights).sum()) * (1 + 1e-12)


def less(log_value: float, log_taken: float) -> float:
    """At most log(e^log_value - e^log_taken); minus infinity where nothing is left."""
    if log_taken >= log_value:
        return -math.inf
    share = math.log(-math.expm1(log_taken - log_value))
    return log_value + share - 4 * UNIT * (ELEMENTARY * (1 + abs(share)) + abs(log_value))


def log_alias(line: Line, epsilon: float, aliases: Sequence[tuple[float, float]]) -> float:
    """log of at least the sum over k != 0 of e^(ckP) delta(eps + kP), P = 2 pi/step.

    For k < 0 by delta <= 1, for k > 0 by delta(eps) <= kappa(c') M(c') e^(-c' eps), c' > c, whichever c' gives least.
    """
    period = 2 * math.pi / line.step
    left = -line.c * period - math.log(-math.expm1(-line.c * period))
    right = min(
        bound - higher * epsilon - (higher - line.c) * period - math.log(-math.expm1(-(higher - line.c) * period))
        for higher, bound in aliases
    )
    size = max(abs(bound) + higher * (epsilon + period) for higher, bound in aliases)
    return float(np.logaddexp(left, right)) + 1e-9 + 16 * UNIT * size


@dataclass(frozen=True)
class Aim:
    """What a profile is made for: delta near `log_delta`, epsilon not below `epsilon`, and errors below `share` of
    delta. `slope`: about how fast log delta falls there, where that is known."""

    log_delta: float
    epsilon: float
    share: float
    slope: float = 0.0


def profile(moments: Moments, c: float, aim: Aim, *, nodes_max: int) -> Profile | None:
    """The profile by a line at c > 0 that reaches the aim, or None when it would need more than `nodes_max` nodes."""
    log_share = aim.log_delta + math.log(aim.share / 4)
    aliases = aliases_of(moments, c, aim.epsilon, log_share)
    step = 2 * math.pi / period(c, aim.epsilon, aliases, log_share)
    moment, moment_error = moments.log_moment(c)
    log_scale = moment - c * aim.epsilon + math.log(step / (2 * math.pi))
    envelope = moments.envelope(c, different_max=_MANY)
    count = _count(step, log_share - log_scale, envelope, _NODES_CHEAP)
    if count is None:
        envelope = moments.envelope(c)
        count = _count(step, log_share - log_scale, envelope, nodes_max)
    if count is None:
        return None
    line = Line(c=c, step=step, count=count)
    ratios, bounds = moments.log_ratios(line)
    nodes = line.nodes
    values = np.exp(ratios) / (nodes * (nodes + 1))
    values[1:] *= 2
    errors = np.abs(values) * np.expm1(bounds + UNIT * (16 + 2 * ELEMENTARY))
    cut_off = math.exp(_log_cut_off(line.step, count, envelope))
    return Profile(
        line=line,
        log_moment=moment,
        log_moment_error=moment_error,
        values=values,
        errors=errors,
        cut_off=cut_off,
        aliases=aliases,
        centre=centre(moments, c),
    )


def centre(moments: Moments, c: float) -> float:
    """About the epsilon at which e^(-c eps) M(c)/(c (c+1)) is the nearest to what it bounds: the derivative of its
    logarithm by c is 0."""
    sketch, further = moments.sketch(), c * (1 + _NUDGE)
    mean = (sketch.log_moment(further)[0] - sketch.log_moment(c)[0]) / (further - c)
    return mean - 1 / c - 1 / (c + 1)


def aliases_of(moments: Moments, c: float, epsilon: float, log_share: float) -> tuple[tuple[float, float], ...]:
    """(c', log kappa(c') M(c')) from above, for the c' > c that needs the shortest period."""
    sketch = moments.sketch()
    guesses = [guess for factor in _HIGHER for guess in _guess(sketch, factor * c)]
    if not guesses:
        raise InternalError("no moment beyond the line could be computed")
    best = min(guesses, key=lambda guess: period(c, epsilon, [guess], log_share))[0]
    return ((best, log_chernoff(moments, best)),)


def _guess(moments: Moments, c: float) -> list[tuple[float, float]]:
    """The bound at c, or nothing where it cannot be computed."""
    try:
        return [(c, log_chernoff(moments, c))]
    except InternalError:
        return []


def log_chernoff(moments: Moments, c: float) -> float:
    """log kappa(c) M(c), from above."""
    value, error = moments.log_moment(c)
    kappa = kappa_log(c)
    return value + error + kappa + 4 * UNIT * (abs(value) + ELEMENTARY * abs(kappa))


def period(c: float, epsilon: float, aliases: Sequence[tuple[float, float]], log_share: float) -> float:
    """A period whose aliases stay below e^log_share: half of that to the left, half to the right."""
    half = log_share - math.log(2) - 0.1
    left = max(-half / c, 2 / c)
    right = min(max((bound - higher * epsilon - half) / (higher - c), 2 / (higher - c)) for higher, bound in aliases)
    return max(left, right)


def _log_cut_off(step: float, count: int, envelope: Callable[[float], float]) -> float:
    """log of at least the sum over k >= count of 2 |M(z_k)/M(c)|/|z_k (z_k + 1)|, by sum of 1/k^2 <= 1/(count - 1)."""
    log_bound = math.log(2 / (step * step * (count - 1))) + envelope(step * count) + 1e-6
    # Not below what a double can hold: 0 would claim that nothing was left out.
    return max(log_bound, _LOG_LEAST)


def _count(step: float, log_share: float, envelope: Callable[[float], float], nodes_max: int) -> int | None:
    """About the least number of nodes whose cut-off is below e^log_share, or None beyond `nodes_max`."""
    enough = 16
    while _log_cut_off(step, enough, envelope) > log_share:
        enough *= 2
        if enough > nodes_max:
            return None
    short = enough // 2
    while enough > _GROWTH * short:
        middle = math.isqrt(short * enough) + 1
        if _log_cut_off(step, middle, envelope) > log_share:
            short = middle
        else:
            enough = middle
    return enough
