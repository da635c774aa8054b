"""Rules, bins, dialects, parts and periods under a filter, in distinct values and means: all read alike."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import parco
from parco.contract.contract import Contract
from parco.engines.source import Kind, check, kind_of, read_source
from parco.errors import DataError, QuestionError
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity

from .build import agreed, run, write, write_parquet

TEXT = """
format = 1
name = "t"
purpose = "a test"
unprotected = "none"
[data]
name = "t"
source = "t.csv"
[data.csv]
delimiter = ";"
decimal = ","
nulls = ["NA"]
[unit]
column = "who"
neighbours = "add-or-remove"
groups = 50
rows = 50
[budget]
measure = "pure"
epsilon = "1"
[columns.x]
type = "decimal"
lattice = "0.5"
lower = 0
upper = 10
null = 3
unparsed = 9
infinity = "drop"
[columns.total]
type = "integer"
lower = -2
upper = 5
clamp = "unit"
row_lower = -100
row_upper = 100
[columns.flag]
type = "boolean"
true = ["ja"]
false = ["nein"]
[columns.word]
type = "text"
keys = ["web", "shop"]
normal = ["casefold", "strip"]
[columns.day]
type = "date"
formats = ["%d.%m.%Y"]
[bins.month]
column = "day"
every = "month"
first = "2024-01"
last = "2024-03"
[bins.size]
column = "x"
edges = [0, 2, 5]
above = true
"""

ROWS = """who;x;total;flag;word;day
a;1,5;7;ja;Web;31.01.2024
a;NA;-50;nein; web ;01.02.2024
b;zwei;60;ja;SHOP;29.02.2024
b;inf;1;ja;shop;01.03.2024
c;4,75;2;;web;30.02.2024
c;1.5;3;ja;mail;15.03.2024
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "t.csv", ROWS)


def contract(extra: str = "", text: str = TEXT) -> Contract:
    return Contract.parse(text + extra)


def count(
    data: Path, where: str, asked_of: Contract | None = None, *, part: str | None = None, period: str | None = None
) -> int:
    return sum(run(data, Query.of(asked_of or contract(), "count", where=where, part=part, period=period)))


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        # 1.5, 3 (null), 9 (does not parse), no infinity, 5 (4.75 half a step up), 9 (a point, where commas are due).
        ("x = 3", 1),
        ("x = 9", 2),
        ("x >= 3", 4),
        ("x < 3", 1),
        ("x is null", 1),
        ("x = 5", 1),
        ("flag = 'true'", 4),
        ("flag <> 'true'", 1),
        ("flag is null", 1),
        ("word = 'web'", 3),
        ("word is null", 1),
        ("day = '2024-02-29'", 1),
        ("day between '2024-02-01' and '2024-03-01'", 3),
        ("day is null", 1),
        ("month = '2024-02'", 2),
        ("size = '[0, 2)'", 1),
        ("size = '>= 5'", 2),
        ("total > 5", 2),
        ("total >= -50", 6),
        ("total < -2 or word = 'shop'", 3),
    ],
)
def test_a_filter_reads_what_the_contract_reads(data: Path, where: str, rows: int) -> None:
    assert count(data, where) == rows


def test_a_unit_clamped_sum_under_a_filter_clamps_what_is_left(data: Path) -> None:
    # a: 7 and -50, b: 60 and 1, c: 2 and 3; each unit's sum lies in [-2, 5].
    assert run(data, Query.of(contract(), "sum", column="total")) == [-2 + 5 + 5]
    assert run(data, Query.of(contract(), "sum", column="total", where="total > -50")) == [5 + 5 + 5]
    assert run(data, Query.of(contract(), "sum", column="total", where="word = 'web'")) == [-2 + 2]


def test_a_mean_of_what_is_clamped_by_the_unit_is_refused() -> None:
    with pytest.raises(QuestionError, match="clamped by the unit's total"):
        Query.of(contract(), "sum", column="total", centred=True)


def test_distinct_values_are_told_apart_in_their_normal_form(data: Path) -> None:
    assert run(data, Query.of(contract(), "count_distinct", column="word")) == [2]
    assert run(data, Query.of(contract(), "count_distinct", column="flag")) == [2]
    # 1.5, 3, 9 and 5.
    assert run(data, Query.of(contract(), "count_distinct", column="x")) == [4]
    assert run(data, Query.of(contract(), "count_distinct", column="word", by="month")) == [1, 2, 1]


def test_the_sensitivity_of_a_unit_clamped_sum_under_replace_is_the_width_of_its_bounds() -> None:
    replaced = contract(text=TEXT.replace("add-or-remove", "replace"))
    moved = sensitivity(Query.of(replaced, "sum", column="total"))
    assert [moved.l1, moved.l2_squared] == [7, 49]
    grouped = sensitivity(Query.of(replaced, "sum", column="total", by="flag"))
    # Two of two groups are both units': each moves by 7, which is more than 2 times 5 in groups of one.
    assert [grouped.l1, grouped.l2_squared] == [14, 98]


def test_the_parts_under_a_filter_add_up_to_the_whole(data: Path) -> None:
    parts = contract('[parts]\nfit = "0.5"\ncheck = "0.5"\n')
    for where in ("x >= 3", "word = 'web'", "day is null"):
        whole = count(data, where, parts)
        assert whole == count(data, where, parts, part="fit") + count(data, where, parts, part="check") > 0


def test_a_period_is_asked_under_a_filter(data: Path) -> None:
    periods = contract(text=TEXT.replace('column = "who"', 'column = "who"\nperiod = "month"'))
    assert run(data, Query.of(periods, "count", by="month", where="flag = 'true'")) == [1, 1, 2]
    assert count(data, "flag = 'true'", periods, period="2024-03") == 2
    assert run(data, Query.of(periods, "count_distinct", column="word", by="month")) == [1, 2, 1]
    # b has 60 in February and 1 in March: one unit in one month is clamped, not one unit.
    assert run(data, Query.of(periods, "sum", column="total", by="month")) == [5, -2 + 5, 1 + 3]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('formats = ["%d.%m.%Y"]', 'formats = ["%m.%d.%Y"]', "month = '2024-02'"),
        ('formats = ["%d.%m.%Y"]', 'formats = ["%m.%d.%Y"]', "day = '2024-02-01'"),
        ("null = 3", "null = 4", "x >= 3"),
        ("null = 3", "null = 4", "size = '[0, 2)'"),
        ('decimal = ","', 'decimal = "."', "flag = 'true'"),
        ('normal = ["casefold", "strip"]', 'normal = ["strip"]', "word = 'web'"),
        ('true = ["ja"]', 'true = ["ja", "yes"]', "flag = 'true'"),
    ],
)
def test_a_filter_whose_columns_read_otherwise_is_another_question(old: str, new: str, where: str) -> None:
    one, other = (
        Query.of(contract(text=text), "count", where=where).question("1") for text in (TEXT, TEXT.replace(old, new))
    )
    assert one != other


def test_means_and_lists_of_questions_in_a_part_and_in_a_period(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", ROWS)
    (tmp_path / "t.toml").write_text(TEXT + '[parts]\nfit = "0.5"\ncheck = "0.5"\n', encoding="utf-8")
    signed = parco.Contract.read(tmp_path / "t.toml")
    parco.sign(signed)
    session = parco.Session(signed)
    session.mean("x", part="fit", where="flag = 'true'", cost="0.25")
    spent = {row.label: row.spent for row in session.budget()}
    assert (spent["fit"], spent["check"]) == (10**15 // 4, 0)
    asks = [parco.Ask("count", by="word", cost="0.125"), parco.Ask("count_units", part="check", cost="0.125")]
    both = session.release(asks)
    assert [release.cost.value for release in both] == [Fraction(1, 8), Fraction(1, 8)]
    spent = {row.label: row.spent for row in session.budget()}
    assert (spent["fit"], spent["check"]) == (10**15 * 3 // 8, 10**15 // 4)
    assert all(release.repeat for release in session.release(asks))
    assert session.mean("x", part="fit", where="flag = 'true'", cost="0.25").repeat
    with pytest.raises(parco.BudgetError):
        session.count(cost="0.7", fresh=True)


def test_the_dialect_belongs_to_the_terms_where_units_are_divided() -> None:
    """Another encoding or quote reads another unit, which would fall into another part: its losses would add up."""
    changed = TEXT.replace('decimal = ","', 'decimal = ","\nencoding = "latin-1"')
    parts = '[parts]\nfit = "0.5"\ncheck = "0.5"\n'
    assert contract().terms == contract(text=changed).terms
    assert contract(parts).terms != contract(parts, changed).terms
    period = 'column = "who"\nperiod = "month"'
    periods = [contract(text=text.replace('column = "who"', period)) for text in (TEXT, changed)]
    assert periods[0].terms != periods[1].terms


MOMENTS = """
[columns.at]
type = "date"
[bins.month]
column = "at"
every = "month"
first = "2024-01"
last = "2024-03"
time_zone = "Europe/Berlin"
"""


def test_a_moment_is_asked_through_bins_that_say_where_and_refused_by_itself(tmp_path: Path) -> None:
    at = pa.array([datetime.datetime(2024, 1, 31, 23, 30, tzinfo=datetime.UTC)] * 2, pa.timestamp("us", tz="UTC"))
    path = write_parquet(tmp_path / "t.parquet", person=pa.array(["a", "b"]), at=at)
    moments = agreed(MOMENTS)
    assert run(path, Query.of(moments, "count", by="month")) == [0, 2, 0]
    assert run(path, Query.of(moments, "count", where="month = '2024-02'")) == [2]
    with pytest.raises(DataError, match="only asked through bins"):
        run(path, Query.of(moments, "count", where="at is not null"))
    check(moments, read_source(path), moments.names)


def test_decimals_of_a_negative_scale_are_refused_before_the_charge(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "t.parquet", person=pa.array(["a"]), x=pa.array([Decimal(5000)]).cast(pa.decimal128(38, 0))
    )
    column = '[columns.x]\ntype = "decimal"\nlattice = "1"\nlower = 0\nupper = 10000\n'
    assert run(path, Query.of(agreed(column), "sum", column="x")) == [5000]
    assert kind_of(pa.decimal128(5, -3)) is Kind.OTHER


def test_a_condition_on_days_reads_as_days_with_bounds_and_without() -> None:
    plain = '[columns.d]\ntype = "date"\n'
    bounded = plain + 'lower = "2000-01-01"\nupper = "2030-12-31"\n'
    shown = [str(Query.of(agreed(text), "count", where="d >= '2024-01-31'")) for text in (plain, bounded)]
    assert shown[0] == shown[1]
    assert "2024-01-31" in shown[0]


def test_what_does_not_parse_does_not_depend_on_the_bounds(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"person,x\na,1{'0' * 27}e-26\nb,2\nc,3\n")
    for upper in (5, 100):
        column = f'[columns.x]\ntype = "decimal"\nlattice = "1"\nlower = 0\nupper = {upper}\n'
        assert run(path, Query.of(agreed(column), "count", column="x")) == [2]
        assert run(path, Query.of(agreed(column), "count", where="x >= 3")) == [1]
