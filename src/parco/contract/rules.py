"""What becomes of a value that is missing, no number, infinite or unreadable, and the normal form of text.

In every rule None stands for the default, so that leaving a rule out and writing the default are one contract, and a
contract that names no rule has the text it had before there were any.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, PlainSerializer, PlainValidator

from parco.contract.fields import exact_number
from parco.measure import exact_text

__all__ = ["BLANK_CHARACTERS", "KEY_LENGTH_MAX", "Clamp", "InfinityRule", "Normal", "Rule", "normal_text"]

BLANK_CHARACTERS = " \t\r\n\u00a0"
"""What the normal form "strip" takes off both ends."""
KEY_LENGTH_MAX = 200
"""Of a key that is found in the data, in characters; a longer one is dropped."""


def _rule(value: object) -> Fraction | None:
    if value is None or value == "drop":
        return None
    try:
        return exact_number(value)
    except ValueError:
        raise ValueError('give "drop" or a number') from None


def _infinity(value: object) -> Fraction | Literal["drop"] | None:
    if value is None or value == "clamp":
        return None
    if value == "drop":
        return "drop"
    try:
        return exact_number(value)
    except ValueError:
        raise ValueError('give "clamp", "drop" or a number') from None


def _rule_text(value: Fraction | str | None) -> str | None:
    return exact_text(value) if isinstance(value, Fraction) else value


def _clamp(value: object) -> object:
    if value not in (None, "row", "unit"):
        raise ValueError('give "row" or "unit"')
    return None if value == "row" else value


def _normal(value: object) -> object:
    """Sorted, each form once: the forms are applied in one fixed order, whatever order they are written in."""
    if not isinstance(value, list | tuple) or not set(map(str, value)) <= {"nfc", "accents", "casefold", "strip"}:
        raise ValueError('give a list of "nfc", "accents", "casefold" and "strip"')
    return tuple(sorted(set(value))) or None


Rule = Annotated[Fraction | None, PlainValidator(_rule), PlainSerializer(_rule_text)]
"""None drops the row; a number counts instead."""
InfinityRule = Annotated[Fraction | Literal["drop"] | None, PlainValidator(_infinity), PlainSerializer(_rule_text)]
"""None clamps to the bound of its sign."""
Clamp = Annotated[Literal["unit"] | None, BeforeValidator(_clamp)]
"""None clamps each row; "unit" what a unit adds up to in a group."""
Normal = Annotated[tuple[str, ...] | None, BeforeValidator(_normal)]


def normal_text(text: str, forms: Iterable[str] | None) -> str:
    """A text without marks, in lower case and without blanks around it, each where `forms` names it; in Unicode form
    NFC at the end too, since a small letter and a mark may be one character where the capital and the mark are two.

    Lower case is the simple one, as databases have it: no character becomes two, and it does not look at neighbours.
    """
    forms, text = set(forms or ()), unicodedata.normalize("NFC", text)
    if "accents" in forms:
        bare = (one for one in unicodedata.normalize("NFD", text) if not unicodedata.category(one).startswith("M"))
        text = unicodedata.normalize("NFC", "".join(bare))
    if "casefold" in forms:
        # Python makes two characters of the capital I with a dot, alone among all; its simple lower case is "i".
        low = (low if len(low := character.lower()) == 1 else "i" for character in text)
        text = unicodedata.normalize("NFC", "".join(low))
    return text.strip(BLANK_CHARACTERS) if "strip" in forms else text
