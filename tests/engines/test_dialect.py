"""A declared dialect is read as declared; a line that does not fit costs its own row, in every encoding."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from parco.contract.contract import Contract
from parco.contract.dialect import Csv
from parco.engines.source import header
from parco.errors import DataError
from tests.shop import contract_text

from .build import COLUMNS, ask, run, write


def contract(dialect: str, columns: str = COLUMNS) -> Contract:
    text = contract_text(columns=columns, groups=3, rows=5, unit="person")
    return Contract.parse(text.replace("[unit]", f"[data.csv]\n{dialect}\n[unit]"))


def sums(path: Path, dialect: str) -> list[int]:
    return run(path, ask(contract(dialect), "sum", "score", "ward"))


@pytest.mark.parametrize(
    ("dialect", "content"),
    [
        ('delimiter = ";"', "person;score;ward\nu;1,5;north\nu;1.5;north\nv;2;south\n"),
        ('delimiter = ";"\ndecimal = ","', "person;score;ward\nu;1,5;north\nu;1.5;north\nv;2;south\n"),
        ('delimiter = "\\t"', "person\tscore\tward\nu\t1.5\tnorth\nv\t2\tsouth\n"),
        ('delimiter = "|"', 'person|"score"|ward\nu|1.5|north\nv|2|"south"\n'),
        ('decimal = ","', 'person,score,ward\nu,"1,5",north\nu,"1.000,5",north\nv,2,south\n'),
        ('quote = "\'"', "person,score,ward\nu,'1.5',north\n'v',2,'south'\nw,9,\"south\"\n"),
        ('quote = "none"', 'person,score,ward\nu,1.5,north\nv,2,south\nw,9,"south"\n'),
        ('nulls = ["-", "n/a"]', "person,score,ward\nu,1.5,north\nv,2,south\n-,9,south\nw,9,n/a\nw,-,south\n"),
        ('header = false\nnames = ["person", "score", "ward"]', "u,1.5,north\nv,2,south\n"),
        ('header = false\nnames = ["person", "score", "ward"]', "\ufeffu,1.5,north\nv,2,south\n"),
        ('header = false\nnames = ["ward", "x", "score", "person"]', 'north,,1.5,u\nsouth,"a\n,",2,v\nsouth,1,v\n'),
    ],
)
def test_each_dialect(tmp_path: Path, dialect: str, content: str) -> None:
    assert sums(write(tmp_path / "a.csv", content), dialect) == [6, 8, 0]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, end: str) -> None:
    keys = '[columns."größe"]\ntype = "text"\nkeys = ["süß", "é"]\n'
    content = end.join(["person,größe", "ü1,süß", "ü2,süß", "ü2,süß", "é,é", ""]).encode(encoding)
    if encoding in ("utf-16-le", "utf-16-be"):
        content = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}[encoding] + content
    name = "utf-8" if encoding.startswith("utf-8") else encoding[:6] if encoding.startswith("utf") else encoding
    agreed = contract(f'encoding = "{name}"', keys)
    path = write(tmp_path / "a.csv", content)
    assert run(path, ask(agreed, "count_units", by="größe")) == [2, 1]
    assert run(path, ask(agreed, "count_units")) == [3]


def test_what_is_no_character_costs_its_own_row(tmp_path: Path) -> None:
    good = "person,score,ward\na,1,north\n".encode("utf-16-le")
    odd = "x,9,so\ud800uth\n".encode("utf-16-le", "surrogatepass") + "y,9,south\x00\n".encode("utf-16-le")
    content = codecs.BOM_UTF16_LE + good + odd + "b,1,north\n".encode("utf-16-le")
    for tail in (b"", b"c"):
        assert sums(write(tmp_path / "a.csv", content + tail), 'encoding = "utf-16"') == [8, 0, 0]
    every_byte = b"".join(b"x%d,9,sou%cth\n" % (byte, byte) for byte in range(256) if byte not in b'\n\r",')
    content = b"person,score,ward\na,1,north\n" + every_byte + b"b,1,north\n"
    assert sums(write(tmp_path / "a.csv", content), 'encoding = "latin-1"') == [8, 0, 0]


def test_characters_across_the_blocks_of_a_large_file(tmp_path: Path) -> None:
    rows = "".join(f"{place},1,{'ü' * (place % 7)}north\n{place},1,north\n" for place in range(60_000))
    content = "person,score,ward\n" + rows
    for encoding, name in (("utf-16", "utf-16"), ("latin-1", "latin-1")):
        path = write(tmp_path / "a.csv", content.encode(encoding))
        assert path.stat().st_size > 1 << 20
        found = run(path, ask(contract(f'encoding = "{name}"'), "count", by="ward"))
        assert found[0] == 60_000 + len(range(0, 60_000, 7))


@pytest.mark.parametrize(
    ("dialect", "content", "words"),
    [
        ('delimiter = ";"', b"person,score,ward\n", "no column 'person'"),
        ('delimiter = ";"', b'person;"score;ward\n', "semicolon-separated names in UTF-8"),
        ('delimiter = "\\t"', "größe\n".encode("latin-1"), "tab-separated names"),
        ('encoding = "utf-16"', b"person,score,ward\n", "byte order mark"),
        ('encoding = "utf-16"', "person,score,ward\n".encode("utf-16-le"), "byte order mark"),
        ('encoding = "latin-1"', "person,score,ward\n".encode("utf-16"), "no column 'person'"),
        ('quote = "\'"', b"person, 'score',ward\n", "neither Parquet nor CSV"),
        ('encoding = "utf-16"', codecs.BOM_UTF16_LE + b"x\0" * (1 << 20), "no line of"),
        ('encoding = "latin-1"', b"\xe9" * (1 << 20), "no line of"),
        ('header = false\nnames = ["who", "score"]', b"u,1\n", "no column 'person'"),
        ('header = false\nnames = ["person"]', b"", "zero bytes"),
    ],
    ids=range(11),
)
def test_what_does_not_fit_the_dialect_is_refused(tmp_path: Path, dialect: str, content: bytes, words: str) -> None:
    with pytest.raises(DataError) as caught:
        sums(write(tmp_path / "a.csv", content), dialect)
    assert words in str(caught.value)
    assert caught.value.__context__ is None


def test_a_quotation_mark_is_a_character_where_none_quotes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'person,"score,ward\n')
    assert header(path, Csv(quote="none")) == ("person", '"score', "ward")


def test_ten_thousand_missing_values_decide_nothing(tmp_path: Path) -> None:
    rows = "".join(f"{place},,\n" for place in range(10_000)) + "x,1.5,north\ny,2,south\n"
    path = write(tmp_path / "a.csv", "person,score,ward\n" + rows)
    assert sums(path, 'delimiter = ","') == [6, 8, 0]
    column = '[columns.score]\ntype = "decimal"\nlattice = "0.25"\nlower = -10\nupper = 20\nnull = "0.25"\n'
    assert run(path, ask(contract("", column), "sum", "score")) == [10_000 + 14]
