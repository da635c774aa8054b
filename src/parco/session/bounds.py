"""Suggested bounds: several quantiles made into one answer, which changes no contract by itself."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from parco.contract.columns import DateColumn
from parco.contract.contract import Contract
from parco.errors import InternalError
from parco.measure import decimal_text, exact_text, significant_text
from parco.queries.joint import bounds_question
from parco.queries.query import Query, Statistic
from parco.session.release import Answer, Cells, Release, joined

__all__ = ["BoundRow", "BoundsAnswer", "bounds_release"]

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_EPOCH = datetime.date(1970, 1, 1)
_NAMES = {Statistic.UNIT_ROWS: "rows", Statistic.UNIT_GROUPS: "groups"}


@dataclass(frozen=True)
class BoundRow:
    """One suggestion: `keys` names the bound, "lower", "upper", "rows" or "groups"."""

    keys: tuple[str]
    value: Fraction


@dataclass(frozen=True)
class BoundsAnswer(Cells):
    """Bounds that leave about a share `cover` of the rows, and of the units, as they are.

    `lower` and `upper` of the column, where one was asked, in its units; `rows` that a unit has in a group, `groups` in
    which it has rows. The rank of each misses its target by at most its entry of `rank_errors`, in rows or in units,
    with probability `confidence` or more, for each alone. `toml` is what a new version of the contract would say.
    """

    labels: tuple[tuple[str], ...]
    values: tuple[Fraction, ...]
    rank_errors: tuple[Fraction, ...]
    cover: Fraction
    confidence: Fraction
    step: Fraction
    toml: str

    numbers: ClassVar[tuple[str, ...]] = ("value",)
    by = ("bound",)

    @property
    def places(self) -> int:
        """The decimal places of the column's lattice."""
        return len(decimal_text(self.step).partition(".")[2])

    @property
    def promise(self) -> str:
        """What holds with which probability, in words, and what to do with it."""
        level = f"{float(self.confidence):.6g}"
        errors = (significant_text(error, 4, up=True) for error in self.rank_errors)
        told = ", ".join(f"{name} within {error}" for (name,), error in zip(self.labels, errors, strict=True))
        return (
            f"Ranks miss their targets by no more than this, each with probability {level} or more: {told} (rows of the"
            " data, or units). Nothing is changed by it: to use these bounds, write them into the contract, and revise"
            f" it with `parco revise`:\n\n{self.toml}"
        )

    def __iter__(self) -> Iterator[BoundRow]:
        return (BoundRow(label, value) for label, value in zip(self.labels, self.values, strict=True))


def bounds_release(
    queries: Sequence[Query], parts: Sequence[Release[Answer]], *, cover: Fraction
) -> Release[BoundsAnswer]:
    """The suggestion that is made of these parts: both quantiles of a column, if any, then what units contribute."""
    contract = queries[0].contract
    if any(len(part.value.values) != 1 for part in parts) or len(queries) != len(parts):
        raise InternalError("the parts of suggested bounds do not belong together")
    found = [(_name(query, place), part.value) for place, (query, part) in enumerate(zip(queries, parts, strict=True))]
    values = {name: answer.values[0] * answer.lattice for name, answer in found}
    if "lower" in values:
        # Drawn apart, so that noise may put them the wrong way round.
        values["lower"], values["upper"] = sorted((values["lower"], values["upper"]))
    answer = BoundsAnswer(
        labels=tuple((name,) for name in values),
        values=tuple(values.values()),
        rank_errors=tuple(one.half_width for _, one in found),
        cover=cover,
        confidence=parts[0].value.confidence,
        step=queries[0].step,
        toml=_toml(contract, queries[0].column, values),
    )
    return joined(answer, bounds_question(queries), *parts)


def _name(query: Query, place: int) -> str:
    return _NAMES.get(query.statistic) or ("lower", "upper")[place]


def _toml(contract: Contract, column: str | None, values: dict[str, Fraction]) -> str:
    """The lines of a contract that say so."""
    lines = ["[unit]", *(f"{name} = {values[name]}" for name in ("groups", "rows") if name in values)]
    if column is not None:
        declared = contract.columns[column]
        texts = {end: exact_text(values[end]) for end in ("lower", "upper")}
        if isinstance(declared, DateColumn):
            texts = {end: (_EPOCH + datetime.timedelta(int(values[end]))).isoformat() for end in texts}
        name = column if _BARE.fullmatch(column) else json.dumps(column, ensure_ascii=False)
        lines += ["", f"[columns.{name}]", *(f'{end} = "{text}"' for end, text in texts.items())]
    return "\n".join(lines)
