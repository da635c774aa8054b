"""Curves: their derivatives against mpmath's, and the two facts that the error bound of the tables stands on."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from mpmath import erfc, exp, mp, sqrt

from parco.balls import ball, lower, precision, upper
from parco.noise.curves import LOGARITHM, NORMAL, Curve
from tests.noise import oracle

TERMS = 14
CURVES = [NORMAL, LOGARITHM]
PLACES = [Fraction(1, 2), Fraction(49, 100), Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 2**60)]


STEP = Fraction(1, 2**40)


def inverse(curve: Curve, value: Any) -> Any:
    """The tail probability v with F(v) = value, by mpmath."""
    return exp(-value) / 2 if curve is LOGARITHM else erfc(value / sqrt(2)) / 2


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("v", PLACES)
def test_the_taylor_polynomial_is_that_of_the_inverse_function(curve: Curve, v: Fraction) -> None:
    # At v (1 + 2^-40) what is left out is near 2^(-40 TERMS) of v, while a derivative of the order n < TERMS that is
    # off by 2^-30 of itself shows as 2^(-40 n - 30) or more.
    with precision(40 * TERMS + 200):
        terms = curve.taylor(ball(v), TERMS)
        assert len(terms) == TERMS
        value = sum((term * ball(v * STEP) ** n for n, term in enumerate(terms)), ball(0))
        reached, width = lower(value), upper(value) - lower(value)
    with mp.workprec(40 * TERMS + 200):
        error = abs(oracle.exact(inverse(curve, oracle.number(reached))) / (v * (1 + STEP)) - 1)
    assert error < Fraction(1, 2 ** (40 * TERMS - 30))
    assert width < Fraction(1, 2 ** (40 * TERMS + 100))


@pytest.mark.parametrize("curve", CURVES)
def test_the_curve_falls_to_zero_and_its_derivatives_alternate_and_shrink(curve: Curve) -> None:
    with precision(200):
        rows = [curve.taylor(ball(v), TERMS) for v in sorted(PLACES)]
        assert abs(rows[-1][0]) < ball(Fraction(1, 2**180))
        for before, after in pairwise(rows):
            assert before[0] > after[0]
            for n in range(1, TERMS):
                assert (-1) ** n * before[n] > (-1) ** n * after[n]
        for row in rows[:-1]:
            assert all((-1) ** n * row[n] > 0 for n in range(1, TERMS))
