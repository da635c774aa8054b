"""The TOML document behind a contract: read exactly, its blanks listed, its faults told in plain words."""

from __future__ import annotations

import tomllib
from decimal import Decimal

from pydantic import ValidationError

from parco.errors import ContractError

__all__ = ["BLANK", "blanks", "faults", "parse_document"]

BLANK = "FILL IN"
"""What `parco init` writes where only the steward knows the answer."""


def parse_document(text: str, *, name: str = "contract") -> dict[str, object]:
    """The document of a TOML text, its decimals exact; raises ContractError where it is not TOML."""
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ContractError(f"{name} is not TOML: {error}") from None
    except (ValueError, ArithmeticError, RecursionError):
        raise ContractError(
            f"{name} cannot be read: a number in it is too long, or its tables nest too deeply"
        ) from None


def blanks(document: object, place: str = "") -> list[str]:
    """The places of a document that still say FILL IN."""
    if isinstance(document, dict):
        return [found for key, item in document.items() for found in blanks(item, f"{place}.{key}".lstrip("."))]
    if isinstance(document, list):
        return [found for item in document for found in blanks(item, place)]
    return [place] if document == BLANK else []


def faults(error: ValidationError) -> list[str]:
    """Each fault of a document as "place: reason"."""
    return [_fault(item["loc"], _reason(item)) for item in error.errors(include_url=False)]


_BRANCHES: dict[int | str, tuple[tuple[str], ...]] = {
    "columns": (("integer",), ("decimal",), ("text",), ("date",), ("boolean",)),
    "bins": (("calendar",), ("edges",), ("range",)),
}


def _fault(location: tuple[int | str, ...], reason: str) -> str:
    # pydantic names the branch of a union it tried; a reader of the TOML file knows no such level.
    if location[:1] in (("columns",), ("bins",)) and location[2:3] in _BRANCHES[location[0]]:
        location = location[:2] + location[3:]
    elif location[:1] == ("unprotected",):
        location = location[:1] + location[2:]
    place = ".".join(str(part) for part in location)
    return f"{place}: {reason}" if place else reason


_PLAIN_REASONS = {
    "Extra inputs are not permitted": "unknown key",
    "Field required": "missing: write it down",
    "Input should be a valid integer": "give a whole number, without quotes",
    "Input should be a valid string": "give text in quotes",
    "Input should be a valid tuple": "give a list, such as [1, 2]",
    "Input should be a valid dictionary": "give a table",
    "Input tag": "type must be one of integer, decimal, text, date, boolean",
    "Unable to extract tag": "a column needs a type: integer, decimal, text, date or boolean",
}


def _reason(item: object) -> str:
    message = str(item["msg"]) if isinstance(item, dict) else str(item)
    message = message.removeprefix("Value error, ")
    return next((words for start, words in _PLAIN_REASONS.items() if message.startswith(start)), message)
