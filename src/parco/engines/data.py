"""Data of any form as a source: a file, a folder of files with the same columns, or a frame."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from parco.contract.contract import Contract
from parco.engines.frames import frame_source, is_frame
from parco.engines.source import Source, read_source, used_columns
from parco.errors import DataError

__all__ = ["read_data"]

_SUFFIXES = (".csv", ".parquet")


def read_data(data: str | Path | Any, contract: Contract, names: Iterable[str]) -> Source:  # noqa: ANN401 - or a frame
    """For every file, folder or frame, returns names and types, or raises DataError without looking at a row."""
    if is_frame(data):
        return frame_source(data)
    if not isinstance(data, str | Path):
        raise DataError("data is the path of a file or folder, a pyarrow.Table, a pandas or a polars DataFrame")
    try:
        folder = Path(data).is_dir()
    except (OSError, ValueError):
        folder = False
    if not folder:
        return read_source(data, contract.data.dialect)
    needed = (contract.unit.column, *used_columns(contract, names))
    return _folder(Path(data), contract, needed)


def _folder(folder: Path, contract: Contract, needed: tuple[str, ...]) -> Source:
    """The files of a folder, by name; names that begin with a dot or an underscore are other programs' notes."""
    try:
        found = sorted(path.absolute() for path in folder.iterdir() if not path.name.startswith((".", "_")))
    except OSError:
        raise DataError(f"the folder {folder} cannot be opened: check its permissions") from None
    files = [path for path in found if path.suffix.lower() in _SUFFIXES]
    if not files:
        raise DataError(f"no data file at {folder}: a folder must hold files that end in .csv or .parquet")
    if len(files) < len(found):
        raise DataError(f"{folder} holds something that is no .csv and no .parquet file: take it out")
    sources = [read_source(path, contract.data.dialect) for path in files]
    for source in sources[1:]:
        _check_same(sources[0], source, needed)
    return replace(sources[0], files=tuple(files))


def _check_same(first: Source, other: Source, needed: tuple[str, ...]) -> None:
    """Raises DataError unless both have the needed columns alike; a CSV file has all of its columns in one order."""
    pair = f"{first.path.name} and {other.path.name}"
    if first.format != other.format:
        raise DataError(f"{pair} have two formats: keep CSV and Parquet files in two folders")
    if first.format == "csv" and first.names != other.names:
        raise DataError(f"{pair} do not have the same columns in the same order")
    types, others = _types(first), _types(other)
    for name in needed:
        if types.get(name) != others.get(name):
            raise DataError(f"column {name!r} has two types, or is missing, in {pair}", column=name)


def _types(source: Source) -> dict[str, object]:
    """The type of each column: the file's own, since one reader hands over all of them."""
    if source.format == "csv":
        return dict(zip(source.names, source.kinds, strict=True))
    from pyarrow import parquet

    return dict(zip(source.names, parquet.read_schema(source.path).types, strict=True))
