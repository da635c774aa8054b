"""Streams of scores: the exact rule on chosen words, the law of the first pass, ends and refusals."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest

from parco.errors import InternalError, RequestError
from parco.measure import Measure
from parco.mechanisms.sparse_vector import GaussianSparseVector, LaplaceSparseVector, SparseVector
from parco.noise.draw import draw
from parco.noise.laws import Law, RoundedGaussian, RoundedLaplace
from tests.noise.tapes import Script, Stream

ONE = Fraction(1)
LAPLACE = LaplaceSparseVector(ONE, ONE / 2, Fraction(2))
GAUSSIAN = GaussianSparseVector(ONE, ONE, Fraction(3), Fraction(6), most=3)
WORDS = 40
"""So many words of the threshold's draw, evenly spread, and as many of the score's."""


def evenly(place: int) -> int:
    return ((2 * place + 1) << 63) // WORDS


def cdf_above(law: Law, place: int) -> float:
    """P(N >= place), by a formula of its own, in doubles."""
    at, scale = place - 0.5, float(law.scale)
    if isinstance(law, RoundedGaussian):
        return math.erfc(at / scale / math.sqrt(2)) / 2
    return math.exp(-at / scale) / 2 if at > 0 else 1 - math.exp(at / scale) / 2


def test_the_scales_are_those_of_the_facts() -> None:
    assert LAPLACE.threshold_law == RoundedLaplace(Fraction(2))
    assert LAPLACE.score_law == RoundedLaplace(Fraction(4))
    assert GAUSSIAN.threshold_law == RoundedGaussian(Fraction(3))
    assert GAUSSIAN.score_law == RoundedGaussian(Fraction(6))


@pytest.mark.parametrize("vector", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_a_score_passes_where_it_and_its_noise_reach_the_noisy_threshold(vector: SparseVector) -> None:
    for seed in range(200):
        noise = Stream(f"rule {seed}")
        threshold = 5 + draw(vector.threshold_law, noise)
        scores = [5, -3, 9]
        expected = []
        for score in scores:
            expected.append(score + draw(vector.score_law, noise) >= threshold)
            if expected[-1]:
                break
        stream = vector.stream(5, Stream(f"rule {seed}"))
        assert [stream.passes(score) for score in scores[: len(expected)]] == expected


@pytest.mark.parametrize("vector", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("ahead", [-6, 0, 4])
def test_the_first_score_passes_with_its_probability(vector: SparseVector, ahead: int) -> None:
    passed = Counter(
        vector.stream(0, Script(evenly(first), evenly(second))).passes(ahead)
        for first in range(WORDS)
        for second in range(WORDS)
    )
    law, reach = vector.threshold_law, range(-200, 201)
    chance = sum(
        (cdf_above(law, noise) - cdf_above(law, noise + 1)) * cdf_above(vector.score_law, noise - ahead)
        for noise in reach
    )
    assert abs(passed[True] / WORDS**2 - chance) < 4 / WORDS
    assert 0 < passed[True] < WORDS**2


def test_a_stream_ends_at_its_first_pass_and_with_its_last_score() -> None:
    stream = LAPLACE.stream(0, Stream("end"))
    while not stream.passes(10**6):
        pass
    with pytest.raises(InternalError, match="first pass"):
        stream.passes(0)
    stream = GAUSSIAN.stream(10**6, Stream("last"))
    assert [stream.passes(0) for _ in range(3)] == [False] * 3
    with pytest.raises(InternalError, match="last score"):
        stream.passes(0)


class Slow(Stream):
    """Bits whose second question waits: that of the first score, behind the threshold's."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__("slow")
        self._fails, self._asked = fails, 0
        self.drawing, self.go_on = threading.Event(), threading.Event()

    def bits(self, count: int) -> int:
        self._asked += 1
        if self._asked == 2:
            self.drawing.set()
            self.go_on.wait(5)
            if self._fails:
                raise EOFError
        return super().bits(count)


def test_two_threads_get_one_pass_of_a_stream() -> None:
    """While one score is drawn, which passes, another waits for its turn, and finds the stream's end."""
    slow, told = Slow(), list[object]()
    stream = LAPLACE.stream(0, slow)

    def ask(score: int) -> None:
        try:
            told.append(stream.passes(score))
        except InternalError as error:
            told.append(str(error))

    first, second = (threading.Thread(target=ask, args=(score,)) for score in (10**6, -(10**6)))
    first.start()
    assert slow.drawing.wait(5)
    second.start()
    second.join(0.2)
    assert told == []
    slow.go_on.set()
    first.join()
    second.join()
    assert told[0] is True
    assert "first pass" in str(told[1])
    with pytest.raises(InternalError, match="first pass"):
        stream.passes(0)


def test_a_failure_while_a_score_is_drawn_ends_the_stream() -> None:
    slow = Slow(fails=True)
    slow.go_on.set()
    stream = LAPLACE.stream(10**6, slow)
    with pytest.raises(EOFError):
        stream.passes(0)
    with pytest.raises(InternalError, match="first pass"):
        stream.passes(0)


@pytest.mark.parametrize("score", [0.25, 1.0, True, Fraction(1), "1"], ids=repr)
def test_a_score_that_is_no_int_is_refused_before_it_is_drawn(score: object) -> None:
    stream = GAUSSIAN.stream(10**6, Stream("ints"))
    with pytest.raises(RequestError, match="as int"):
        stream.passes(score)  # type: ignore[arg-type]
    assert [stream.passes(0) for _ in range(3)] == [False] * 3


def test_a_stream_without_limit_goes_on() -> None:
    stream = LAPLACE.stream(10**6, Stream("long"))
    assert not any(stream.passes(0) for _ in range(500))


def test_the_noisy_threshold_stays_secret_and_is_asked_once() -> None:
    stream = LAPLACE.stream(12345, Stream("secret"))
    assert not any(character.isdigit() for character in repr(stream))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InternalError, match="never copied"):
            copied(stream)


def test_costs() -> None:
    assert LAPLACE.cost_units(Measure.PURE) == 2 * 10**15
    assert GAUSSIAN.cost_units(Measure.GDP) == math.ceil(Fraction(3, 36) * 10**15)
    assert GAUSSIAN.cost_units(Measure.ZCDP) == math.ceil(Fraction(3, 72) * 10**15)
    with pytest.raises(RequestError):
        GAUSSIAN.cost_units(Measure.PURE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplaceSparseVector(Fraction(6, 10), ONE, ONE),
        lambda: LaplaceSparseVector(ONE, ONE, Fraction(0)),
        lambda: LaplaceSparseVector(Fraction(0), ONE, ONE),
        lambda: GaussianSparseVector(ONE, ONE, ONE, Fraction(0), most=1),
        lambda: GaussianSparseVector(ONE, ONE, Fraction(0), ONE, most=1),
        lambda: GaussianSparseVector(ONE, ONE, ONE, ONE, most=0),
        lambda: GaussianSparseVector(ONE / 3, ONE, ONE, ONE, most=1),
    ],
)
def test_what_no_cost_holds_for_is_refused(make: Callable[[], SparseVector]) -> None:
    with pytest.raises(RequestError):
        make()
