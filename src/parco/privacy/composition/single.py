"""One sampled Gaussian release by itself: its profile in closed form, in balls.

The loss of either order is monotone in x, so that delta(eps) = P(x beyond x*) - e^eps Q(x beyond x*), x* where the loss
is eps. Source: docs/mathematics.md, "Sampled Gaussian".
"""

from __future__ import annotations

from fractions import Fraction

from parco.balls import arb, ball, precision
from parco.errors import InternalError
from parco.privacy.facts import Gaussian

__all__ = ["epsilon_interval"]

_BITS = 320
_HALVINGS = 90
_DOUBLINGS = 64


def epsilon_interval(facts: Gaussian, rate: Fraction, delta: Fraction, *, removal: bool) -> tuple[Fraction, Fraction]:
    """For one release on a sample, proven ends of the least epsilon >= 0 in this order, next to each other in
    doubles."""
    low, high = Fraction(0), Fraction(1)
    if not _exceeds(facts, rate, low, delta, removal=removal):
        return low, low
    for _ in range(_DOUBLINGS):
        if not _exceeds(facts, rate, high, delta, removal=removal):
            break
        low, high = high, 2 * high
    else:
        raise InternalError("no epsilon was found for one sampled release")
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _exceeds(facts, rate, middle, delta, removal=removal) else (low, middle)
    return low, high


def _exceeds(facts: Gaussian, rate: Fraction, epsilon: Fraction, delta: Fraction, *, removal: bool) -> bool:
    with precision(_BITS):
        profile, bound = _profile(facts, rate, epsilon, removal=removal), ball(delta)
        if profile > bound or profile < bound:
            return bool(profile > bound)
    raise InternalError("the profile of one sampled release could not be told from delta")


def _profile(facts: Gaussian, rate: Fraction, epsilon: Fraction, *, removal: bool) -> arb:
    scale, share = ball(facts.scale / facts.sensitivity), ball(rate)
    odds = ball(epsilon).exp() if removal else (-ball(epsilon)).exp()
    inside = (odds - 1 + share) / share
    if not inside > 0:
        # Addition: the loss is at most -log(1-q), and epsilon is not below that.
        return arb(0)
    edge = scale * scale * inside.log() + arb(1) / 2
    sign = 1 if removal else -1
    plain, moved = (_beyond(sign * (edge - mean) / scale) for mean in (0, 1))
    mixture = (1 - share) * plain + share * moved
    first, second = (mixture, plain) if removal else (plain, mixture)
    return first - ball(epsilon).exp() * second


def _beyond(place: arb) -> arb:
    """P(Z > place) for a standard normal Z."""
    return (place / arb(2).sqrt()).erfc() / 2
