"""Releases of few outcomes, in balls: what each loses and how likely it is, in one order of the pair.

Randomised response stands for every pure mechanism, and with a mass that tells everything for every (epsilon, delta)
mechanism; a table of points is the pair of the chords between them. Infinite losses are left out, and the rest made
whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from parco.balls import arb, ball, precision
from parco.errors import InternalError
from parco.privacy.composition.families import Floats
from parco.privacy.facts import Approximate, Facts, PrivacyProfile, Pure, RandomisedResponse, SparseVector

__all__ = ["FINITE", "Balls", "float_outcomes", "infinite_mass", "largest_loss", "narrow_outcomes", "outcomes"]

# Odds of e^-1000 beside odds of 1 take some thousand bits, and almost always few will do.
_BITS = tuple(256 * 4**power for power in range(7))
# Balls that become doubles are at most this wide, relatively: then the double is off by what it is rounded by. And
# those that remain balls, so that they do not widen what is made of them.
_NARROW, _NARROWER = 2.0**-60, 2.0**-200

Balls = list[arb]


def float_outcomes(facts: Facts, rate: Fraction, *, removal: bool) -> tuple[Floats, Floats]:
    """For a release whose kind is among `FINITE`, its losses and the logarithms of their masses, off by a unit or
    two."""
    if rate == 1 and not isinstance(facts, PrivacyProfile):
        epsilon = facts.size
        rare, likely = -epsilon - math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(-epsilon))
        return np.array([epsilon, -epsilon]), np.array([likely, rare])
    losses, log_masses = _narrow(facts, rate, _NARROW, removal=removal)
    values = np.array([float(value.mid()) for value in (*losses, *log_masses)])
    return values[: len(losses)], values[len(losses) :]


def narrow_outcomes(facts: Facts, rate: Fraction, *, removal: bool) -> tuple[Balls, Balls]:
    """The finite losses and the logarithms of their masses, in balls of 200 true bits, whatever the precision now."""
    return _narrow(facts, rate, _NARROWER, removal=removal)


def _narrow(facts: Facts, rate: Fraction, width: float, *, removal: bool) -> tuple[Balls, Balls]:
    for bits in _BITS:
        with precision(bits):
            losses, masses = outcomes(facts, rate, removal=removal)
            log_masses = [mass.log() for mass in masses]
            if all(_is_narrow(value, width) for value in (*losses, *log_masses)):
                return losses, log_masses
    raise InternalError("points of a privacy profile lie so near one chord that a million bits do not tell them apart")


def _is_narrow(value: arb, width: float) -> bool:
    return bool(value.is_finite() and float(value.rad()) <= width * max(abs(float(value.mid())), width))


def outcomes(facts: Facts, rate: Fraction, *, removal: bool) -> tuple[Balls, Balls]:
    """The finite losses and their masses, which sum to 1, in balls of the current precision."""
    odds, under_q, alone = FINITE[type(facts)](facts)
    share = ball(rate)
    # What only Q has: the mixture (1-q) Q + q P gives it 1-q times that, which is a loss like the others. What only P
    # has is an infinite loss where the mixture comes first, and where it comes second does not occur.
    mixed = odds if rate == 1 else [1 - share + share * odd for odd in odds]
    masses = [(1 - alone) * mass for mass in under_q]
    if rate != 1 and alone > 0:
        mixed, masses = [*mixed, 1 - share], [*masses, alone]
    losses = [mix.log() for mix in mixed]
    if removal:
        masses = [mix * mass for mix, mass in zip(mixed, masses, strict=True)]
    else:
        losses = [-loss for loss in losses]
    total = sum(masses, arb(0))
    return losses, [mass / total for mass in masses]


def largest_loss(facts: Facts) -> Fraction:
    """The largest finite loss of a release on all units, exactly."""
    return _hull(facts)[-1][0] if isinstance(facts, PrivacyProfile) else facts.epsilon  # type: ignore[attr-defined]


def infinite_mass(facts: Facts, rate: Fraction, *, removal: bool) -> arb:
    """The mass of infinite losses. Of the mixture only the share q is P."""
    if not isinstance(facts, Approximate | PrivacyProfile):
        return arb(0)
    delta = ball(facts.delta) if isinstance(facts, Approximate) else _hull(facts)[-1][1]
    if rate == 1:
        return delta
    return ball(rate) * delta if removal else arb(0)


def _two(facts: Facts) -> tuple[Balls, Balls, arb]:
    """Ratios of P to Q, masses under Q, and the mass of what only one of them has."""
    odds = ball(facts.epsilon).exp()  # type: ignore[attr-defined]
    alone = ball(facts.delta) if isinstance(facts, Approximate) else arb(0)
    return [odds, 1 / odds], [1 / (1 + odds), odds / (1 + odds)], alone


def _chords(facts: Facts) -> tuple[Balls, Balls, arb]:
    """The pair whose profile is the chords between the points (in e^epsilon), with their mirror images below 0.

    A pair with profile delta at epsilon in both orders has delta(-epsilon) = 1 - e^-epsilon (1 - delta(epsilon)).
    """
    if not isinstance(facts, PrivacyProfile):
        raise TypeError(type(facts))
    corners = _hull(facts)
    odds = [ball(epsilon).exp() for epsilon, _ in corners]
    deltas = [delta for _, delta in corners]
    slopes = [(deltas[0] - 1) / odds[0]]
    slopes += [(deltas[i + 1] - deltas[i]) / (odds[i + 1] - odds[i]) for i in range(len(corners) - 1)]
    slopes.append(arb(0))
    # Q has at each corner the change of slope, P that times e^epsilon. The rest of each, the last delta of both as the
    # corners are mirror images, is what the other has not.
    kept = 1 - deltas[-1]
    return odds, [(slopes[i + 1] - slopes[i]) / kept for i in range(len(corners))], deltas[-1]


def _hull(facts: PrivacyProfile) -> list[tuple[Fraction, arb]]:
    """The corners of the lower convex hull in e^epsilon of the points, their mirror images and (e^epsilon = 0, delta =
    1)."""
    mirrored = [(-epsilon, 1 - ball(-epsilon).exp() * (1 - ball(delta))) for epsilon, delta in facts.points if epsilon]
    points = sorted(mirrored, key=lambda point: point[0]) + [(epsilon, ball(delta)) for epsilon, delta in facts.points]
    hull: list[tuple[Fraction, arb]] = []
    for epsilon, delta in points:
        if hull and not delta < hull[-1][1]:
            # Not below the last one, or not known to be: two balls around one number cannot be told apart.
            continue
        while hull and not _turns(hull[-2:], (epsilon, delta)):
            hull.pop()
        hull.append((epsilon, delta))
    return hull


def _turns(last: list[tuple[Fraction, arb]], point: tuple[Fraction, arb]) -> bool:
    """Whether the chord becomes flatter at the last corner when the point follows it: else the corner is no corner."""
    start = (arb(0), arb(1)) if len(last) == 1 else (ball(last[0][0]).exp(), last[0][1])
    middle, end = (ball(last[-1][0]).exp(), last[-1][1]), (ball(point[0]).exp(), point[1])
    rise = (middle[1] - start[1]) * (end[0] - middle[0])
    return bool(rise < (end[1] - middle[1]) * (middle[0] - start[0]))


FINITE: dict[type[Facts], Callable[[Facts], tuple[Balls, Balls, arb]]] = {
    RandomisedResponse: _two,
    Pure: _two,
    SparseVector: _two,
    Approximate: _two,
    PrivacyProfile: _chords,
}
"""How the outcomes of each kind are found: ratios of P to Q, masses under Q, and the mass that only one of them has."""
