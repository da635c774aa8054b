"""The two curves behind the laws of noise, in balls: how far out a tail probability lies, and all derivatives there.

Every law of `laws.py` has its magnitude m at the tail probability v by m = floor(scale * F(v) + offset), F one of the
curves here. What `tables.py` proves about its polynomials rests on two facts, which hold for both of them on
0 < v <= 1/2: F(1/2) = 0, and for every n >= 1 the derivatives (-1)^n F^(n) are positive and fall in v. So each
derivative is largest at the left end of an interval. Source: docs/mathematics.md, "Draws in doubles".
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import cache
from typing import Protocol

from parco.balls import arb

__all__ = ["LOGARITHM", "NORMAL", "Curve"]


class Curve(Hashable, Protocol):
    """A function F that falls from infinity to 0 on 0 < v <= 1/2, with the two facts above."""

    def taylor(self, v: arb, terms: int) -> list[arb]:
        """F(v), F'(v), F''(v)/2!, ...: so many terms, in balls of the current precision."""
        ...


class _Normal:
    """F(v) = z with P(Z >= z) = v, Z standard normal.

    dz/dv = -1/phi(z), and with P_1 = 1 and P_(n+1) = P_n' + n z P_n the n-th derivative is (-1)^n P_n(z)/phi(z)^n:
    derive once more and use phi' = -z phi. No coefficient of any P_n is negative and z >= 0, so that P_n(z) and
    1/phi(z) grow in z, and (-1)^n F^(n) falls in v.
    """

    def taylor(self, v: arb, terms: int) -> list[arb]:
        """F(v), F'(v), F''(v)/2!, ...: so many terms, in balls of the current precision."""
        z = arb(2).sqrt() * (2 * v).erfcinv()
        step = -((2 * arb.pi()).sqrt() * (z * z / 2).exp())
        found, power = [z], arb(1)
        for n in range(1, terms):
            power *= step
            found.append(power * _evaluated(_polynomial(n), z) / math.factorial(n))
        return found


class _Logarithm:
    """F(v) = -log(2 v), with derivatives (-1)^n (n-1)!/v^n."""

    def taylor(self, v: arb, terms: int) -> list[arb]:
        """F(v), F'(v), F''(v)/2!, ...: so many terms, in balls of the current precision."""
        found, power = [-(2 * v).log()], arb(1)
        for n in range(1, terms):
            power /= -v
            found.append(power / n)
        return found


@cache
def _polynomial(n: int) -> tuple[int, ...]:
    """The coefficients of P_n above, lowest power first."""
    if n == 1:
        return (1,)
    last = _polynomial(n - 1)
    derived = (*(power * value for power, value in enumerate(last) if power), 0, 0)
    return tuple(a + (n - 1) * b for a, b in zip(derived, (0, *last), strict=True))


def _evaluated(coefficients: tuple[int, ...], z: arb) -> arb:
    value = arb(0)
    for coefficient in reversed(coefficients):
        value = value * z + coefficient
    return value


NORMAL: Curve = _Normal()
LOGARITHM: Curve = _Logarithm()
