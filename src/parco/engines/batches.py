"""Parquet files or a frame as record batches under names of our own, in types on which no engine has to raise.

Text is handed over as bytes: a writer may have stored what is not UTF-8, and a reader that checks would fail for one
row. The statement decodes it, and drops what does not decode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from parco.engines.frames import as_table
from parco.engines.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["column_name", "record_batches"]

_ROWS = 1 << 16


def column_name(position: int) -> str:
    """How SQL calls the column at a position, whatever the file calls it: no name can clash with one of ours."""
    return f"c{position}"


def record_batches(source: Source, positions: Sequence[int]) -> pa.RecordBatchReader:
    """The columns at these positions, row group by row group."""
    import pyarrow as pa

    stored = [source.stored[position] for position in positions]
    first, tables = _stored_batches(source, stored)
    types = [_handed(first.field(name).type) for name in stored]
    schema = pa.schema(list(zip(map(column_name, positions), types, strict=True)))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in tables:
            arrays = [_array(batch.column(name), field.type) for name, field in zip(stored, schema, strict=True)]
            yield pa.record_batch(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _stored_batches(source: Source, names: list[str]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and the rows as they are stored; all files of a folder were found to have the same types."""
    from pyarrow import parquet

    if source.format == "frame":
        table = as_table(source.frame, names)
        return table.schema, iter(table.to_batches(max_chunksize=_ROWS))
    files = [parquet.ParquetFile(path) for path in source.files or (source.path,)]
    rows = (batch for file in files for batch in file.iter_batches(batch_size=_ROWS, columns=names))
    return files[0].schema_arrow, rows


def _handed(stored: pa.DataType) -> pa.DataType:
    """The type in which a column is handed over."""
    import pyarrow as pa

    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_string(stored) or pa.types.is_large_string(stored) or pa.types.is_string_view(stored):
        return pa.large_binary()
    if pa.types.is_float16(stored):
        return pa.float32()
    if pa.types.is_decimal(stored):
        return pa.decimal128(stored.precision, stored.scale)
    if pa.types.is_timestamp(stored) and stored.tz is not None:
        # The name of a zone is a hint for whoever prints the moment; a database may not know it.
        return pa.timestamp(stored.unit, "UTC")
    return stored


def _array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array if array.type == wanted else array.cast(wanted)
