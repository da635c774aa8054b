"""A curve as polynomials in doubles, one for each short piece of the tail probability, each with its proven error.

A word of 64 bits leaves a tail probability v between steps/2^64 and (steps + 1)/2^64. `Table` holds, for each eighth of
each binary order of t = steps + 1/2, the Taylor polynomial of the curve about the middle of the piece, and a bound of
how far it may be from the curve anywhere between the two ends. Which piece a word falls into, and where in it, are read
off the bits of the double t: every word takes the same steps. The table is made in balls when it is first needed, in a
tenth of a second, so that no number in it has to be believed. Source: docs/mathematics.md, "Draws in doubles".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from parco.balls import arb, ball, precision, upper
from parco.errors import InternalError
from parco.noise.curves import Curve

__all__ = ["DEGREE", "FIRST_INDEX", "HALF_PIECE", "INDEX_SHIFT", "ROWS", "Table", "table"]

PIECE_BITS = 3
"""Each binary order is cut into 2^3 pieces."""
HALF_PIECE = 2.0 ** -(PIECE_BITS + 1)
"""Half the length of a piece, beside the order's 2^e."""
DEGREE = 12
"""With pieces of an eighth, the Taylor polynomial of this degree is as good as doubles are."""
ORDERS = range(-1, 63)
"""t = steps + 1/2 lies from 2^-1 on and is at most 2^63, which is reached by rounding only and has a row of its own."""
_PIECE_MASK = (1 << PIECE_BITS) - 1
ROWS = (len(ORDERS) << PIECE_BITS) + 1

INDEX_SHIFT = 52 - PIECE_BITS
FIRST_INDEX = (1023 + ORDERS[0]) << PIECE_BITS
"""The row of t is (bits of the double t >> INDEX_SHIFT) - FIRST_INDEX."""

_FIRST_ORDER = 8
"""Of t below 2^8 nothing is claimed: of all words 2^-55 fall there, and the interval of each is as long as a piece."""
_WORD_BITS = 64
_PRECISION = 96


@dataclass(frozen=True)
class Table:
    """For every piece r and t in it, at u = t/2^e minus the middle of the piece: F is near the polynomial in u.

    Whatever v the word leaves, abs(F(v) - sum of coefficients[n, r] u^n) <= error[r], the sum taken exactly. The error
    is infinite where nothing is claimed.
    """

    coefficients: NDArray[np.float64]
    """Shape (DEGREE + 1, ROWS)."""
    error: NDArray[np.float64]
    """Shape (ROWS,); proven, rounded up."""


@cache
def table(curve: Curve) -> Table:
    """For every curve, returns its table. Made once a process; never changed."""
    coefficients, error = np.zeros((DEGREE + 1, ROWS)), np.full(ROWS, np.inf)
    with precision(_PRECISION):
        before: list[arb] = []
        for row in range((_FIRST_ORDER - ORDERS[0]) << PIECE_BITS, ROWS - 1):
            unit = Fraction(2) ** ORDERS[row >> PIECE_BITS]
            middle = unit * (1 + Fraction(2 * (row & _PIECE_MASK) + 1, 2 << PIECE_BITS))
            derivatives = curve.taylor(_tail(middle), DEGREE + 2)
            if before:
                coefficients[:, row], error[row] = _piece(derivatives, before, unit)
            before = derivatives
        # t = 2^63 stands for v = 1/2 and what rounds to it; the polynomial is 0 there, and so is F(1/2).
        error[-1] = _float_upper(curve.taylor(_tail(2**63 - _shift(Fraction(2**63))), 1)[0])
    coefficients.setflags(write=False)
    error.setflags(write=False)
    return Table(coefficients, error)


def _shift(unit: Fraction) -> Fraction:
    """How far t, between `unit` and twice of it, may be from any point of the word's interval [steps, steps + 1].

    Half a unit in the last place when `steps` became a double, and one for the interval. (Adding 1/2 is exact below
    2^52, has no effect above 2^53, and between them rounds to one of the interval's ends.)
    """
    return unit / 2**53 + 1


def _piece(derivatives: list[arb], before: list[arb], unit: Fraction) -> tuple[list[float], float]:
    """Coefficients and error of a piece, from the derivatives in its middle and in the middle of the piece before it.

    Derivatives fall in v, and the middle of the piece before lies left of all that a word of this piece may stand for:
    half of that piece is longer than `_shift` from 2^8 on. So they bound the derivatives there.
    """
    scale, half = ball(unit / 2**_WORD_BITS), ball(Fraction(HALF_PIECE))
    coefficients: list[float] = []
    error = abs(before[1]) * ball(_shift(unit) / 2**_WORD_BITS)
    power, reach = arb(1), arb(1)
    for derivative in derivatives[:-1]:
        exact = derivative * power
        coefficients.append(float(exact))
        error += abs(exact - arb(coefficients[-1])) * reach
        power, reach = power * scale, reach * half
    # Lagrange's remainder of the Taylor polynomial, at most half a piece from its middle.
    error += abs(before[-1]) * power * reach
    return coefficients, _float_upper(error)


def _tail(t: Fraction) -> arb:
    return ball(t / 2**_WORD_BITS)


def _float_upper(value: arb) -> float:
    """A double at least as large as every number in the ball, or InternalError."""
    bound = float(np.nextafter(float(upper(value)), np.inf))
    if not bound > 0:
        raise InternalError("a bound of the error of a curve is not positive")
    return bound
