"""Refinement of geometric noise: the law of the pair against its definition, every word, and both signs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mp

from parco.balls import lower, precision, upper
from parco.errors import RequestError
from parco.noise.refine import Refinement, refine
from tests.noise import oracle
from tests.noise.tapes import REST, Script

PAIRS = [
    Refinement(Fraction(2), Fraction(1)),
    Refinement(Fraction(8), Fraction(79, 10)),
    Refinement(Fraction(5, 2), Fraction(3, 10)),
]
REACH = 120
"""Beyond, less than 2^-20 of any law here is left, and what there is belongs to the ends."""


def geometric(ratio: Any, k: int) -> Any:
    return (1 - ratio) / (1 + ratio) * ratio ** abs(k)


def ratios(pair: Refinement) -> tuple[Any, Any]:
    return exp(-1 / oracle.number(pair.coarse)), exp(-1 / oracle.number(pair.fine))


def joint(pair: Refinement, noise: int, finer: int) -> Any:
    """P(n1 = noise, n2 = finer), n1 being n2 plus an independent step."""
    a1, a2 = ratios(pair)
    stay = (a2 / a1) * ((1 - a1) / (1 - a2)) ** 2
    return geometric(a2, finer) * (stay * (noise == finer) + (1 - stay) * geometric(a1, noise - finer))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("noise", [0, 1, 3, 40])
def test_the_tail_is_that_of_the_finer_noise_given_the_coarser(pair: Refinement, noise: int) -> None:
    with mp.workdps(60):
        a1, _ = ratios(pair)
        below = mp.nsum(lambda k: joint(pair, noise, -int(k)), [101, mp.inf], method="d")
        total = sum(joint(pair, noise, k) for k in range(-100, 101)) + below
        total += mp.nsum(lambda k: joint(pair, noise, int(k)), [101, mp.inf], method="d")
        # The definition itself: the step makes geometric noise of a2 into geometric noise of a1.
        assert abs(total / geometric(a1, noise) - 1) < 1e-18
    for start in (-30, -1, 0, 1, noise, noise + 1, noise + 9):
        with mp.workdps(60):
            truth = oracle.exact(
                1 - (below + sum(joint(pair, noise, k) for k in range(-100, start))) / geometric(a1, noise)
            )
        with precision(192):
            ball = pair.tail(noise, start)
            low, high = lower(ball), upper(ball)
        assert high - low < Fraction(1, 2**150)
        assert abs(low - truth) < Fraction(1, 10**17)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("noise", [0, 2, -2, 7])
def test_every_word_of_twelve_bits_gives_the_exact_quantile(pair: Refinement, noise: int) -> None:
    with mp.workdps(40):
        a1, _ = ratios(pair)
        parts = [joint(pair, noise, k) / geometric(a1, noise) for k in range(-REACH, REACH + 1)]
        table = [oracle.exact(sum(parts[: i + 1])) for i in range(len(parts))]
    for word in range(0, 1 << 12, 3):
        uniform = Fraction(word << 52 | REST >> 12, 2**64)
        expected = sum(part <= uniform for part in table) - REACH
        assert refine(pair, noise, Script(word << 52 | REST >> 12)) == expected


def test_a_scale_off_by_one_per_cent_is_seen_on_the_words() -> None:
    # The tails of the two laws differ by up to 0.002: that is 8 of 4,096 words, at each of some places.
    pair, words = PAIRS[0], [word << 52 | REST >> 12 for word in range(0, 1 << 12, 3)]
    for other in (Refinement(pair.coarse * Fraction(99, 100), pair.fine), Refinement(pair.coarse, Fraction(99, 100))):
        assert sum(refine(pair, 2, Script(word)) != refine(other, 2, Script(word)) for word in words) >= 10


@settings(max_examples=30, deadline=None)
@given(
    coarse=st.fractions(Fraction(1, 10), Fraction(10**9), max_denominator=100),
    share=st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100),
    noise=st.integers(-(10**10), 10**10),
    word=st.integers(1, 2**64 - 2),
)
def test_turning_the_noise_and_the_word_turns_the_outcome(
    coarse: Fraction, share: Fraction, noise: int, word: int
) -> None:
    pair = Refinement(coarse, coarse * share)
    turned = refine(pair, -noise, Script(2**64 - 1 - word, *[2**64 - 1 - REST] * 3))
    assert refine(pair, noise, Script(word, *[REST] * 3)) == -turned


@pytest.mark.parametrize("noise", [5, -5])
def test_outcomes_rise_with_the_word(noise: int) -> None:
    pair = Refinement(Fraction(100), Fraction(10))
    drawn = [refine(pair, noise, Script(word << 56 | REST >> 8, REST)) for word in range(256)]
    assert drawn == sorted(drawn)
    assert len(set(drawn)) > 20


def test_a_border_takes_more_bits() -> None:
    pair, noise = Refinement(Fraction(2), Fraction(1)), 3
    with precision(300):
        begin = int((1 - lower(pair.tail(noise, 2))) * 2**128)
    for last, expected in ((0, 1), (2**64 - 1, 2)):
        script = Script(begin >> 64, begin & (2**64 - 1), last)
        assert refine(pair, noise, script) == expected
        assert script.left == []


@pytest.mark.parametrize("scales", [(1, 1), (1, 2), (1, 0), (1, -1), (-1, -2)])
def test_scales_only_shrink(scales: tuple[int, int]) -> None:
    with pytest.raises(RequestError):
        Refinement(Fraction(scales[0]), Fraction(scales[1]))
