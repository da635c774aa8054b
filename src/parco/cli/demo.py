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

from parco.accuracy.rules import RelativeError
from parco.accuracy.sessions import ReleasedUntil, release_until
from parco.cli import show
from parco.cli.progress import progress_after_a_second
from parco.contract.contract import Contract
from parco.errors import BudgetError, RequestError, StorageError
from parco.measure import COST_UNIT, Cost, decimal_text, significant_text
from parco.session.ask import Ask
from parco.session.questions import How
from parco.session.receipt import claims_to_date
from parco.session.release import Answer, Release
from parco.session.session import Session
from parco.session.signing import sign

__all__ = ["run_demo"]


@dataclass(frozen=True)
class _Question:
    title: str
    statistic: str
    column: str | None
    how: How


_BY_MONTH = (
    _Question("purchases", "count", None, {"by": "month", "cost": "0.01"}),
    _Question("dollars", "sum", "dollars", {"by": "month", "cost": "0.015"}),
)
_CUSTOMERS = Ask("count_units", by="month")
_WITHIN, _AT_MOST = Fraction(5, 100), "0.02"
_SMALLEST = (100, 500, 1000)
"""Of how many customers in its smallest month one may be sure who has seen none of the data."""
_IN_ALL = _Question("Customers in all, asked for within 50", "count_units", None, {"error": "50"})


def run_demo(console: Console, folder: Path) -> None:
    """Publishes the demo's statistics into `folder`; raises RequestError where the data set is not installed."""
    contract = _prepare(console, folder)
    customers = _customers(contract)
    monthly = [customers.release, *(_ask(contract, question) for question in _BY_MONTH)]
    titles = ["customers", *(question.title for question in _BY_MONTH)]
    console.print("\nMonthly figures, each with the half-width of its 95 % interval:")
    console.print(show.side_by_side(titles, [one.value for one in monthly]))
    paid = [customers.stopped.cost, *(release.cost for release in monthly[1:])]
    for title, release, cost in zip(titles, monthly, paid, strict=True):
        console.print(f"{title}: {_paid(release, cost)}")
    _compare(console, Session(contract), customers)
    console.print("\nDollars, by month, as a chart of the noisy values:")
    console.print(show.bars(monthly[-1].value))
    in_all = _ask(contract, _IN_ALL)
    console.print(f"\n{_IN_ALL.title}:")
    console.print(show.answer_table(in_all.value))
    console.print(_paid(in_all))
    session = Session(contract)
    _repeat(console, session)
    _refused(console, session)
    _claim(console, session)
    if not in_all.repeat:
        console.print("\nRun it again: everything is then answered from the ledger, at no cost.")
    console.print(f"Contract, data and ledger are in {folder}; parco history shows what was done.")
    console.print("What repeated releases cost, as tables and pictures: parco figures --out figures")


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


def _ask(contract: Contract, question: _Question) -> Release[Answer]:
    with progress_after_a_second() as progress:
        return Session(contract, progress=progress).ask(question.statistic, question.column, **question.how)


def _customers(contract: Contract) -> ReleasedUntil:
    """Sharpened step by step until every month is near enough."""
    with progress_after_a_second() as progress:
        session = Session(contract, progress=progress)
        return release_until(session, _CUSTOMERS, RelativeError(_WITHIN), at_most=_AT_MOST)


def _compare(console: Console, session: Session, customers: ReleasedUntil) -> None:
    """What the accuracy cost that was reached, beside single releases that promise it beforehand."""
    fixed = (
        (least, session.plan.count_units(by="month", error=_WITHIN * least, fresh=True).cost) for least in _SMALLEST
    )
    promises = ", ".join(f"{_shown(cost)} for months of {least:,} or more" for least, cost in fixed)
    reached = "within" if customers.stopped.enough else "not yet within"
    smallest = min(row.value for row in customers.release.value)
    console.print(
        f"\nCustomers by month were sharpened until each is {reached} {float(100 * _WITHIN):g} %, at 95 %: this took"
        f" {_shown(customers.release.receipt.path_cost)} of mu squared.\nOne release that promises as much beforehand"
        f" costs {promises}; the smallest has about {float(smallest):,.0f}, as is known by now."
    )


def _shown(cost: Cost) -> str:
    return significant_text(cost.value, 3, up=True)


def _paid(release: Release[Answer], cost: Cost | None = None) -> str:
    """`cost`: of all steps to it, where there were several."""
    if release.repeat:
        return "free: answered from the ledger"
    return f"cost {release.cost if cost is None else cost} of mu squared, and {decimal_text(release.remaining)} remain"


def _repeat(console: Console, session: Session) -> None:
    release = session.count_units(by="month")
    console.print(f"\ncustomers by month, asked again: {_paid(release)}, and the same figures.")


def _refused(console: Console, session: Session) -> None:
    before = _remaining(session)
    console.print("\nOne that does not fit: items by month, to within 1 item.")
    try:
        session.sum("items", by="month", error="1")
    except BudgetError as error:
        console.print(show.plain(f"Refused: {error}"))
    console.print(f"Lost by the refusal: {decimal_text(before - _remaining(session))}.")


def _claim(console: Console, session: Session) -> None:
    (account,) = session.budget()
    console.print("\nThe budget, and what may be claimed to date:")
    console.print(show.account_table(account))
    show.show_claims(console, claims_to_date(session.contract, account))


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
