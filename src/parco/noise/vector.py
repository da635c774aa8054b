"""Draws by the block: doubles decide all words but a counted few, and the certified draw decides those.

For every word of 64 bits a double y is computed whose distance from the exact scale * F(v) + offset is proven for all v
that the word leaves (`tables.py`, and below for the operations here). Where all numbers that near to y have one floor,
that is the magnitude; elsewhere `draw.py` goes on with the same word. So an outcome is the law's exact quantile at one
uniform number, whoever decides it. Every word takes the same operations, whatever its value: additions and
multiplications of doubles, which are correctly rounded everywhere, look-ups in columns of one table, and integer
operations. Only how many words are left to balls depends on them: of all words, less than 2 * 10^-15 times the scale
(in lattice steps, where that is above one). Source: docs/mathematics.md, "Draws in doubles".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parco.balls import arb, precision, upper
from parco.errors import RequestError
from parco.noise.bits import BitSource
from parco.noise.draw import draw, draw_from
from parco.noise.laws import Law
from parco.noise.tables import DEGREE, FIRST_INDEX, HALF_PIECE, INDEX_SHIFT, table

__all__ = ["BLOCK", "Sampler", "add_noise", "draw_array"]

BLOCK = 1 << 14
"""Words that are decided together: their arrays fit into a processor's second cache."""

_SCALE_LIMIT = Fraction(1 << 40)
"""In lattice steps. Up to here every outcome fits into 64 bits, and few words are left to balls."""
_ROUNDING = 2.0**-53
"""The largest relative error of one operation on doubles."""
_PRECISION = 128
_FRACTION_MASK = np.int64((1 << INDEX_SHIFT) - 1)
_ONE = np.int64(np.float64(1.0).view(np.int64))
_REACH = HALF_PIECE ** np.arange(1, DEGREE + 1)[:, np.newaxis]
_VALUE_MAX = 1 << 62


def add_noise(values: Sequence[int], law: Law, bits: BitSource) -> Iterator[list[int]]:
    """For every sequence of integers, yields each plus a draw of its own, block after block, in exact arithmetic.

    In lattice steps, of any size, and at any scale. Holds one block at a time beside what it was given.
    """
    sampler = Sampler(law, longest=min(len(values), BLOCK)) if _in_reach(law) else None
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        if sampler is None:
            yield [value + draw(law, bits) for value in block]
        else:
            yield _sums(block, sampler.draw(len(block), bits))


def draw_array(law: Law, count: int, bits: BitSource) -> NDArray[np.int64]:
    """For every law of a scale from 2^-40 to 2^40 steps, returns draws, shape (count,), or raises RequestError."""
    sampler, drawn = Sampler(law, longest=min(count, BLOCK)), np.empty(count, np.int64)
    for start in range(0, count, BLOCK):
        block = drawn[start : start + BLOCK]
        block[:] = sampler.draw(len(block), bits)
    return drawn


class Sampler:
    """For every law of a scale from 2^-40 to 2^40 steps, draws from it block by block, or raises RequestError.

    Holds its working space, for blocks of at most `longest`: not for two threads at once, and each block overwrites the
    one before.
    """

    def __init__(self, law: Law, *, longest: int = BLOCK) -> None:
        if not _in_reach(law):
            raise RequestError("draws by the block are for scales from 2^-40 to 2^40 lattice steps")
        self._law = law
        self._columns, self._margins = _scaled(law)
        self._integers = np.empty((3, longest), np.int64)
        self._doubles = np.empty((3, longest), np.float64)

    def draw(self, count: int, bits: BitSource) -> NDArray[np.int64]:
        """The next `count` draws, not more than the longest block."""
        words = bits.words(count)
        drawn, certain = self.decide(words)
        if not certain.all():
            for place in np.flatnonzero(~certain):
                drawn[place] = draw_from(self._law, int(words[place]) & (2**64 - 1), bits)
        return drawn

    def decide(self, words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """What doubles know of a block of words: outcomes, and which of them are certain (others mean nothing)."""
        sign, index, drawn = (row[: len(words)] for row in self._integers)
        u, y, spare = (row[: len(words)] for row in self._doubles)
        _find(words, sign=sign, index=index, u=u)
        self._evaluate(index, u, y=y, spare=spare)
        np.floor(y, out=u)
        y -= u
        y -= 0.5
        np.abs(y, out=y)
        self._margins.take(index, out=spare, mode="clip")
        # -m for the lower half and m for the upper one.
        np.copyto(drawn, u, casting="unsafe")
        np.negative(drawn, out=drawn)
        drawn ^= sign
        drawn -= sign
        return drawn, y < spare

    def _evaluate(
        self, index: NDArray[np.int64], u: NDArray[np.float64], *, y: NDArray[np.float64], spare: NDArray[np.float64]
    ) -> None:
        """Writes into y the polynomials `index` at u, by Horner's rule. (No index is clipped: all are in range.)"""
        self._columns[DEGREE].take(index, out=y, mode="clip")
        for column in self._columns[-2::-1]:
            y *= u
            column.take(index, out=spare, mode="clip")
            y += spare


def _find(
    words: NDArray[np.int64], *, sign: NDArray[np.int64], index: NDArray[np.int64], u: NDArray[np.float64]
) -> None:
    """Writes the words' signs (-1 for the upper half, 0 for the lower), pieces `index`, and places u in them.

    As in `draw.py`: the first bit is the half, and the upper half is mirrored by turning all bits round. Of t's bits,
    the exponent and the first three of the fraction are the piece; the others, under the exponent of 1, are the place.
    """
    np.right_shift(words, 63, out=sign)
    np.bitwise_xor(words, sign, out=index)
    np.copyto(u, index)
    u += 0.5
    t = u.view(np.int64)
    np.right_shift(t, INDEX_SHIFT, out=index)
    index -= FIRST_INDEX
    t &= _FRACTION_MASK
    t |= _ONE
    u -= 1 + HALF_PIECE


def _in_reach(law: Law) -> bool:
    return 1 / _SCALE_LIMIT <= law.scale <= _SCALE_LIMIT


@lru_cache(maxsize=64)
def _scaled(law: Law) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The columns of scale * F + offset, and how far y may lie from the middle of two integers and still be certain.

    A column is A c_n, the first is A c_0 + B, with A and B scale and offset as doubles. With e = 2^-53, half the half
    of a piece, S_0 = abs(A c_0), S_1 = sum over n >= 1 of abs(A c_n) half^n, the error of y is to first order in e

        scale as a double    e (S_0 + S_1)           columns                e (2 S_0 + abs(B) + S_1)
        last addition        e (S_0 + abs(B) + S_1)  rest of Horner's rule  2 DEGREE e S_1

    (Higham 2002, section 5.1), beside A times the error of the table and the error of B. One e more is for the
    subtraction of 1/2 in the end; a factor of 1.01 covers what is of second order and the rounding of the bound itself.
    """
    with precision(_PRECISION):
        exact = law.offset()
        offset = float(exact)
        offset_error = float(upper(abs(exact - arb(offset))))
    curve, scale = table(law.curve), float(law.scale)
    columns = scale * curve.coefficients
    rest = (np.abs(columns[1:]) * _REACH).sum(axis=0)
    rounding = _ROUNDING * (4 * np.abs(columns[0]) + (2 * DEGREE + 3) * rest + 2 * abs(offset) + 1)
    margins = 0.5 - 1.01 * (scale * curve.error + rounding + offset_error)
    columns[0] += offset
    columns.setflags(write=False)
    margins.setflags(write=False)
    return columns, margins


def _sums(values: Sequence[int], noise: NDArray[np.int64]) -> list[int]:
    """values + noise, by 64-bit additions where they cannot overflow: no draw reaches 2^62."""
    try:
        cells = np.array(values, dtype=np.int64)
    except OverflowError:
        cells = None
    if cells is None or cells.max() > _VALUE_MAX or cells.min() < -_VALUE_MAX:
        return [value + extra for value, extra in zip(values, noise.tolist(), strict=True)]
    sums: list[int] = (cells + noise).tolist()
    return sums
