"""Parts: shares that sum to one, ranges of coins that meet, terms that all contracts on the data set share."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parco.contract.contract import Contract
from parco.contract.division import COIN_BITS, WHOLE, check_parts, coin_range, part_names
from parco.errors import ContractError
from parco.ledger import entries

from .document import DOCUMENT, parse


def divided(*lines: str) -> Contract:
    return Contract.parse("\n".join([DOCUMENT, "[parts]", *lines]))


def test_the_undivided_account_has_one_name_everywhere() -> None:
    assert WHOLE == entries.WHOLE
    assert parse().accounts == (WHOLE,)


def test_parts_are_in_the_terms_and_old_terms_keep_their_text() -> None:
    assert "parts" not in parse().terms
    assert "parts" not in parse().text
    terms = divided('fit = "0.8"', 'rest = "0.2"').terms
    assert '"parts":{"fit":"0.8","rest":"0.2"}' in terms
    assert terms != divided('fit = "0.7"', 'rest = "0.3"').terms


def test_two_files_that_list_parts_otherwise_are_one_contract() -> None:
    one, other = divided('rest = "1/5"', "fit = 0.80"), divided('fit = "0.8"', 'rest = "0.2"')
    assert (one.text, one.accounts) == (other.text, other.accounts)
    assert Contract.from_text(one.text).accounts == one.accounts == ("fit", "rest")
    assert one.parts is not None
    assert coin_range(one.parts, "fit") == coin_range({"rest": Fraction(1, 5), "fit": Fraction(4, 5)}, "fit")


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=8))
def test_ranges_meet_without_gaps_and_keep_the_shares(weights: list[int]) -> None:
    parts = {f"p{place}": Fraction(weight, sum(weights)) for place, weight in enumerate(weights)}
    ranges = [coin_range(parts, name) for name in part_names(parts)]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 2**COIN_BITS
    assert all(first[1] == second[0] for first, second in itertools.pairwise(ranges))
    for name, (low, high) in zip(part_names(parts), ranges, strict=True):
        assert abs(high - low - parts[name] * 2**COIN_BITS) < 1


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((), "between 2 and"),
        (("fit = 1",), "between 2 and"),
        (('fit = "0.8"', 'rest = "0.1"'), "sum to 1"),
        (('a = "0.333333"', 'b = "0.333333"', 'c = "0.333333"'), 'write thirds as "1/3"'),
        (("fit = 1", "rest = 0"), "at least 1e-6"),
        (('fit = "1.5"', 'rest = "-0.5"'), "at least 1e-6"),
        (('whole = "0.5"', 'rest = "0.5"'), "another name"),
        (('fit = "0.5"', 'rest = "half"'), "parts.rest"),
        (("fit = true", 'rest = "0.5"'), "parts.fit"),
        (("fit = nan", 'rest = "0.5"'), "parts.fit"),
        (('"e\u0301" = "0.5"', '"\u00e9" = "0.5"'), "declared twice"),
        (('"a\\u0007" = "0.5"', 'rest = "0.5"'), "control characters"),
        (tuple(f'p{place} = "1/101"' for place in range(101)), "between 2 and"),
    ],
)
def test_other_parts_are_refused(lines: tuple[str, ...], words: str) -> None:
    with pytest.raises(ContractError) as caught:
        divided(*lines)
    assert words in str(caught.value)


def test_parts_are_refused_where_a_unit_may_be_replaced() -> None:
    halves = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    check_parts(halves, neighbours="add-or-remove")
    check_parts(None, neighbours="replace")
    with pytest.raises(ValueError, match="add-or-remove"):
        check_parts(halves, neighbours="replace")
