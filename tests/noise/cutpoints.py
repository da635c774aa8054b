"""A sampler as a list of cut points: where doubles change their mind, found by halving over all words.

The cut point of m is the number tail(m) 2^64; words (`steps`, of the lower half) below it have a magnitude of at least
m, words above it of less than m.
"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
from mpmath import mp
from numpy.typing import NDArray

from parco.noise.laws import Law
from parco.noise.vector import BLOCK, Sampler
from tests.noise import oracle

LARGEST = 2**63 - 1


def magnitudes(law: Law, count: int | None) -> list[int]:
    """All m with a tail above 2^-62, or about `count` random ones where there are more.

    Those are spread evenly over the tail's logarithm.
    """
    end = law.guess(2.0**-62)
    if count is None or end <= count:
        return list(range(1, end))
    stream = random.Random(f"{law}")
    found: set[int] = set()
    while len(found) < count:
        found.add(max(law.guess(2.0 ** -stream.uniform(1, 62)), 1))
    return sorted(found)


def cut_words(law: Law, wanted: list[int]) -> tuple[NDArray[np.int64], list[Fraction]]:
    """The words in which the cut points lie, and how far into the word, by mpmath."""
    with mp.workdps(60):
        places = [oracle.exact(oracle.tail(type(law), law.scale, m)) * 2**64 for m in wanted]
    return np.array([int(place) for place in places]), [place - int(place) for place in places]


def in_doubles(sampler: Sampler, steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """What doubles say of words of the lower half: magnitudes, and which of them are certain."""
    magnitudes, certain = np.empty_like(steps), np.empty(len(steps), np.bool_)
    for place in range(0, len(steps), BLOCK):
        block = slice(place, place + BLOCK)
        drawn, certain[block] = sampler.decide(steps[block])
        magnitudes[block] = -drawn
    return magnitudes, certain


def edges(law: Law, wanted: list[int], cuts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """By halving: the last word that is certainly at least m, and the first that is certainly less, for each m.

    And how many of all certain words on the way lay on the wrong side of their cut point.
    """
    sampler, goal, wrong, found = Sampler(law), np.array(wanted), 0, []
    for uncertain_is_far in (False, True):
        low, high = np.zeros_like(cuts), np.full_like(cuts, LARGEST)
        while (high - low > 1).any():
            middle = low + (high - low) // 2
            drawn, certain = in_doubles(sampler, middle)
            wrong += int((certain & (middle < cuts) & (drawn < goal)).sum())
            wrong += int((certain & (middle > cuts) & (drawn >= goal)).sum())
            wrong += int((certain & (middle == cuts)).sum())
            far = np.where(certain, drawn >= goal, uncertain_is_far)
            low, high = np.where(far, middle, low), np.where(far, high, middle)
        found.append(high if uncertain_is_far else low)
    return found[0], found[1], wrong
