"""Sets of places behave as sets, and one set has one list of intervals."""

from __future__ import annotations

import itertools

import pytest

from parco.queries.places import Places

FIRST, LAST = -1, 2
PAIRS = [(low, high) for low in range(-3, 5) for high in range(-3, 5)]


def members(places: Places) -> set[int]:
    return {place for low, high in places.intervals for place in range(low, high + 1)}


@pytest.mark.parametrize("pairs", list(itertools.combinations(PAIRS[::5], 2)), ids=str)
def test_union_complement_and_intersection(pairs: tuple[tuple[int, int], tuple[int, int]]) -> None:
    everything = set(range(FIRST, LAST + 1))
    both = Places.of(FIRST, LAST, pairs)
    one, other = (Places.of(FIRST, LAST, [pair]) for pair in pairs)
    assert members(both) == {place for low, high in pairs for place in range(low, high + 1)} & everything
    assert one | other == both
    assert members(both.complement) == everything - members(both)
    assert members(one & other) == members(one) & members(other)
    assert both.complement.complement == both
    assert both.full == (members(both) == everything)
    assert both.empty == (not members(both))


def test_each_set_has_one_form() -> None:
    forms = {Places.of(FIRST, LAST, pairs) for size in range(4) for pairs in itertools.combinations(PAIRS[::2], size)}
    assert len(forms) == len({frozenset(members(form)) for form in forms})
