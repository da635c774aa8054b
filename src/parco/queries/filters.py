"""Which rows a question is about: a condition on declared columns, brought to one form.

A condition names declared columns and bins, never the unit, and compares them with literals: `=`, `<>`, `<`, `<=`,
`>`, `>=`, `in`, `between`, `is null`, under `and`, `or`, `not`. Values are those that the contract reads: clamped and
on the lattice, or one of the declared keys. What is missing, does not parse or is not declared is null, and a
comparison with null is false, also under `not`. So every condition has an answer for every row, and none can fail.

Each comparison is a set of places: lattice steps, days, or positions among the declared keys. `not` is pushed into
the comparisons, those of one column are joined into one set, and the rest is sorted: however it is written, one
condition has one form. Start with `Filter.of`; `engines/filters.py` makes the form into SQL.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from parco import canonical
from parco.contract.contract import Contract
from parco.errors import QuestionError
from parco.measure import exact_text
from parco.queries.definition import definition
from parco.queries.places import Places

__all__ = ["Filter", "Junction", "Leaf", "Node", "Scale", "joined", "words"]

Scale = Literal["numbers", "days", "keys"]


@dataclass(frozen=True)
class Leaf:
    """A set of places of one column or bins; `missing` says whether null is in it."""

    name: str
    scale: Scale
    places: Places
    missing: bool

    @property
    def always(self) -> bool:
        """Whether every row is in it."""
        return self.missing and self.places.full

    @property
    def never(self) -> bool:
        """Whether no row is in it."""
        return not self.missing and self.places.empty


@dataclass(frozen=True)
class Junction:
    """Two or more conditions under one `and` or `or`, each in its form, sorted by it."""

    word: Literal["and", "or"]
    parts: tuple[Node, ...]


Node = Leaf | Junction


@dataclass(frozen=True)
class Filter:
    """A condition on the rows, in its one form; make one with `Filter.of`."""

    contract: Contract
    root: Node

    @classmethod
    def of(cls, contract: Contract, text: str) -> Filter | None:
        """For every condition the contract allows, returns it, or raises QuestionError saying what it may hold.

        None where it holds for every row; one that holds for no row is refused.
        """
        from parco.queries.condition import read

        root = read(contract, text)
        if isinstance(root, Leaf) and root.never:
            raise QuestionError("where: no row can meet this condition, so that its answer needs no data")
        return None if isinstance(root, Leaf) and root.always else cls(contract, root)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns and bins it looks at, sorted."""
        return tuple(sorted({leaf.name for leaf in _leaves(self.root)}))

    def record(self) -> dict[str, object]:
        """What a canonical question holds of it: the condition, and how the contract reads the columns in it.

        Bounds and keys are left out, since the sets name those on which the condition depends.
        """
        drop = {"keys", "lower", "upper", "first", "last"}
        columns = [definition(self.contract, name, drop=drop) for name in self.names]
        return {"condition": _record(self.root, self.contract), "columns": columns}

    def __str__(self) -> str:
        return words(_record(self.root, self.contract))


def joined(word: Literal["and", "or"], parts: Sequence[Node]) -> Node:
    """One form of the parts under `and` or `or`: flat, one set a column, without what decides nothing, sorted."""
    flat = [one for part in parts for one in _flattened(part, word)]
    leaves: dict[str, Leaf] = {}
    others: list[Node] = []
    for part in flat:
        if not isinstance(part, Leaf):
            others.append(part)
        elif part.name not in leaves:
            leaves[part.name] = part
        else:
            leaves[part.name] = _merged(word, leaves[part.name], part)
    decided = [leaf for leaf in leaves.values() if (leaf.never if word == "and" else leaf.always)]
    if decided:
        return decided[0]
    kept: list[Node] = [leaf for leaf in leaves.values() if not (leaf.always if word == "and" else leaf.never)]
    kept += others
    if not kept:
        return next(iter(leaves.values()))
    by_form = {canonical.encode(_sketch(part)): part for part in kept}
    distinct = [by_form[form] for form in sorted(by_form)]
    return distinct[0] if len(distinct) == 1 else Junction(word, tuple(distinct))


def _flattened(part: Node, word: str) -> tuple[Node, ...]:
    return part.parts if isinstance(part, Junction) and part.word == word else (part,)


def _merged(word: str, one: Leaf, other: Leaf) -> Leaf:
    if word == "and":
        return Leaf(one.name, one.scale, one.places & other.places, one.missing and other.missing)
    return Leaf(one.name, one.scale, one.places | other.places, one.missing or other.missing)


def _leaves(node: Node) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    else:
        for part in node.parts:
            yield from _leaves(part)


def _sketch(node: Node) -> object:
    if isinstance(node, Leaf):
        return [node.name, [list(pair) for pair in node.places.intervals], node.missing]
    return {node.word: [_sketch(part) for part in node.parts]}


def _record(node: Node, contract: Contract) -> dict[str, object]:
    """The condition as a tree of text: sets by their values, open where they reach a bound, which clamping fills."""
    if isinstance(node, Junction):
        parts = [_record(part, contract) for part in node.parts]
        return {node.word: sorted(parts, key=canonical.encode)}
    places = node.places.complement if node.missing else node.places
    word = "not in" if node.missing else "in"
    keys = contract.keys(node.name)
    if node.scale == "keys" and keys is not None:
        inside = [keys[place] for low, high in places.intervals for place in range(low, high + 1)]
        return {"name": node.name, word: sorted(map(str, inside))}

    def end(place: int, bound: int) -> str | None:
        return None if place == bound else _value(node, place, contract)

    return {
        "name": node.name,
        word: [[end(low, places.first), end(high, places.last)] for low, high in places.intervals],
    }


def _value(leaf: Leaf, place: int, contract: Contract) -> str:
    numeric = contract.numeric(leaf.name)
    if leaf.scale == "days" or numeric is None:
        return datetime.date.fromordinal(place).isoformat()
    return exact_text(place * numeric.lattice)


def words(condition: dict[str, object]) -> str:
    """A condition's record as a reader would write it."""
    for word in ("and", "or"):
        parts = condition.get(word)
        if isinstance(parts, list):
            return f" {word} ".join(f"({words(part)})" if {"and", "or"} & set(part) else words(part) for part in parts)
    name, missing = condition["name"], "not in" in condition
    found = condition["not in" if missing else "in"]
    items = found if isinstance(found, list) else []
    if all(isinstance(item, str) for item in items):
        one = f"{name} in ({', '.join(repr(item) for item in items)})"
    else:
        one = " or ".join(_between(str(name), *item) for item in items)
    if not missing:
        return one if len(items) == 1 or not one.count(" or ") else f"({one})"
    return f"{name} is null" if one == f"{name} is not null" else f"({name} is null or not ({one}))"


def _between(name: str, low: str | None, high: str | None) -> str:
    if low is None and high is None:
        return f"{name} is not null"
    if low == high:
        return f"{name} = {low}"
    if low is None or high is None:
        return f"{name} <= {high}" if low is None else f"{name} >= {low}"
    return f"{name} between {low} and {high}"
