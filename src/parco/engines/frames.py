"""Frames as data: tables of pyarrow, pandas and polars. Types come from the frame's declaration, never from its values.

None of these libraries is imported to find out: a frame can only be of one that is loaded already.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parco.engines.source import Source, check_names, kind_of
from parco.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["as_table", "frame_source", "is_frame"]


def is_frame(data: object) -> bool:
    """Whether it is a table of one of the three libraries."""
    return _library(data) in ("pyarrow", "pandas", "polars")


def frame_source(frame: Any) -> Source:  # noqa: ANN401 - of a library that may not be installed
    """The names and types of a frame, or raises DataError without looking at a value."""
    schema = _schema(frame)
    if schema is None:
        raise DataError("the frame's columns cannot be read: each needs a name of its own and one type")
    stored = tuple(str(name) for name in schema.names)
    kinds = tuple(kind_of(kind) for kind in schema.types)
    names = tuple(unicodedata.normalize("NFC", name) for name in stored)
    source = Source(Path(), "frame", names, stored, kinds, frame=frame)
    check_names(source)
    return source


def _schema(frame: Any) -> pa.Schema | None:  # noqa: ANN401 - see above
    """Names and types, or None where they cannot be read: the library's error may hold what it pleases."""
    import pyarrow as pa

    try:
        return _empty(frame).schema
    except (pa.ArrowException, ValueError, TypeError, AttributeError):
        return None


def as_table(frame: Any, names: list[str]) -> pa.Table:  # noqa: ANN401 - see above
    """These columns as an Arrow table, in the types that `frame_source` saw."""
    import pyarrow as pa

    match _library(frame):
        case "polars":
            return frame.select(names).to_arrow()
        case "pandas":
            schema = _empty(frame).schema
            return pa.table([_series(frame[name], schema.field(name).type) for name in names], names=names)
        case _:
            return frame.select(names)


def _empty(frame: Any) -> pa.Table:  # noqa: ANN401 - see above
    """The frame without its rows. Columns of Python objects have no type then, and fit nothing."""
    import pyarrow as pa

    match _library(frame):
        case "polars":
            return frame.clear().to_arrow()
        case "pandas":
            return pa.Table.from_pandas(frame.iloc[:0], preserve_index=False)
        case _:
            return frame.slice(0, 0)


def _series(series: Any, kind: pa.DataType) -> pa.Array:  # noqa: ANN401 - see above
    """A pandas column. NaN stays NaN where numpy holds the numbers: whether it is missing is the contract's to say."""
    import pyarrow as pa

    plain = type(series.dtype).__module__.startswith("numpy") and pa.types.is_floating(kind)
    made = pa.array(series.to_numpy(), kind, from_pandas=False) if plain else pa.array(series, from_pandas=True)
    return made if made.type == kind else made.cast(kind)


def _library(data: object) -> str:
    for kind in type(data).__mro__:
        library = kind.__module__.partition(".")[0]
        if (library, kind.__name__) in (("pyarrow", "Table"), ("pandas", "DataFrame"), ("polars", "DataFrame")):
            return library
    return ""
