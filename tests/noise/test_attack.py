"""The float attack: outputs that only one of two neighbours can give. None here; many with a naive Laplace."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from numpy.typing import NDArray

from parco.noise.bits import CipherBits
from parco.noise.draw import draw
from parco.noise.laws import Law
from parco.noise.vector import add_noise, draw_array
from tests.noise import oracle
from tests.noise.tapes import REST, Script, Stream

COUNT, NEIGHBOUR = 4, 5
"""Two counts that one person makes."""


def possible(kind: type[Law], scale: Fraction, noise: int) -> bool:
    """Whether some uniform number makes the draw this integer: one in the middle of where it should be is tried."""
    magnitude = abs(noise)
    with mp.workdps(200):
        near = oracle.tail(kind, scale, magnitude) if magnitude else mp.mpf(1) / 2
        v = int((near + oracle.tail(kind, scale, magnitude + 1)) / 2 * mp.mpf(2) ** 512)
    u = 2**512 - 1 - v if noise > 0 else v
    return draw(kind(scale), Script(*(u >> (448 - 64 * i) & (2**64 - 1) for i in range(8)), REST)) == noise


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(20)])
def test_a_million_outputs_are_all_possible_under_the_neighbour(kind: type[Law], scale: Fraction) -> None:
    outputs: NDArray[np.int64] = COUNT + draw_array(kind(scale), 10**6, CipherBits())
    impossible = [output for output in np.unique(outputs).tolist() if not possible(kind, scale, output - NEIGHBOUR)]
    assert impossible == []
    assert (
        next(iter(add_noise([COUNT] * 3, kind(scale), Stream("as above"))))
        == (COUNT + draw_array(kind(scale), 3, Stream("as above"))).tolist()
    )


# The control: value plus the inverse distribution function of a uniform double, all in doubles, at scale 1.


def naive(uniform: NDArray[np.float64], value: float) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.where(uniform < 0.5, value + np.log(2 * uniform), value - np.log(2 - 2 * uniform))


def reached(outputs: NDArray[np.float64], value: float) -> NDArray[np.bool_]:
    """Which outputs some double of the generator (a multiple of 2^-53) gives for this value: those near are tried."""
    noise = outputs - value
    about = np.where(noise < 0, np.exp(-np.abs(noise)) / 2, 1 - np.exp(-np.abs(noise)) / 2)
    hit = np.zeros(len(outputs), np.bool_)
    for step in range(-64, 65):
        hit |= naive(np.clip(np.rint(about * 2.0**53) + step, 1, 2**53 - 1) * 2.0**-53, value) == outputs
    return hit


def test_the_same_attack_finds_a_good_part_of_naive_laplace_outputs() -> None:
    uniform = (Stream("naive").words(10_000).view(np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    outputs = naive(np.maximum(uniform, 2.0**-53), COUNT)
    assert reached(outputs, COUNT).all()
    # About 27 % at these counts and scale 1; the share grows as the counts become smaller beside the scale.
    assert 0.2 < 1 - reached(outputs, NEIGHBOUR).mean() < 0.35
