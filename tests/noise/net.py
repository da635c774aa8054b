"""The statistical net: what is asked of a sample, each at level 1e-6, with sample sizes for a power of 0.999.

A sampler is a function of law, count and bits. The net knows the laws from the oracle alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import count

import numpy as np
from mpmath import mp
from numpy.typing import NDArray
from scipy import stats

from parco.noise.bits import BitSource
from parco.noise.laws import Law
from parco.noise.vector import BLOCK
from tests.noise import oracle
from tests.noise.tapes import Given, signed

LEVEL, POWER = 1e-6, 0.999
DEFICIT = Fraction(1, 100)
"""The fault of scale that a sample must show."""
SCALE = Fraction(20)
FAR = Fraction(10**12)

Sampler = Callable[[Law, int, BitSource], NDArray[np.int64]]
Bits = Callable[[], BitSource]

TWO_SIDED = float(stats.norm.isf(LEVEL / 2))
REACHED = float(stats.norm.isf(1 - POWER))


def caught(kind: type[Law], sampler: Sampler, bits: Bits) -> set[str]:
    """The names of all checks that the sampler fails; each release takes its bits from a new source."""
    sample = sampler(kind(SCALE), sample_size(kind), bits())
    checks = {
        "scale": abs(mean_deviation(kind, sample)) > TWO_SIDED,
        "sign": abs(sign_deviation(sample)) > TWO_SIDED,
        "shape": shape_level(kind, sample) < LEVEL,
        "repeats": repeats(sampler, kind(FAR), bits) > REPEATS_MAX,
        "far": not reaches_far(kind, sampler),
    }
    return {name for name, failed in checks.items() if failed}


# Scale: the mean of abs(N)


@cache
def moments(kind: type[Law], scale: Fraction) -> tuple[float, float]:
    """Mean and standard deviation of abs(N): sums of tails, E abs(N) = 2 sum tail(m), E N^2 = 2 sum (2m-1) tail(m)."""
    mean = square = 0.0
    for m in count(1):
        tail = float(oracle.tail(kind, scale, m))
        mean, square = mean + 2 * tail, square + 2 * (2 * m - 1) * tail
        if tail < 1e-25:
            return mean, math.sqrt(square - mean**2)
    raise AssertionError


def sample_size(kind: type[Law]) -> int:
    """How many draws tell a scale one per cent too small at the level and with the power: 362,000 to 631,000."""
    (mean, deviation), (less, deviation_less) = moments(kind, SCALE), moments(kind, SCALE * (1 - DEFICIT))
    return math.ceil(((TWO_SIDED * deviation + REACHED * deviation_less) / (mean - less)) ** 2)


def mean_deviation(kind: type[Law], sample: NDArray[np.int64]) -> float:
    """How many standard deviations the sample's mean of abs(N) is off."""
    mean, deviation = moments(kind, SCALE)
    return float((np.abs(sample).mean() - mean) / deviation * math.sqrt(len(sample)))


# Sign: as many above 0 as below


def sign_deviation(sample: NDArray[np.int64]) -> float:
    """How many standard deviations the positive draws are off; a missing sign shows in any sample above a hundred."""
    signs = np.sign(sample)
    return float(signs.sum() / math.sqrt(np.abs(signs).sum()))


# Shape: Pearson's statistic


def shape_level(kind: type[Law], sample: NDArray[np.int64]) -> float:
    """The level at which Pearson's test would reject the sample, on cells of equal width, the last ones open."""
    borders = np.arange(-70, 71, 10)
    expected = np.diff([0.0, *(below(kind, int(border)) for border in borders), 1.0]) * len(sample)
    found = np.bincount(np.searchsorted(borders, sample, side="right"), minlength=len(expected))
    return float(stats.chisquare(found, expected).pvalue)


def below(kind: type[Law], border: int) -> float:
    """P(N < border)."""
    if border > 0:
        return 1 - float(oracle.tail(kind, SCALE, border))
    return float(oracle.tail(kind, SCALE, 1 - border))


# Repeats: at a large scale no two draws are equal

RELEASES, RELEASE_CELLS = 2, 2 * BLOCK
REPEATS_MAX = 1
"""Of 65,536 draws at a scale of 10^12 steps a pair is equal with probability 7e-4 or less, two pairs with 3e-7. A key
that is used twice, or a block, makes 16,384 equal pairs or more."""


def repeats(sampler: Sampler, law: Law, bits: Bits) -> int:
    """How many draws of two releases are not new."""
    drawn = np.concatenate([sampler(law, RELEASE_CELLS, bits()) for _ in range(RELEASES)])
    return len(drawn) - len(np.unique(drawn))


# The far tail: on chosen tapes the exact quantile comes out


def far_words() -> Iterator[int]:
    """Words of the lower half, further out than six standard deviations of a Gaussian."""
    for order in range(1, 34):
        yield (1 << order) + (0x243F6A88 >> (32 - order) if order < 32 else 0x243F6A88)


def reaches_far(kind: type[Law], sampler: Sampler) -> bool:
    """Whether words of the far tail, and their mirror images, give the magnitudes that their tails have."""
    words = list(far_words())
    drawn = sampler(kind(SCALE), 2 * len(words), Given(signed(words + [word ^ (2**64 - 1) for word in words])))
    return all(
        exact_at(kind, word, -int(low)) and exact_at(kind, word, int(high))
        for word, low, high in zip(words, drawn[: len(words)], drawn[len(words) :], strict=True)
    )


def exact_at(kind: type[Law], word: int, magnitude: int) -> bool:
    """Whether the word's interval of tails meets that of the magnitude, which lies beyond six standard deviations."""
    with mp.workdps(40):
        here, beyond = (oracle.tail(kind, SCALE, max(m, 1)) * 2**64 for m in (magnitude, magnitude + 1))
    return magnitude > 6 * SCALE and bool(beyond < word + 1 and word < here)
