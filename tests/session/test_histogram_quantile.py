"""Quantiles read off noisy counts: where the counts, added up, reach a share of their total; whatever their signs."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from parco.session.quantile import _bin_rows
from parco.session.release import Answer

SHARES = [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)]


def answer(counts: list[int]) -> Answer:
    labels = tuple((place,) for place in range(len(counts)))
    return Answer(("bin",), labels, tuple(counts), Fraction(1, 4), Fraction(3), Fraction(95, 100))


@given(counts=st.lists(st.integers(-20, 50), min_size=1, max_size=8))
def test_each_share_has_the_first_bin_that_reaches_it_and_none_falls(counts: list[int]) -> None:
    found = [row.bin for row in _bin_rows(answer(counts), 0, SHARES)]
    if sum(counts) <= 0:
        assert found == [None] * len(SHARES)
        return
    assert found == sorted(found, key=lambda place: int(place or 0))
    for share, place in zip(SHARES, found, strict=True):
        added = [sum(counts[: end + 1]) for end in range(len(counts))]
        assert place == next(end for end, total in enumerate(added) if total >= share * sum(counts))
