"""One contract with every table in it, and changes of its text."""

from __future__ import annotations

from parco.contract.contract import Contract

__all__ = ["DOCUMENT", "changed", "parse"]

DOCUMENT = """\
format = 1
name = "clinic"
purpose = "Visits to a clinic"
unprotected = "none"

[data]
name = "visits"
source = "visits.csv"
version = "1"

[unit]
column = "patient"
neighbours = "add-or-remove"
groups = 3
rows = 2

[budget]
measure = "gdp"
epsilon = "1"
delta = "1e-6"
receipt_order = 8
default_share = "0.05"

[columns.day]
type = "date"

[columns.age]
type = "integer"
lower = 0
upper = 120
keys = [0, 1, 2]

[columns.cost]
type = "decimal"
lattice = "0.05"
lower = "-10"
upper = "20"

[columns.ward]
type = "text"
keys = ["north", "south"]

[bins.month]
column = "day"
every = "month"
first = "2024-01"
last = "2024-06"
"""


def changed(*changes: tuple[str, str]) -> str:
    """The document with each old text, which must stand there exactly once, replaced by the new one."""
    text = DOCUMENT
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def parse(*changes: tuple[str, str]) -> Contract:
    """The contract of a changed document."""
    return Contract.parse(changed(*changes))
