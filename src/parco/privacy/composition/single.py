"""One sampled release with a density, by itself: its profile in closed form, in balls.

With the profile delta of all units, alike in both orders, and w = (e^eps - 1 + q)/q, removal has q delta(log w). With
w = (e^-eps - 1 + q)/q, addition has q e^eps w delta(-log w), and 0 where w <= 0. Source: docs/mathematics.md, "One
sampled release".
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from parco.balls import arb, ball, lower, precision, upper
from parco.errors import InternalError
from parco.privacy.facts import Exponential, Facts, Gaussian, Laplace

__all__ = ["delta_interval", "epsilon_interval", "is_known"]

# Probabilities that differ by e^-500 are told apart by the most.
_BITS = (320, 1280, 5120)
_HALVINGS = 90
_DOUBLINGS = 64


def is_known(facts: Facts) -> bool:
    """Whether `epsilon_interval` takes releases of this kind."""
    return type(facts) in _PROFILES


def epsilon_interval(facts: Facts, rate: Fraction, delta: Fraction, *, removal: bool) -> tuple[Fraction, Fraction]:
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


def delta_interval(
    facts: Facts, rate: Fraction, epsilon: Fraction, tolerance: float, *, removal: bool
) -> tuple[Fraction, Fraction]:
    """For one release on a sample and epsilon >= 0, proven ends of delta in this order, apart by at most the tolerance
    of the upper."""
    for bits in _BITS:
        with precision(bits):
            profile = _sampled(facts, ball(rate), ball(epsilon), removal=removal)
            if profile.rad() <= ball(Fraction(tolerance)) / 4 * profile:
                return max(lower(profile), Fraction(0)), max(upper(profile), Fraction(0))
    raise InternalError("the profile of one sampled release could not be told from 0")


def _exceeds(facts: Facts, rate: Fraction, epsilon: Fraction, delta: Fraction, *, removal: bool) -> bool:
    for bits in _BITS:
        with precision(bits):
            profile, bound = _sampled(facts, ball(rate), ball(epsilon), removal=removal), ball(delta)
            if profile > bound or profile < bound:
                return bool(profile > bound)
    raise InternalError("the profile of one sampled release could not be told from delta")


def _sampled(facts: Facts, rate: arb, epsilon: arb, *, removal: bool) -> arb:
    plain = _PROFILES[type(facts)]
    inside = ((epsilon if removal else -epsilon).exp() - 1 + rate) / rate
    if removal:
        return rate * plain(facts, inside.log())
    if inside <= 0:
        # The loss is at most -log(1-q), and epsilon is not below that.
        return arb(0)
    if not inside > 0:
        # Not known at this precision: every comparison with it is false.
        return arb("nan")
    return rate * epsilon.exp() * inside * plain(facts, -inside.log())


def _gaussian(facts: Facts, epsilon: arb) -> arb:
    """Balle & Wang 2018, theorem 8: P(Z > eps/mu - mu/2) - e^eps P(Z > eps/mu + mu/2)."""
    mu = _size(facts)
    return _beyond(epsilon / mu - mu / 2) - epsilon.exp() * _beyond(epsilon / mu + mu / 2)


def _laplace(facts: Facts, epsilon: arb) -> arb:
    """1 - e^((eps - e)/2) below e."""
    size = _size(facts)
    return arb(0) if epsilon >= size else -((epsilon - size) / 2).expm1()


def _exponential(facts: Facts, epsilon: arb) -> arb:
    """(e^(e/4) - e^(eps/2 - e/4))^2/(2 sinh(e/2)) below e."""
    size = _size(facts)
    if epsilon >= size:
        return arb(0)
    return ((size / 4).exp() - (epsilon / 2 - size / 4).exp()) ** 2 / (2 * (size / 2).sinh())


def _beyond(place: arb) -> arb:
    """P(Z > place) for a standard normal Z."""
    return (place / arb(2).sqrt()).erfc() / 2


def _size(facts: Facts) -> arb:
    """D/s, or epsilon."""
    return ball(facts.epsilon if isinstance(facts, Laplace | Exponential) else facts.sensitivity / facts.scale)  # type: ignore[attr-defined]


_PROFILES: dict[type[Facts], Callable[[Facts, arb], arb]] = {
    Gaussian: _gaussian,
    Laplace: _laplace,
    Exponential: _exponential,
}
