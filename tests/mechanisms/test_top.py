"""Several candidates, one after the other: the law of each ordered choice, word by word, and its refusals."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from parco.errors import RequestError
from parco.mechanisms.mechanism import Exponential
from parco.noise import choice
from tests.noise.tapes import Script, Stream

CHOICE = Exponential(Fraction(2), Fraction(1))
WORDS = 64
"""So many words of the first draw, evenly spread, and as many of the second."""


def evenly(place: int) -> int:
    return ((2 * place + 1) << 63) // WORDS


@pytest.mark.parametrize("scores", [[3, 0, 3], [0, 5, 1], [0, 0, 0]], ids=str)
def test_each_ordered_pair_has_its_share_of_all_words(scores: list[int]) -> None:
    drawn = Counter(
        tuple(CHOICE.choose_several(scores, 2, Script(evenly(first), evenly(second))))
        for first, second in itertools.product(range(WORDS), repeat=2)
    )
    weights = [math.exp(score / 2) for score in scores]
    for first, second in itertools.permutations(range(3), 2):
        chance = weights[first] / sum(weights) * weights[second] / (sum(weights) - weights[first])
        # At most one word at either end of each of the two intervals falls on the wrong side.
        assert abs(drawn[first, second] / WORDS**2 - chance) < 4 / WORDS
    assert sum(drawn.values()) == WORDS**2
    assert all(first != second for first, second in drawn)


def test_all_are_chosen_once_where_all_are_asked_for() -> None:
    for number in range(1, 30):
        scores = [place % 3 for place in range(number)]
        assert sorted(CHOICE.choose_several(scores, number, Stream(str(number)))) == list(range(number))


def test_what_stands_out_by_far_is_chosen_first() -> None:
    assert CHOICE.choose_several([5, 10**6, 7, 2 * 10**6], 2, Stream("far")) == [3, 1]


@pytest.mark.parametrize(
    "scores", [[0, 1, 2, 3, 2, 1], [5, 5, 0, 400], [0, 0, 0], [9, 10**6, 10**6, -(10**9)]], ids=str
)
def test_each_choice_is_that_of_one_choice_among_those_left(scores: list[int]) -> None:
    """Also once the largest is gone, by whose size the weights that are kept are measured."""
    for seed in range(40):
        left, expected, bits = list(enumerate(scores)), list[int](), Stream(f"left {seed}")
        while left:
            left.sort(key=lambda one: (one[1], one[0]))
            expected.append(left.pop(CHOICE.choose([(Fraction(score), 1) for _, score in left], bits))[0])
        assert CHOICE.choose_several(scores, len(scores), Stream(f"left {seed}")) == expected


def test_weights_are_computed_once_while_the_largest_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    computed, scaled = list[Fraction](), choice._scaled

    def counted(exponent: Fraction, unit: int) -> int:
        computed.append(exponent)
        return scaled(exponent, unit)

    monkeypatch.setattr(choice, "_scaled", counted)
    scores = [*range(30), *[30] * 12]
    CHOICE.choose_several(scores, 10, Stream("kept"))
    assert len(computed) == len(set(scores))


@pytest.mark.parametrize("scores", [[0.5, 1.0], [1, 2.0], [False, 1]], ids=str)
def test_scores_that_are_no_ints_are_refused(scores: list[int]) -> None:
    bits = Script()
    with pytest.raises(RequestError, match="as int"):
        CHOICE.choose_several(scores, 1, bits)
    assert bits.asked == []


@pytest.mark.parametrize(("scores", "number"), [([], 1), ([], 0), ([1, 2], 3), ([1, 2], 0)])
def test_more_than_there_are_and_none_at_all_are_refused(scores: list[int], number: int) -> None:
    bits = Script()
    with pytest.raises(RequestError):
        CHOICE.choose_several(scores, number, bits)
    assert bits.asked == []
