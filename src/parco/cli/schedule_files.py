"""Files of schedules and panels: TOML that names a contract and lists questions as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parco.cli.asks import ask_of
from parco.contract.document import parse_document
from parco.contract.fields import label
from parco.errors import QuestionError
from parco.session.ask import Ask
from parco.session.schedules import ScheduledAsk
from parco.stores.address import is_url

__all__ = ["PanelFile", "ScheduleFile", "read_panel", "read_schedule"]


@dataclass(frozen=True)
class ScheduleFile:
    """What a schedule fixes: its name, the contract it is signed under, and its questions with their versions."""

    name: str
    contract: Path
    asks: tuple[ScheduledAsk, ...]


@dataclass(frozen=True)
class PanelFile:
    """A recurring set of questions: on which contract, data and ledger, and from which signed schedule, if any."""

    name: str
    contract: Path
    asks: tuple[Ask, ...]
    data: str | None = None
    ledger: str | None = None
    schedule: str | None = None

    def data_of(self, period: str) -> Path | None:
        """The file of a period's data, None for the contract's source; QuestionError for a period that is no name."""
        if self.data is None:
            return None
        if "{period}" in self.data and ({"/", "\\"} & set(period) or period.startswith(".")):
            raise QuestionError("the period stands in the name of the data's file: it holds no path")
        return self.contract.parent / self.data.replace("{period}", period)


def read_schedule(path: Path) -> ScheduleFile:
    """For every file with `name`, `contract` and `[[step]]` tables, returns it, or raises QuestionError.

    A step has the options of a question, `scale` among them, and `versions`; those at the top are for all that have
    none of their own. The contract's path is seen from the file.
    """
    document, steps = _read(path, "step", ("versions",))
    versions = document.get("versions")
    asks = []
    for number, table in enumerate(steps, start=1):
        place = f"{path}: step {number}"
        own = dict(table)
        labels, scale = own.pop("versions", versions), own.pop("scale", None)
        asks.append(ScheduledAsk(ask_of(own, place), _labels(labels, place), scale))
    return ScheduleFile(_text(document, "name", path), _contract(document, path), tuple(asks))


def read_panel(path: Path) -> PanelFile:
    """For every file with `name`, `contract` and `[[ask]]` tables, returns it, or raises QuestionError.

    Paths are seen from the file; `data` may hold {period}.
    """
    document, asks = _read(path, "ask", ("data", "ledger", "schedule"))
    told = {name: _text(document, name, path) for name in ("data", "ledger", "schedule") if name in document}
    ledger = told.get("ledger")
    if ledger is not None and not is_url(ledger):
        told["ledger"] = str(path.parent / ledger)
    return PanelFile(
        _text(document, "name", path),
        _contract(document, path),
        tuple(ask_of(table, f"{path}: question {number}") for number, table in enumerate(asks, start=1)),
        **told,
    )


def _read(path: Path, tables: str, more: tuple[str, ...]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise QuestionError(f"cannot read {path}: give a TOML file in UTF-8") from None
    document: dict[str, Any] = parse_document(text, name=str(path))
    if unknown := sorted(document.keys() - {"name", "contract", tables, *more}):
        raise QuestionError(
            f"{path}: unknown key {', '.join(unknown)}: it holds name, contract and [[{tables}]] tables"
        )
    found = document.get(tables)
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise QuestionError(f'{path}: write each question as [[{tables}]], with statistic = "count" and its options')
    return document, found


def _text(document: dict[str, Any], name: str, path: Path) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise QuestionError(f"{path}: say its {name}, as text in quotes")
    return label(value, name)


def _contract(document: dict[str, Any], path: Path) -> Path:
    return path.parent / _text(document, "contract", path)


def _labels(value: object, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise QuestionError(
            f'{place}: say the versions of the data that it is asked on, such as versions = ["2025-W01"]'
        )
    return tuple(value)
