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
import itertools
import math
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from parco import canonical
from parco.contract.columns import DateColumn
from parco.contract.contract import Contract
from parco.errors import QuestionError, RequestError
from parco.measure import exact, exact_text
from parco.queries.places import Places

__all__ = ["Filter", "Junction", "Leaf", "Node", "words"]

_LENGTH_MAX = 4000
_FLIPPED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}
_ALLOWED = "=, <>, <, <=, >, >=, in, between, is null, and, or, not"

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
        try:
            root = _Reader(contract).node(_tree(text), negated=False)
        except RecursionError:
            raise QuestionError("where: this condition is nested too deeply") from None
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
        contract = self.contract
        columns = [
            {
                "name": name,
                **(contract.bins.get(name) or contract.columns[name]).model_dump(
                    mode="json", exclude={"keys", "lower", "upper", "first", "last"}, exclude_none=True
                ),
            }
            for name in self.names
        ]
        return {"condition": _record(self.root, contract), "columns": columns}

    def __str__(self) -> str:
        return words(_record(self.root, self.contract))


def _tree(text: object) -> exp.Expression:
    if not isinstance(text, str) or not 0 < len(text) <= _LENGTH_MAX:
        raise QuestionError(f"where: give a condition as text of 1 to {_LENGTH_MAX} characters, such as \"items >= 2\"")
    try:
        found = parse(text)
    except (SqlglotError, ValueError):
        found = []
    if len(found) != 1 or found[0] is None:
        raise QuestionError(f"where: this is not one condition; it may hold {_ALLOWED}")
    return found[0]


class _Reader:
    """Makes a parsed tree into its form, or refuses what it holds by name."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract

    def node(self, tree: exp.Expression, *, negated: bool) -> Node:
        """The form of a tree, or of its negation."""
        match tree:
            case exp.Paren():
                return self.node(tree.this, negated=negated)
            case exp.Not():
                return self.node(tree.this, negated=not negated)
            case exp.And() | exp.Or():
                parts = [self.node(part, negated=negated) for part in _spine(tree)]
                return _joined("and" if isinstance(tree, exp.And) != negated else "or", parts)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self._comparison(tree, negated=negated)
            case exp.Between() if tree.args.get("symmetric") is None:
                low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
                high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
                return self.node(exp.And(this=low, expression=high), negated=negated)
            case exp.In() if set(filter(tree.args.get, tree.args)) == {"this", "expressions"}:
                column = self._column(tree.this)
                points = [column.compared(exp.EQ, literal) for literal in tree.expressions]
                found = column.of(*itertools.chain(*(place.intervals for place in points)))
                return column.leaf(found, negated=negated)
            case exp.Is() if isinstance(tree.expression, exp.Null):
                column = self._column(tree.this)
                return column.leaf(column.of() if not negated else column.everything, missing=not negated)
        raise QuestionError(f"where: {_called(tree)} is not allowed; a condition may hold {_ALLOWED}")

    def _comparison(self, tree: exp.Expression, *, negated: bool) -> Leaf:
        kind, left, right = type(tree), _bare(tree.this), _bare(tree.expression)
        if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
            kind, left, right = _FLIPPED[kind], right, left
        column = self._column(left)
        return column.leaf(column.compared(kind, right), negated=negated)

    def _column(self, tree: exp.Expression) -> _Column:
        bare, contract = _bare(tree), self._contract
        if not isinstance(bare, exp.Column):
            raise QuestionError(f"where: {_called(bare)} stands where the name of a column or bins must; no functions")
        name = unicodedata.normalize("NFC", bare.name)
        if len(bare.parts) > 1 or not isinstance(bare.this, exp.Identifier):
            raise QuestionError('where: write a name alone, in double quotes where it is not a plain word: "my column"')
        if name == contract.unit.column:
            raise QuestionError(f"where: {name} is the protected unit; a condition cannot look at it")
        keys, numeric = contract.keys(name), contract.numeric(name)
        if numeric is not None:
            step = numeric.lattice
            return _Column(name, "numbers", int(numeric.lower / step), int(numeric.upper / step), _number(step))
        if keys is not None:
            ordered = name in contract.bins
            return _Column(name, "keys", 0, len(keys) - 1, _key(keys), ordered=ordered)
        if isinstance(contract.columns.get(name), DateColumn):
            return _Column(name, "days", 1, datetime.date.max.toordinal(), _day)
        there = ", ".join([*contract.bins, *contract.columns]) or "none"
        raise QuestionError(f"where: {name} is not declared; the contract declares: {there}")


@dataclass(frozen=True)
class _Column:
    """A column or bins in a condition: its first and last place, and where a literal lies."""

    name: str
    scale: Scale
    first: int
    last: int
    place: Callable[[exp.Expression], Fraction]
    ordered: bool = True

    def of(self, *intervals: tuple[int, int]) -> Places:
        return Places.of(self.first, self.last, intervals)

    @property
    def everything(self) -> Places:
        return self.of((self.first, self.last))

    def leaf(self, places: Places, *, negated: bool = False, missing: bool = False) -> Leaf:
        """A comparison with null is false, and so is its negation."""
        return Leaf(self.name, self.scale, places.complement if negated else places, missing)

    def compared(self, kind: type[exp.Expression], literal: exp.Expression) -> Places:
        """The places that compare so with a literal, which may lie between two of them."""
        if not self.ordered and kind not in (exp.EQ, exp.NEQ):
            raise QuestionError(f"where: {self.name} is text, which has no order here: use =, <> or in")
        try:
            at = self.place(_bare(literal))
        except RequestError as error:
            raise QuestionError(f"where: {self.name}: {error}") from None
        below, above = math.ceil(at) - 1, math.floor(at) + 1
        sets: dict[type[exp.Expression], tuple[int, int]] = {
            exp.EQ: (below + 1, above - 1),
            exp.NEQ: (below + 1, above - 1),
            exp.LT: (self.first, below),
            exp.LTE: (self.first, above - 1),
            exp.GT: (above, self.last),
            exp.GTE: (below + 1, self.last),
        }
        places = self.of(sets[kind])
        return places.complement if kind is exp.NEQ else places


def _number(step: Fraction) -> Callable[[exp.Expression], Fraction]:
    def place(literal: exp.Expression) -> Fraction:
        sign, bare = (-1, _bare(literal.this)) if isinstance(literal, exp.Neg) else (1, literal)
        if not isinstance(bare, exp.Literal) or bare.is_string:
            raise QuestionError(f"compare it with a number, such as 2 or -0.5, not with {_called(literal)}")
        return sign * exact(bare.this, "number") / step

    return place


def _key(keys: tuple[str, ...] | tuple[int, ...]) -> Callable[[exp.Expression], Fraction]:
    names = [str(key) for key in keys]

    def place(literal: exp.Expression) -> Fraction:
        text = _text(literal)
        if text not in names:
            raise QuestionError(f"{text!r} is not among its declared keys")
        return Fraction(names.index(text))

    return place


def _day(literal: exp.Expression) -> Fraction:
    text = _text(literal)
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        day = datetime.date.min
    if text != day.isoformat() or day in (datetime.date.min, datetime.date.max):
        raise QuestionError("compare it with a day in quotes, such as '2024-01-31'")
    return Fraction(day.toordinal())


def _text(literal: exp.Expression) -> str:
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        raise QuestionError(f"compare it with text in single quotes, not with {_called(literal)}")
    return unicodedata.normalize("NFC", literal.this)


def _bare(tree: exp.Expression) -> exp.Expression:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _called(tree: exp.Expression) -> str:
    """What a node is, in a word: never its text, which may be long."""
    return {exp.Anonymous: "a function", exp.Column: "another column", exp.Placeholder: "a parameter"}.get(
        type(tree), "a function" if isinstance(tree, exp.Func) and not isinstance(tree, exp.Cast) else tree.key
    )


def _spine(tree: exp.Expression) -> list[exp.Expression]:
    """The operands of a chain of one connector, found without recursion: chains can be long."""
    kind, found, open_ = type(tree), [], [tree]
    while open_:
        node = open_.pop()
        if isinstance(node, kind):
            open_ += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _joined(word: Literal["and", "or"], parts: list[Node]) -> Node:
    """One form of the parts under `and` or `or`: flat, one set a column, without what decides nothing, sorted."""
    flat = [one for part in parts for one in (part.parts if _is_junction(part, word) else (part,))]
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


def _is_junction(part: Node, word: str) -> bool:
    return isinstance(part, Junction) and part.word == word


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
    return datetime.date.fromordinal(place).isoformat() if numeric is None else exact_text(place * numeric.lattice)


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
