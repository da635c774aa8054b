"""A filter's form made into SQL: sets of whole numbers, tested without anything that could fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from sqlglot import exp

from parco.queries.filters import Leaf, Node
from parco.queries.places import Places

__all__ = ["condition"]


def condition(node: Node, places: Mapping[str, exp.Expression]) -> exp.Expression:
    """For every form, returns an expression that is true for the rows in it, and false or null for all others.

    `places`: for each name the whole number at which the row's value lies, null where there is none.
    """
    if isinstance(node, Leaf):
        return _leaf(node, places[node.name])
    parts = [condition(part, places) for part in node.parts]
    return _all(parts) if node.word == "and" else _any(parts)


def _leaf(leaf: Leaf, place: exp.Expression) -> exp.Expression:
    # The ends of numbers and days stay open: a clamped value cannot lie behind them, nor can a day. A place behind
    # the declared keys is no key.
    is_open = leaf.scale != "keys"
    if not leaf.missing:
        return _inside(leaf.places, place, is_open=is_open)
    null = exp.Is(this=place.copy(), expression=exp.Null())
    return _any([null, exp.not_(_inside(leaf.places.complement, place, is_open=is_open))])


def _inside(places: Places, place: exp.Expression, *, is_open: bool) -> exp.Expression:
    points = [low for low, high in places.intervals if low == high and not (is_open and low in _ends(places))]
    spans = [pair for pair in places.intervals if pair[0] not in points]
    tests = [_span(pair, places, place, is_open=is_open) for pair in spans]
    if points:
        tests.append(exp.In(this=place.copy(), expressions=[_number(point) for point in points]))
    return _any(tests) if tests else exp.false()


def _ends(places: Places) -> tuple[int, int]:
    return places.first, places.last


def _span(pair: tuple[int, int], places: Places, place: exp.Expression, *, is_open: bool) -> exp.Expression:
    (low, high), first, last = pair, places.first, places.last
    tests: list[exp.Expression] = []
    if not (is_open and low == first):
        tests.append(exp.GTE(this=place.copy(), expression=_number(low)))
    if not (is_open and high == last):
        tests.append(exp.LTE(this=place.copy(), expression=_number(high)))
    return _all(tests) if tests else exp.not_(exp.Is(this=place.copy(), expression=exp.Null()))


def _all(tests: Sequence[exp.Expression]) -> exp.Expression:
    return cast(exp.Expression, exp.and_(*tests))


def _any(tests: Sequence[exp.Expression]) -> exp.Expression:
    return cast(exp.Expression, exp.or_(*tests))


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
