"""What the answers are: compositions of sampled Gaussians by a contour in ball arithmetic that shares nothing with
parco.

With M(z) = E_P[e^(zL)], L the privacy loss, and any c > 0,

    delta(eps) = 1/(2 pi i)  integral over Re z = c  of  M(z) e^(-z eps) / (z (z+1)) dz

M of one release is an integral over the noise. Both integrals are sums over even steps, whose error falls exponentially
with the step; `check` halves both. 128 bits throughout, good for some twenty digits: no bound is claimed. Seconds of
processor time each, and no part of what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from flint import acb, arb, ctx

__all__ = ["Release", "epsilon", "noise"]

_BITS = 128
_REACH = 13.0
_CUT = 1e-26
_ORDERS = [0.02 * 1.15**place for place in range(70)]


@dataclass(frozen=True)
class Release:
    """A Gaussian of noise `scale` over sensitivity, `times` over, on a Poisson sample at `rate`; all as text."""

    scale: str
    times: int = 1
    rate: str = "1"


@dataclass
class _Order:
    """One order of the pair: log M of all releases; `removal`: P is the law with the unit."""

    releases: tuple[Release, ...]
    removal: bool
    fine: int
    _nodes: dict[tuple[str, float], list[tuple[arb, arb]]] = field(default_factory=dict)

    def log_moment(self, z: acb) -> acb:
        return sum((release.times * self._log_one(release, z) for release in self.releases), acb(0))

    def _log_one(self, release: Release, z: acb) -> acb:
        scale = arb(release.scale)
        if arb(release.rate) == 1:
            return z * (z + 1) / (2 * scale**2)
        power = z + 1 if self.removal else -z
        return sum((weight * (power * loss).exp() for weight, loss in self._points(release, z)), acb(0)).log()

    def _points(self, release: Release, z: acb) -> list[tuple[arb, arb]]:
        """Weights under the law without the unit, and log ratios, where the integrand is not negligible."""
        shift = math.ceil(float(z.real.mid())) + 1
        found = self._nodes.get((release.scale, shift))
        if found is None:
            found = self._nodes[release.scale, shift] = self._new_points(release, shift)
        return found

    def _new_points(self, release: Release, shift: int) -> list[tuple[arb, arb]]:
        scale, rate = arb(release.scale), arb(release.rate)
        reach, size = _REACH * float(scale), 0.2 * min(1.0, float(scale)) * float(scale) / self.fine
        step = arb(size)
        factor = step / (scale * (2 * arb.pi()).sqrt())
        points = []
        for place in range(math.floor(-reach / size), math.ceil((reach + shift) / size) + 1):
            x = place * step
            weight = factor * (-(x**2) / (2 * scale**2)).exp()
            points.append((weight, (1 - rate + rate * ((2 * x - 1) / (2 * scale**2)).exp()).log()))
        return points


def epsilon(releases: tuple[Release, ...], delta: str, *, check: bool = False) -> float:
    """The least epsilon at delta, in the worse order of the pair; with `check`, at half the steps."""
    return _in_balls(lambda: _epsilon(releases, arb(delta), 2 if check else 1))


def noise(release: Release, target: str, delta: str, near: tuple[float, float]) -> float:
    """The least scale, in the place of that of `release`, at which epsilon is `target`, by secants between `near`."""

    def gap(scale: float) -> float:
        found = _epsilon((Release(repr(scale), release.times, release.rate),), arb(delta), 1)
        return math.log(float(found) / float(target))

    return _in_balls(lambda: _secant(gap, *near))


def _secant(gap: Callable[[float], float], first: float, second: float) -> float:
    low, high = gap(first), gap(second)
    for _ in range(20):
        first, second, low = second, second - high * (second - first) / (high - low), high
        if abs(second - first) <= 1e-14 * second:
            return second
        high = gap(second)
        if abs(high) < 1e-14:
            return second
    raise ArithmeticError("no noise was found for this target")


def _in_balls(compute: Callable[[], float | arb]) -> float:
    before, ctx.prec = ctx.prec, _BITS
    try:
        return float(compute())
    finally:
        ctx.prec = before


def _epsilon(releases: tuple[Release, ...], delta: arb, fine: int) -> arb:
    sampled = any(release.rate != "1" for release in releases)
    orders = [_Order(releases, removal, fine) for removal in ((True, False) if sampled else (True,))]
    return max((_one_order(order, delta) for order in orders), key=float)


def _one_order(order: _Order, delta: arb) -> arb:
    c, guess = _start(order, float(delta.log()))
    terms = _contour(order, c, guess)
    for _ in range(60):
        value = sum((term * (-z * guess).exp() for z, term in terms), acb(0)).real
        slope = sum((-z * term * (-z * guess).exp() for z, term in terms), acb(0)).real
        # Newton's step for log delta, which is nearly straight.
        move = (delta.log() - value.log()) * value / slope
        guess = arb((guess + move).mid())
        if abs(float(move.mid())) < 1e-20 * abs(float(guess.mid())):
            return guess
    raise ArithmeticError("no epsilon was found")


def _start(order: _Order, log_delta: float) -> tuple[float, arb]:
    """The order of the least Renyi bound, and the bound."""
    best = (math.inf, 0.0)
    for c in _ORDERS:
        bound = (float(order.log_moment(acb(c)).real.mid()) - log_delta - math.log(c + 1)) / c
        if bound > best[0]:
            break
        best = (bound, c)
    return best[1], arb(best[0])


def _contour(order: _Order, c: float, near: arb) -> list[tuple[acb, acb]]:
    """Points z, and the step times M(z) / (pi z (z+1)), until the terms at `near` are negligible."""
    step = arb(min(c, 1.0)) / (10 * order.fine)
    terms, most, place = [], 0.0, 0
    while True:
        z = acb(arb(c), place * step)
        term = order.log_moment(z).exp() / (z * (z + 1)) * step / arb.pi() / (2 if place == 0 else 1)
        terms.append((z, term))
        size = float(abs(term * (-z * near).exp()).mid())
        most = max(most, size)
        if size < _CUT * most:
            return terms
        place += 1
