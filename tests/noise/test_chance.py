"""Coins: every short word against the exact probability, ties of words, masks and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, floor, mp

from parco.errors import InternalError, RequestError
from parco.noise import chance as coins
from parco.noise.bits import CipherBits
from parco.noise.chance import Chance, Exponential, Rational, bernoulli, bernoulli_mask
from tests.noise import oracle
from tests.noise.tapes import REST, Given, Script, Stream, signed

CHANCES: list[Chance] = [
    Rational(Fraction(1, 3)), Rational(Fraction(1, 2)), Rational(Fraction(10**20 - 1, 10**20)),
    Exponential(Fraction(1, 10**9)), Exponential(Fraction(7, 10)), Exponential(Fraction(9)),
]  # fmt: skip
EACH = pytest.mark.parametrize("chance", CHANCES)


def probability(chance: Chance) -> Fraction:
    """The probability to some sixty digits, by mpmath for e^-x."""
    if isinstance(chance, Rational):
        return chance.value
    assert isinstance(chance, Exponential)
    with mp.workdps(70):
        return oracle.exact(exp(-oracle.number(chance.x)))


@EACH
@pytest.mark.parametrize("size", [12, 16])
def test_every_word_compares_with_the_exact_probability(chance: Chance, size: int) -> None:
    words = [word << (64 - size) | REST >> size for word in range(1 << size)]
    exact = probability(chance) * 2**64
    assert bernoulli_mask(chance, len(words), Given(signed(words))).tolist() == [word < exact for word in words]


@EACH
def test_one_coin_is_a_mask_of_one(chance: Chance) -> None:
    one, many = Stream("coins"), Stream("coins")
    assert [bernoulli(chance, one) for _ in range(300)] == bernoulli_mask(chance, 300, many).tolist()


@EACH
@pytest.mark.parametrize("words", [1, 2, 3])
def test_the_first_bits_of_the_probability_take_more_bits_and_only_then_decide(chance: Chance, words: int) -> None:
    with mp.workdps(100):
        value = probability(chance)
        if isinstance(chance, Exponential):
            value = oracle.exact(exp(-oracle.number(chance.x)))
    parts = [int(value * 2 ** (64 * i)) & (2**64 - 1) for i in range(1, words + 1)]
    for last, expected in ((0, True), (2**64 - 1, False)):
        if value == Fraction(1, 2) and not last:
            continue  # 1/2 itself is not below 1/2: all words of zeros never decide.
        script = Script(*parts, last)
        assert bernoulli(chance, script) is expected
        assert script.asked == [64] * (words + 1)
        script = Script(*parts, last)
        assert bernoulli_mask(chance, 1, script).tolist() == [expected]
        assert script.left == []


@pytest.mark.parametrize("chance", [Rational(Fraction(1)), Exponential(Fraction(0))])
def test_what_is_certain_happens(chance: Chance) -> None:
    assert bernoulli(chance, Script(2**64 - 1))
    assert bernoulli_mask(chance, 5, CipherBits()).all()


def test_what_cannot_be_does_not_happen() -> None:
    assert not bernoulli(Rational(Fraction(0)), Script(0, 0, 1))
    assert not bernoulli_mask(Rational(Fraction(0)), 40_000, CipherBits()).any()
    # e^-(10^9) is not nothing, but below 2^-192.
    assert not bernoulli(Exponential(Fraction(10**9)), Script(0, 0, 1))


@settings(max_examples=60, deadline=None)
@given(x=st.fractions(0, 50, max_denominator=10**9), size=st.integers(1, 300))
def test_the_bits_of_an_exponential_are_exact(x: Fraction, size: int) -> None:
    with mp.workdps(130):
        assert Exponential(x).floor(size) == int(floor(exp(-oracle.number(x)) * 2**size))


@pytest.mark.parametrize("value", [Fraction(-1, 10**30), Fraction(1) + Fraction(1, 10**30)])
def test_probabilities_lie_between_0_and_1(value: Fraction) -> None:
    with pytest.raises(RequestError):
        Rational(value)


def test_negative_exponents_are_refused() -> None:
    with pytest.raises(RequestError):
        Exponential(Fraction(-1, 10**30))


def test_what_cannot_be_computed_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "_PRECISION_MAX", 32)
    with pytest.raises(InternalError):
        Exponential(Fraction(1)).floor(64)


def test_masks_join_block_by_block() -> None:
    chance, count = Rational(Fraction(1, 7)), 2 * coins._BLOCK + 5
    mask = bernoulli_mask(chance, count, Stream("mask"))
    words = Stream("mask").words(count).view(np.uint64)
    assert np.array_equal(mask, words < int(Fraction(2**64, 7)))
    assert bernoulli_mask(chance, 0, Stream("mask")).shape == (0,)
