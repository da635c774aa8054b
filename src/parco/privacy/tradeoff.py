"""What an attacker can do: trade-off curves, advantage, and true-positive rates, and the mu that keeps them down.

The attacker looks at what was released and tests whether a given unit is in the data. Its false-positive rate a is the
share of those who are out that it takes to be in, its true-positive rate the share of those who are in that it finds.
The trade-off curve f(a) is the least share of those who are in that it misses; the true-positive rate is at most
1 - f(a), and the advantage, the largest excess of the true-positive over the false-positive rate, is the total
variation distance and so delta at epsilon 0 (Dong, Roth & Su 2022; docs/mathematics.md, "What an attacker finds").
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from parco.balls import arb, ball, lower, precision, upper
from parco.errors import InternalError, RequestError
from parco.privacy import gaussian
from parco.privacy.search import lowest

__all__ = [
    "Profile",
    "advantage_upper",
    "mu_squared_for_advantage_lower",
    "mu_squared_for_rates_lower",
    "profile_advantage_upper",
    "profile_trade_off_lower",
    "profile_true_positive_rate_upper",
    "trade_off_lower",
    "true_positive_rate_upper",
]

Profile = Callable[[Fraction], Fraction]
"""A privacy profile: for an epsilon >= 0, an upper bound on delta there, for one order of the pair or for both."""

_BITS, _BITS_MAX, _TIGHT_BITS = 128, 1 << 16, 60
# Where the search for the best epsilon begins and ends, and how closely it looks.
_FIRST, _LAST, _NARROW = 2.0**-40, 2.0**20, 2.0**-36


def trade_off_lower(mu_squared: Fraction, false_positive_rate: Fraction) -> Fraction:
    """For every mu_squared >= 0 and false_positive_rate a in [0, 1], returns f(a), or raises RequestError.

    Phi(Phi^-1(1 - a) - mu): the least false-negative rate of any attacker, rounded down by less than one part in 2^59.
    Source: Dong, Roth & Su 2022, section 2.
    """
    return _gaussian_rate(mu_squared, false_positive_rate, found=False)


def true_positive_rate_upper(mu_squared: Fraction, false_positive_rate: Fraction) -> Fraction:
    """For every mu_squared >= 0 and false_positive_rate a in [0, 1], returns 1 - f(a), or raises RequestError.

    Phi(mu - Phi^-1(1 - a)): the largest true-positive rate of any attacker, rounded up by less than one part in 2^59.
    Source: Dong, Roth & Su 2022, section 2.
    """
    return _gaussian_rate(mu_squared, false_positive_rate, found=True)


def advantage_upper(mu_squared: Fraction) -> Fraction:
    """For every mu_squared >= 0, returns the largest advantage of any attacker, or raises RequestError.

    2 Phi(mu/2) - 1, rounded up by less than one part in 2^59. Source: delta(0), Balle & Wang 2018, theorem 8.
    """
    return gaussian.delta_upper(mu_squared, Fraction(0))


def mu_squared_for_advantage_lower(advantage: Fraction) -> Fraction:
    """For every `advantage` in (0, 1), returns the largest mu^2 that allows no more, or raises RequestError.

    (2 Phi^-1((1 + advantage)/2))^2, rounded down by less than one part in 2^59: the side for a cap. Source: as
    `advantage_upper`, turned round.
    """
    if not 0 < advantage < 1:
        raise RequestError("an advantage lies strictly between 0 and 1")
    return gaussian.mu_squared_lower(Fraction(0), advantage)


def mu_squared_for_rates_lower(*, false_positive_rate: Fraction, true_positive_rate: Fraction) -> Fraction:
    """For every 0 < false_positive_rate <= true_positive_rate < 1, returns the largest mu^2 that allows no more.

    No attacker whose false-positive rate is the first has a true-positive rate above the second. Returns
    (Phi^-1(true) - Phi^-1(false))^2, rounded down by less than one part in 2^59; 0 where the rates are equal. Raises
    RequestError for other rates: who guesses has a true-positive rate of its false-positive rate. Source: as
    `true_positive_rate_upper`, turned round.
    """
    if not 0 < false_positive_rate <= true_positive_rate < 1:
        raise RequestError("rates lie strictly between 0 and 1, and the true-positive rate is at least the other")
    if false_positive_rate == true_positive_rate:
        return Fraction(0)

    def square() -> arb:
        gap = _quantile(true_positive_rate) - _quantile(false_positive_rate)
        return gap * gap

    return _tight(square, up=False)


def profile_advantage_upper(profile: Profile) -> Fraction:
    """For every `profile`, returns a bound on the advantage of any attacker (raises only what the profile raises).

    The profile at epsilon 0, which bounds both orders of the pair, as the total variation is symmetric; <= 1. Source:
    the definition of the profile at epsilon 0.
    """
    return min(profile(Fraction(0)), Fraction(1))


def profile_true_positive_rate_upper(
    profile: Profile, false_positive_rate: Fraction, *, reverse: Profile | None = None
) -> Fraction:
    """For every profile and false_positive_rate a in [0, 1], returns a bound on the true-positive rate.

    The least over epsilon >= 0 of e^eps a + profile(eps) and 1 - e^-eps (1 - a - reverse(eps)), rounded up and at most
    1: `profile` bounds the law with the unit against the law without, `reverse` the other order (the same where it is
    not given). Every epsilon gives a valid bound; the best is found to about 1e-10. Raises RequestError for a rate out
    of range. Source: Wasserman & Zhou 2010; Dong, Roth & Su 2022, section 2.
    """
    _check_rate(false_positive_rate)
    back = reverse or profile

    def line(epsilon: Fraction) -> arb:
        return ball(epsilon).exp() * ball(false_positive_rate) + ball(profile(epsilon))

    def line_back(epsilon: Fraction) -> arb:
        return 1 - (-ball(epsilon)).exp() * ball(1 - false_positive_rate - back(epsilon))

    return min(_least(line), _least(line_back), Fraction(1))


def profile_trade_off_lower(
    profile: Profile, false_positive_rate: Fraction, *, reverse: Profile | None = None
) -> Fraction:
    """For every profile and false_positive_rate a in [0, 1], returns a bound on the false-negative rate.

    1 - `profile_true_positive_rate_upper`, with `reverse` as there: a point below the trade-off curve, rounded down.
    Raises RequestError for a rate out of range. Source: Dong, Roth & Su 2022, section 2.
    """
    return 1 - profile_true_positive_rate_upper(profile, false_positive_rate, reverse=reverse)


def _least(line: Callable[[Fraction], arb]) -> Fraction:
    """About the least of a function of epsilon >= 0 with one valley, which both lines are: convex in e^eps or e^-eps.

    Doubles epsilon until the valley is passed, then narrows.
    """

    def value(epsilon: float) -> Fraction:
        with precision(_BITS):
            return upper(line(Fraction(epsilon)))

    high = _FIRST
    while value(2 * high) < value(high) and high < _LAST:
        high *= 2
    return min(value(0), value(lowest(value, 0, 2 * high, width=high * _NARROW)))


def _gaussian_rate(mu_squared: Fraction, rate: Fraction, *, found: bool) -> Fraction:
    """Phi(+-(mu - Phi^-1(1 - rate))), rounded up for the rate found and down for the rate missed."""
    if mu_squared < 0:
        raise RequestError("mu squared is not negative")
    _check_rate(rate)
    if rate in (0, 1) or mu_squared == 0:
        return rate if found else 1 - rate
    sign = 1 if found else -1
    share = _tight(lambda: (-sign * (ball(mu_squared).sqrt() + _quantile(rate)) / arb(2).sqrt()).erfc() / 2, up=found)
    return min(share, Fraction(1))


def _quantile(rate: Fraction) -> arb:
    """Phi^-1(rate) for a rate strictly between 0 and 1."""
    small = min(rate, 1 - rate)
    distance = arb(2).sqrt() * ball(2 * small).erfcinv()
    return -distance if small == rate else distance


def _tight(value: Callable[[], arb], *, up: bool) -> Fraction:
    """A bound on a positive number to sixty bits, at the precision that takes."""
    bits = _BITS
    while bits <= _BITS_MAX:
        with precision(bits):
            found = value()
            if found.rel_accuracy_bits() >= _TIGHT_BITS:
                return upper(found) if up else lower(found)
        bits *= 2
    raise InternalError("a rate could not be computed to the accuracy promised")


def _check_rate(rate: Fraction) -> None:
    if not 0 <= rate <= 1:
        raise RequestError("a rate lies between 0 and 1")
