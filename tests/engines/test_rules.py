"""What a contract declares about odd values, keys and dialects is what the engine does, cell by cell."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from parco.contract.contract import Contract
from parco.contract.rules import normal_text
from parco.engines import values
from parco.queries.sensitivity import sensitivity
from tests.shop import contract_text

from . import reference
from .build import SECRET, agreed, ask, run, write, write_parquet
from .odd_tables import GROUPINGS, Odd, odd

TABLES = 60


def question(made: Odd, seed: int) -> tuple[str, str | None, list[str]]:
    random = Random(seed)
    statistic, column = random.choice(
        [("sum", "x"), ("sum", "x"), ("sum", "n"), ("count", None), ("count_units", None)]
    )
    return statistic, column, random.sample(GROUPINGS, random.choice((0, 1, 1, 2)))


@pytest.mark.parametrize("seed", range(TABLES))
def test_sixty_odd_tables_give_the_integers_of_the_rule(tmp_path: Path, seed: int) -> None:
    made = odd(seed)
    statistic, column, by = question(made, seed)
    meant, rows = made.asked(statistic, column, by), made.reference_rows(column, by)
    # A clamped infinity is no key and lies in no bin with an end; a row that has one still counts elsewhere.
    expected = reference.answer(meant, rows, SECRET)
    path = made.write(tmp_path / "a.csv")
    assert run(path, ask(made.contract, statistic, column, by)) == expected
    assert any(expected)


def test_the_odd_tables_reach_every_rule() -> None:
    """A generator that never made a null would test nothing."""
    tables = [odd(seed) for seed in range(TABLES)]
    for name in ("null", "nan", "infinity", "unparsed"):
        values = {getattr(made.rules["x"], name) for made in tables}
        assert {"drop", Fraction(20), Fraction(1, 4)} <= values
    assert {made.row_range is None for made in tables} == {True, False}
    assert {made.dialect.get("encoding") for made in tables} == {None, "latin-1", "utf-16"}
    assert {len(made.contract.unit.normal or ()) for made in tables} >= {0, 1, 2, 3}


ROWS = "person,x,k\na,1,\na,inf,1\na,-inf,0\na,NaN,0\na,,0\na,3,1\na,abc,0\n"


@pytest.mark.parametrize(
    ("rules", "total"),
    [
        ("", 1 + 10 + 0 + 3),
        ('infinity = "drop"', 4),
        ('infinity = "clamp"\nnull = "drop"\nnan = "drop"\nunparsed = "drop"', 14),
        ("infinity = 2", 1 + 2 + 2 + 3),
        ("null = 7", 14 + 7),
        ("nan = 7", 14 + 7),
        ("unparsed = 7", 14 + 7),
        ('infinity = "drop"\nnull = 1\nnan = 2\nunparsed = 3', 4 + 1 + 2 + 3),
    ],
)
def test_each_rule_by_itself(tmp_path: Path, rules: str, total: int) -> None:
    column = f'[columns.x]\ntype = "decimal"\nlattice = 1\nlower = 0\nupper = 10\n{rules}\n'
    path = write(tmp_path / "a.csv", ROWS)
    assert run(path, ask(agreed(column, rows=9), "sum", "x")) == [total]


@pytest.mark.parametrize(
    ("rules", "total"),
    [
        ("", 14),
        ('infinity = "drop"', 4),
        ("infinity = 2", 8),
        ("null = 7", 21),
        ("nan = 6", 20),
        ("unparsed = 5", 14),
    ],
)
def test_doubles_follow_the_same_rules(tmp_path: Path, rules: str, total: int) -> None:
    column = f'[columns.x]\ntype = "decimal"\nlattice = 1\nlower = 0\nupper = 10\n{rules}\n'
    values = pa.array([1.0, float("inf"), float("-inf"), float("nan"), None, 3.0])
    path = write_parquet(tmp_path / "a.parquet", person=pa.array([1] * 6), x=values)
    assert run(path, ask(agreed(column, rows=9), "sum", "x")) == [total]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64(), pa.decimal128(12, 2)], ids=str)
def test_typed_numbers_know_only_null(tmp_path: Path, kind: pa.DataType) -> None:
    column = '[columns.x]\ntype = "decimal"\nlattice = 1\nlower = 0\nupper = 10\nnull = 7\nnan = 1\nunparsed = 2\n'
    path = write_parquet(tmp_path / "a.parquet", person=pa.array([1] * 3), x=pa.array([5, None, 100], kind))
    assert run(path, ask(agreed(column, rows=9), "sum", "x")) == [5 + 7 + 10]


def test_a_number_too_large_for_a_double_is_no_infinity(tmp_path: Path) -> None:
    column = '[columns.x]\ntype = "decimal"\nlattice = 1\nlower = 0\nupper = 20\ninfinity = "drop"\nunparsed = 3\n'
    path = write(tmp_path / "a.csv", f"person,x\na,1e400\nb,{'9' * 400}\nc,-1e400\nd,inf\ne,1e30\nf,{10**27}e-26\n")
    # The last one was written with too many digits before its point: it does not parse.
    assert run(path, ask(agreed(column), "sum", "x")) == [20 + 20 + 0 + 20 + 3]


def test_a_missing_key_counts_as_the_key_the_contract_names(tmp_path: Path) -> None:
    columns = (
        '[columns.ward]\ntype = "text"\nkeys = ["north", "none"]\nnull = "none"\n'
        '[columns.k]\ntype = "integer"\nlower = 0\nupper = 9\nkeys = [1, 9]\nnull = 9\n'
    )
    contract = agreed(columns)
    path = write(tmp_path / "a.csv", "person,ward,k\na,north,1\nb,,\nc,mail,2\nd,none,9\ne\nf,,x\n")
    # A line without the fields is no line with missing ones: it is dropped as before.
    assert run(path, ask(contract, "count", by="ward")) == [1, 3]
    assert run(path, ask(contract, "count", by="k")) == [1, 2]
    path = write_parquet(
        tmp_path / "a.parquet",
        person=pa.array(range(4)),
        ward=pa.array(["north", None, "mail", ""]),
        k=pa.array([1, None, 2, 9]),
    )
    assert run(path, ask(contract, "count", by="ward")) == [1, 1]
    assert run(path, ask(contract, "count", by="k")) == [1, 2]


def test_truth_values(tmp_path: Path) -> None:
    column = '[columns.f]\ntype = "boolean"\n'
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(4)), f=pa.array([True, False, None, True]))
    lines = write(tmp_path / "a.csv", "person,f\n1,true\n2,false\n3,\n4,true\n5,True\n6,1\n7,t\n")
    for file in (path, lines):
        assert run(file, ask(agreed(column), "count", by="f")) == [1, 2]
        assert run(file, ask(agreed(column + 'null = "true"\n'), "count", by="f")) == [1, 3]
    spelled = column + 'true = ["true", "1", "t"]\nfalse = ["false", "True"]\n'
    assert run(lines, ask(agreed(spelled), "count", by="f")) == [2, 4]


# A unit's sum clamped as a whole

UNIT = '[columns.x]\ntype = "integer"\nlower = {lower}\nupper = {upper}\nclamp = "unit"\n{more}\n'


def test_what_a_unit_adds_up_to_is_clamped_and_not_its_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "person,x\na,50\na,-45\nb,30\nb,9\nc,-3\nd,7\nd,7\nd,-4\n")
    by_unit, by_row = (
        UNIT.format(lower=0, upper=10, more=""),
        UNIT.format(lower=0, upper=10, more="").replace("unit", "row"),
    )
    assert run(path, ask(agreed(by_unit, rows=5), "sum", "x")) == [5 + 10 + 0 + 10]
    assert run(path, ask(agreed(by_row, rows=5), "sum", "x")) == [10 + 0 + 10 + 9 + 0 + 7 + 7 + 0]
    ranged = UNIT.format(lower=0, upper=10, more="row_lower = -5\nrow_upper = 8")
    assert run(path, ask(agreed(ranged, rows=5), "sum", "x")) == [3 + 10 + 0 + 10]


def test_a_unit_of_a_million_rows_moves_a_clamped_sum_by_its_bound(tmp_path: Path) -> None:
    query = ask(agreed(UNIT.format(lower=-10, upper=100, more=""), rows=10**9), "sum", "x")
    stated = sensitivity(query)
    assert (stated.l1, stated.l2_squared) == (Fraction(100), Fraction(100**2))
    others = "person,x\na,5\nb,-7\n"
    less = run(write(tmp_path / "a.csv", others), query)
    for value, moved in ((10**18, 100), (-(10**18), -10), (9 * 10**30, 100), (0, 0)):
        many = run(write(tmp_path / "b.csv", others + f"z,{value}\n" * 10**6), query)
        assert [one - other for one, other in zip(many, less, strict=True)] == [moved]


def test_the_widest_rows_cancel_exactly(tmp_path: Path) -> None:
    column = '[columns.x]\ntype = "decimal"\nlattice = "1e-12"\nlower = -1\nupper = 1\nclamp = "unit"\n'
    path = write(tmp_path / "a.csv", "person,x\n" + "a,9e30\na,-9e30\n" * 1000 + "a,0.000000000003\n")
    assert run(path, ask(agreed(column, rows=10**6), "sum", "x")) == [3]


@pytest.mark.parametrize("by", [(), ("k",)])
def test_a_unit_moves_a_clamped_sum_by_no_more_than_the_sensitivity(tmp_path: Path, by: tuple[str, ...]) -> None:
    column = UNIT.format(lower=-3, upper=7, more="null = 2") + (
        '[columns.k]\ntype = "integer"\nlower = 0\nupper = 4\nkeys = [0, 1, 2, 3, 4]\n'
    )
    query = ask(agreed(column, groups=3, rows=4), "sum", "x", by)
    stated, farthest = sensitivity(query), Fraction(0)
    for seed in range(20):
        random = Random(seed)
        others = "".join(f"{random.randint(0, 5)},{random.randint(-9, 9)},{random.randint(0, 4)}\n" for _ in range(40))
        own = "".join(f"z,{random.choice(('', '9', '-9', '90', 'inf'))},{random.randint(0, 4)}\n" for _ in range(30))
        whole = run(write(tmp_path / "a.csv", "person,x,k\n" + others + own), query)
        less = run(write(tmp_path / "b.csv", "person,x,k\n" + others), query)
        moved = [abs(one - other) for one, other in zip(whole, less, strict=True)]
        assert sum(moved) <= stated.l1
        assert sum(step**2 for step in moved) <= stated.l2_squared
        farthest = max(farthest, Fraction(sum(moved)))
    assert farthest == stated.l1


# Normal forms

ALL_FORMS = '["casefold", "nfc", "strip"]'


def test_units_that_differ_in_case_accents_or_blanks_are_one_where_declared(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "person,x\nAna,1\nana,1\n Ana ,1\nA\u030asa,1\n\u00c5sa,1\n\u00e5SA\u00a0,1\n")
    text = contract_text(columns="", groups=1, rows=1, unit="person")
    for forms, units in (("[]", 6), ('["nfc"]', 5), ('["casefold"]', 5), ('["strip"]', 5), (ALL_FORMS, 2)):
        contract = Contract.parse(text.replace("[unit]", f"[unit]\nnormal = {forms}"))
        assert run(path, ask(contract, "count_units")) == [units], forms
    path = write(tmp_path / "b.csv", "person,x\nH\u0331,1\n\u1e96,1\n")
    for forms, units in (("[]", 2), ('["casefold"]', 2), ('["nfc"]', 2), ('["casefold", "nfc"]', 1)):
        contract = Contract.parse(text.replace("[unit]", f"[unit]\nnormal = {forms}"))
        assert run(path, ask(contract, "count_units")) == [units], forms


def test_every_character_has_one_normal_form_in_the_contract_and_in_the_engine() -> None:
    """A character that Python and the database lower differently would silently drop its key's rows."""
    forms = ("casefold", "strip")
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    texts = pa.table({"x": letters})
    normal = values._normal(exp.column("x"), forms).sql(dialect="duckdb")
    with duckdb.connect() as connection:
        connection.register("texts", texts)
        found = connection.execute(f"SELECT {normal} FROM texts").fetchall()
    assert [text for (text,) in found] == [normal_text(letter, forms) for letter in letters]
    assert [text for (text,) in found] == [reference.normal(letter, ("nfc", *forms)) for letter in letters]


@pytest.mark.parametrize("forms", [("casefold",), ("casefold", "strip"), ("accents", "casefold")], ids=str)
def test_capitals_with_marks_are_brought_to_one_form_in_the_contract_and_in_the_engine(forms: tuple[str, ...]) -> None:
    """A capital and a mark may be two characters where the small letter and the mark are one."""
    known = (chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000)
    capitals = [letter for letter in known if unicodedata.category(letter) in ("Lu", "Lt")]
    marks = "\u0300\u0301\u0307\u0308\u030c\u0313\u0331\u0345"
    texts = [f"{letter}{mark}" for letter in capitals for mark in marks]
    normal = values._normal(exp.column("x"), forms).sql(dialect="duckdb")
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"x": texts}))
        found = [text for (text,) in connection.execute(f"SELECT {normal} FROM texts").fetchall()]
    assert [text for text in found if not unicodedata.is_normalized("NFC", text)] == []
    assert found == [normal_text(text, forms) for text in texts]
    assert found == [reference.normal(text, ("nfc", *forms)) for text in texts]


def test_every_known_character_loses_the_same_marks_in_the_contract_and_in_the_engine() -> None:
    """A character that this Python does not know yet may have marks for the database: keys with one are refused."""
    forms = ("accents", "casefold", "strip")
    known = (chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000)
    letters = [letter for letter in known if unicodedata.category(letter) != "Cn"]
    letters += ["E\u0301a\u0323\u0302", "\uac01", "\u1100\u1161\u11a8", "o\u0338\u0300"]
    normal = values._normal(exp.column("x"), forms).sql(dialect="duckdb")
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"x": letters}))
        found = [text for (text,) in connection.execute(f"SELECT {normal} FROM texts").fetchall()]
    assert found == [normal_text(letter, forms) for letter in letters]
    assert found == [reference.normal(letter, ("nfc", *forms)) for letter in letters]


def test_keys_that_differ_in_accents_are_one_where_declared(tmp_path: Path) -> None:
    column = '[columns.w]\ntype = "text"\nnormal = ["accents", "casefold"]\nkeys = ["Málaga", "Zurich"]\n'
    path = write(tmp_path / "a.csv", "person,w\n1,malaga\n2,Ma\u0301laga\n3,ZÜRICH\n4,Zürich\n5,Zuerich\n")
    assert run(path, ask(agreed(column), "count", by="w")) == [2, 2]


def test_keys_that_differ_in_case_are_one_where_declared(tmp_path: Path) -> None:
    column = '[columns.w]\ntype = "text"\nnormal = ["casefold"]\nkeys = ["İzmir", "STRASSE", "Ärger"]\n'
    path = write(
        tmp_path / "a.csv", "person,w\n1,izmir\n2,IZMIR\n3,strasse\n4,Straße\n5,äRGER\n6,a\u0308rger\n7,arger\n"
    )
    assert run(path, ask(agreed(column), "count", by="w")) == [2, 1, 2]
