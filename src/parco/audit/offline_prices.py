"""What choices and streams of checks cost, in decimals of as many digits as it takes. Standard library only.

`least` is asked by `offline_life.py`, the file beside this one. What is no rational number is bounded from below, by
less than anybody rounds up.
"""

from __future__ import annotations

import json
import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache

# Choices (docs/mathematics.md, "Bounded range"): m of them, each of bounded range epsilon. A stream of scores ("Sparse
# vector"): an epsilon-pure mechanism, or epsilon/2 and what Laplace noise of epsilon/2 costs.
DIGITS, SLACK = 60, Decimal("1e-40")
UNITS_MAX = 10**19  # more than any charge


@lru_cache(maxsize=256)  # a ledger has the same few choices again and again
def least(measure: str, order: str | None, kind: str, *ratios: str) -> int | None:
    """The least charge in 10^-15 that covers a request of choices or a stream; None where its facts are no such one's.

    `ratios`: scale, lattice, l1, l2_squared. What is no rational number is worked out in decimals, with so many digits
    more than DIGITS that what cancels leaves far more than 40; only what falls short by less than SLACK of it passes.
    """
    pairs = [json.loads(ratio) for ratio in (*ratios, order or "[1,1]")]
    scale, lattice, l1, l2_squared, alpha = (Fraction(*pair) for pair in pairs)
    choices, epsilon, stream = l1**2 / l2_squared, 2 * l2_squared / l1 / scale, kind == "sparse-vector"
    if any(math.gcd(*pair) != 1 for pair in pairs) or choices.denominator != 1 or alpha < 1:
        return None
    if stream and (choices != 1 or (l1 / lattice).denominator != 1):  # off the lattice no epsilon holds
        return None
    if measure == "pure":
        return math.ceil(10**15 * choices * epsilon)
    excess = alpha - 1 if measure == "renyi" and alpha > 1 else None
    small = sum(max(0, len(str(one.denominator)) - len(str(one.numerator)) + 1) for one in (epsilon, excess or 1))
    with localcontext(prec=DIGITS + 4 * small, Emax=MAX_EMAX, Emin=MIN_EMIN) as context:
        if measure == "gdp":
            bounded = (1 + stream) * epsilon  # what is pure costs what a choice of twice the range does
            if bounded > 4000:  # a choice costs more than an account can hold
                return UNITS_MAX
            context.prec += math.ceil(bounded / 4)  # the difference from 1 has so many zeros
            return gaussian_units(int(choices), decimal(bounded))
        line = stream_divergence if stream else divergence
        each = line(decimal(epsilon), None if excess is None else decimal(excess))
        return math.ceil(int(choices) * each * 10**15 * (1 - SLACK))


def decimal(value: Fraction) -> Decimal:  # in the digits of the context
    return Decimal(value.numerator) / Decimal(value.denominator)


def divergence(epsilon: Decimal, excess: Decimal | None) -> Decimal:
    """The largest Renyi divergence of order 1 + excess at bounded range epsilon, in nats; None: of order 1."""
    near = 1 - (-epsilon).exp()
    if excess is None:
        return epsilon + (near / epsilon).ln() - 1 + epsilon * (-epsilon).exp() / near
    alpha = excess + 1
    first, second = 1 - (-alpha * epsilon).exp(), 1 - (-excess * epsilon).exp()
    return epsilon + (excess * first / (alpha * second)).ln() + (first / (alpha * near)).ln() / excess


def stream_divergence(epsilon: Decimal, excess: Decimal | None) -> Decimal:
    """The less of two bounds on that of a stream of scores: as of randomised response, and as of its threshold."""
    half, near = epsilon / 2, (-epsilon).exp()
    if excess is None:
        return min(epsilon * (1 - near) / (1 + near), epsilon + (-half).exp() - 1)
    far, share = (-(2 * excess + 1) * epsilon).exp(), (excess + 1) / (2 * excess + 1)
    laplace = half + (share + (1 - share) * (-(2 * excess + 1) * half).exp()).ln() / excess
    return min(epsilon + ((1 + far) / (1 + near)).ln() / excess, half + laplace)


def gaussian_units(choices: int, epsilon: Decimal) -> int:
    """The least mu^2 of all choices in 10^-15: Phi(mu/2) of one is at least e^(epsilon/2)/(1 + e^(epsilon/2)).

    That is erf(t) >= tanh(epsilon/4) for t^2 = mu^2/8, as it is wherever t^2 >= epsilon/2.
    """
    shrunk = (-epsilon / 2).exp()
    wanted = (1 - shrunk) / (1 + shrunk) * (1 - shrunk * SLACK)
    low, high = 0, UNITS_MAX
    while high - low > 1:
        middle = (low + high) // 2
        square = Decimal(middle) / (8 * choices * 10**15)
        covers = 2 * square >= epsilon or error_function(square) >= wanted
        low, high = (low, middle) if covers else (middle, high)
    return high


def error_function(square: Decimal) -> Decimal:
    """erf(t) at t^2: 2/sqrt(pi) e^(-t^2) (t + 2 t^3/3 + 4 t^5/15 + ...), whose terms are all positive."""
    total, term, odd = Decimal(0), square.sqrt(), 1
    while total + term != total:
        total, odd = total + term, odd + 2
        term = term * 2 * square / odd
    root: Decimal = pi(getcontext().prec).sqrt()
    return 2 * (-square).exp() * total / root


@lru_cache(maxsize=16)
def pi(digits: int) -> Decimal:
    """16 arctan(1/5) - 4 arctan(1/239), to so many digits."""
    unit: int = 10 ** (digits + 10)

    def arctan(bottom: int) -> int:
        total, term, odd, sign = 0, unit // bottom, 1, 1
        while term:
            total, term, odd, sign = total + sign * (term // odd), term // bottom**2, odd + 2, -sign
        return total

    return Decimal(16 * arctan(5) - 4 * arctan(239)) / unit
