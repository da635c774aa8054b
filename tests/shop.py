"""A small shop to test with: a contract, a file of purchases, and a signed ledger, made in a folder."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import parco

__all__ = ["COLUMNS", "contract_text", "open_shop", "write_csv"]

COLUMNS = """
[columns.date]
type = "date"

[columns.items]
type = "integer"
lower = 0
upper = 10

[columns.dollars]
type = "decimal"
lattice = "0.01"
lower = "0"
upper = "100"

[columns.channel]
type = "text"
keys = ["web", "shop", "phone"]

[bins.month]
column = "date"
every = "month"
first = "2024-01"
last = "2024-04"
"""

HEADER = ("customer", "date", "items", "dollars", "channel")
ROWS = (
    ("1", "2024-01-05", "2", "10.50", "web"),
    ("1", "2024-01-09", "1", "7.25", "web"),
    ("2", "2024-02-01", "3", "99.99", "shop"),
    ("2", "2024-03-01", "3", "12.00", "shop"),
    ("3", "2024-03-30", "1", "250", "web"),
    ("4", "2024-03-31", "1", "3", "mail"),
)


def contract_text(
    *,
    name: str = "shop",
    dataset: str = "shop",
    budget: str = 'measure = "pure"\nepsilon = "1"',
    groups: int = 2,
    rows: int = 2,
    columns: str = COLUMNS,
    unit: str = "customer",
) -> str:
    """The TOML text of a contract on the shop's data."""
    return f"""
format = 1
name = "{name}"
purpose = "a test"
unprotected = "none"

[data]
name = "{dataset}"
source = "purchases.csv"

[unit]
column = {unit!r}
neighbours = "add-or-remove"
groups = {groups}
rows = {rows}

[budget]
{budget}
{columns}
"""


def write_csv(path: Path, rows: Iterable[Sequence[object]] = ROWS, header: Sequence[str] = HEADER) -> Path:
    """A CSV file of these rows."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def open_shop(folder: Path, *, purchases: Iterable[Sequence[object]] = ROWS, **contract: object) -> parco.Contract:
    """Writes purchases.csv and contract.toml, signs the contract on its default ledger, and returns it as read."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "purchases.csv", purchases)
    (folder / "contract.toml").write_text(contract_text(**contract), encoding="utf-8")  # type: ignore[arg-type]
    agreed = parco.Contract.read(folder / "contract.toml")
    parco.sign(agreed, actor="steward")
    return agreed
