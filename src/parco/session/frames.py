"""An answer as other libraries' frames and as HTML: post-processing of what was released."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from parco.errors import RequestError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["escaped", "html_table", "html_text", "to_pandas", "to_polars"]

# Control characters, those without a shape or that turn directions, line and paragraph separators.
_UNSEEN = ("Cc", "Cf", "Zl", "Zp")


def escaped(text: object) -> str:
    """Text as it may safely reach a terminal: what would move the cursor, break a line or turn it is an escape."""
    return "".join(one if unicodedata.category(one) not in _UNSEEN else f"\\u{ord(one):04x}" for one in str(text))


def to_pandas(table: pa.Table) -> Any:  # noqa: ANN401 - a pandas.DataFrame
    """A pandas.DataFrame; decimals stay decimals. Raises RequestError where pandas is not installed."""
    _library("pandas")
    return table.to_pandas()


def to_polars(table: pa.Table) -> Any:  # noqa: ANN401 - a polars.DataFrame
    """A polars.DataFrame; raises RequestError where polars is not installed.

    polars holds decimals of 38 digits: columns of longer ones become doubles.
    """
    import pyarrow as pa

    polars = _library("polars")
    for place, field in enumerate(table.schema):
        if pa.types.is_decimal256(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.float64()))
    return polars.from_arrow(table)


def html_table(names: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """A table of HTML. Everything in it is escaped: names and keys are data, and may look like markup."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(row[name]))}</td>" for name in names) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: object) -> str:
    """Text as it is, in HTML."""
    return f"<pre>{html.escape(str(text))}</pre>"


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise RequestError(f"{name} is not installed: pip install {name}, or take .table(), an Arrow table") from None
