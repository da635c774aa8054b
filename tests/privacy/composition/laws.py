"""Pairs of laws from their definitions, and what follows from them by sums of balls: an oracle for families of losses.

A mechanism is two laws P and Q on the same outcomes: atoms with their two masses, and pieces of a line on which the
logarithms of both densities are polynomials. Sampling, moments, tails and profiles are computed from these alone; none
of the closed forms of `parco.privacy.composition` is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from typing import Any

from flint import acb, arb, ctx, fmpq

from parco.privacy.facts import (
    Approximate,
    Exponential,
    Facts,
    Gaussian,
    Laplace,
    PrivacyProfile,
    Pure,
    RandomisedResponse,
    SparseVector,
)
from parco.privacy.schedule import ScheduledRelease

__all__ = ["BITS", "Law", "Piece", "exactly", "law_of"]

BITS = 192
# Beyond so many standard deviations of a Gaussian nothing is left at this precision.
_FAR = 17
# Gauss-Legendre points to a panel; a panel is so short that no phase turns by more than twelve radians on it.
_POINTS = 24


@dataclass(frozen=True)
class Piece:
    """Outcomes from `low` to `high`; log densities under P and Q are polynomials, lowest power first."""

    low: arb
    high: arb
    log_p: tuple[arb, ...]
    log_q: tuple[arb, ...]


@dataclass(frozen=True)
class Law:
    """One order of a pair: the loss L = log dP/dQ under P, given that it is finite.

    `atoms` are (loss, mass under P, mass under Q). On `pieces` L is `loss` of log p - log q, and P has the density
    e^(`log_mass` of log p and log q). `told`: the mass of P where Q has none.
    """

    atoms: tuple[tuple[arb, arb], ...]
    pieces: tuple[Piece, ...]
    told: arb
    loss: Callable[[arb, arb], arb]
    log_density: Callable[[arb, arb], arb]

    def moments(self, nodes: Sequence[acb]) -> list[acb]:
        """E[e^(zL) | L finite] at each node."""
        highest = max(float(abs(node.imag)) for node in nodes)
        order = max(float(node.real) for node in nodes)
        points = [*((loss, mass.log()) for loss, mass in self.atoms), *self._quadrature(order, highest)]
        finite = 1 - self.told
        return [sum(((node * loss + log_mass).exp() for loss, log_mass in points), acb(0)) / finite for node in nodes]

    @property
    def largest(self) -> arb | None:
        """The largest loss; None where there is none."""
        if any(not piece.high.is_finite() for piece in self.pieces):
            return None
        ends = [self.loss(*_logs(piece, end)) for piece in self.pieces for end in (piece.low, piece.high)]
        return _largest([loss for loss, _ in self.atoms] + ends)

    def mass_above(self, loss: arb) -> arb:
        """P(loss <= L < infinity | L finite), for a loss that no atom has."""
        atoms = sum((mass for atom, mass in self.atoms if atom > loss), arb(0))
        rest = [part for piece in self.pieces if (part := self._above(piece, loss)) is not None]
        inner = Law((), tuple(rest), arb(0), self.loss, self.log_density)
        return (atoms + sum((log_mass.exp() for _, log_mass in inner._quadrature(0, 0)), arb(0))) / (1 - self.told)

    def delta(self, epsilon: arb) -> arb:
        """E[(1 - e^(eps - L))_+], infinite losses counted: the profile of one release."""
        total = self.told + sum((_part(epsilon, loss) * mass for loss, mass in self.atoms), arb(0))
        rest = [part for piece in self.pieces if (part := self._above(piece, epsilon)) is not None]
        inner = Law((), tuple(rest), arb(0), self.loss, self.log_density)
        return total + sum(
            (_part(epsilon, loss) * log_mass.exp() for loss, log_mass in inner._quadrature(0, 0)), arb(0)
        )

    def _quadrature(self, order: float, height: float) -> Iterable[tuple[arb, arb]]:
        """(loss, log of P's mass) at the points of a rule that is good for e^(zL), Re z <= order, Im z <= height."""
        knots = _legendre()
        for piece in self.pieces:
            low, high = _ends(piece, order)
            steepness = float(abs(piece.log_p[1] - piece.log_q[1]))
            panels = math.ceil(float(high - low) * max(1.2, (height + order) * steepness / 12))
            half = (high - low) / (2 * panels)
            for panel in range(panels):
                centre = low + half * (2 * panel + 1)
                for knot, weight in knots:
                    log_p, log_q = _logs(piece, centre + half * knot)
                    yield self.loss(log_p, log_q), self.log_density(log_p, log_q) + (half * weight).log()

    def _above(self, piece: Piece, loss: arb) -> Piece | None:
        """The part of the piece on which L is at least `loss`; L is monotone on it."""
        low, high = _ends(piece, 0)
        rising = self.loss(*_logs(piece, high)) > self.loss(*_logs(piece, low))
        inside, outside = (high, low) if rising else (low, high)
        if self.loss(*_logs(piece, outside)) >= loss:
            return piece
        if self.loss(*_logs(piece, inside)) <= loss:
            return None
        for _ in range(BITS):
            middle = ((inside + outside) / 2).mid()
            inside, outside = (middle, outside) if self.loss(*_logs(piece, middle)) >= loss else (inside, middle)
        ends = (inside, high) if rising else (low, inside)
        return Piece(*ends, piece.log_p, piece.log_q)


def law_of(release: ScheduledRelease, *, removal: bool) -> Law:
    """One release of a schedule, in one order of its pair; `removal`: P is the law with the unit."""
    atoms, pieces = _PAIRS[type(release.facts)](release.facts)
    if release.rate == 1:
        return _plain(atoms, pieces) if removal else _plain([(q, p) for p, q in atoms], [_swapped(x) for x in pieces])
    share = exactly(release.rate)

    def mixture(log_p: arb, log_q: arb) -> arb:
        """log of the mixture's density over Q's."""
        return (1 - share + share * (log_p - log_q).exp()).log()

    # The mixture stands first for removal, second for addition.
    mixed = [((1 - share) * q + share * p, q) for p, q in atoms]
    plain = _plain(mixed if removal else [(q, mix) for mix, q in mixed], [])
    if removal:
        return Law(plain.atoms, tuple(pieces), plain.told, mixture, lambda p, q: q + mixture(p, q))
    return Law(plain.atoms, tuple(pieces), plain.told, lambda p, q: -mixture(p, q), lambda _, q: q)


def exactly(value: Fraction | int) -> arb:
    """A ball around the number."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def _plain(atoms: Iterable[tuple[arb, arb]], pieces: Iterable[Piece]) -> Law:
    atoms = list(atoms)
    finite = tuple(((p / q).log(), p) for p, q in atoms if p > 0 and q > 0)
    told = sum((p for p, q in atoms if q == 0), arb(0))
    return Law(finite, tuple(pieces), told, lambda p, q: p - q, lambda p, _: p)


def _swapped(piece: Piece) -> Piece:
    return Piece(piece.low, piece.high, piece.log_q, piece.log_p)


Pair = tuple[list[tuple[arb, arb]], list[Piece]]


def _gaussian(facts: Gaussian) -> Pair:
    """N(mu, 1) against N(0, 1)."""
    mu, norm = exactly(facts.sensitivity / facts.scale), -(2 * arb.pi()).log() / 2
    first = (norm - mu**2 / 2, mu, arb(-0.5))
    return [], [Piece(arb("-inf"), arb("inf"), first, (norm, arb(0), arb(-0.5)))]


def _laplace(facts: Laplace) -> Pair:
    """Lap(e, 1) against Lap(0, 1): to the left of 0 and to the right of e the ratio is constant."""
    e = exactly(facts.epsilon)
    tail = (-e).exp() / 2
    log_two = arb(2).log()
    between = Piece(arb(0), e, (-e - log_two, arb(1)), (-log_two, arb(-1)))
    return [(tail, arb(0.5)), (arb(0.5), tail)], [between]


def _response(facts: RandomisedResponse | Pure | SparseVector) -> Pair:
    """A true answer with probability e^eps/(1 + e^eps)."""
    odds = exactly(facts.epsilon).exp()
    true, false = odds / (1 + odds), 1 / (1 + odds)
    return [(true, false), (false, true)], []


def _exponential(facts: Exponential) -> Pair:
    """Densities C e^(+-l/2) on (-e, e); that this is the worst of bounded range e is tested by itself."""
    e = exactly(facts.epsilon)
    log_c = -(4 * (e / 2).sinh()).log()
    return [], [Piece(-e, e, (log_c, arb(0.5)), (log_c, arb(-0.5)))]


def _approximate(facts: Approximate) -> Pair:
    """With probability delta an outcome that only this law has, else randomised response (Kairouz, Oh & Viswanath)."""
    delta = exactly(facts.delta)
    odds = exactly(facts.epsilon).exp()
    true, false = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
    return [(delta, arb(0)), (true, false), (false, true), (arb(0), delta)], []


def _profile(facts: PrivacyProfile) -> Pair:
    """Q has the changes of slope of the largest convex profile below all chords, as a function of e^eps; P e^eps times
    that."""
    corners = _corners(facts)
    slopes = [(d1 - d0) / (y1 - y0) for (y0, d0), (y1, d1) in pairwise(corners)]
    masses = [after - before for before, after in zip(slopes, [*slopes[1:], arb(0)], strict=True)]
    atoms = [(y * mass, mass) for (y, _), mass in zip(corners[1:], masses, strict=True)]
    only_q = 1 + slopes[0]
    told = corners[-1][1]
    return [*atoms, (told, arb(0)), (arb(0), only_q if only_q > arb("1e-40") else arb(0))], []


def _corners(facts: PrivacyProfile) -> list[tuple[arb, arb]]:
    """Points (e^eps, delta) with (0, 1) and with those of the other order, without any on or above a chord of two
    others."""
    points = [(arb(0), arb(1))]
    for epsilon, delta in facts.points:
        y, d = exactly(epsilon).exp(), exactly(delta)
        points.append((y, d))
        if epsilon:
            points.append((1 / y, 1 - (1 - d) / y))
    points.sort(key=lambda point: float(point[0]))
    # To the right of every point the profile stays where it is.
    far = (2 * points[-1][0] + 1, min((d for _, d in points), key=float))
    kept = []
    for y, d in points:
        chords = [
            d0 + (d1 - d0) * (y - y0) / (y1 - y0)
            for (y0, d0), (y1, d1) in combinations([*points, far], 2)
            if y0 < y < y1
        ]
        if not any(chord <= d + arb("1e-40") for chord in chords):
            kept.append((y, d))
    return kept


_PAIRS: dict[type[Facts], Callable[[Any], Pair]] = {
    Gaussian: _gaussian,
    Laplace: _laplace,
    RandomisedResponse: _response,
    Pure: _response,
    SparseVector: _response,
    Exponential: _exponential,
    Approximate: _approximate,
    PrivacyProfile: _profile,
}


def _logs(piece: Piece, place: arb) -> tuple[arb, arb]:
    log_p, log_q = (
        sum((coefficient * place**power for power, coefficient in enumerate(logs)), arb(0))
        for logs in (piece.log_p, piece.log_q)
    )
    return log_p, log_q


def _ends(piece: Piece, order: float) -> tuple[arb, arb]:
    """The piece's ends; of a Gaussian those between which all but nothing of e^(order L) lies."""
    if piece.high.is_finite() and piece.low.is_finite():
        return piece.low, piece.high
    mu = max(float(abs(piece.log_p[1])), float(abs(piece.log_q[1])))
    reach = _FAR + (order + 1) * mu
    low = arb(-reach) if not piece.low.is_finite() else piece.low
    return low, arb(reach) if not piece.high.is_finite() else piece.high


def _part(epsilon: arb, loss: arb) -> arb:
    return 1 - (epsilon - loss).exp() if loss > epsilon else arb(0)


def _largest(losses: Sequence[arb]) -> arb:
    return max(losses, key=float)


@cache
def _legendre() -> list[tuple[arb, arb]]:
    before, ctx.prec = ctx.prec, BITS
    try:
        return [arb.legendre_p_root(_POINTS, k, weight=True) for k in range(_POINTS)]
    finally:
        ctx.prec = before
