"""Pieces of a statement's tree: constant SQL with nodes in it, exact literals, and a column as it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from sqlglot import exp, parse_one

from parco.engines.source import Kind
from parco.measure import decimal_text

__all__ = ["PLACES", "StoredColumn", "decimal", "literal", "number", "template", "text_list"]

PLACES = 12
"""Values are read with twelve decimal places (no contract has a finer lattice) in 38 digits, as all engines have."""


@dataclass(frozen=True)
class StoredColumn:
    """A column as SQL reaches it, what is stored there, and the decimal sign where it is text."""

    expression: exp.Expression
    kind: Kind
    sign: str = "."


def template(sql: str, **nodes: exp.Expression) -> exp.Expression:
    """The tree of a constant piece of SQL, with copies of `nodes` in place of its :names."""

    def fill(node: exp.Expression) -> exp.Expression:
        return nodes[node.name].copy() if isinstance(node, exp.Placeholder) else node

    return _parsed(sql).transform(fill)


@cache
def _parsed(sql: str) -> exp.Expr:
    """Parsed once: a release would otherwise spend more time on its SQL than on the database. Never changed."""
    return parse_one(sql, dialect="duckdb")


def number(value: int) -> exp.Expression:
    """A whole number."""
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def literal(key: str | int) -> exp.Expression:
    """A key: text, or a whole number of 64 bits."""
    return exp.Literal.string(key) if isinstance(key, str) else exp.cast(number(key), "BIGINT")


def decimal(value: Fraction) -> exp.Expression:
    """An exact decimal literal. Its type is said, because a bare one may be read as a double."""
    return exp.cast(exp.Literal.string(decimal_text(value)), f"DECIMAL(38, {PLACES})")


def text_list(texts: tuple[str, ...] | list[str]) -> exp.Tuple:
    """A list of texts, for IN."""
    return exp.Tuple(expressions=[exp.Literal.string(text) for text in texts])
