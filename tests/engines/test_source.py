"""Names and types are compared before the charge, and no refusal tells what is in the file."""

from __future__ import annotations

import io
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import parco
from parco.engines import source
from parco.errors import DataError
from parco.stores.sqlite import SqliteStore
from tests.shop import HEADER, open_shop

from .build import agreed, ask, run, write, write_parquet

MARKER = "Zq7-Ada-Lovelace-4711"
LINE = ",".join(HEADER)


def table(**changes: pa.Array | None) -> pa.Table:
    """A typed file that fits the shop's contract, with some columns replaced or left out."""
    columns: dict[str, pa.Array | None] = {
        "customer": pa.array([1, 2]),
        "date": pa.array([19800, 19801], pa.int32()).cast(pa.date32()),
        "items": pa.array([1, 2]),
        "dollars": pa.array([1.5, 2.5]),
        "channel": pa.array(["web", "shop"]),
    }
    return pa.table({name: column for name, column in (columns | changes).items() if column is not None})


def stored(made: pa.Table) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(made, stream)
    return stream.getvalue()


def text_of(error: BaseException) -> str:
    """All that a log could say of an error."""
    facts = getattr(error, "facts", {})
    return "".join([str(error), repr(error), repr(facts), *traceback.format_exception(error)])


def refused(folder: Path, content: bytes | None, asked: Callable[[parco.Session], object]) -> DataError:
    """The refusal of a file; nothing may have been written to the ledger, and the account is whole."""
    contract = open_shop(folder)
    if content is None:
        (folder / "purchases.csv").unlink()
    else:
        write(folder / "purchases.csv", content)
    before = (folder / "shop.ledger").read_bytes()
    with pytest.raises(DataError) as caught:
        asked(parco.Session(contract))
    assert (folder / "shop.ledger").read_bytes() == before
    (account,) = SqliteStore.open(folder / "shop.ledger").accounts()
    assert (account.spent, account.reserved) == (0, 0)
    assert (caught.value.exit_code, caught.value.code) == (2, "data")
    return caught.value


def by_month(session: parco.Session) -> object:
    return session.sum("dollars", by=["month", "channel"], cost="0.1")


def items(session: parco.Session) -> object:
    return session.sum("items", cost="0.1")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no data file at"),
        (b"", "is empty (zero bytes)"),
        (b"\n" + LINE.encode(), "the first line of"),
        (b"\xef\xbb\xbf", "the first line of"),
        (LINE.replace("customer", "client").encode(), "the data has no column 'customer'"),
        (LINE.replace("date", "day").encode(), "the data has no column 'date'"),
        (LINE.replace("dollars", "Dollars").encode(), "the data has no column 'dollars'"),
        (LINE.replace("channel", "channel ").encode(), "the data has no column 'channel'"),
        (f"{LINE},date\n".encode(), "column 2 of the data has a name that occurs twice"),
        (f"items,{LINE}\n".encode(), "column 1 of the data has a name that occurs twice"),
        (f"{LINE},x,x\n".encode(), "column 6 of the data has a name that occurs twice"),
        (f"{LINE},gr\u00f6sse,gro\u0308sse\n".encode(), "column 6 of the data has a name that occurs twice"),
        (f"{LINE},\n".encode(), "column 6 of the data has no name"),
        (f",{LINE}\n".encode(), "column 1 of the data has no name"),
        (f'{LINE},""\n'.encode(), "column 6 of the data has no name"),
        (f"{LINE},gr\u00f6sse\n".encode("latin-1"), "is neither Parquet nor CSV"),
        (f"{LINE}\n".encode("utf-16"), "is neither Parquet nor CSV"),
        (f'{LINE},"open\n1,2024-01-01,1,1,web,\n'.encode(), "is neither Parquet nor CSV"),
        (f'{LINE},"a"b\n'.encode(), "is neither Parquet nor CSV"),
        (LINE.encode() + b"," + b"x" * (1 << 20), "no line of"),
        (LINE.replace(",", ";").encode(), "the data has no column"),
        (b"PAR1" + LINE.encode(), "cannot be read as one"),
        (b"PAR1" + b"\0" * 100 + b"PAR1", "cannot be read as one"),
        (stored(table())[:-20], "cannot be read as one"),
        (stored(table())[:4], "cannot be read as one"),
        (stored(table(customer=None)), "the data has no column 'customer'"),
        (stored(table(dollars=None)), "the data has no column 'dollars'"),
        (stored(table(customer=pa.array([1.0, 2.0]))), "'customer' is stored as double"),
        (stored(table(customer=pa.array([True, False]))), "'customer' is stored as boolean"),
        (stored(table(customer=pa.array([b"1", b"2"]))), "'customer' is stored as another type"),
        (stored(table(dollars=pa.array(["1", "2"]))), "'dollars' is stored as text"),
        (stored(table(dollars=pa.array([True, False]))), "'dollars' is stored as boolean"),
        (stored(table(dollars=pa.array([1, 2], pa.decimal256(50, 2)))), "'dollars' is stored as another type"),
        (stored(table(dollars=pa.nulls(2))), "'dollars' is stored as another type"),
        (stored(table(dollars=pa.array([[1.0], [2.0]]))), "'dollars' is stored as another type"),
        (stored(table(channel=pa.array([1, 2]))), "'channel' is stored as integer"),
        (stored(table(channel=pa.array([1, 2]).dictionary_encode())), "'channel' is stored as integer"),
        (stored(table(date=pa.array(["2024-01-01", "2024-01-02"]))), "'date' is stored as text"),
        (
            stored(table(date=pa.array([1, 2], pa.timestamp("us", tz="UTC")))),
            "'date' is stored as a timestamp with a time",
        ),
        (stored(table(date=pa.array([1, 2], pa.timestamp("ms")))), "'date' is stored as a timestamp in milliseconds"),
        (stored(table(date=pa.array([1, 2], pa.time64("us")))), "'date' is stored as another type"),
        (stored(table(Date=pa.array([1, 2]))), "column 2 of the data has a name that occurs twice"),
        (stored(table().append_column("date", pa.array([1, 2]))), "column 2 of the data has a name that occurs twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_what_does_not_fit_is_refused_before_the_charge(tmp_path: Path, content: bytes | None, words: str) -> None:
    assert words in str(refused(tmp_path, content, by_month))


@pytest.mark.parametrize("column", [pa.array([1.0, 2.0]), pa.array(["1", "2"]), pa.array([1, 2], pa.decimal128(9, 0))])
def test_a_whole_number_is_not_taken_from_another_type(tmp_path: Path, column: pa.Array) -> None:
    error = refused(tmp_path, stored(table(items=column)), items)
    assert "which does not fit type integer" in str(error)
    assert error.facts == {"column": "items"}


def test_only_the_columns_of_a_question_have_to_fit(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    write(tmp_path / "purchases.csv", stored(table(channel=None, dollars=pa.array([True, False]))))
    assert len(parco.Session(contract).sum("items", by="month", cost="0.1").value) == 4


@pytest.mark.parametrize("name", ["a*.csv", "a?.csv", "[a].csv", "{a,b}.csv"])
def test_a_path_that_stands_for_several_files_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="must not contain any of"):
        source.read_source(write(tmp_path / name, "person\n1\n"))


def test_a_folder_and_a_pipe_are_no_data_files(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "nul\0"):
        with pytest.raises(DataError, match="no data file at"):
            source.read_source(path)


@pytest.mark.parametrize("folder", ["person=7", "c0=7", "it's", 'a"b', "größe", "a\\b"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_name_of_a_folder_says_nothing_about_the_rows(tmp_path: Path, folder: str, form: str) -> None:
    # Some readers take "person=7" for the value of that column in every row: three people would become one.
    path = tmp_path / folder / f"it's.{form}"
    path.parent.mkdir()
    if form == "csv":
        write(path, "person,score\n1,1\n2,2\n3,3\n")
    else:
        write_parquet(path, person=pa.array([1, 2, 3]), score=pa.array([1.0, 2.0, 3.0]))
    assert run(path, ask(agreed(), "sum", "score")) == [24]


# Nothing of the file in a message


@pytest.mark.parametrize(
    "first",
    [
        f"{MARKER},2024-01-05,2,10.50,web",
        f"1,2024-01-05,2,10.50,{MARKER}",
        f"{MARKER},{MARKER},2,10.50,web",
        f"{MARKER},,2,10.50,web",
        f'1,"{MARKER},2024-01-05',
        f'"{MARKER}"x,2024-01-05',
        f"{MARKER}\udcff,2024-01-05",
        f"{MARKER};2024-01-05",
        f"customer,{MARKER},{MARKER}",
        f"PAR1{MARKER}",
        MARKER * 60_000,
    ],
    ids=lambda first: repr(first[:40]),
)
def test_a_file_without_a_header_is_refused_without_a_word_of_its_rows(tmp_path: Path, first: str) -> None:
    rows = (f"{first}\n" + f"{MARKER},2024-01-05,{MARKER},1,web\n" * 3).encode(errors="surrogateescape")
    error = refused(tmp_path, rows, by_month)
    assert MARKER not in text_of(error)
    # Nor in what Python keeps beside the message: a logger may print that too.
    assert error.__context__ is None
    assert error.__cause__ is None


def test_nor_is_a_word_of_a_damaged_typed_file(tmp_path: Path) -> None:
    whole = stored(table(channel=pa.array([MARKER, "web"]), **{MARKER: pa.array([1, 2])}))
    assert MARKER.encode() in whole
    for place, content in enumerate((whole[:-9], whole[:4] + MARKER.encode() + whole[-8:], whole[: len(whole) // 2])):
        error = refused(tmp_path / str(place), content, by_month)
        assert MARKER not in text_of(error)
        assert error.__context__ is None
    error = refused(tmp_path / "types", stored(table(dollars=pa.array([MARKER, "1"]))), by_month)
    assert MARKER not in text_of(error)


def test_text_that_is_no_utf_8_in_a_typed_file_drops_its_row(tmp_path: Path) -> None:
    """A reader that checks would raise for one row, with the text in its message."""
    broken = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.array([0, 3, 6], pa.int32()).buffers()[1], pa.py_buffer(b"web" + b"\xffxx")],
    )
    contract = open_shop(tmp_path)
    write(tmp_path / "purchases.csv", stored(table(channel=broken)))
    assert run(tmp_path / "purchases.csv", ask(contract, "count", by="channel")) == [1, 0, 0]
    write(tmp_path / "purchases.csv", stored(table(customer=broken)))
    assert run(tmp_path / "purchases.csv", ask(contract, "count")) == [1]
