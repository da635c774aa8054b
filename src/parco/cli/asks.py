"""Several questions in a file: `[[ask]]` tables of TOML, each with the options of one question."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from parco.contract.document import parse_document
from parco.errors import QuestionError
from parco.session.ask import Ask

__all__ = ["ask_of", "read_asks"]

_OPTIONS = tuple(field.name for field in fields(Ask))


def read_asks(path: Path) -> list[Ask]:
    """For every file of `[[ask]]` tables, returns its questions in order, or raises QuestionError naming the fault."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise QuestionError(f"cannot read questions from {path}: give a TOML file in UTF-8") from None
    document = parse_document(text, name=str(path))
    tables = document.get("ask")
    if set(document) != {"ask"} or not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise QuestionError(f'{path}: write each question as [[ask]], with statistic = "count" and its options')
    return [ask_of(table, f"{path}: question {number}") for number, table in enumerate(tables, start=1)]


def ask_of(table: dict[str, Any], place: str) -> Ask:
    """For every table of one question, returns it, or raises QuestionError naming its place in the file."""
    if unknown := sorted(table.keys() - set(_OPTIONS)):
        raise QuestionError(f"{place}: unknown option {', '.join(unknown)}: the options are {', '.join(_OPTIONS)}")
    for name in ("statistic", "column", "where"):
        if not isinstance(table.get(name, ""), str):
            raise QuestionError(f"{place}: {name} is text")
    if "statistic" not in table:
        raise QuestionError(f'{place}: say its statistic, such as statistic = "count"')
    return Ask(**table)
