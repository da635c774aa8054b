"""Names of columns and keys are data, whatever they look like: none is cleaned, mixed up, or read as SQL."""

from __future__ import annotations

import csv
import json
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from parco.contract.contract import Contract

from .build import agreed, ask, run, write

COMPOSED, DECOMPOSED = "größe", unicodedata.normalize("NFD", "größe")

NAMES = [
    "select",
    "größe",
    "A 1",
    "A_1",
    'a"b',
    "a;--",
    "a",
    "a.b",
    "capital-gain",
    "unit",
    "c0",
    "\\",
]


def quoted(name: str) -> str:
    """A name as a key of a TOML document."""
    return json.dumps(name, ensure_ascii=False)


def sums(names: list[str], *, unit: str = "person") -> Contract:
    columns = "".join(f'[columns.{quoted(name)}]\ntype = "integer"\nlower = 0\nupper = 1000\n' for name in names)
    return agreed(columns, unit=unit, rows=5)


def file_of(folder: Path, form: str, header: list[str], rows: list[list[int]]) -> Path:
    path = folder / f"a.{form}"
    if form == "parquet":
        columns = [pa.array([row[place] for row in rows]) for place in range(len(header))]
        parquet.write_table(pa.Table.from_arrays(columns, names=header), path)
        return path
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("unit", ["person", 'p"; DROP TABLE x; --'])
def test_each_column_is_itself(tmp_path: Path, form: str, unit: str) -> None:
    contract = sums(NAMES, unit=unit)
    rows = [[person, *(person * 100 + place for place in range(len(NAMES)))] for person in (1, 2)]
    path = file_of(tmp_path, form, [unit, *NAMES], rows)
    # All of them once as the first name tells, and a few once more with the other as unit.
    chosen = NAMES if unit == "person" else NAMES[:3]
    found = {name: run(path, ask(contract, "sum", name)) for name in chosen}
    assert found == {name: [300 + 2 * place] for place, name in enumerate(chosen)}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("stored", [COMPOSED, DECOMPOSED], ids=["composed", "decomposed"])
@pytest.mark.parametrize("declared", [COMPOSED, DECOMPOSED], ids=["composed", "decomposed"])
def test_a_name_is_one_name_in_both_unicode_forms(tmp_path: Path, form: str, stored: str, declared: str) -> None:
    path = file_of(tmp_path, form, ["person", stored], [[1, 7], [2, 8]])
    contract = sums([declared])
    assert [run(path, ask(contract, "sum", typed)) for typed in (COMPOSED, DECOMPOSED)] == [[15], [15]]
    path = file_of(tmp_path, form, [stored], [[1], [2], [2]])
    assert run(path, ask(sums([], unit=declared), "count_units")) == [2]


def test_names_that_differ_only_in_case_are_two_columns_of_a_text_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, "csv", ["person", "Age", "age", "AGE"], [[1, 10, 20, 30]])
    contract = sums(["Age", "age", "AGE"])
    assert [run(path, ask(contract, "sum", name)) for name in ("Age", "age", "AGE")] == [[10], [20], [30]]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_order_of_columns_does_not_matter(tmp_path: Path, form: str) -> None:
    contract = sums(["a", "b"])
    for header in (["person", "a", "b"], ["b", "person", "a"], ["b", "a", "person"]):
        row = {"person": 1, "a": 5, "b": 6}
        path = file_of(tmp_path, form, header, [[row[name] for name in header]])
        assert [run(path, ask(contract, "sum", name)) for name in ("a", "b")] == [[5], [6]]


@pytest.mark.parametrize("name", ["key", "KEY", "ordinal_0", "stored_rows"])
@pytest.mark.parametrize("role", ["unit", "key", "value", "beside"])
def test_a_typed_file_may_use_the_words_of_the_statement(tmp_path: Path, name: str, role: str) -> None:
    unit, key, number = (name if role == part else part[0] for part in ("unit", "key", "value"))
    contract = agreed(
        f'[columns.{key}]\ntype = "integer"\nlower = 0\nupper = 9\nkeys = [7, 8]\n'
        f'[columns.{number}]\ntype = "integer"\nlower = 0\nupper = 9\n',
        unit=unit,
    )
    columns = {unit: pa.array([1, 2, 3]), key: pa.array([7, 8, 8]), number: pa.array([4, 5, 6])}
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table(columns | ({name: pa.array([0, 0, 0])} if role == "beside" else {})), path)
    assert run(path, ask(contract, "sum", number, key)) == [4, 11]


KEYS = [
    "it's",
    'say "hi"',
    "x'; DROP TABLE y; --",
    "a|b",
    "\\",
    "\\'",
    "%",
    "_",
    ":x",
    "?",
    "$1",
    "{}",
    "NULL",
    "größe",
    "日本",
    "🙂",
]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_keys_are_compared_and_never_run(tmp_path: Path, form: str) -> None:
    keys = f"[columns.{quoted('key')}]\ntype = 'text'\nkeys = {json.dumps(KEYS, ensure_ascii=False)}\n"
    contract = agreed(keys, groups=len(KEYS))
    values = [key for place, key in enumerate(KEYS) for _ in range(place + 1)]
    path = tmp_path / f"a.{form}"
    if form == "csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["person", "key"], *enumerate(values)])
    else:
        parquet.write_table(pa.table({"person": range(len(values)), "key": values}), path)
    assert run(path, ask(contract, "count", by="key")) == [place + 1 for place in range(len(KEYS))]


def test_a_key_is_one_key_in_both_unicode_forms(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f"person,word\n1,{COMPOSED}\n2,{DECOMPOSED}\n3,grosse\n4,GRÖẞE\n")
    for declared in (COMPOSED, DECOMPOSED):
        contract = agreed(f'[columns.word]\ntype = "text"\nkeys = ["{declared}"]\n')
        assert run(path, ask(contract, "count", by="word")) == [2]


def test_bins_may_have_any_name_and_so_may_their_column(tmp_path: Path) -> None:
    day, month = quoted('d"; --'), quoted("select 'month'")
    contract = agreed(
        f'[columns.{day}]\ntype = "date"\n[bins.{month}]\ncolumn = {day}\nevery = "month"\n'
        'first = "2023-12"\nlast = "2024-02"\n'
    )
    path = write(tmp_path / "a.csv", 'person,"d""; --"\n1,2023-12-31\n2,2024-01-01\n3,2024-03-01\n')
    assert run(path, ask(contract, "count", by="select 'month'")) == [1, 1, 0]
