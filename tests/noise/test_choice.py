"""The exponential mechanism's choice: exact probabilities, ties, equal scores, scores far apart, groups."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mp

from parco.balls import precision
from parco.errors import InternalError, RequestError
from parco.noise import choice
from parco.noise.choice import Group, choose
from tests.noise import oracle
from tests.noise.tapes import REST, Script

Numbers = Sequence[int | Fraction]
UNEVEN: list[Numbers] = [
    [1, 0], [0, 1], [3, 3, 1, 3], [-5, -5, -6], [0, 10, 0], [Fraction(1, 3), Fraction(-2, 7), 4],
    [5, 4, 3, 2, 1, 0, -1],
]  # fmt: skip
EVEN: list[Numbers] = [[0], [0, 0], [7, 7, 7, 7], [0, -1, -1, 0]]
"""Here some borders are halves and quarters, which a word can meet exactly."""


def groups(exponents: Numbers) -> list[Group]:
    """One candidate for each exponent."""
    return [Group(Fraction(exponent)) for exponent in exponents]


def cumulative(exponents: Numbers) -> list[Fraction]:
    """The probabilities of each candidate or one before it, to some sixty digits, by mpmath."""
    with mp.workdps(70):
        weights = [exp(oracle.number(Fraction(x - max(exponents)))) for x in exponents]
        return [oracle.exact(part / sum(weights)) for part in accumulate(weights)]


@pytest.mark.parametrize("exponents", [*UNEVEN, *EVEN])
def test_words_give_the_exact_quantile(exponents: Numbers) -> None:
    table = cumulative(exponents)
    for word in range(0, 1 << 12, 5):
        uniform = word << 52 | REST >> 12
        expected = sum(Fraction(uniform, 2**64) >= part for part in table[:-1])
        assert choose(groups(exponents), Script(uniform, REST)) == expected


@pytest.mark.parametrize("exponents", [*UNEVEN, [0] * 5])
@pytest.mark.parametrize("words", [1, 2, 3])
def test_a_word_on_a_border_takes_more_bits_and_only_then_decides(exponents: Numbers, words: int) -> None:
    for before, border in enumerate(cumulative(exponents)[:-1]):
        begin = int(border * 2 ** (64 * words))
        parts = [begin >> (64 * (words - i)) & (2**64 - 1) for i in range(1, words + 1)]
        for last, expected in ((0, before), (2**64 - 1, before + 1)):
            script = Script(*parts, last)
            assert choose(groups(exponents), script) == expected
            assert script.left == []


@pytest.mark.parametrize("exponents", EVEN[1:])
def test_a_border_that_a_word_meets_belongs_to_the_candidate_behind_it(exponents: Numbers) -> None:
    half = len(exponents) // 2
    assert choose(groups(exponents), Script(1 << 63, REST)) == half
    assert choose(groups(exponents), Script((1 << 63) - 1, REST)) == half - 1


@pytest.mark.parametrize("spread", [10**6, 10**9])
def test_scores_far_apart_neither_overflow_nor_vanish(spread: int) -> None:
    far = groups([Fraction(-spread), Fraction(0), Fraction(-spread, 2), Fraction(spread)])
    for word in (1, 1 << 32, 1 << 63, 2**64 - 2):
        assert choose(far, Script(word)) == 3
    # The last candidate lies behind a border of e^-spread, more than 300 bits of zeros; the first one before it.
    assert choose(far, Script(0, 0, 0, 0, 1)) == 3
    near = groups([0, -100])
    assert [choose(near, Script(*words)) for words in ([2**64 - 1] * 4, [2**64 - 1, 2**63, REST])] == [1, 0]


@pytest.mark.parametrize("count", [2, 3, 7, 100])
def test_equal_scores_share_equally(count: int) -> None:
    middles = [(2 * place + 1) * 2**64 // (8 * count) for place in range(4 * count)]
    drawn = [choose(groups([-3] * count), Script(word)) for word in middles]
    assert drawn == [place // 4 for place in range(4 * count)]


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.tuples(st.fractions(-30, 30, max_denominator=50), st.integers(1, 5)), min_size=1, max_size=6),
    word=st.integers(1, 2**64 - 2),
)
def test_a_group_is_its_candidates_side_by_side(parts: list[tuple[Fraction, int]], word: int) -> None:
    grouped = [Group(exponent, count) for exponent, count in parts]
    single = [Group(exponent) for exponent, count in parts for _ in range(count)]
    shifted = [Group(group.exponent + 10**9, group.count) for group in grouped]
    place = choose(grouped, Script(word, REST))
    assert choose(single, Script(word, REST)) == place
    assert choose(shifted, Script(word, REST)) == place


def test_huge_groups_are_counted_not_listed() -> None:
    many = [Group(Fraction(0), 10**9), Group(Fraction(-1), 10**18)]
    assert choose(many, Script(1, REST)) == 0
    last = choose(many, Script(2**64 - 1, REST))
    assert 10**9 < last < 10**9 + 10**18
    assert choose([Group(Fraction(5), 2**100)], Script(1 << 63, 0)) == 2**99


@pytest.mark.parametrize("bad", [[], [Group(Fraction(0), 0)], [Group(Fraction(0)), Group(Fraction(0), -1)]])
def test_no_candidates_are_refused(bad: list[Group]) -> None:
    with pytest.raises(RequestError, match="candidate"):
        choose(bad, Script(REST))


def test_a_weight_off_by_one_per_cent_is_seen_on_the_words() -> None:
    exponents = [Fraction(0), Fraction(1, 100)]
    table = cumulative(exponents)
    words = [word << 52 | REST >> 12 for word in range(1 << 12)]
    fair = sum(choose(groups([0, 0]), Script(word, REST)) == 0 for word in words)
    assert fair - sum(Fraction(word, 2**64) < table[0] for word in words) == 10


def test_weights_that_cannot_be_computed_are_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "precision", lambda _: precision(30))
    with pytest.raises(InternalError):
        choose(groups([0, Fraction(-1, 3)]), Script(REST))
