"""A line that cannot be read costs its own row and nobody else's; a file of any form has the same schema."""

from __future__ import annotations

from pathlib import Path

import pytest

import parco
from parco.stores.sqlite import SqliteStore
from tests.shop import HEADER, contract_text

from .build import agreed, ask, run, write

HEAD = b"person,score,ward\n"
# Lines around the odd one: its neighbours would be the first to suffer.
BEFORE, AFTER = [b"s1,1,north", b"s2,2,north"], [b"s3,3,north", b"s4,4,north"]
WHOLE = 10 * 4

CONTRACT = agreed(groups=3, rows=5)
SUM = ask(CONTRACT, "sum", "score", "ward")


@pytest.mark.parametrize(
    ("line", "south"),
    [
        (b"x,9,south", 36),
        (b'"x","9","south"', 36),
        (b'x,9,"south"', 36),
        (b"x,9", 0),
        (b"x", 0),
        (b"", 0),
        (b",,", 0),
        (b"   ", 0),
        (b"x,,south", 0),
        (b",9,south", 0),
        (b'"",9,south', 0),
        (b"x,9,south\xff", 0),
        (b"x,9\xff,south", 0),
        (b"\xffx,9,south", 0),
        (b"\xc3,9,sou\xc3th", 0),
        (b"x,9,south\x00", 0),
        (b"x,9\x00,south", 0),
        (b"\x00", 0),
        (b"x,9,sou\x1ath", 0),
        (b"x,9,\xef\xbb\xbfsouth", 0),
        (b'x,"9""",south', 0),
        (b'x,9"9,south', 0),
        (b'x,9,so"uth', 0),
        (b'x,9,"south\n"', 0),
        (b'x,9,"north\ns5,5,north\n"', 0),
        (b"x,9,south\\", 0),
        (b"x;9;south", 0),
        (b"x\t9\tsouth", 0),
        (b"x,9\r,south", 0),
        (b"#x,9,south", 36),
        (b"x,9,south\r", 36),
        (b"x,9,south\r\r", 36),
        (b"\rx,9,south", 36),
        (b"x,9,south\n\n\n", 36),
        (b"x," + b"9" * 100_000 + b",south", 80),
        (b"x," + b"9" * 17_000_000 + b",south", 0),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else None,
)
def test_an_odd_line_costs_its_own_row_only(tmp_path: Path, line: bytes, south: int) -> None:
    # Half of the files have the other line end.
    end = (b"\n", b"\r\n")[len(line) % 2]
    content = HEAD.rstrip() + end + end.join([*BEFORE, line, *AFTER]) + end
    assert run(write(tmp_path / "a.csv", content), SUM) == [WHOLE, south, 0]


@pytest.mark.parametrize("surplus", [b"x,9,south,", b"x,9,south,more", b"x,9,south,,,,", b'x,9,south,"a","b"'])
def test_surplus_fields_are_not_read(tmp_path: Path, surplus: bytes) -> None:
    content = HEAD + b"\n".join([*BEFORE, surplus, *AFTER]) + b"\n"
    assert run(write(tmp_path / "a.csv", content), SUM) == [WHOLE, 36, 0]


@pytest.mark.parametrize("line", [b'x,9,"south', b'"x,9,south', b'x,"9,south', b'x,9,south\n"'], ids=repr)
def test_an_open_quotation_mark_swallows_what_is_behind_it_and_nothing_before(tmp_path: Path, line: bytes) -> None:
    # The one exception, documented: the table is the one that the parser makes.
    content = HEAD + b"\n".join([*BEFORE, line, *AFTER]) + b"\n"
    north, south, _ = run(write(tmp_path / "a.csv", content), SUM)
    assert (north, south in (0, 36)) == (12, True)


@pytest.mark.parametrize(
    "content",
    [
        b"person,score,ward\nu,1,north\nv,2,south\n",
        b"person,score,ward\nu,1,north\nv,2,south",
        b"person,score,ward\r\nu,1,north\r\nv,2,south\r\n",
        b"person,score,ward\ru,1,north\rv,2,south\r",
        b"person,score,ward\r\r\nu,1,north\r\r\nv,2,south\r\r\n",
        b"person,score,ward\n\ru,1,north\n\rv,2,south\n\r",
        b"person,score,ward\nu,1,north\r\nv,2,south\r",
        b"person,score,ward\r\nu,1,north\rv,2,south\n",
        b"person,score,ward\ru,1,north\nv,2,south\r\n",
        b"person,score,ward\r\nu,1,north\nv,2,south\r\n",
        b"person,score,ward\n\n\n\nu,1,north\n\nv,2,south\n\n",
        b"\xef\xbb\xbfperson,score,ward\nu,1,north\nv,2,south\n",
        b'\xef\xbb\xbf"person","score","ward"\r\nu,1,north\r\nv,2,south\r\n',
        b'"person","score","ward"\n"u","1","north"\n"v","2","south"\n',
        b'person,score,ward,"a note\n(free, ""long"")"\nu,1,north,x\nv,2,south,"y"\n',
        b'ward,unused,score,person\nnorth,?,1,u\nsouth,"a,b",2,v\n',
    ],
    ids=lambda content: repr(content[:40]),
)
def test_line_ends_marks_and_quotes_make_no_difference(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "a.csv", content)
    assert run(path, SUM) == [4, 8, 0]
    # Each is one unit: no stray character became a part of its name.
    assert run(path, ask(agreed(groups=1, rows=1), "count_units")) == [2]


def test_one_persons_line_ends_do_not_make_two_persons_of_another(tmp_path: Path) -> None:
    rows = [b"a,1,north", b"b,2,north"] * 3
    for end in (b"\n", b"\r\n", b"\r", b"\r\r\n"):
        mixed = HEAD.rstrip() + b"\r\n" + b"".join(row + (end if row.startswith(b"a") else b"\r\n") for row in rows)
        assert run(write(tmp_path / "a.csv", mixed), ask(agreed(), "count_units")) == [2]


@pytest.mark.parametrize(
    "content",
    [
        b"person,score,ward\n",
        b"person,score,ward",
        b"person,score,ward\r\n\r\n",
        b"\n".join([HEAD.strip(), b"", b",,"]),
    ],
)
def test_a_table_without_rows_has_all_its_keys(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "a.csv", content)
    for query in (SUM, ask(CONTRACT, "count", by="ward"), ask(CONTRACT, "count_units", by="ward")):
        assert run(path, query) == [0, 0, 0]


def test_bad_bytes_far_behind_the_header_are_treated_as_near_ones(tmp_path: Path) -> None:
    # A reader that decodes in blocks would refuse one of these files and accept the other.
    filler = b"s,0,north\n"
    for count in (0, 10, 1000, 100_000):
        content = HEAD + filler * count + b"x,9,south\xff\n" + b"s3,3,north\n"
        assert run(write(tmp_path / "a.csv", content), SUM) == [12, 0, 0]


def test_a_release_from_a_hopeless_file_looks_like_any_other(tmp_path: Path) -> None:
    good = b"1,2024-01-05,2,10.50,web\n"
    hopeless = b'\xff\xfe,\x00\n,,,,\nx\n1,2,3,4,5,6\nnan,nan,nan,nan,nan\n1,2024-99-99,1e400,NaN,\xff\n"open,1\n'
    shown = []
    for name, rows in (("good", good * 20), ("hopeless", hopeless), ("empty", b"")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "contract.toml").write_text(contract_text(), encoding="utf-8")
        write(folder / "purchases.csv", ",".join(HEADER).encode() + b"\n" + rows)
        contract = parco.Contract.read(folder / "contract.toml")
        parco.sign(contract)
        release = parco.Session(contract).sum("dollars", by=["month", "channel"], cost="0.25")
        history = SqliteStore.open(folder / "shop.ledger").history()
        table = release.table()
        shown.append((table.schema, table.num_rows, release.cost, release.remaining, [row.state for row in history]))
        assert table.select(["channel", "month"]).to_pylist() == [
            {"channel": channel, "month": f"2024-0{month}"}
            for channel in ("web", "shop", "phone")
            for month in range(1, 5)
        ]
    assert shown[0][1:] == (12, parco.Cost(25 * 10**13), shown[0][3], ["open", "settled"])
    assert shown[0] == shown[1] == shown[2]
