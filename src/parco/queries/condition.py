"""The text of a condition, read by sqlglot into a closed set of operators: all others are refused by name."""

from __future__ import annotations

import datetime
import itertools
import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from parco.contract.columns import DateColumn
from parco.contract.contract import Contract
from parco.errors import QuestionError, RequestError
from parco.measure import exact
from parco.queries.filters import Leaf, Node, Scale, joined
from parco.queries.places import Places

__all__ = ["read", "recalled"]

_LENGTH_MAX = 4000
_FLIPPED: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
_ALLOWED = "=, <>, <, <=, >, >=, in, between, is null, and, or, not"


def read(contract: Contract, text: str) -> Node:
    """For every condition the contract allows, returns its form, or raises QuestionError saying what it may hold."""
    try:
        return _Reader(contract).node(_tree(text), negated=False)
    except RecursionError:
        raise QuestionError("where: this condition is nested too deeply") from None


def recalled(contract: Contract, condition: Mapping[str, object]) -> Node:
    """The form of a condition's record, as far as the contract still reads it so; QuestionError where it cannot."""
    reader = _Reader(contract)
    for word in ("and", "or"):
        parts = condition.get(word)
        if isinstance(parts, list):
            return joined("and" if word == "and" else "or", [recalled(contract, part) for part in parts])
    column = reader.named(str(condition.get("name")))
    missing = "not in" in condition
    found = condition.get("not in" if missing else "in")
    places = column.of(*map(column.interval, found if isinstance(found, list) else []))
    return column.leaf(places, negated=missing, missing=missing)


def _tree(text: object) -> exp.Expression:
    if not isinstance(text, str) or not 0 < len(text) <= _LENGTH_MAX:
        raise QuestionError(f'where: give a condition as text of 1 to {_LENGTH_MAX} characters, such as "items >= 2"')
    try:
        found = parse(text)
    except (SqlglotError, ValueError):
        found = []
    if len(found) != 1 or not isinstance(found[0], exp.Expression):
        raise QuestionError(f"where: this is not one condition; it may hold {_ALLOWED}")
    return found[0]


class _Reader:
    """Makes a parsed tree into its form, or refuses what it holds by name."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract

    def node(self, tree: exp.Expression, *, negated: bool) -> Node:  # noqa: PLR0911 - a case a kind of node
        """The form of a tree, or of its negation."""
        match tree:
            case exp.Paren():
                return self.node(tree.this, negated=negated)
            case exp.Not():
                return self.node(tree.this, negated=not negated)
            case exp.And() | exp.Or():
                parts = [self.node(part, negated=negated) for part in _spine(tree)]
                return joined("and" if isinstance(tree, exp.And) != negated else "or", parts)
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
        kind: type[exp.Expression] = type(tree)
        left, right = _bare(tree.this), _bare(tree.expression)
        if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
            kind, left, right = _FLIPPED[kind], right, left
        column = self._column(left)
        return column.leaf(column.compared(kind, right), negated=negated)

    def _column(self, tree: exp.Expression) -> _Column:
        bare = _bare(tree)
        if not isinstance(bare, exp.Column):
            raise QuestionError(f"where: {_called(bare)} stands where the name of a column or bins must; no functions")
        if len(bare.parts) > 1 or not isinstance(bare.this, exp.Identifier):
            raise QuestionError('where: write a name alone, in double quotes where it is not a plain word: "my column"')
        return self.named(unicodedata.normalize("NFC", bare.name))

    def named(self, name: str) -> _Column:
        """The column or bins of this name, or QuestionError where no condition can look at it."""
        contract = self._contract
        if name == contract.unit.column:
            raise QuestionError(f"where: {name} is the protected unit; a condition cannot look at it")
        keys, numeric = contract.keys(name), contract.numeric(name)
        if isinstance(contract.columns.get(name), DateColumn):
            return _Column(name, "days", 1, datetime.date.max.toordinal(), _day)
        if numeric is not None:
            step, (low, high) = numeric.lattice, numeric.row_range
            return _Column(name, "numbers", int(low / step), int(high / step), _number(step))
        if keys is not None:
            ordered = name in contract.bins
            return _Column(name, "keys", 0, len(keys) - 1, _key(keys), ordered=ordered)
        if name in contract.columns:
            raise QuestionError(f"where: {name} has no declared keys or bounds to compare it by")
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

    def interval(self, stored: object) -> tuple[int, int]:
        """An interval as a condition's record has it: one key, or two values of which null is the end of all."""
        if not isinstance(stored, list):
            at = self._at(str(stored))
            return at, at
        low, high = stored
        return self.first if low is None else self._at(low), self.last if high is None else self._at(high)

    def _at(self, text: str) -> int:
        number = exp.Literal(this=text.removeprefix("-"), is_string=self.scale != "numbers")
        at = self.place(exp.Neg(this=number) if text.startswith("-") and self.scale == "numbers" else number)
        if at.denominator != 1:
            raise QuestionError(f"where: {text} is no value of {self.name}")
        return int(at)

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
