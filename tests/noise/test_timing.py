"""The time of a block does not depend on what is drawn: medians of interleaved runs, on chosen tapes."""

from __future__ import annotations

import statistics
import time
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from parco.noise.laws import Law
from parco.noise.vector import BLOCK, Sampler
from tests.noise import oracle
from tests.noise.tapes import Stream, signed

BLOCKS, TURNS, COMPARISONS = 24, 101, 3
TOLERANCE = 0.03


def tapes() -> dict[str, NDArray[np.int64]]:
    """Blocks of words whose draws are all small, all large, and mixed."""
    rest = Stream("timing").words(BLOCK).view(np.uint64)
    half, low = rest & np.uint64(1 << 63), rest & np.uint64(2**63 - 1)
    steps = {
        # Tails above 0.48, below a tenth of a standard deviation; and from 2^-24 to 2^-38, beyond five.
        "small": np.uint64(2**63 - 1) - (low >> np.uint64(5)),
        "large": np.uint64(1 << 26) | low >> (np.uint64(23) + rest % np.uint64(15)),
        "mixed": low,
    }
    return {name: np.where(half > 0, ~word, word).astype(np.uint64).view(np.int64) for name, word in steps.items()}


@pytest.mark.long
@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", [10, 1000])
def test_small_and_large_draws_take_the_same_time(kind: type[Law], scale: int) -> None:
    sampler, words = Sampler(kind(Fraction(scale))), tapes()
    sizes = {name: np.abs(sampler.decide(block)[0]).max() for name, block in words.items()}
    least = np.abs(sampler.decide(words["large"])[0]).min()
    assert sizes["small"] <= max(1, scale / 5)
    assert least > 4 * scale
    # The few words that are left to balls are counted elsewhere: here is the time of all the others.
    for block in words.values():
        certain = sampler.decide(block)[1]
        assert certain.mean() > 0.999
        block[~certain] = block[certain][0]
        assert sampler.decide(block)[1].all()
    # A busy machine may disturb one comparison; a branch on the value would show in all of them.
    found = [medians(sampler, words) for _ in range(COMPARISONS)]
    assert any(max(times) < (1 + TOLERANCE) * min(times) for times in found), found


def medians(sampler: Sampler, words: dict[str, NDArray[np.int64]]) -> list[float]:
    """Seconds of processor time for each kind of block, turn by turn."""
    taken: dict[str, list[float]] = {name: [] for name in words}
    for _ in range(TURNS):
        for name, block in words.items():
            start = time.process_time()
            for _ in range(BLOCKS):
                sampler.decide(block)
            taken[name].append(time.process_time() - start)
    return [statistics.median(times) for times in taken.values()]


def test_the_words_of_the_last_orders_are_the_only_ones_whose_tail_alone_sends_them_to_balls() -> None:
    # Of all words 2^-55: t below 2^8.
    for kind in oracle.KINDS:
        certain = Sampler(kind(Fraction(1, 10**6))).decide(signed([0, 1, 255, 300, 2**20, 2**62, 2**63 - 1]))[1]
        assert certain.tolist() == [False, False, False, True, True, True, True]
