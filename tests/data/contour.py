"""Privacy profiles of compositions by a contour integral in balls: an oracle, in which nothing of parco is used.

With M(z) = E_P[e^(zL)] of the whole composition and any c > 0 at which M(c) is finite,

    delta(eps) = (1/2 pi) integral over tau of M(z) e^(-z eps) / (z (z + 1)),  z = c + i tau,

because 1/(z (z + 1)) is the two-sided Laplace transform of (1 - e^-u)_+. Logarithms of M add up over the steps. The
trapezoid rule with step 2 pi/R gives sum over k of e^(ckR) delta(eps + kR), all of whose terms but that of k = 0 are
bounded (`_alias`) and go into the ball. M of a sampled Gaussian is itself a trapezoid sum, whose error is bounded on
a line parallel to the real one (`SampledGaussian.grid`) and goes into the ball too. What is judged by its last terms
and not bounded is the tail of the sum over tau. `epsilon` therefore computes each value on two contours, which share
neither c, nor R, nor the grid of x, and refuses if they do not agree to PRINTED digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, cos, exp, floor, isqrt, log, log1p, pi, sin, sqrt
from typing import Protocol

import numpy as np
from flint import acb, acb_mat, arb
from numpy.typing import NDArray

from tests.data.roots import PRINTED, WideError, number, root

__all__ = ["BITS", "Gaussian", "Laplace", "RandomisedResponse", "SampledGaussian", "epsilon", "renyi"]

BITS = 320
# Errors of quadrature are held below e^-NATS of the whole; the last terms of the sum over tau below e^-TAIL of it.
NATS, ALIAS, TAIL = 140.0, 62.0, 56.0
NODES_MAX, PAIRS_MAX = 50_000, 12_000_000
# Matrices are multiplied in blocks of entries of like size: much faster.
COLUMNS = 64
# Differences taken of the terms behind the last node.
MORE = 60
Doubles = NDArray[np.float64]


class TailError(ArithmeticError):
    """More nodes are needed."""


class TooDearError(ArithmeticError):
    """More time would be needed than this oracle takes."""


class Law(Protocol):
    """One order of a pair: its log moment function on the positive line, and M on a vertical line."""

    def distance(self) -> arb:
        """The profile at 0, which composes at most additively."""

    def edge(self) -> arb:
        """Where the losses pile up at one end, if they do."""

    def log_moment(self, c: float) -> float:
        """log M(c), a double: it only chooses contours."""

    def values(self, c: arb, step: arb, nodes: int) -> list[acb]:
        """M(c + i step j) for j = 0, 1, ..., nodes - 1."""


@dataclass(frozen=True)
class Gaussian:
    """Sensitivity 1, standard deviation s (text: decimal or fraction): L is normal, variance 1/s^2, mean 1/(2 s^2)."""

    s: str

    def distance(self) -> arb:
        return (1 / (8 * number(self.s) ** 2).sqrt()).erf()

    def edge(self) -> arb:
        return arb(0)

    def log_moment(self, c: float) -> float:
        return (c * c + c) / (2 * float(Fraction(self.s)) ** 2)

    def values(self, c: arb, step: arb, nodes: int) -> list[acb]:
        mu_squared = 1 / number(self.s) ** 2
        return [((z * z + z) * mu_squared / 2).exp() for z in _line(c, step, nodes)]


@dataclass(frozen=True)
class Laplace:
    """Sensitivity 1, scale b: an atom 1/2 at e0 = 1/b, one e^-e0/2 at -e0, and the density e^((l-e0)/2)/4 between."""

    b: str

    def distance(self) -> arb:
        return 1 - (-1 / (2 * number(self.b))).exp()

    def edge(self) -> arb:
        return arb(0)

    def log_moment(self, c: float) -> float:
        e0 = 1 / float(Fraction(self.b))
        return c * e0 + log((c + 1) / (2 * c + 1) + c / (2 * c + 1) * exp(-(2 * c + 1) * e0))

    def values(self, c: arb, step: arb, nodes: int) -> list[acb]:
        e0 = 1 / number(self.b)
        line = _line(c, step, nodes)
        return [((z + 1) * (z * e0).exp() + z * (-(z + 1) * e0).exp()) / (2 * z + 1) for z in line]


@dataclass(frozen=True)
class RandomisedResponse:
    """The truth with probability p = e^e0/(1 + e^e0): L is e0 with p, -e0 otherwise."""

    e0: str

    def distance(self) -> arb:
        return (number(self.e0) / 2).tanh()

    def edge(self) -> arb:
        return arb(0)

    def log_moment(self, c: float) -> float:
        e0 = float(Fraction(self.e0))
        return c * e0 + log1p(exp(-(2 * c + 1) * e0)) - log1p(exp(-e0))

    def values(self, c: arb, step: arb, nodes: int) -> list[acb]:
        e0 = number(self.e0)
        whole = 1 + (-e0).exp()
        return [((z * e0).exp() + (-(z + 1) * e0).exp()) / whole for z in _line(c, step, nodes)]


@dataclass(frozen=True)
class SampledGaussian:
    """Poisson sampling at rate q < 1, sensitivity 1, standard deviation s.

    With N0 the law N(0, s^2) and r = 1 - q + q e^((2x-1)/(2 s^2)) the ratio of the mixture to it, M(z) is the
    integral of N0 r^(z+1) for removal and of N0 r^-z for addition.
    """

    q: str
    s: str
    added: bool

    def distance(self) -> arb:
        return number(self.q) * Gaussian(self.s).distance()

    def edge(self) -> arb:
        return (1 - number(self.q)).log() * (-1 if self.added else 1)

    def log_moment(self, c: float) -> float:
        xs = self._doubles(self._support(c))
        return _log_sum(self._log_size(xs, 0.0, c, 0.0)) + log(xs[1] - xs[0])

    def values(self, c: arb, step: arb, nodes: int) -> list[acb]:
        spacing = self.grid(float(c), float(step) * nodes)
        h, q, s = arb(spacing), number(self.q), number(self.s)
        first, last = _indices(self._support(float(c)), spacing)
        if nodes * (last - first) > PAIRS_MAX:
            raise TooDearError("too many points would be needed")
        xs = [h * k for k in range(first, last)]
        ratios = [(1 - q + q * ((2 * x - 1) / (2 * s * s)).exp()).log() for x in xs]
        weights = [h / (s * (2 * arb.pi()).sqrt()) * (-x * x / (2 * s * s)).exp() for x in xs]
        power, sign = (-c, -1) if self.added else (c + 1, 1)
        weighted = [acb(w * (power * r).exp()) for w, r in zip(weights, ratios, strict=True)]
        # M at node b + B g is sum over x of (weight e^(i step b l)) e^(i step B g l): a product of two matrices.
        block = isqrt(nodes - 1) + 1
        baby = _powers([acb(0, sign * step * r).exp() for r in ratios], block, weighted)
        giant = _powers([acb(0, sign * step * block * r).exp() for r in ratios], block, [acb(1)] * len(xs))
        product = acb_mat(block, block)
        for k in range(0, len(xs), COLUMNS):
            product += (
                acb_mat([row[k : k + COLUMNS] for row in giant])
                * acb_mat([row[k : k + COLUMNS] for row in baby]).transpose()
            )
        error = (product[0, 0].real.abs_upper() * arb(-NATS).exp()).abs_upper()
        slack = acb(arb(0, error), arb(0, error))
        return [value + slack for value in product.entries()[:nodes]]

    def grid(self, c: float, tau: float) -> float:
        """The widest spacing of x whose error is below e^-NATS M(c) at every node up to tau.

        For f analytic in |Im x| <= d the trapezoid sum errs by at most 2 N/(e^(2 pi d/h) - 1), N the larger integral of
        |f| on the lines Im x = d and -d, and |f(x + id)| = |N0 r^p| e^(tau |arg r|) at most.
        """
        s, base, best = float(Fraction(self.s)), self.log_moment(c), 0.0
        low, high = self._support(c)
        xs = self._doubles((low - 30 * s, high + 30 * s))
        for part in range(1, 20):
            d = min(pi * s * s, 14 * s) * part / 20.5
            excess = _log_sum(self._log_size(xs, d, c, tau)) + log(xs[1] - xs[0]) - base
            best = max(best, 2 * pi * d / (NATS + 3 + max(excess, 0.0)))
        return best

    def _log_size(self, x: Doubles, d: float, c: float, tau: float) -> Doubles:
        """log |N0 r^p| at x + id for the worst p = c + 1 +- i tau, or -c +- i tau."""
        q, s = float(Fraction(self.q)), float(Fraction(self.s))
        normal = (d * d - x * x) / (2 * s * s) - log(s) - log(2 * pi) / 2
        shift, turn = (2 * x - 1) / (2 * s * s), d / (s * s)
        scale = np.maximum(shift, 0.0)
        real = (1 - q) * np.exp(-scale) + q * np.exp(shift - scale) * cos(turn)
        imaginary = q * np.exp(shift - scale) * sin(turn)
        size = scale + np.log(np.hypot(real, imaginary))
        return normal + (-c if self.added else c + 1) * size + tau * np.abs(np.arctan2(imaginary, real))

    def _doubles(self, interval: tuple[float, float]) -> Doubles:
        """Points fine enough for a double of an integral on the real line."""
        low, high = interval
        return np.linspace(low, high, 400 + ceil((high - low) / float(Fraction(self.s)) * 10))

    def _support(self, c: float) -> tuple[float, float]:
        """Outside of it the integrand at p's real part is below e^-(NATS + 40) of its largest value."""
        s = float(Fraction(self.s))
        low, high = (-(c + 40 * s), 40 * s) if self.added else (-40 * s, c + 1 + 40 * s)
        for _ in range(40):
            # Addition with a large c has one narrow mode (the integrand is log-concave): look again, closer.
            xs = np.linspace(low, high, 400)
            sizes = self._log_size(xs, 0.0, c, 0.0)
            within = np.flatnonzero(sizes > sizes.max() - NATS - 40)
            low, high = xs[max(within[0] - 1, 0)], xs[min(within[-1] + 1, len(xs) - 1)]
            if len(within) > 100:
                break
        return float(low), float(high)


@dataclass(frozen=True)
class Contour:
    """delta(eps) of a composition along Re z = c, with nodes 2 pi/period apart: a function of eps."""

    parts: tuple[tuple[Law, int], ...]
    c: float
    best: float
    target: arb
    period: float
    nodes: int

    @property
    def step(self) -> arb:
        return 2 * arb.pi() / arb(self.period)

    @cached_property
    def line(self) -> list[acb]:
        """The nodes z, and some more for the tail."""
        return _line(arb(self.c), self.step, self.nodes + MORE)

    @cached_property
    def edge(self) -> arb:
        """Where the losses of the sampled Gaussians end."""
        return sum((law.edge() * times for law, times in self.parts), arb(0))

    @cached_property
    def kernel(self) -> list[acb]:
        """M/(z (z + 1)), half of it at the real node, since the other half-line is the conjugate."""
        moments = _composed(self.parts, arb(self.c), self.step, len(self.line))
        values = [m / (z * (z + 1)) for m, z in zip(moments, self.line, strict=True)]
        return [values[0] / 2, *values[1:]]

    @cached_property
    def bound(self) -> arb:
        """kappa(best) M(best), with kappa = c^c/(1 + c)^(1 + c): delta(eps) <= bound e^(-best eps)."""
        best = arb(self.best)
        moment = _composed(self.parts, best, arb(1), 1)[0].real
        return best**best / (1 + best) ** (1 + best) * moment

    def delta(self, epsilon: arb) -> arb:
        """The profile at epsilon, a ball but for the tail of the sum."""
        terms = (k * (-z * epsilon).exp() for z, k in zip(self.line[: self.nodes], self.kernel, strict=False))
        total = self._tail(epsilon) + sum(terms, acb(0))
        return self.step / arb.pi() * total.real + arb(0, self._alias(epsilon).abs_upper())

    def _tail(self, epsilon: arb) -> acb:
        """The sum from the last node on, by parts: w^N/(1 - w) sum over n of (w/(1 - w))^n times the n-th difference.

        What is summed is a_j w^j, w = e^(-i step (epsilon - edge)), with a_j = kernel_j e^(-i step j edge). At the
        edge of the losses their density is not analytic and M falls slowly, but a_j is smooth there on the scale of
        log tau.
        """
        z, gap = self.line[self.nodes], epsilon - self.edge
        goal = self.target * arb(-TAIL).exp()
        differences = [
            k * (-z * self.edge).exp() for k, z in zip(self.kernel[self.nodes :], self.line[self.nodes :], strict=True)
        ]
        if all(abs(value) * (-arb(self.c) * gap).exp() * self.nodes < goal for value in differences):
            return acb(0)
        if any(isinstance(law, Laplace | RandomisedResponse) for law, _ in self.parts):
            raise TailError("atoms of the loss make M oscillate: its terms have to fade by themselves")
        w = acb(0, -self.step * gap).exp()
        factor, total, quiet = (-z * gap).exp() / (1 - w), acb(0), 0
        while differences:
            term = factor * differences[0]
            total += term
            quiet = quiet + 1 if abs(term) < goal else 0
            if quiet == 3:
                return total
            factor *= w / (1 - w)
            differences = [b - a for a, b in pairwise(differences)]
        raise TailError("the sum over tau was cut too early")

    def _alias(self, epsilon: arb) -> arb:
        near = (-arb(self.c) * self.period).exp()
        far = (-(arb(self.best) - self.c) * self.period).exp()
        return near / (1 - near) + self.bound * (-arb(self.best) * epsilon).exp() * far / (1 - far)


def _line(c: arb, step: arb, nodes: int) -> list[acb]:
    return [acb(c, step * j) for j in range(nodes)]


def _powers(base: list[acb], number: int, first: list[acb]) -> list[list[acb]]:
    """first base^k for k = 0, 1, ..., number - 1, entry by entry.

    Each power is a product of two of half its size: in a running product a box is turned again and again, and grows
    with the exponential of k.
    """
    rows = [[acb(1)] * len(base), base]
    for k in range(2, number):
        rows.append([a * b for a, b in zip(rows[k // 2], rows[k - k // 2], strict=True)])
    return [[a * b for a, b in zip(first, row, strict=True)] for row in rows[:number]]


def _composed(parts: tuple[tuple[Law, int], ...], c: arb, step: arb, nodes: int) -> list[acb]:
    """M of the composition on the line."""
    product = [acb(1)] * nodes
    for law, times in parts:
        product = [m * value**times for m, value in zip(product, law.values(c, step, nodes), strict=True)]
    return product


def _indices(interval: tuple[float, float], spacing: float) -> tuple[int, int]:
    return floor(interval[0] / spacing), ceil(interval[1] / spacing) + 1


def _log_sum(logs: Doubles) -> float:
    top = float(logs.max())
    return top + log(float(np.exp(logs - top).sum()))


def _log_kappa(c: float) -> float:
    """log of c^c/(1 + c)^(1 + c), the largest value of (1 - e^-u) e^-cu."""
    return -c * log1p(1 / c) - log1p(c)


def _best(parts: tuple[tuple[Law, int], ...], delta: float) -> tuple[float, float]:
    """The c whose Renyi bound on epsilon is least, and that bound: doubles, to choose a contour and where to start."""

    def bound(log_c: float) -> float:
        c = exp(log_c)
        return (sum(times * law.log_moment(c) for law, times in parts) - log(delta) + _log_kappa(c)) / c

    low, high = log(1e-4), log(1e6)
    golden = (sqrt(5) - 1) / 2
    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if bound(left) < bound(right):
            high = right
        else:
            low = left
    return exp((low + high) / 2), bound((low + high) / 2)


def epsilon_on(parts: tuple[tuple[Law, int], ...], delta: str, fraction: float) -> arb:
    """The least epsilon >= 0 with delta(epsilon) <= delta, on the contour at `fraction` of the best c."""
    if sum((times * law.distance() for law, times in parts), arb(0)) <= arb(delta):
        return arb(0)
    small = float(arb(delta))
    best, above = _best(parts, small)
    c = fraction * best
    period = max((ALIAS - log(small)) / c, (ALIAS + 10) / (best - c))
    nodes = 150
    while True:
        curve = Contour(parts, c, best, arb(delta), period, nodes)
        try:
            return root(curve.delta, arb(delta), arb(above))
        except TailError:
            nodes *= 2
        except WideError:
            nodes, period = nodes * 3 // 2, period * 1.5
        if nodes > NODES_MAX:
            raise TooDearError("too many nodes would be needed")


def epsilon(parts: tuple[tuple[Law, int], ...], delta: str) -> arb:
    """The same on two contours, refused unless they agree to PRINTED digits."""
    first, second = (epsilon_on(parts, delta, fraction) for fraction in (0.5, 0.62))
    if not abs(first - second) <= abs(first) * arb(10) ** -PRINTED:
        raise ArithmeticError("two contours disagree")
    return first


def renyi(parts: tuple[tuple[Law, int], ...], delta: str) -> float:
    """The Renyi bound on epsilon at its best order: a double, no tighter than the truth but far cheaper."""
    return _best(parts, float(arb(delta)))[1]
