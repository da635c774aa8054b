"""What may be known of a file before the charge: the names and types in its header or schema, and nothing else.

Messages here name what the *contract* declares, never what the file holds: the first line of a file without a header
is somebody's row.
"""

from __future__ import annotations

import codecs
import csv
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from parco.contract.bins import CalendarBins
from parco.contract.columns import BooleanColumn, DateColumn, DecimalColumn, IntegerColumn, TextColumn
from parco.contract.contract import Contract
from parco.contract.dialect import Csv
from parco.errors import DataError

__all__ = ["Kind", "Source", "check", "check_names", "header", "in_utf_8", "kind_of", "read_source", "used_columns"]

_GLOB = set("*?[]{}")
_BOM = b"\xef\xbb\xbf"
_HEADER_BYTES_MAX = 1 << 20
_DECIMAL_BYTES_MAX = 16
_SEPARATORS = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated", "|": "bar-separated"}


class Kind(StrEnum):
    """What a stored column is, as far as SQL must treat it differently."""

    UNTYPED = "untyped"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    MOMENT = "a timestamp with a time zone"
    """A point in time: which day it belongs to depends on where, so that bins must say a time zone."""
    MILLISECONDS = "a timestamp in milliseconds"
    """Refused: DuckDB raises on those that microseconds cannot hold, so one row could stop a release."""
    OTHER = "another type"


_FITS: dict[type, frozenset[Kind]] = {
    IntegerColumn: frozenset({Kind.UNTYPED, Kind.INTEGER}),
    DecimalColumn: frozenset({Kind.UNTYPED, Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}),
    TextColumn: frozenset({Kind.UNTYPED, Kind.TEXT}),
    DateColumn: frozenset({Kind.UNTYPED, Kind.DATE}),
    BooleanColumn: frozenset({Kind.UNTYPED, Kind.BOOLEAN}),
}
_UNIT_FITS = frozenset({Kind.UNTYPED, Kind.INTEGER, Kind.TEXT})


@dataclass(frozen=True)
class Source:
    """A file and its columns, in order: names in Unicode form NFC, names as they are stored, kinds.

    `files` are several where the data is a folder; `frame` is the table where it is none in a file.
    """

    path: Path
    format: Literal["csv", "parquet", "frame"]
    names: tuple[str, ...]
    stored: tuple[str, ...]
    kinds: tuple[Kind, ...]
    files: tuple[Path, ...] = ()
    dialect: Csv = field(default_factory=Csv)
    frame: Any = None

    def position(self, name: str) -> int | None:
        """Where the column of this name stands, both in Unicode form NFC, or None."""
        wanted = unicodedata.normalize("NFC", name)
        return self.names.index(wanted) if wanted in self.names else None

    def kind(self, name: str) -> Kind | None:
        """What the column of this name is, or None where there is none."""
        position = self.position(name)
        return None if position is None else self.kinds[position]


def read_source(path: str | Path, dialect: Csv | None = None) -> Source:
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
    source = _parquet(file) if start == b"PAR1" else _csv(file, dialect or Csv())
    check_names(source)
    return source


def header(path: str | Path, dialect: Csv | None = None) -> tuple[str, ...]:
    """The names in the first record of a CSV file, or raises DataError. Not a byte behind it is decoded."""
    dialect = dialect or Csv()
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(_HEADER_BYTES_MAX)
    except OSError:
        raise DataError(f"the data file {path} cannot be opened: check its permissions") from None
    cut = len(start) >= _HEADER_BYTES_MAX
    start = in_utf_8(start, dialect.encoding, path)
    record = _first_record(start.removeprefix(_BOM), dialect)
    if cut and len(record) + len(_BOM) >= len(start):
        raise DataError(f"no line of {path} ends within its first {_HEADER_BYTES_MAX} bytes: is it CSV?")
    names = _fields(record, dialect)
    quotes = ('"', "'") if dialect.quote == "'" else ('"',)
    if names is None or any(name != name.lstrip() and name.lstrip().startswith(quotes) for name in names):
        # A quote behind a space is text to some readers and opens a field to others: they would disagree on the rows.
        separator, encoding = _SEPARATORS[dialect.delimiter], dialect.encoding.upper()
        raise DataError(f"{path} is neither Parquet nor CSV whose first line is {separator} names in {encoding}")
    return tuple(unicodedata.normalize("NFC", name) for name in names)


def _first_record(start: bytes, dialect: Csv) -> bytes:
    """What stands before the first line end outside quotes: behind it is somebody's row, which must decide nothing."""
    quote = None if dialect.quote == "none" else ord(dialect.quote)
    quoted, field_start = False, True
    for place, byte in enumerate(start):
        if byte == quote and (quoted or field_start):
            # A doubled quote inside quotes closes and opens again: the state is right either way.
            quoted, field_start = not quoted, quoted
        elif byte in b"\r\n" and not quoted:
            return start[:place]
        else:
            field_start = byte == ord(dialect.delimiter) and not quoted
    return start


def _fields(record: bytes, dialect: Csv) -> list[str] | None:
    """The fields of one record, or None. Raises nothing: the error would hold the record, and it may be a row."""
    plain = dialect.quote == "none"
    how: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if plain else {"quotechar": dialect.quote}
    try:
        return next(csv.reader([record.decode()], delimiter=dialect.delimiter, strict=True, **how), [])
    except (UnicodeDecodeError, csv.Error):
        return None


def used_columns(contract: Contract, names: Iterable[str]) -> tuple[str, ...]:
    """The stored columns behind a question's names: bins stand for their date column."""
    return tuple(dict.fromkeys(contract.bins[name].column if name in contract.bins else name for name in names))


def in_utf_8(start: bytes, encoding: str, path: str | Path) -> bytes:
    """The beginning of a file in UTF-8; what cannot be decoded is no UTF-8 afterwards either."""
    if encoding == "latin-1":
        return start.decode("latin-1").encode()
    if encoding == "utf-16":
        if start[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise DataError(f"{path} does not begin with a byte order mark, as UTF-16 must: convert it")
        return start.decode("utf-16", "ignore").encode()
    return start


def check(contract: Contract, source: Source, names: Iterable[str]) -> None:
    """Raises DataError unless the unit and each named column are there, with a type that fits its declaration."""
    _check_fits(source, contract.unit.column, _UNIT_FITS, "the unit (integer or text)")
    asked = tuple(names)
    for name in used_columns(contract, asked):
        declared = contract.columns[name]
        fits, wanted = _FITS[type(declared)], f"type {declared.type}"
        if isinstance(declared, DateColumn):
            fits = _date_fits(contract, declared, name, itself=name in asked)
            if source.kind(name) is Kind.MOMENT:
                wanted = "type date unless it is only asked through bins that all say a time_zone, and never summed"
        _check_fits(source, name, fits, wanted)


def _date_fits(contract: Contract, declared: DateColumn, name: str, *, itself: bool) -> frozenset[Kind]:
    """What may be stored where days are wanted: text if the contract says how, moments if all bins say where.

    `itself`: the column is asked by its own name, as in a condition; then nothing says where a moment was.
    """
    fits = _FITS[DateColumn] | (frozenset({Kind.TEXT}) if declared.formats is not None else frozenset())
    bins = [bins for bins in contract.bins.values() if isinstance(bins, CalendarBins) and bins.column == name]
    zones = [one.time_zone for one in bins]
    # A sum of days has no bins that could say where a moment was.
    zoned = zones and None not in zones and declared.days is None and not itself
    return fits | {Kind.MOMENT} if zoned else fits


def _check_fits(source: Source, name: str, fits: frozenset[Kind], wanted: str) -> None:
    position = source.position(name)
    if position is None:
        raise DataError(f"the data has no column {name!r}, which the contract declares", column=name)
    if (kind := source.kinds[position]) not in fits:
        raise DataError(f"column {name!r} is stored as {kind.value}, which does not fit {wanted}", column=name)


def check_names(source: Source) -> None:
    """Raises DataError where a column has no name, or one that another column has."""
    # DuckDB compares even quoted names without case, so a typed file may not hold names that differ only there.
    shown = source.names if source.format == "csv" else tuple(name.casefold() for name in source.names)
    times = Counter(shown)
    for position, name in enumerate(shown, start=1):
        if not name:
            raise DataError(f"column {position} of the data has no name")
        if times[name] > 1:
            raise DataError(f"column {position} of the data has a name that occurs twice")


def _csv(path: Path, dialect: Csv) -> Source:
    names = header(path, dialect) if dialect.header else dialect.names
    if not names:
        raise DataError(f"the first line of {path} is empty: a header with the columns' names must stand there")
    return Source(path, "csv", names, names, (Kind.UNTYPED,) * len(names), (path,), dialect)


def _parquet(path: Path) -> Source:
    columns = _parquet_columns(path)
    if columns is None:
        raise DataError(f"{path} begins like a Parquet file and cannot be read as one")
    stored = tuple(columns)
    names = tuple(unicodedata.normalize("NFC", name) for name, _ in stored)
    return Source(path, "parquet", names, tuple(name for name, _ in stored), tuple(kind for _, kind in stored), (path,))


def _parquet_columns(path: Path) -> list[tuple[str, Kind]] | None:
    """Names and kinds, or None where the file cannot be read: the reader's error may hold bytes of the file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(path)
        return [(name, kind_of(kind)) for name, kind in zip(schema.names, schema.types, strict=True)]
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None


def kind_of(stored: Any) -> Kind:  # noqa: ANN401 - an Arrow type
    """What an Arrow type is."""
    from pyarrow import types

    if types.is_dictionary(stored):
        # Only a hint of whoever wrote the file (a pandas category): the file stores the values.
        stored = stored.value_type
    tests: tuple[tuple[Callable[[Any], bool], Kind], ...] = (
        (types.is_integer, Kind.INTEGER),
        (
            # DuckDB raises on a negative scale.
            lambda kind: types.is_decimal(kind) and kind.byte_width <= _DECIMAL_BYTES_MAX and kind.scale >= 0,
            Kind.DECIMAL,
        ),
        (types.is_floating, Kind.DOUBLE),
        (lambda kind: types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind), Kind.TEXT),
        (types.is_boolean, Kind.BOOLEAN),
        (types.is_date, Kind.DATE),
        (lambda kind: types.is_timestamp(kind) and kind.tz is not None and kind.unit in ("us", "ns"), Kind.MOMENT),
        (lambda kind: types.is_timestamp(kind) and kind.tz is None and kind.unit in ("us", "ns"), Kind.DATE),
        (types.is_timestamp, Kind.MILLISECONDS),
    )
    return next((kind for test, kind in tests if test(stored)), Kind.OTHER)
