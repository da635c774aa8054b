"""Exact profiles of small compositions, in balls: at most one release with a density, and every outcome of the others.

An oracle of its own. Profiles of one release are closed forms that hold at every real epsilon, negative ones too;
sampling is the identity of the two profiles, not of moments; finite releases are gone through outcome by outcome. None
of the formulas of `parco.privacy.composition` is used, nor those of `laws.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb, fmpq

from parco.balls import lower, precision, upper
from parco.privacy.composition import Interval

__all__ = ["BITS", "Profile", "exactly", "faults", "profile_of"]

# Enough for masses of e^-1000 beside masses of 1.
BITS = 1024

Profile = Callable[[Fraction], arb]
Atoms = list[tuple[arb, arb]]
_OneProfile = Callable[[arb], arb]


def exactly(value: Fraction | str) -> arb:
    """A ball around the number."""
    number = Fraction(value)
    return arb(fmpq(number.numerator, number.denominator))


def profile_of(entries: Sequence[Mapping[str, Any]]) -> Profile:
    """delta(eps), infinite losses counted, of the worse order of the pair; to be used under `precision(BITS)`.

    `entries`: records of a schedule. Of kinds with a density (gaussian, laplace, exponential) one release, once.
    """
    orders = [_order(entries, removal=removal) for removal in (True, False)]

    def delta(epsilon: Fraction) -> arb:
        at = exactly(epsilon)
        removal, addition = (order(at) for order in orders)
        return removal.max(addition)

    return delta


def faults(found: Interval, truth: Profile, delta: str, tolerance: str) -> list[str]:
    """What is wrong with the ends of an epsilon: the profile itself judges them, at the upper and at the lower end."""
    wrong, target = [], Fraction(delta)
    with precision(BITS):
        if not lower(truth(found.upper)) <= target:
            wrong.append(f"epsilon is above {float(found.upper)}")
        if found.lower > 0 and not upper(truth(found.lower)) >= target:
            wrong.append(f"epsilon is below {float(found.lower)}")
    if not 0 <= found.lower <= found.upper:
        wrong.append(f"{found} is no interval")
    if found.upper - found.lower > Fraction(tolerance) * max(found.upper, Fraction(1, 1000)):
        wrong.append(f"epsilon is known as {float(found.lower)} .. {float(found.upper)} only")
    return wrong


def _order(entries: Sequence[Mapping[str, Any]], *, removal: bool) -> _OneProfile:
    outcomes: Atoms = [(arb(0), arb(1))]
    kept, dense = arb(1), None
    for entry in entries:
        rate = _rate(entry)
        if entry["mechanism"] in _DENSE:
            if dense is not None or entry.get("times", 1) != 1:
                raise ValueError("this oracle takes one release with a density")
            dense = _sampled(_DENSE[entry["mechanism"]](_size(entry)), rate, removal=removal)
            continue
        finite, told = _atoms(entry, rate, removal=removal)
        times = entry.get("times", 1)
        kept *= (1 - told) ** times
        outcomes = [
            (loss + more, mass * part) for (loss, mass), (more, part) in product(outcomes, _repeated(finite, times))
        ]

    def delta(epsilon: arb) -> arb:
        rest = dense if dense is not None else _nothing
        return 1 - kept + sum((mass * rest(epsilon - loss) for loss, mass in outcomes), arb(0))

    return delta


def _rate(entry: Mapping[str, Any]) -> Fraction:
    return Fraction(entry["sampling"]["rate"]) if "sampling" in entry else Fraction(1)


def _size(entry: Mapping[str, Any]) -> arb:
    if "epsilon" in entry:
        return exactly(entry["epsilon"])
    return exactly(Fraction(entry["sensitivity"]) / Fraction(entry["scale"]))


def _nothing(epsilon: arb) -> arb:
    """The profile of a release that says nothing."""
    return 1 - epsilon.exp() if epsilon < 0 else arb(0)


def _gaussian(mu: arb) -> _OneProfile:
    """Balle & Wang 2018, theorem 8."""

    def below(place: arb) -> arb:
        return (-place / arb(2).sqrt()).erfc() / 2

    return lambda epsilon: below(mu / 2 - epsilon / mu) - epsilon.exp() * below(-mu / 2 - epsilon / mu)


def _laplace(e: arb) -> _OneProfile:
    """Of the pair Lap(e, 1), Lap(0, 1): the likelihood ratio test between them, whose threshold moves from 0 to e."""

    def delta(epsilon: arb) -> arb:
        if abs(epsilon) < e:
            return -((epsilon - e) / 2).expm1()
        return _nothing(epsilon)

    return delta


def _exponential(e: arb) -> _OneProfile:
    """Losses of density C e^(l/2) on (-e, e), integrated: 2C (e^(e/4) - e^(eps/2 - e/4))^2."""
    c = 1 / (4 * (e / 2).sinh())

    def delta(epsilon: arb) -> arb:
        if abs(epsilon) < e:
            return 2 * c * ((e / 4).exp() - (epsilon / 2 - e / 4).exp()) ** 2
        return _nothing(epsilon)

    return delta


_DENSE: dict[str, Callable[[arb], _OneProfile]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "exponential": _exponential,
}


def _sampled(whole: _OneProfile, rate: Fraction, *, removal: bool) -> _OneProfile:
    """The profile with P mixed into Q, of a pair whose two orders have the same: for the set S that is best,

    removal:   (qP + (1-q)Q)(S) - t Q(S) = q [P(S) - ((t - 1 + q)/q) Q(S)],
    addition:  Q(S) - t (qP + (1-q)Q)(S) = (1 - (1-q)t) [Q(S) - (qt/(1 - (1-q)t)) P(S)].
    """
    if rate == 1:
        return whole
    q = exactly(rate)

    def delta(epsilon: arb) -> arb:
        t = epsilon.exp()
        if removal:
            inside = (t - 1 + q) / q
            return q * whole(inside.log()) if inside > 0 else 1 - t
        share = 1 - (1 - q) * t
        return share * whole((q * t / share).log()) if share > 0 else arb(0)

    return delta


def _atoms(entry: Mapping[str, Any], rate: Fraction, *, removal: bool) -> tuple[Atoms, arb]:
    """(loss, mass under P) of the finite losses, and P's mass where Q has none, from the four outcomes themselves."""
    if entry["mechanism"] not in ("randomised-response", "pure", "sparse-vector", "approximate"):
        raise ValueError("this oracle does not know the mechanism")
    odds, told = exactly(entry["epsilon"]).exp(), exactly(entry.get("delta", "0"))
    likely, rare = (1 - told) * odds / (1 + odds), (1 - told) / (1 + odds)
    first, second = [likely, rare, told, arb(0)], [rare, likely, arb(0), told]
    if rate != 1:
        q = exactly(rate)
        first = [q * p + (1 - q) * other for p, other in zip(first, second, strict=True)]
    if not removal:
        first, second = second, first
    both = [(p, other) for p, other in zip(first, second, strict=True) if p > 0]
    finite = [((p / other).log(), p) for p, other in both if other > 0]
    return finite, sum((p for p, other in both if not other > 0), arb(0))


def _repeated(atoms: Atoms, times: int) -> Iterable[tuple[arb, arb]]:
    """The losses and masses of so many: as often as each outcome may come up, with multinomial weights."""
    (loss, mass), rest = atoms[0], atoms[1:]
    if not rest:
        return [(loss * times, mass**times)]
    return [
        (loss * (times - count) + more, math.comb(times, count) * mass ** (times - count) * part)
        for count in range(times + 1)
        for more, part in _repeated(rest, count)
    ]
