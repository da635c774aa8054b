"""Privacy losses of many releases at once, as moment functions with proven errors.

A family holds all releases of one kind, in one order of the pair. Of a loss L under P it knows M(z) = E[e^(zL)] on
a vertical line, how far its doubles may be off, and how fast |M| falls along the line. Releases add up in log M.
Source: docs/mathematics.md, "Composition by a contour".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from parco.errors import InternalError
from parco.privacy.composition.rounding import ELEMENTARY, UNIT

__all__ = ["BoundedRange", "Family", "GaussianSum", "Laplace", "Line", "log_error", "sum_of_logs"]

_FEW = 64
# Sizes and errors of ratios between which products of two neither vanish nor mislead.
_TINY = 1e-8
_LEAST = 1e-300
# Nodes times terms of the sums at them: what half a minute allows.
_WORK_MAX = 1 << 34
Floats = NDArray[np.floating[Any]]
Complexes = NDArray[np.complexfloating[Any, Any]]


@dataclass(frozen=True)
class Line:
    """The nodes c + i k step, k = 0 .. count - 1, of a vertical line at c > 0."""

    c: float
    step: float
    count: int

    @property
    def heights(self) -> Floats:
        """Imaginary parts, shape (count,)."""
        return self.step * np.arange(self.count)

    @property
    def nodes(self) -> Complexes:
        """The nodes, shape (count,)."""
        return self.c + 1j * self.heights

    def check_work(self, terms: int) -> None:
        """Raises InternalError where sums of so many terms at all nodes would take minutes."""
        if self.count * terms > _WORK_MAX:
            raise InternalError("the composition needs more nodes than time allows: ask for a larger tolerance")


class Family(Protocol):
    """All releases of one kind, in one order of the pair; logarithms are natural, sums run over the releases."""

    @property
    def releases(self) -> float:
        """How many there are."""
        ...

    @property
    def different(self) -> int:
        """How many different ones there are: what a computation costs."""
        ...

    def sketch(self) -> Family:
        """A few releases in place of many, about as private together: to search with, never to claim with."""
        ...

    @property
    def largest(self) -> tuple[float, float]:
        """At most and at least the sum of the largest losses; infinite where they have no bound."""
        ...

    def log_mass_near(self, width: float) -> float:
        """At most the sum of log P(L >= largest - width), release by release; minus infinity where it is not known."""
        ...

    def log_moment(self, c: float) -> tuple[float, float]:
        """For every c > 0, the sum of log M(c), and a bound on its error."""
        ...

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """The sum of log(M(z)/M(c)) at the nodes, up to multiples of 2 pi i, and bounds on its errors."""
        ...

    def envelope(self, c: float) -> Callable[[float], float]:
        """For every height, at least the sum of log|M(c + it)/M(c)| for every t >= height; at most 0."""
        ...


def log_error(ratios: Complexes, error: Floats) -> tuple[Complexes, Floats]:
    """For ratios M(z)/M(c) off by at most `error` each, returns their logarithms and bounds on the errors of these.

    A ratio below four times its error is raised to that, its phase kept: it is then off by a factor of at most 9/4,
    and too small to matter.
    """
    size = np.abs(ratios)
    floor = 4 * error
    small = size < floor
    if small.any():
        # A phase is not worth a division by what is barely a double.
        there = size > _LEAST
        ratios = np.where(small, np.where(there, ratios / np.where(there, size, 1), 1) * floor, ratios)
        size = np.where(small, floor, size)
    relative = error / size
    logs = np.log(ratios)
    bound = np.where(small, np.log(2.25), -np.log1p(-np.minimum(relative, 0.5)))
    return logs, bound + ELEMENTARY * UNIT * (1 + np.abs(logs))


def sum_of_logs(ratios: Complexes, error: Floats, times: Floats) -> tuple[Complexes, Floats]:
    """times @ log(ratios) at each node, up to multiples of 2 pi i, and a bound b on its error: what it is the logarithm
    of is off by at most e^b - 1 of itself.

    `ratios`: M(z)/M(c) of shape (releases, count), off by at most `error` each; `times`: whole numbers, shape
    (releases,). Where all occur equally often the ratios are multiplied first: logarithms cost more than products.
    """
    if len(times) <= _FEW or (times != times[0]).any():
        logs, bounds = log_error(ratios, error)
        return times @ logs, times @ bounds + UNIT * (len(times) + 4) * (times @ np.abs(logs))
    while len(ratios) > _FEW:
        size = np.abs(ratios)
        if not ((size > _TINY) & (error < _TINY * size)).all():
            break
        ratios, error = _paired(ratios, error / size)
    logs, bounds = log_error(ratios, error)
    bound = bounds.sum(axis=0) + UNIT * (len(ratios) + 4) * np.abs(logs).sum(axis=0)
    return times[0] * logs.sum(axis=0), times[0] * bound


def _paired(ratios: Complexes, relative: Floats) -> tuple[Complexes, Floats]:
    """Each ratio times another (an odd one left alone), and what the products may be off by.

    A complex product is off by less than 3 units of itself, and (1 + a)(1 + b) - 1 = a + b + ab.
    """
    half = -(-len(ratios) // 2)
    pairs = len(ratios) - half
    products, grown = ratios[:half].copy(), relative[:half].copy()
    products[:pairs] *= ratios[half:]
    grown[:pairs] += relative[half:] * (1 + grown[:pairs]) + 4 * UNIT
    return products, grown * np.abs(products) * (1 + 16 * UNIT)


@dataclass(frozen=True)
class GaussianSum:
    """Gaussian releases, together one with this mu squared: log M(z) = mu^2 (z^2 + z)/2 (both orders alike)."""

    mu_squared: float
    releases: float

    @property
    def different(self) -> int:
        """One: they are one Gaussian."""
        return 1

    def sketch(self) -> GaussianSum:
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
        """The sum of log M(c), and a bound on its error."""
        value = self.mu_squared * c * (c + 1) / 2
        return value, 16 * UNIT * value

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """mu^2 (i t (2c + 1) - t^2)/2 at height t."""
        heights = line.heights
        ratios = self.mu_squared / 2 * (1j * heights * (2 * line.c + 1) - heights**2)
        return ratios, 16 * UNIT * np.abs(ratios)

    def envelope(self, c: float) -> Callable[[float], float]:
        """-mu^2 t^2/2, whatever c is; it falls in t."""
        del c
        return lambda height: -self.mu_squared * height**2 / 2 * (1 - 16 * UNIT)


@dataclass(frozen=True)
class _Interval:
    """Losses in [-e, e] with M(z) = e^(ze) B(z): `epsilons` and `times`, shape (releases of different e,)."""

    epsilons: Floats
    times: Floats

    @property
    def releases(self) -> float:
        """How many there are."""
        return float(self.times.sum())

    @property
    def different(self) -> int:
        """How many different ones there are."""
        return len(self.times)

    def sketch(self) -> Self:
        """Few values of e in place of many."""
        if self.different <= _FEW:
            return self
        order = np.argsort(self.epsilons)
        blocks = np.array_split(order, _FEW)
        middles = np.array([block[len(block) // 2] for block in blocks])
        return type(self)(self.epsilons[middles], np.array([self.times[block].sum() for block in blocks]))

    @property
    def largest(self) -> tuple[float, float]:
        """The sum of e."""
        total, off = float(self.times @ self.epsilons), UNIT * (len(self.times) + 8)
        return total * (1 - off), total * (1 + off)

    def log_moment(self, c: float) -> tuple[float, float]:
        """The sum of log M(c), and a bound on its error."""
        bracket = self._bracket(np.array([[complex(c)]])).real[:, 0]
        logs = np.log(bracket)
        values = c * self.epsilons + logs
        error = UNIT * (4 * c * self.epsilons + 8 * ELEMENTARY * (1 + np.abs(logs)))
        return float(self.times @ values), float(self.times @ error) + self._sum_error(values)

    def log_ratios(self, line: Line) -> tuple[Complexes, Floats]:
        """The sum of i t e + log(B(z)/B(c)) at the nodes."""
        total = np.zeros(line.count, dtype=complex)
        error = np.zeros(line.count)
        nodes = line.nodes[np.newaxis, :]
        rows = max(1, (1 << 18) // line.count)
        for first in range(0, len(self.epsilons), rows):
            part = type(self)(self.epsilons[first : first + rows], self.times[first : first + rows])
            bracket = part._bracket(nodes)
            spread = 4 * np.abs(nodes) * part.epsilons[:, np.newaxis]
            logs, bounds = sum_of_logs(bracket / bracket[:, :1].real, UNIT * (12 * ELEMENTARY + spread), part.times)
            total += logs
            error += bounds + 2 * UNIT * np.abs(total)
        shift = float(self.times @ self.epsilons)
        return total + 1j * line.heights * shift, error + UNIT * (len(self.times) + 4) * line.heights * shift

    def envelope(self, c: float) -> Callable[[float], float]:
        """The sum of log sup|B(c + it)/B(c)| over t >= height, release by release."""
        bracket = self._bracket(np.array([[complex(c)]])).real[:, 0]

        def bound(height: float) -> float:
            logs = np.log(self._envelope(c, height) / bracket) + 64 * UNIT
            return float(self.times @ np.minimum(logs, 0.0))

        return bound

    def _sum_error(self, values: Floats) -> float:
        return UNIT * len(values) * float(self.times @ np.abs(values))

    def log_mass_near(self, width: float) -> float:
        """At most the sum of log P(L >= e - width), release by release."""
        raise NotImplementedError

    def _bracket(self, nodes: Complexes) -> Complexes:
        raise NotImplementedError

    def _envelope(self, c: float, height: float) -> Floats:
        raise NotImplementedError


class Laplace(_Interval):
    """Laplace releases, e = L1 sensitivity/scale: B(z) = ((z+1) + z e^(-(2z+1)e))/(2z+1) (both orders alike)."""

    def log_mass_near(self, width: float) -> float:
        """log 1/2 for each: P(L = e) = 1/2."""
        del width
        return float(self.times.sum()) * math.log(0.5) * (1 + 8 * UNIT)

    def _bracket(self, nodes: Complexes) -> Complexes:
        twice = 2 * nodes + 1
        shrunk: Complexes = (nodes + 1 + nodes * np.exp(-twice * self.epsilons[:, np.newaxis])) / twice
        return shrunk

    def _envelope(self, c: float, height: float) -> Floats:
        # |z+1|/|2z+1| falls in t, |z|/|2z+1| rises to 1/2: squares are (a + t^2)/(b + 4 t^2) with b < 4a and b > 4a.
        falling = abs(complex(c + 1, height)) / abs(complex(2 * c + 1, 2 * height))
        bound: Floats = falling + np.exp(-(2 * c + 1) * self.epsilons) / 2
        return bound


class BoundedRange(_Interval):
    """Exponential mechanisms, range e: M(z) = sinh((z+1/2)e)/((2z+1) sinh(e/2)) (both orders alike)."""

    def log_mass_near(self, width: float) -> float:
        """log(1 - e^(-width/2)) for each: P(L >= e - w) = (1 - e^(-w/2))/(1 - e^-e) for w <= 2e."""
        return float(self.times.sum()) * math.log(-math.expm1(-width / 2)) * (1 + 32 * UNIT)

    def _bracket(self, nodes: Complexes) -> Complexes:
        twice = 2 * nodes + 1
        epsilons = self.epsilons[:, np.newaxis]
        ratio: Complexes = np.expm1(-twice * epsilons) / (twice * np.expm1(-epsilons))
        return ratio

    def _envelope(self, c: float, height: float) -> Floats:
        size = abs(complex(2 * c + 1, 2 * height))
        bound: Floats = (1 + np.exp(-(2 * c + 1) * self.epsilons)) / (size * -np.expm1(-self.epsilons))
        return bound
