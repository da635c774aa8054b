"""The delta of key selection: the chance that one of several keys is published, by exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.privacy import selection

CHANCES = st.lists(st.fractions(0, Fraction(99, 100), max_denominator=10**6), min_size=1, max_size=2)


@given(chances=CHANCES, keys=st.integers(1, 40))
def test_it_is_the_chance_of_one_or_more(chances: list[Fraction], keys: int) -> None:
    exact = 1 - prod(1 - chance for chance in chances) ** keys
    found = selection.delta_upper(chances, keys=keys)
    assert exact <= found <= exact * (1 + Fraction(1, 2**200)) + Fraction(1, 2**250)


def test_a_tiny_chance_does_not_vanish() -> None:
    tiny = Fraction(1, 10**60)
    found = selection.delta_upper([tiny], keys=3)
    assert 1 - (1 - tiny) ** 3 <= found < 3 * tiny * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize(
    ("chances", "keys"), [([], 1), ([Fraction(1)], 1), ([Fraction(-1, 2)], 1), ([Fraction(1, 2)], 0)]
)
def test_what_is_no_chance_is_refused(chances: list[Fraction], keys: int) -> None:
    with pytest.raises(RequestError):
        selection.delta_upper(chances, keys=keys)
