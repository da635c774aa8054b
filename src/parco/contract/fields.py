"""The kinds of value a contract's fields hold, each with its own check, and the part from which every table is made."""

from __future__ import annotations

import unicodedata
from collections import Counter
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from parco.errors import RequestError
from parco.measure import exact, exact_text

__all__ = [
    "CELLS_MAX",
    "Count",
    "Exact",
    "Name",
    "Part",
    "check_distinct",
    "check_keys",
    "distinct_names",
    "exact_number",
    "label",
    "plain",
    "whole",
]

CELLS_MAX = 1_000_000
"""The most cells one question may have: its groups are all published, each with a draw of its own."""

_NAME_LENGTH_MAX = 200
# Control characters, line and paragraph separators, halves of surrogate pairs.
_NOT_PLAIN = ("Cc", "Zl", "Zp", "Cs")


def exact_number(value: object) -> Fraction:
    """A number as a contract holds it; raises ValueError for what is none."""
    try:
        return exact(value, "number")
    except RequestError as error:
        raise ValueError(str(error).removeprefix("number: ")) from None


def plain(text: str) -> str:
    """A name or key in Unicode form NFC, the form that is signed: what two files say alike is then used alike."""
    if any(unicodedata.category(character) in _NOT_PLAIN for character in text):
        raise ValueError("control characters and line breaks are refused in names and keys")
    return unicodedata.normalize("NFC", text)


def label(text: object, what: str) -> str:
    """A version, an actor or a key as it may stand in a ledger: 1 to 200 plain characters; raises RequestError."""
    if not isinstance(text, str) or not 0 < len(text) <= _NAME_LENGTH_MAX:
        raise RequestError(f"{what}: give a text of 1 to {_NAME_LENGTH_MAX} characters")
    try:
        return plain(text)
    except ValueError as error:
        raise RequestError(f"{what}: {error}") from None


def whole(value: object) -> object:
    """Refuses true and 1.0, which are equal to 1 and have another text."""
    if type(value) is not int:
        raise ValueError("give a whole number")
    return value


def distinct_names(table: object) -> object:
    """Looks at the names before they are brought to form NFC: afterwards the second would replace the first."""
    if isinstance(table, dict):
        check_distinct([str(name) for name in table], "a column or bins")
    return table


_NUMBER_SCHEMA = {
    "description": 'An exact number: a plain number, decimal text such as "0.05", or p/q text such as "1/3"',
    "anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[+-]?[0-9.]+([eE][+-]?\d+)?(/[0-9.]+)?$"}],
}

Exact = Annotated[Fraction, BeforeValidator(exact_number), PlainSerializer(exact_text), WithJsonSchema(_NUMBER_SCHEMA)]
Name = Annotated[str, Field(min_length=1, max_length=_NAME_LENGTH_MAX), AfterValidator(plain)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]


class Part(BaseModel):
    """A table of the document: frozen, and an unknown key in it is refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        defer_build=True,
    )


def check_keys(keys: tuple[str, ...] | tuple[int, ...] | None) -> None:
    if keys is None:
        return
    if not 0 < len(keys) <= CELLS_MAX:
        raise ValueError(f"declare between 1 and {CELLS_MAX} keys")
    check_distinct([str(key) for key in keys], "keys")


def check_distinct(names: list[str], what: str) -> None:
    """Names that are one text in Unicode form NFC would be one column, or one key, to a reader."""
    seen = Counter(unicodedata.normalize("NFC", name) for name in names)
    twice = sorted(name for name, times in seen.items() if times > 1)
    if twice:
        raise ValueError(f"declared twice as {what}: {', '.join(twice[:5])}")
