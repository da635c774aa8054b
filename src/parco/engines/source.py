"""What may be known of a file before the charge: the names and types in its header or schema, and nothing else.

Messages here name what the *contract* declares, never what the file holds: the first line of a file without a header
is somebody's row.
"""

from __future__ import annotations

import csv
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from parco.contract.columns import DateColumn, DecimalColumn, IntegerColumn, TextColumn
from parco.contract.contract import Contract
from parco.errors import DataError

__all__ = ["Kind", "Source", "check", "header", "read_source", "used_columns"]

_GLOB = set("*?[]{}")
_BOM = b"\xef\xbb\xbf"
_HEADER_BYTES_MAX = 1 << 20
_DECIMAL_BYTES_MAX = 16


class Kind(StrEnum):
    """What a stored column is, as far as SQL must treat it differently."""

    UNTYPED = "untyped"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    TEXT = "text"
    DATE = "date"
    MILLISECONDS = "a timestamp in milliseconds"
    """Refused: DuckDB raises on those that microseconds cannot hold, so one row could stop a release."""
    OTHER = "another type"


_FITS: dict[type, frozenset[Kind]] = {
    IntegerColumn: frozenset({Kind.UNTYPED, Kind.INTEGER}),
    DecimalColumn: frozenset({Kind.UNTYPED, Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}),
    TextColumn: frozenset({Kind.UNTYPED, Kind.TEXT}),
    DateColumn: frozenset({Kind.UNTYPED, Kind.DATE}),
}
_UNIT_FITS = frozenset({Kind.UNTYPED, Kind.INTEGER, Kind.TEXT})


@dataclass(frozen=True)
class Source:
    """A file and its columns, in order: names in Unicode form NFC, names as they are stored, kinds."""

    path: Path
    format: Literal["csv", "parquet"]
    names: tuple[str, ...]
    stored: tuple[str, ...]
    kinds: tuple[Kind, ...]

    def position(self, name: str) -> int | None:
        """Where the column of this name stands, both in Unicode form NFC, or None."""
        wanted = unicodedata.normalize("NFC", name)
        return self.names.index(wanted) if wanted in self.names else None


def read_source(path: str | Path) -> Source:
    """For every CSV or Parquet file, returns its names and types, or raises DataError without looking at a row."""
    file = Path(path).absolute()
    if _GLOB & set(str(file)):
        raise DataError(f"the path of a data file must not contain any of {' '.join(sorted(_GLOB))}: rename it")
    try:
        if not file.is_file():
            raise DataError(f"no data file at {path}")
        with file.open("rb") as stream:
            start = stream.read(4)
    except OSError:
        raise DataError(f"the data file {path} cannot be opened: check its permissions") from None
    if not start:
        raise DataError(f"the data file {path} is empty (zero bytes): not even a header")
    source = _parquet(file) if start == b"PAR1" else _csv(file)
    _check_names(source)
    return source


def header(path: str | Path) -> tuple[str, ...]:
    """The names in the first record of a CSV file, or raises DataError. Not a byte behind it is decoded."""
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(_HEADER_BYTES_MAX)
    except OSError:
        raise DataError(f"the data file {path} cannot be opened: check its permissions") from None
    record = _first_record(start.removeprefix(_BOM))
    if len(record) + len(_BOM) >= _HEADER_BYTES_MAX:
        raise DataError(f"no line of {path} ends within its first {_HEADER_BYTES_MAX} bytes: is it CSV?")
    names = _fields(record)
    if names is None or any(name != name.lstrip() and name.lstrip().startswith('"') for name in names):
        # A quote behind a space is text to some readers and opens a field to others: they would disagree on the rows.
        raise DataError(f"{path} is neither Parquet nor CSV whose first line is comma-separated names in UTF-8")
    return tuple(unicodedata.normalize("NFC", name) for name in names)


def _first_record(start: bytes) -> bytes:
    """What stands before the first line end outside quotes: behind it is somebody's row, which must decide nothing."""
    quoted, field_start = False, True
    for place, byte in enumerate(start):
        if byte == ord('"') and (quoted or field_start):
            # A doubled quote inside quotes closes and opens again: the state is right either way.
            quoted, field_start = not quoted, quoted
        elif byte in b"\r\n" and not quoted:
            return start[:place]
        else:
            field_start = byte == ord(",") and not quoted
    return start


def _fields(record: bytes) -> list[str] | None:
    """The fields of one record, or None. Raises nothing: the error would hold the record, and it may be a row."""
    try:
        return next(csv.reader([record.decode()], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        return None


def used_columns(contract: Contract, names: Iterable[str]) -> tuple[str, ...]:
    """The stored columns behind a question's names: bins stand for their date column."""
    return tuple(dict.fromkeys(contract.bins[name].column if name in contract.bins else name for name in names))


def check(contract: Contract, source: Source, names: Iterable[str]) -> None:
    """Raises DataError unless the unit and each named column are there, with a type that fits its declaration."""
    _check_fits(source, contract.unit.column, _UNIT_FITS, "the unit (integer or text)")
    for name in used_columns(contract, names):
        declared = contract.columns[name]
        _check_fits(source, name, _FITS[type(declared)], f"type {declared.type}")


def _check_fits(source: Source, name: str, fits: frozenset[Kind], wanted: str) -> None:
    position = source.position(name)
    if position is None:
        raise DataError(f"the data has no column {name!r}, which the contract declares", column=name)
    if (kind := source.kinds[position]) not in fits:
        raise DataError(f"column {name!r} is stored as {kind.value}, which does not fit {wanted}", column=name)


def _check_names(source: Source) -> None:
    # DuckDB compares even quoted names without case, so a typed file may not hold names that differ only there.
    shown = source.names if source.format == "csv" else tuple(name.casefold() for name in source.names)
    times = Counter(shown)
    for position, name in enumerate(shown, start=1):
        if not name:
            raise DataError(f"column {position} of the data has no name")
        if times[name] > 1:
            raise DataError(f"column {position} of the data has a name that occurs twice")


def _csv(path: Path) -> Source:
    names = header(path)
    if not names:
        raise DataError(f"the first line of {path} is empty: a header with the columns' names must stand there")
    return Source(path, "csv", names, names, (Kind.UNTYPED,) * len(names))


def _parquet(path: Path) -> Source:
    columns = _parquet_columns(path)
    if columns is None:
        raise DataError(f"{path} begins like a Parquet file and cannot be read as one")
    stored = tuple(columns)
    names = tuple(unicodedata.normalize("NFC", name) for name, _ in stored)
    return Source(path, "parquet", names, tuple(name for name, _ in stored), tuple(kind for _, kind in stored))


def _parquet_columns(path: Path) -> list[tuple[str, Kind]] | None:
    """Names and kinds, or None where the file cannot be read: the reader's error may hold bytes of the file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(path)
        return [(name, _kind(kind)) for name, kind in zip(schema.names, schema.types, strict=True)]
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None


def _kind(stored: Any) -> Kind:  # noqa: ANN401 - an Arrow type
    from pyarrow import types

    if types.is_dictionary(stored):
        # Only a hint of whoever wrote the file (a pandas category): the file stores the values.
        stored = stored.value_type
    tests: tuple[tuple[Callable[[Any], bool], Kind], ...] = (
        (types.is_integer, Kind.INTEGER),
        (lambda kind: types.is_decimal(kind) and kind.byte_width <= _DECIMAL_BYTES_MAX, Kind.DECIMAL),
        (types.is_floating, Kind.DOUBLE),
        (lambda kind: types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind), Kind.TEXT),
        (types.is_date, Kind.DATE),
        (lambda kind: types.is_timestamp(kind) and kind.tz is None and kind.unit in ("us", "ns"), Kind.DATE),
        (lambda kind: types.is_timestamp(kind) and kind.tz is None, Kind.MILLISECONDS),
    )
    return next((kind for test, kind in tests if test(stored)), Kind.OTHER)
