"""The stated distances are those of the worst unit there can be: none is farther, and one is as far."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import pytest

from parco.contract.contract import Contract
from parco.errors import QuestionError, RequestError
from parco.privacy.sensitivity import Sensitivity
from parco.queries.query import Query
from parco.queries.sensitivity import reach, sensitivity
from tests.contract.document import parse

BOUNDS = [("-10", "20"), ("0", "2"), ("1", "2"), ("-2", "-1"), ("-3", "3"), ("-2", "0"), ("1.5", "1.5"), ("0", "0.5")]


def contract(
    *,
    groups: int,
    rows: int,
    bounds: tuple[str, str] = ("-10", "20"),
    lattice: str = "0.5",
    neighbours: str = "add-or-remove",
) -> Contract:
    return parse(
        ('neighbours = "add-or-remove"', f'neighbours = "{neighbours}"'),
        ("groups = 3", f"groups = {groups}"),
        ("rows = 2", f"rows = {rows}"),
        ('lattice = "0.05"', f'lattice = "{lattice}"'),
        ('lower = "-10"', f'lower = "{bounds[0]}"'),
        ('upper = "20"', f'upper = "{bounds[1]}"'),
    )


def lattice_values(lower: str, upper: str, lattice: str) -> list[Fraction]:
    step = Fraction(lattice)
    low, high = (int(Fraction(bound) / step) for bound in (lower, upper))
    return [step * place for place in range(low, high + 1)]


def units(
    statistic: str, values: list[Fraction], *, groups: int, rows: int, cells: int, ends: bool = False
) -> Iterator[tuple[Fraction, ...]]:
    """What every unit there can be adds to the answer: at most `rows` values in each of at most `groups` cells."""
    amounts = set()
    for size in range(1, rows + 1):
        for kept in itertools.combinations_with_replacement(values, size):
            amounts.add(
                {
                    "count": Fraction(size),
                    "count_units": Fraction(1),
                    "sum": sum(kept, Fraction(0)),
                    "sum_squares": sum((x**2 for x in kept), Fraction(0)),
                }[statistic]
            )
    if ends:
        amounts = {min(amounts), max(amounts)}
    for used in range(min(groups, cells) + 1):
        for places in itertools.combinations(range(cells), used):
            for chosen in itertools.product(sorted(amounts), repeat=used):
                vector = [Fraction(0)] * cells
                for place, amount in zip(places, chosen, strict=True):
                    vector[place] = amount
                yield tuple(vector)


def check(query: Query, values: list[Fraction]) -> None:
    unit = query.contract.unit
    stated = sensitivity(query)
    # Norms are convex in each part, so that the farthest pair of units is one of ends; one unit has no row that counts.
    replaced = unit.neighbours == "replace"
    limits = {"groups": unit.groups, "rows": unit.rows, "cells": query.cells}
    vectors = list(units(query.statistic.value, values, ends=replaced, **limits))
    if replaced:
        pairs = itertools.product(vectors, repeat=2)
        vectors = [tuple(a - b for a, b in zip(one, other, strict=True)) for one, other in pairs]
    assert max(sum((abs(part) for part in vector), Fraction(0)) for vector in vectors) == stated.l1
    assert max(sum((part**2 for part in vector), Fraction(0)) for vector in vectors) == stated.l2_squared
    if (known := reach(query)) is not None:
        cells, each = known
        assert (cells * each, cells * each**2) == (stated.l1, stated.l2_squared)
        assert all(sum(part != 0 for part in vector) <= cells for vector in vectors)
        assert all(abs(part) <= each for vector in vectors for part in vector)
    else:
        # Only there is a unit that comes against one that goes farther than either alone.
        assert replaced
        assert min(min(vector) for vector in vectors) < 0 < max(max(vector) for vector in vectors)


@pytest.mark.parametrize("by", [(), ("ward",), ("age",)])
@pytest.mark.parametrize("groups", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_counts(by: tuple[str, ...], groups: int, rows: int) -> None:
    agreed = contract(groups=groups, rows=rows)
    for statistic in ("count", "count_units"):
        check(Query.of(agreed, statistic, by=by), [Fraction(0)])


@pytest.mark.parametrize("by", [(), ("ward",), ("age",)])
@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("bounds", BOUNDS[1:], ids=str)
def test_sums(by: tuple[str, ...], groups: int, rows: int, bounds: tuple[str, str]) -> None:
    agreed = contract(groups=groups, rows=rows, bounds=bounds)
    check(Query.of(agreed, "sum", column="cost", by=by), lattice_values(*bounds, "0.5"))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("bounds", BOUNDS[1:], ids=str)
@pytest.mark.parametrize("centred", [False, True])
def test_squares(groups: int, rows: int, bounds: tuple[str, str], *, centred: bool) -> None:
    agreed = contract(groups=groups, rows=rows, bounds=bounds)
    if centred and bounds[0] == bounds[1]:
        return
    query = Query.of(agreed, "sum_squares", column="cost", by=("ward",), centred=centred)
    check(query, [value - query.centre for value in lattice_values(*bounds, "0.5")])


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(("groups", "choices"), [(1, (1, 2)), (2, (2, 2)), (9, (2, 2))])
@pytest.mark.parametrize("share", ["0", "1/3", "1/2", "1"])
def test_a_quantile_moves_the_scores_of_the_groups_a_unit_can_reach(
    neighbours: str, groups: int, choices: tuple[int, int], share: str
) -> None:
    agreed, at = contract(groups=groups, rows=3, neighbours=neighbours), Fraction(share)
    query = Query.of(agreed, "quantile", column="cost", by=("ward",), at=at)
    assert query.cells == 2
    each = 3 * max(at, 1 - at) if neighbours == "add-or-remove" else Fraction(3)
    number = choices[neighbours == "replace"]
    assert sensitivity(query) == Sensitivity(l1=number * each, l2_squared=number * each**2)


@pytest.mark.parametrize("by", [(), ("ward",), ("age",)])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2])
def test_counts_where_a_unit_is_replaced(by: tuple[str, ...], groups: int, rows: int) -> None:
    agreed = contract(groups=groups, rows=rows, neighbours="replace")
    for statistic in ("count", "count_units"):
        check(Query.of(agreed, statistic, by=by), [Fraction(0)])


@pytest.mark.parametrize("by", [(), ("ward",), ("age",)])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("bounds", [*BOUNDS[1:], ("-1", "3"), ("-0.5", "4")], ids=str)
def test_sums_where_a_unit_is_replaced(by: tuple[str, ...], groups: int, rows: int, bounds: tuple[str, str]) -> None:
    agreed = contract(groups=groups, rows=rows, bounds=bounds, neighbours="replace")
    check(Query.of(agreed, "sum", column="cost", by=by), lattice_values(*bounds, "0.5"))


def sets(values: int, most: int) -> list[frozenset[int]]:
    """All sets of at most `most` of these values."""
    sizes = range(min(values, most) + 1)
    return [frozenset(kept) for size in sizes for kept in itertools.combinations(range(values), size)]


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(("groups", "cells"), [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("values", [1, 2])
def test_distinct_values(neighbours: str, groups: int, cells: int, rows: int, values: int) -> None:
    upper = str(Fraction(values - 1, 2))
    agreed = contract(groups=groups, rows=rows, bounds=("0", upper), lattice="0.5", neighbours=neighbours)
    stated = sensitivity(Query.of(agreed, "count_distinct", column="cost", by=("ward",) if cells == 2 else ()))
    # Every unit, and every table of values that all others hold.
    units = itertools.product(sets(values, rows), repeat=cells)
    held = [unit for unit in units if sum(bool(part) for part in unit) <= groups]
    nobody = (frozenset[int](),) * cells
    found = [
        [len(own | rest) - len(new | rest) for own, new, rest in zip(one, other, others, strict=True)]
        for others in itertools.product(sets(values, values), repeat=cells)
        for one in held
        for other in (held if neighbours == "replace" else [nobody])
    ]
    assert max(sum(abs(part) for part in moved) for moved in found) == stated.l1
    assert max(sum(part**2 for part in moved) for moved in found) == stated.l2_squared


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bounds", [*BOUNDS[1:6], ("0", "0.5"), ("-0.5", "4")], ids=str)
def test_centred_sums(neighbours: str, groups: int, bounds: tuple[str, str]) -> None:
    agreed = contract(groups=groups, rows=2, bounds=bounds, neighbours=neighbours)
    query = Query.of(agreed, "sum", column="cost", by=("ward",), centred=True)
    low, high = (Fraction(bound) for bound in bounds)
    # The lattice point nearest the middle, the upper one of two.
    assert -Fraction(1, 4) < query.centre - (low + high) / 2 <= Fraction(1, 4)
    assert (query.centre / Fraction(1, 2)).denominator == 1
    check(query, [value - query.centre for value in lattice_values(*bounds, "0.5")])


def test_a_condition_changes_no_distance() -> None:
    agreed = contract(groups=2, rows=3)
    for statistic, column in (("count", None), ("sum", "cost"), ("count_units", None), ("count_distinct", "ward")):
        plain = Query.of(agreed, statistic, column=column, by="ward")
        filtered = Query.of(agreed, statistic, column=column, by="ward", where="age >= 2 and ward = 'north'")
        assert sensitivity(plain) == sensitivity(filtered)


@pytest.mark.parametrize(
    ("bounds", "groups", "l1", "l2_squared"),
    [
        # G = 12 months and wards. Same sign: R m min(2K, G) and R^2 m^2 min(2K, G), here R = 7.
        (("0", "2"), 5, 7 * 2 * 10, 49 * 4 * 10),
        (("0", "2"), 10, 7 * 2 * 12, 49 * 4 * 12),
        (("-2", "-1"), 12, 7 * 2 * 12, 49 * 4 * 12),
        # Mixed: the units may avoid each other in L1; in L2, (hi - lo)^2 above 2 m^2 makes them meet everywhere.
        (("-3", "3"), 5, 7 * 10 * 3, 49 * 5 * 36),
        (("-3", "3"), 10, 7 * (8 * 6 + 4 * 3), 49 * 10 * 36),
        (("-1", "10"), 5, 7 * 10 * 10, 49 * 10 * 100),
        (("-1", "10"), 10, 7 * (8 * 11 + 4 * 10), 49 * (8 * 121 + 4 * 100)),
    ],
)
def test_replaced_sums_in_closed_form(bounds: tuple[str, str], groups: int, l1: int, l2_squared: int) -> None:
    agreed = contract(groups=groups, rows=7, bounds=bounds, neighbours="replace")
    stated = sensitivity(Query.of(agreed, "sum", column="cost", by=("month", "ward")))
    assert stated == Sensitivity(l1=Fraction(l1), l2_squared=Fraction(l2_squared))
    whole = sensitivity(Query.of(agreed, "sum", column="cost"))
    low, high = (Fraction(bound) for bound in bounds)
    span = 7 * (max(high, Fraction(0)) - min(low, Fraction(0)))
    assert whole == Sensitivity(l1=span, l2_squared=span**2)


def test_who_is_told_apart_does_not_change_the_question() -> None:
    one, other = (contract(groups=2, rows=1, neighbours=name) for name in ("add-or-remove", "replace"))
    texts = {Query.of(agreed, "sum", column="cost", by="age").question("1") for agreed in (one, other)}
    assert len(texts) == 1
    assert one.terms != other.terms


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_sums_in_closed_form(bounds: tuple[str, str]) -> None:
    magnitude = max(abs(Fraction(bound)) for bound in bounds)
    agreed = contract(groups=10, rows=7, bounds=bounds)
    stated = sensitivity(Query.of(agreed, "sum", column="cost", by=("month", "ward")))
    assert stated == Sensitivity(l1=10 * 7 * magnitude, l2_squared=10 * (7 * magnitude) ** 2)


@pytest.mark.parametrize("by", [(), ("ward",), ("age",)])
@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("rows", [1, 3, 1_000_000_000])
@pytest.mark.parametrize("bounds", BOUNDS[1:], ids=str)
def test_sums_clamped_by_the_unit(by: tuple[str, ...], groups: int, rows: int, bounds: tuple[str, str]) -> None:
    """What a unit adds up to is any value within the bounds, whatever number of rows it is made of."""
    agreed = contract(groups=groups, rows=rows, bounds=bounds)
    agreed = Contract.from_text(agreed.text.replace('"lattice":"0.5"', '"clamp":"unit","lattice":"0.5"'))
    query = Query.of(agreed, "sum", column="cost", by=by)
    stated = sensitivity(query)
    vectors = list(units("sum", lattice_values(*bounds, "0.5"), groups=groups, rows=1, cells=query.cells))
    assert max(sum((abs(part) for part in vector), Fraction(0)) for vector in vectors) == stated.l1
    assert max(sum((part**2 for part in vector), Fraction(0)) for vector in vectors) == stated.l2_squared


def test_it_follows_from_contract_and_question_alone() -> None:
    query = Query.of(contract(groups=1_000_000_000, rows=1_000_000_000, bounds=("-1e17", "1e17")), "sum", column="cost")
    assert sensitivity(query) == Sensitivity(l1=Fraction(10**26), l2_squared=Fraction(10**52))


def test_a_sum_of_zeros_has_no_noise_and_is_refused() -> None:
    agreed = contract(groups=1, rows=1, bounds=("0", "0"))
    with pytest.raises(QuestionError, match="cost has bounds 0 and 0"):
        Query.of(agreed, "sum", column="cost")
    for l1, l2_squared in ((0, 1), (1, 0), (-1, 1), (1, -1)):
        with pytest.raises(RequestError, match="a sensitivity is a positive number"):
            Sensitivity(l1=Fraction(l1), l2_squared=Fraction(l2_squared))
