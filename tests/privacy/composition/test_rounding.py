"""The model of rounding on which every error bound of the room stands, on this machine's NumPy, against balls."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import acb, arb
from numpy.typing import NDArray

from parco.balls import ball, precision
from parco.privacy.composition.rounding import ELEMENTARY, UNIT, log_interval

SAMPLES = 1200
BITS = 160
Values = NDArray[Any]
RANDOM = np.random.default_rng(20260317)


def spread(low: float, high: float) -> Values:
    """Numbers of either sign, their sizes evenly spread between two powers of ten."""
    values: Values = 10.0 ** RANDOM.uniform(low, high, SAMPLES) * RANDOM.choice([-1.0, 1.0], SAMPLES)
    return values


def between(low: float, high: float) -> Values:
    return RANDOM.uniform(low, high, SAMPLES)


def units(
    function: Callable[[Values], Values], exact: Callable[[acb], acb], at: Values, *, floor: float = 0.0
) -> float:
    """The largest error in units of 2^-53 of the value, or of the floor where the value is smaller."""
    found = function(at)
    worst = 0.0
    with precision(BITS):
        for place, value in zip(at.tolist(), found.tolist(), strict=True):
            truth = exact(_ball(place))
            size = max(float(abs(truth)), floor)
            worst = max(worst, float(abs(_ball(value) - truth)) / size / UNIT)
    return worst


def _ball(value: complex) -> acb:
    return acb(arb(value.real), arb(value.imag))


REAL: dict[str, tuple[Callable[[Values], Values], Callable[[acb], acb], Values]] = {
    "exp": (np.exp, lambda z: z.exp(), between(-700, 700)),
    "log": (np.log, lambda z: z.log(), np.abs(spread(-300, 300))),
    "log near 1": (np.log, lambda z: z.log(), 1 + spread(-12, -1)),
    "log1p": (
        np.log1p,
        lambda z: (1 + z).log(),
        np.concatenate([np.abs(spread(-18, 18)), -(10.0 ** -np.abs(spread(-2, 1.2)))]),
    ),
    "expm1": (np.expm1, lambda z: z.exp() - 1, spread(-18, 2.8)),
    "sinh": (np.sinh, lambda z: z.sinh(), spread(-12, 2.8)),
    "cosh": (np.cosh, lambda z: z.cosh(), spread(-9, 2.8)),
    "cos": (np.cos, lambda z: z.cos(), between(0, 1.5)),
    "sqrt": (np.sqrt, lambda z: z.sqrt(), np.abs(spread(-300, 300))),
}
COMPLEX: dict[str, tuple[Callable[[Values], Values], Callable[[acb], acb], Values]] = {
    "exp": (np.exp, lambda z: z.exp(), between(-700, 50) + 1j * spread(-6, 7)),
    "exp of phases": (np.exp, lambda z: z.exp(), 1j * spread(-6, 9)),
    "log": (np.log, lambda z: z.log(), spread(-10, 10) + 1j * spread(-10, 10)),
    "log near 1": (np.log, lambda z: z.log(), 1 + spread(-9, -1) + 1j * spread(-9, -1)),
    "log near the circle": (np.log, lambda z: z.log(), np.exp(1j * between(-3.1, 3.1)) * (1 + spread(-12, -1))),
    "expm1": (np.expm1, lambda z: z.exp() - 1, spread(-12, 1.5) + 1j * spread(-12, 5)),
    "sinh": (np.sinh, lambda z: z.sinh(), spread(-9, 1) + 1j * spread(-9, 6)),
    "sinh near its zeros": (
        np.sinh,
        lambda z: z.sinh(),
        spread(-9, -1) + 1j * (np.pi * RANDOM.integers(1, 100, SAMPLES) + spread(-12, -2)),
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_real_functions(name: str) -> None:
    function, exact, at = REAL[name]
    assert units(function, exact, at) <= ELEMENTARY


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(name: str) -> None:
    function, exact, at = COMPLEX[name]
    assert units(function, exact, at) <= ELEMENTARY


def test_complex_log1p_is_as_good_as_the_logarithm_of_the_sum() -> None:
    """NumPy's is off by units of 1, not of its small value: those who use it count their errors so."""
    turns = np.exp(1j * between(-3.1, 3.1))
    at = turns * np.abs(spread(-12, 0)) * 0.999
    assert units(np.log1p, lambda z: (1 + z).log(), at, floor=1.0) <= ELEMENTARY


def test_functions_of_the_standard_library() -> None:
    for function, exact, at in (
        (math.exp, lambda z: z.exp(), between(-700, 700)),
        (math.log, lambda z: z.log(), np.abs(spread(-300, 300))),
        (math.log1p, lambda z: (1 + z).log(), -np.abs(spread(-18, -0.001))),
        (math.expm1, lambda z: z.exp() - 1, spread(-18, 2.8)),
        (math.cosh, lambda z: z.cosh(), spread(-9, 2.8)),
    ):
        assert units(np.vectorize(function), exact, at) <= ELEMENTARY


@pytest.mark.parametrize("count", [7, 1000, 200_000])
def test_sums_are_pairwise(count: int) -> None:
    """Off by less than 64 units of the sum of sizes, as plain summing of so many terms would not be."""
    for terms in (
        RANDOM.random(count),
        RANDOM.standard_normal(count) * 10.0 ** RANDOM.uniform(-8, 8, count),
        np.full(count, 0.1),
    ):
        both = terms + 1j * terms[::-1]
        size = math.fsum(np.abs(terms))
        assert abs(float(terms.sum()) - math.fsum(terms)) < 64 * UNIT * size
        assert abs(complex(both.sum()) - complex(math.fsum(both.real), math.fsum(both.imag))) < 64 * UNIT * 2 * size


def test_products_of_matrices_and_running_products() -> None:
    points, count = 300, 60
    angles = RANDOM.uniform(-3, 3, (points, count))
    terms, turns = RANDOM.standard_normal(points) + 0j, np.exp(1j * angles)
    found = np.matmul(terms, turns)
    for place in range(0, count, 7):
        parts = terms * turns[:, place]
        exact = complex(math.fsum(parts.real), math.fsum(parts.imag))
        assert abs(found[place] - exact) <= UNIT * (points + 8) * float(np.abs(terms).sum())
    running = np.cumprod(np.full(1000, np.exp(0.37j)))
    with precision(BITS):
        once = acb(arb(np.exp(0.37j).real), arb(np.exp(0.37j).imag))
        assert float(abs(_ball(complex(running[-1])) - once**1000)) <= 1000 * 4 * UNIT


@pytest.mark.parametrize("value", ["1e-300", "1/3", "1", "1.0000000000000000000001", "7e299", "99999999/100000000"])
def test_logarithms_of_fractions_are_enclosed(value: str) -> None:
    low, high = log_interval(Fraction(value))
    with precision(BITS):
        truth = ball(Fraction(value)).log()
        assert arb(low) <= truth <= arb(high)
        assert high - low <= 1e-11
