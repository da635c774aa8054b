"""Tables: the proven error of each piece against mpmath, at the words where it is largest."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import erfinv, log, mp, sqrt

from parco.balls import arb
from parco.errors import InternalError
from parco.noise import tables
from parco.noise.curves import LOGARITHM, NORMAL, Curve
from parco.noise.tables import DEGREE, ROWS, table
from tests.noise import oracle

CURVES = [NORMAL, LOGARITHM]
FIRST_CLAIMED = (8 + 1) * 8 + 1
"""The row of 2^8 (1 + 1/8), the first of which anything is claimed."""


def value(curve: Curve, v: Fraction) -> Fraction:
    """F(v) to some forty digits, by mpmath."""
    with mp.workdps(90):
        x = 2 * oracle.number(v)
        return oracle.exact(-log(x) if curve is LOGARITHM else sqrt(2) * erfinv(1 - x))


def located(steps: int) -> tuple[int, Fraction]:
    """Piece and place of a word, from the double's value rather than from its bits."""
    t = Fraction(float(steps) + 0.5)
    order = t.numerator.bit_length() - t.denominator.bit_length()
    mantissa = t / Fraction(2) ** order
    piece = int((mantissa - 1) * 8)
    return (order + 1) * 8 + piece, mantissa - 1 - Fraction(2 * piece + 1, 16)


def errors(curve: Curve, steps: int) -> tuple[Fraction, Fraction]:
    """By how much the polynomial misses the curve at worst, at the ends of the word's interval; and what is claimed."""
    made, (row, u) = table(curve), located(steps)
    polynomial = sum(Fraction(float(c)) * u**n for n, c in enumerate(made.coefficients[:, row]))
    ends = (Fraction(steps, 2**64), Fraction(steps + 1, 2**64))
    return max(abs(value(curve, v) - polynomial) for v in ends), Fraction(float(made.error[row]))


def words_of(row: int) -> list[int]:
    """Words at both ends of a piece and about its middle, beside such as become doubles with the largest error."""
    order, piece = row // 8 - 1, row % 8
    first = (8 + piece) << (order - 3) if order >= 3 else 1 << max(order, 0)
    length = 1 << max(order - 3, 0)
    tie = 1 << max(order - 53, 0)
    words = [first, first + 1, first + tie, first + length // 2, first + length - 1, first + length - tie - 1]
    return [word for word in words if located(word)[0] == row]


@pytest.mark.parametrize("curve", CURVES)
def test_no_word_misses_the_curve_by_more_than_is_claimed_and_some_by_a_good_part(curve: Curve) -> None:
    for row in [*range(FIRST_CLAIMED, ROWS - 1, 7), *range(ROWS - 9, ROWS - 1)]:
        shares = [error / claimed for error, claimed in (errors(curve, steps) for steps in words_of(row))]
        assert len(shares) >= 4
        assert max(shares) <= 1
        assert max(shares) > Fraction(1, 5)


@pytest.mark.parametrize("curve", CURVES)
def test_what_rounds_to_the_middle_of_the_law_has_a_row_of_its_own(curve: Curve) -> None:
    for steps in (2**63 - 1, 2**63 - 2**9):
        assert located(steps) == (ROWS - 1, Fraction(-1, 16))
        error, claimed = errors(curve, steps)
        assert error <= claimed < Fraction(1, 2**52)
    assert located(2**63 - 2**9 - 1)[0] == ROWS - 2
    assert not table(curve).coefficients[:, -1].any()


@pytest.mark.parametrize("curve", CURVES)
def test_nothing_is_claimed_of_the_last_words_of_the_tail(curve: Curve) -> None:
    assert located(0)[0] == 0
    made = table(curve)
    assert np.isinf(made.error[:FIRST_CLAIMED]).all()
    assert np.isfinite(made.error[FIRST_CLAIMED:]).all()
    assert (made.error > 0).all()


@pytest.mark.parametrize("curve", CURVES)
def test_a_table_is_made_once_and_cannot_be_changed(curve: Curve) -> None:
    made = table(curve)
    assert table(curve) is made
    assert made.coefficients.shape == (DEGREE + 1, ROWS)
    for array in (made.coefficients, made.error):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_an_error_without_a_bound_is_refused() -> None:
    for bad in (arb(-1), arb("nan"), arb("inf")):
        with pytest.raises(InternalError):
            tables._float_upper(bad)
