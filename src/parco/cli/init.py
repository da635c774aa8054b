"""A first contract for a file: names, and types where the file's own schema states them. It never looks at values."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from parco.contract.dialect import Csv
from parco.contract.document import BLANK
from parco.engines.source import Kind, Source, read_source
from parco.errors import DataError, RequestError

__all__ = ["dialect_of", "first_contract"]

_HEAD = """\
# A parco contract. Write down what you know without looking at this data; `parco check` lists what is still blank.
format = 1
name = {name}
purpose = "{blank}"
unprotected = "none"
#   Quantities published exactly, such as ["number of rows"]; they are not protected.

[data]
name = {name}
source = {source}
version = "1"
#   All contracts on one data set share its account by this name. A new version label is a new access.
{csv}
[unit]
column = {unit}
neighbours = "add-or-remove"
groups = "{blank}"
rows = "{blank}"
#   neighbours: "replace" protects what a unit's rows say, and not whether it is there; "add-or-remove" protects both.
#   Whose privacy is protected: all rows with one value in the column. A unit counts in at most `groups` groups of one
#   question, with at most `rows` rows in each (whole numbers). Without grouping it counts with `rows` rows in all.

[budget]
measure = "gdp"
epsilon = "{blank}"
delta = "{blank}"
receipt_order = 8
default_share = "1/20"
#   The most that all releases together may cost, such as epsilon = "1", delta = "1e-6" (well below one over the number
#   of units). Other measures: "pure" (no delta), "zcdp", "renyi". A question that names no cost spends default_share.
"""

_FIELDS: dict[Kind, tuple[str, ...]] = {
    Kind.INTEGER: ('type = "integer"', "lower", "upper"),
    Kind.DECIMAL: ('type = "decimal"', "lattice", "lower", "upper"),
    Kind.DOUBLE: ('type = "decimal"', "lattice", "lower", "upper"),
    Kind.TEXT: ('type = "text"', "keys"),
    Kind.DATE: ('type = "date"',),
    Kind.MOMENT: ('type = "date"',),
    Kind.BOOLEAN: ('type = "boolean"',),
    Kind.UNTYPED: ("type",),
}
_HELP = """
# A column needs, by its type:
#   integer   lower, upper (and keys = [1, 2], to group by it)
#   decimal   lattice (such as "0.01"), lower, upper: multiples of the lattice
#   text      keys = ["a", "b"]: all others are dropped (keys = "select": none is declared)
#   boolean   nothing (or true = ["yes"], false = ["no"]: how a CSV file spells them)
#   date      nothing (or formats = ["%d.%m.%Y"]); to group by months, add
#             [bins.month]
#             column = "…"
#             every = "month"           (or day, week, quarter, year; time_zone for timestamps with a zone)
#             first = "2024-01"
#             last = "2024-12"
#   Numbers are grouped by edges = ["0", "10", "100"], whole ones also by first, last and width.
# Rows whose value is missing, NaN or unreadable are dropped, infinities clamped, unless the column says otherwise:
# null = "0", nan = "0", unparsed = "0", infinity = "drop".
# Columns that no question needs can be left out.
"""


def first_contract(path: Path, unit: str, dialect: Csv | None = None) -> str:
    """For every CSV or Parquet file with a column `unit`, returns a contract in TOML, with blanks to fill in."""
    source = read_source(path, dialect)
    if source.position(unit) is None:
        hint = "; is the file separated by semicolons? say --delimiter" if ";" in "".join(source.names) else ""
        raise DataError(f"the data has no column {unit!r}: --unit names the column that says whose row it is{hint}")
    name = json.dumps(path.stem, ensure_ascii=False)
    declared = {} if dialect is None else dialect.declared
    csv = "".join(["\n[data.csv]\n", *(f"{key} = {_text(str(value))}\n" for key, value in declared.items())])
    head = _HEAD.format(name=name, source=_text(path.name), unit=_text(unit), blank=BLANK, csv=csv if declared else "")
    columns = [_column(source, place) for place, name in enumerate(source.names) if place != source.position(unit)]
    return head + _HELP + "".join(columns)


def dialect_of(delimiter: str, encoding: str) -> Csv:
    """The dialect that the command line names; raises RequestError where there is none such."""
    try:
        return Csv.model_validate({"delimiter": "\t" if delimiter == "tab" else delimiter, "encoding": encoding})
    except ValidationError:
        raise RequestError("--delimiter is , ; | or tab, and --encoding utf-8, latin-1 or utf-16") from None


def _column(source: Source, place: int) -> str:
    title = f"\n[columns.{_text(source.names[place])}]\n"
    fields = _FIELDS.get(source.kinds[place])
    if fields is None:
        return f"\n# column {_text(source.names[place])} is stored as a type that parco does not read\n"
    return title + "".join(f"{field}\n" if "=" in field else f'{field} = "{BLANK}"\n' for field in fields)


def _text(text: str) -> str:
    """A TOML basic string: JSON's escapes are a subset of TOML's."""
    return json.dumps(text, ensure_ascii=False)
