"""The main job on real data: purchases of 23,570 customers, published under one budget, then asked for again.

The data are the CDNOW purchases of 1997-98, which the package `lifetimes` carries; it is read as a file and never
imported. Every answer comes through the same session as anybody's: a second run finds all of them in the ledger.
"""

from __future__ import annotations

import csv
import io
import os
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from parco.cli import show
from parco.cli.progress import progress_after_a_second
from parco.contract import Contract
from parco.errors import BudgetError, RequestError, StorageError
from parco.measure import COST_UNIT, decimal_text
from parco.session.release import Answer, Release
from parco.session.session import How, Session
from parco.session.signing import sign

__all__ = ["run_demo"]


@dataclass(frozen=True)
class _Question:
    title: str
    statistic: str
    column: str | None
    how: How


_QUESTIONS = (
    _Question("Customers who bought, by month", "count_units", None, {"by": "month", "cost": "0.01"}),
    _Question("Purchases, by month", "count", None, {"by": "month", "cost": "0.01"}),
    _Question("Dollars, by month", "sum", "dollars", {"by": "month", "cost": "0.015"}),
    _Question("Customers in all, within 50 at 95 %", "count_units", None, {"error": "50"}),
)
_CHART = 2


def run_demo(console: Console, folder: Path) -> None:
    """Publishes the demo's statistics into `folder`; raises RequestError where the data set is not installed."""
    contract = _prepare(console, folder)
    releases = [_answer(console, contract, question) for question in _QUESTIONS]
    session = Session(contract)
    console.print()
    console.print(f"{_QUESTIONS[_CHART].title}, as a chart of the noisy values")
    console.print(show.bars(releases[_CHART].value))
    _repeat(console, session)
    _refused(console, session)
    _claim(console, session, releases)
    console.print(f"\nRun it again: everything is answered from the ledger at no cost. Files are in {folder}.")


def _prepare(console: Console, folder: Path) -> Contract:
    """The signed contract; writes the demo's files where they are not there yet."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise StorageError(f"the folder {folder} cannot be made: choose another with --dir") from None
    data, contract_file = folder / "purchases.csv", folder / "contract.toml"
    if not data.exists():
        _write(data, _purchases())
    if not contract_file.exists():
        _write(contract_file, Path(__file__).with_name("demo_contract.toml").read_text(encoding="utf-8"))
    contract = Contract.read(contract_file)
    sign(contract)
    console.print(show.contract_table(contract))
    return contract


def _answer(console: Console, contract: Contract, question: _Question) -> Release[Answer]:
    with progress_after_a_second() as progress:
        session = Session(contract, progress=progress)
        release = session.ask(question.statistic, question.column, **question.how)
    paid = "free: answered from the ledger" if release.repeat else f"cost {release.cost} of mu squared"
    console.print()
    console.print(question.title)
    console.print(show.answer_table(release.value))
    console.print(f"{paid}; {decimal_text(release.remaining)} remain. Intervals cover at 95 % (noise only).")
    return release


def _repeat(console: Console, session: Session) -> None:
    question = _QUESTIONS[0]
    release = session.ask(question.statistic, question.column, **question.how)
    console.print(f"\nAsked again: {question.title}. Repeat: {release.repeat}, cost {release.cost}.")


def _refused(console: Console, session: Session) -> None:
    before = _remaining(session)
    console.print("\nOne that does not fit: items by month, to within 1 item.")
    try:
        session.sum("items", by="month", error="1")
    except BudgetError as error:
        console.print(show.plain(f"Refused: {error}"))
    lost = before - _remaining(session)
    console.print(f"Lost by the refusal: {decimal_text(lost)}.")


def _claim(console: Console, session: Session, releases: list[Release[Answer]]) -> None:
    console.print("\nThe budget:")
    console.print(*show.accounts_tables(session.budget()))
    last = max(releases, key=lambda release: release.receipt.position)
    console.print("What may be claimed to date, in plain words:")
    show.show_claims(console, last.receipt)


def _remaining(session: Session) -> Fraction:
    (account,) = session.budget()
    return account.remaining * COST_UNIT


def _purchases() -> str:
    """The CDNOW purchases as CSV: customer, date, items, dollars."""
    package = find_spec("lifetimes")
    if package is None or not package.submodule_search_locations:
        raise RequestError('the demo needs its data: pip install "parco[demo]"')
    source = Path(package.submodule_search_locations[0]) / "datasets" / "CDNOW_master.txt"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["customer", "date", "items", "dollars"])
    for line in source.read_text(encoding="ascii").splitlines()[1:]:
        if line.strip():
            customer, day, items, dollars = line.split()
            writer.writerow([customer, f"{day[:4]}-{day[4:6]}-{day[6:]}", items, dollars])
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    """Writes a whole file or none: an interrupted demo must not leave half of the purchases behind."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(name, path)
