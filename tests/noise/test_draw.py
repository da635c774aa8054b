"""The certified draw: every word of twelve bits against the exact distribution, and ties of words."""

from __future__ import annotations

import bisect
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from parco.errors import InternalError
from parco.noise import draw as drawing
from parco.noise.bits import CipherBits
from parco.noise.draw import draw, draw_from, magnitude_at
from parco.noise.laws import Law, RoundedGaussian, TwoSidedGeometric
from tests.noise import oracle, tapes
from tests.noise.tapes import Script

WORD = 12
REST = tapes.REST >> WORD
"""The bits after the first twelve."""
SCALES = [Fraction(3, 10), Fraction(1), Fraction(8), Fraction(127, 8)]


def at_word(law: Law, word: int) -> int:
    """The draw at the uniform number that begins with this word of twelve bits and goes on with REST."""
    return draw(law, Script((word << (64 - WORD)) | REST))


def mismatches(law: Law, table: list[tuple[int, Fraction]]) -> int:
    """On how many of all 4096 words the draw is not the exact quantile that the table gives."""
    bounds = [probability for _, probability in table]
    wrong = 0
    for word in range(1 << WORD):
        uniform = Fraction((word << (64 - WORD)) | REST, 1 << 64)
        expected = table[bisect.bisect_right(bounds, uniform)][0]
        wrong += at_word(law, word) != expected
    return wrong


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_word_gives_the_exact_quantile(kind: type[Law], scale: Fraction) -> None:
    assert mismatches(kind(scale), oracle.cuts(kind, scale)) == 0


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("factor", [Fraction(99, 100), Fraction(101, 100)])
def test_a_scale_off_by_one_per_cent_is_caught(kind: type[Law], factor: Fraction) -> None:
    # By sampling this takes 320,000 draws (five standard deviations of the variance for the level, three for power);
    # on the words it takes none: a cut point near one scale moves by about 2^12 * 0.0024 * 4 words in all.
    scale = Fraction(8)
    assert mismatches(kind(scale * factor), oracle.cuts(kind, scale)) >= 10


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(8), Fraction(10**9), Fraction(10**12)])
def test_draws_are_monotone_and_symmetric_in_the_word(kind: type[Law], scale: Fraction) -> None:
    law, size = kind(scale), 64
    words = sorted({(1 << size) // 997 * i + 12345 for i in range(997)} | {1, 2, 3, (1 << size) - 3, (1 << size) - 2})
    # A word of the far tail may lie on a cut point: it goes on with `rest`, its mirror image with the mirrored one.
    rest = [REST] * 4
    mirrored = [2**64 - 1 - REST] * 4
    drawn = [draw(law, Script(word, *rest)) for word in words]
    assert drawn == sorted(drawn)
    assert drawn[0] <= 0 <= drawn[-1]
    assert [draw(law, Script((1 << size) - 1 - word, *mirrored)) for word in words] == [-value for value in drawn]


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.parametrize("cut", [-3, -1, 0, 4])
@pytest.mark.parametrize("words", [1, 2, 3])
def test_a_word_on_a_cut_point_takes_more_bits_and_only_then_decides(kind: type[Law], cut: int, words: int) -> None:
    # P(N <= cut) to 64 * words bits: as a beginning it leaves cut and cut + 1 possible, and the next word decides.
    scale, size = Fraction(5, 2), 64 * words
    table = dict(oracle.cuts(kind, scale, digits=120))
    begin = int(table[cut] * 2**size)
    parts = [begin >> (size - 64 * i) & (2**64 - 1) for i in range(1, words + 1)]
    for last, expected in ((0, cut), (2**64 - 1, cut + 1)):
        script = Script(*parts, last)
        assert draw(kind(scale), script) == expected
        assert script.asked == [64] * (words + 1)
    # One word to either side is decided by the bits it has.
    for step, expected in ((-1, cut), (1, cut + 1)):
        if words == 1:
            assert draw(kind(scale), Script(begin + step)) == expected


def test_the_ends_of_the_unit_interval_take_more_bits() -> None:
    law = RoundedGaussian(Fraction(8))
    low, high = Script(0, 1 << 63), Script(2**64 - 1, 1 << 62)
    assert draw(law, low) < -70
    assert draw(law, high) > 70
    assert (low.asked, high.asked) == ([64, 64], [64, 64])


@pytest.mark.parametrize("scale", [1, 10**6, 10**12])
def test_a_draw_begins_with_64_bits_at_every_scale(scale: int) -> None:
    script = Script(3 << 61 | REST)
    draw(TwoSidedGeometric(Fraction(scale)), script)
    assert script.asked == [64]


@pytest.mark.parametrize("kind", oracle.KINDS)
def test_a_bad_guess_changes_nothing(kind: type[Law], monkeypatch: pytest.MonkeyPatch) -> None:
    law = kind(Fraction(1000))
    words = [(i << 54) | REST for i in range(0, 1024, 37)]
    before = [draw(law, Script(word)) for word in words]
    for guess in (0, 1, 10**6, 10**30):
        monkeypatch.setattr(kind, "guess", lambda *_, guess=guess: guess)
        assert [draw(law, Script(word)) for word in words] == before


def test_what_cannot_be_decided_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_PRECISION_MAX", 32)
    with pytest.raises(InternalError):
        draw(RoundedGaussian(Fraction(8)), CipherBits())


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(oracle.KINDS),
    scale=st.fractions(Fraction(1, 100), Fraction(10**13), max_denominator=10**6),
    words=st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3),
)
def test_any_draw_is_the_quantile(kind: type[Law], scale: Fraction, words: list[int]) -> None:
    behind = [*words[1:], tapes.REST]
    drawn, size = draw(kind(scale), Script(words[0], *behind)), 64 * len(words)
    assert drawn == draw_from(kind(scale), words[0], Script(*behind))
    begin = words[0] << 128 | words[1] << 64 | words[2]
    half = begin >> (size - 1)
    distance = (1 << size) - 1 - begin if half else begin
    assert drawn == 0 or (drawn > 0) == bool(half)
    with mp.workdps(90):
        if drawn:
            assert oracle.tail(kind, scale, abs(drawn)) > oracle.number(Fraction(distance, 1 << size))
        assert oracle.tail(kind, scale, abs(drawn) + 1) < oracle.number(Fraction(distance + 1, 1 << size))


def test_the_magnitude_at_a_tail_is_unique() -> None:
    law = TwoSidedGeometric(Fraction(8))
    with mp.workdps(40):
        tail = oracle.exact(oracle.tail(TwoSidedGeometric, Fraction(8), 5))
    assert magnitude_at(law, tail * (1 + Fraction(1, 10**30))) == 4
    assert magnitude_at(law, tail * (1 - Fraction(1, 10**30))) == 5
