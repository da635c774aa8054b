"""Draws by the block: every short word, every cut point, the error bound at its worst, and the same draws as balls."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from numpy.typing import NDArray

from parco.errors import InternalError, RequestError
from parco.noise import vector
from parco.noise.bits import CipherBits
from parco.noise.draw import draw, draw_from
from parco.noise.laws import Law, RoundedGaussian, TwoSidedGeometric
from parco.noise.vector import BLOCK, Sampler, add_noise, draw_array
from tests.noise import cutpoints, oracle
from tests.noise.tapes import REST, Given, Script, Stream, signed

KINDS = pytest.mark.parametrize("kind", oracle.KINDS)
SMALL = [Fraction(3, 10), Fraction(1), Fraction(5, 2), Fraction(127, 8), Fraction(100)]
LARGE = [Fraction(1000), Fraction(10**6), Fraction(10**9, 7), Fraction(10**12)]

# Every word


def all_words(size: int) -> NDArray[np.int64]:
    """All words that begin with each of 2^size beginnings and go on alike."""
    return signed([word << (64 - size) | REST >> size for word in range(1 << size)])


def mismatches(law: Law, size: int, *, truth: Law | None = None) -> int:
    """On how many of all 2^size words the block's draw is not the exact quantile of `truth`, by default the law's."""
    truth = truth or law
    table = oracle.cuts(type(truth), truth.scale)
    words, places = all_words(size), [int(probability * 2**64) for _, probability in table]
    assert not set(places) & set(words.view(np.uint64).tolist())
    below = np.searchsorted(np.array(places, np.uint64), words.view(np.uint64))
    expected = np.array([k for k, _ in table] + [table[-1][0] + 1])[below]
    drawn = draw_array(law, len(words), Given(words))
    return int((drawn != expected).sum())


@KINDS
@pytest.mark.parametrize("scale", SMALL[:-1])
@pytest.mark.parametrize("size", [12, 16])
def test_every_word_gives_the_exact_quantile(kind: type[Law], scale: Fraction, size: int) -> None:
    assert mismatches(kind(scale), size) == 0


@KINDS
def test_at_the_least_scale_every_word_is_zero(kind: type[Law]) -> None:
    # One step is 500,000 scales away, or a million: no word of 64 bits reaches it.
    words = np.concatenate([all_words(16), EDGES])
    assert not draw_array(kind(Fraction(1, 10**6)), len(words), Given(words)).any()


@KINDS
def test_a_scale_off_by_one_per_cent_is_seen_on_the_words(kind: type[Law]) -> None:
    assert mismatches(kind(Fraction(792, 100)), 12, truth=kind(Fraction(8))) >= 10


# Cut points


def check_cut_points(law: Law, count: int | None) -> None:
    """Every wanted cut point: certain words on both sides are right, and what lies between is decided by balls."""
    wanted = cutpoints.magnitudes(law, count)
    cuts, inside = cutpoints.cut_words(law, wanted)
    last, first, wrong = cutpoints.edges(law, wanted, cuts)
    assert wrong == 0
    assert (last < cuts).all()
    assert (cuts < first).all()
    for m, cut, part in zip(wanted, cuts.tolist(), inside, strict=True):
        assert draw_from(law, cut - 1, Script(REST)) <= -m
        assert draw_from(law, cut + 1, Script(REST)) > -m
        # On the cut point itself the word behind decides.
        far = Fraction(REST, 2**64) < part
        assert (draw_from(law, cut, Script(REST)) <= -m) == far
        assert (draw_from(law, cut ^ (2**64 - 1), Script(REST ^ (2**64 - 1))) >= m) == far


@KINDS
@pytest.mark.parametrize("scale", SMALL[:-1])
def test_every_cut_point_of_a_small_scale(kind: type[Law], scale: Fraction) -> None:
    check_cut_points(kind(scale), None)


@KINDS
@pytest.mark.parametrize("scale", [SMALL[-1], *LARGE])
def test_some_cut_points_of_a_larger_scale(kind: type[Law], scale: Fraction) -> None:
    check_cut_points(kind(scale), 60)


@pytest.mark.long
@KINDS
@pytest.mark.parametrize("scale", [Fraction(20), Fraction(333, 7), Fraction(100)])
def test_every_cut_point_up_to_a_scale_of_100(kind: type[Law], scale: Fraction) -> None:
    check_cut_points(kind(scale), None)


@pytest.mark.long
@KINDS
@pytest.mark.parametrize("scale", LARGE)
def test_ten_thousand_cut_points_of_a_larger_scale(kind: type[Law], scale: Fraction) -> None:
    check_cut_points(kind(scale), 10_000)


@KINDS
@pytest.mark.parametrize("scale", [Fraction(5, 2), Fraction(10**9)])
def test_a_bound_that_is_too_small_is_seen_at_the_cut_points(
    kind: type[Law], scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, scaled = kind(scale), vector._scaled

    def daring(law: Law) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        columns, margins = scaled(law)
        return columns, 0.5 - (0.5 - margins) / 30

    monkeypatch.setattr(vector, "_scaled", daring)
    wanted = cutpoints.magnitudes(law, 60)
    assert cutpoints.edges(law, wanted, cutpoints.cut_words(law, wanted)[0])[2] > 0


# The error bound


def heights(sampler: Sampler, words: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The doubles y of a block of words, and the error that is claimed of each."""
    index, sign, (u, y, spare) = np.empty_like(words), np.empty_like(words), np.empty((3, len(words)))
    vector._find(words, sign=sign, index=index, u=u)
    sampler._evaluate(index, u, y=y, spare=spare)
    return y, 0.5 - sampler._margins[index]


@KINDS
@pytest.mark.parametrize("scale", [*SMALL, *LARGE])
def test_next_to_half_integers_no_double_is_off_by_more_than_its_bound(kind: type[Law], scale: Fraction) -> None:
    # At the cut point of m the exact height is m: at its word's ends it is off by less than the word is wide, which
    # the bound covers. The bound is not idle either: somewhere a fifteenth of it is used up.
    law = kind(scale)
    wanted = cutpoints.magnitudes(law, 1000)
    words, _ = cutpoints.cut_words(law, wanted)
    y, claimed = heights(Sampler(law), words)
    with mp.workdps(40):
        error = np.array([abs(float(mp.mpf(float(value)) - m)) for value, m in zip(y, wanted, strict=True)])
    finite = np.isfinite(claimed)
    assert finite.sum() > 0.8 * len(wanted)
    shares = error[finite] / claimed[finite]
    assert shares.max() <= 1
    assert shares.max() > 1 / 15


@KINDS
@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(1), *LARGE])
def test_the_share_of_words_left_to_balls_is_what_is_said(kind: type[Law], scale: Fraction) -> None:
    # A piece of the order e holds 2^(e-63)/8 of all words; of those, twice the error lies about each integer.
    margins = Sampler(kind(scale))._margins[:-1]
    orders = np.arange(len(margins)) // 8 - 1
    share = float((2.0 ** (orders - 63) / 8 * np.minimum(1, 2 * (0.5 - margins))).sum())
    assert share < 2e-15 * max(float(scale), 1)
    if scale == 10**12:
        sampler, uncertain = Sampler(kind(scale)), 0
        bits = Stream("share")
        for _ in range(40):
            uncertain += int((~sampler.decide(bits.words(BLOCK))[1]).sum())
        # About 700 to 950 of 655,360: six standard deviations of the count.
        assert abs(uncertain - 40 * BLOCK * share) < 6 * (40 * BLOCK * share) ** 0.5


# The same draws as balls


@KINDS
@settings(max_examples=25, deadline=None)
@given(scale=st.fractions(Fraction(1, 10**4), Fraction(2**40), max_denominator=10**6), name=st.text(max_size=5))
def test_a_block_draws_what_balls_draw_from_the_same_words(kind: type[Law], scale: Fraction, name: str) -> None:
    words = np.concatenate([Stream(name).words(20), EDGES])
    alone = [draw_from(kind(scale), int(word) & (2**64 - 1), bits) for bits in [Stream("behind")] for word in words]
    assert draw_array(kind(scale), len(words), Given(words)).tolist() == alone


EDGES = signed([0, 1, 2, 255, 256, 2**52 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 2**9, 2**63 - 1, 2**63, 2**64 - 1])


@KINDS
@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(8), Fraction(10**9), Fraction(10**12)])
def test_draws_rise_with_the_word(kind: type[Law], scale: Fraction) -> None:
    words = np.sort(np.concatenate([Stream("rise").words(5000).view(np.uint64), EDGES.view(np.uint64)])).view(np.int64)
    drawn = draw_array(kind(scale), len(words), Given(words))
    assert (np.diff(drawn) >= 0).all()
    assert drawn[0] <= 0 <= drawn[-1]


@KINDS
def test_blocks_join_without_a_seam(kind: type[Law]) -> None:
    count = 2 * BLOCK + 77
    whole = draw_array(kind(Fraction(1000)), count, Stream("seam"))
    words = Stream("seam").words(count)
    parts = [draw_array(kind(Fraction(1000)), len(part), Given(part)) for part in np.array_split(words, 9)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert draw_array(kind(Fraction(1000)), 0, Stream("seam")).shape == (0,)


def test_the_draws_of_a_tape_are_known() -> None:
    # By hand: the words' tails are 1/4, 1/8 and 2^-10, and their mirror images.
    tape = [1 << 62, 1 << 61, 1 << 54, 3 << 62, 7 << 61, 2**64 - 2**54]
    drawn = draw_array(RoundedGaussian(Fraction(100)), 6, Script(*tape))
    assert drawn.tolist() == [-67, -115, -310, 67, 115, 310]


@pytest.mark.parametrize("scale", [Fraction(1, 2**40) - Fraction(1, 2**90), Fraction(2**40) + 1])
def test_scales_out_of_reach_are_refused_here_and_drawn_by_balls(scale: Fraction) -> None:
    law = TwoSidedGeometric(scale)
    with pytest.raises(RequestError):
        draw_array(law, 3, CipherBits())
    bits = Stream("balls")
    expected = [7 + draw(law, bits) for _ in range(3)]
    assert list(add_noise([7, 7, 7], law, Stream("balls"))) == [expected]


# Adding


@pytest.mark.parametrize("values", [[2**62, -(2**62)], [2**62 + 1, 0], [2**63 - 1, -(2**63)], [10**40, -(10**40), 3]])
def test_sums_are_exact_at_every_size(values: list[int]) -> None:
    law = RoundedGaussian(Fraction(10**12))
    noise = draw_array(law, len(values), Stream("sums")).tolist()
    [sums] = add_noise(values, law, Stream("sums"))
    assert sums == [value + extra for value, extra in zip(values, noise, strict=True)]
    assert all(type(value) is int for value in sums)


def test_the_memory_of_many_cells_is_that_of_one_block() -> None:
    values, law = [12345] * 200_000, RoundedGaussian(Fraction(1000))
    draw_array(law, 1, CipherBits())
    tracemalloc.start()
    cells = sum(len(block) for block in add_noise(values, law, CipherBits()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cells == len(values)
    # Seven arrays of a block, 128 KiB each, and two blocks of Python integers.
    assert peak < 4 * 2**20


# Whatever goes wrong


def test_two_threads_draw_exactly_and_from_one_stream() -> None:
    law, bits, found = RoundedGaussian(Fraction(10**12)), CipherBits(), []
    threads = [threading.Thread(target=lambda: found.append(draw_array(law, 60_000, bits))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # At this scale equal draws are rare (a hundredth of a pair is expected): the threads had different words.
    assert len(np.unique(np.concatenate(found))) > 119_990
    assert all(abs(drawn.std() / 1e12 - 1) < 0.02 for drawn in found)


def test_the_end_of_a_tape_is_an_error() -> None:
    with pytest.raises(IndexError):
        draw_array(RoundedGaussian(Fraction(8)), 3, Script(1, 2))


def test_a_source_that_fails_stops_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise InternalError("no more")

    monkeypatch.setattr(vector, "draw_from", fails)
    with pytest.raises(InternalError):
        draw_array(RoundedGaussian(Fraction(8)), 1, Script(0))


CORRUPTIONS: list[Callable[[NDArray[np.float64]], NDArray[np.float64]]] = [
    lambda columns: np.full_like(columns, np.nan),
    lambda columns: columns * np.inf,
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("corrupt", CORRUPTIONS)
def test_numbers_that_are_none_leave_the_word_to_balls(
    corrupt: Callable[[NDArray[np.float64]], NDArray[np.float64]], monkeypatch: pytest.MonkeyPatch
) -> None:
    law, scaled, words = RoundedGaussian(Fraction(8)), vector._scaled, Stream("none").words(50)
    expected = draw_array(law, len(words), Given(words))
    monkeypatch.setattr(vector, "_scaled", lambda law: (corrupt(scaled(law)[0]), scaled(law)[1]))
    assert not Sampler(law).decide(words)[1].any()
    assert np.array_equal(draw_array(law, len(words), Given(words)), expected)
