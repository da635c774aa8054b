"""Bins by the calendar, by edges and by ranges: each value is in the one that its exact value says, or in none."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from parco.contract.contract import Contract
from parco.errors import DataError

from . import reference
from .build import agreed, ask, run, write, write_parquet

MANY = 100


def calendar(every: str, first: str, last: str, more: str = "", column: str = "") -> Contract:
    zone = f'[bins.when]\ncolumn = "day"\nevery = "{every}"\nfirst = "{first}"\nlast = "{last}"\n{more}\n'
    return agreed(f'[columns.day]\ntype = "date"\n{column}\n{zone}', groups=MANY, rows=MANY)


def counts(path: Path, contract: Contract, by: str = "when") -> dict[str | int, int]:
    """The groups that are not empty."""
    query = ask(contract, "count", by=by)
    return {label[0]: amount for label, amount in zip(query.labels(), run(path, query), strict=True) if amount}


ENDS = {
    "day": ("1999-12-25", "2001-01-10"),
    "week": ("1969-W50", "1970-W05"),
    "month": ("1999-12", "2001-01"),
    "quarter": ("1968-Q4", "1970-Q1"),
    "year": ("1896", "2104"),
}


@pytest.mark.parametrize("every", ENDS)
def test_every_day_is_in_its_own_unit(tmp_path: Path, every: str) -> None:
    first, last = ENDS[every]
    contract = calendar(every, first, last)
    start = {"week": (1969, 11, 1), "quarter": (1968, 1, 1), "year": (1895, 1, 1)}.get(every, (1999, 11, 1))
    step = 25 if every == "year" else 1
    days = [
        datetime.date(*start) + datetime.timedelta(step * place) for place in range(3100 if every == "year" else 800)
    ]
    # Not each day as often as the next, or weeks that begin a day too late would have as many.
    days = [day for place, day in enumerate(days) for _ in range(1 + place % 5)]
    wanted: dict[str | int, int] = {}
    for day in days:
        label = reference.calendar(day, every)
        if label in (contract.keys("when") or ()):
            wanted[str(label)] = wanted.get(str(label), 0) + 1
    assert len(wanted) == len(contract.keys("when") or ()) or every == "day"
    lines = write(tmp_path / "a.csv", "person,day\n" + "".join(f"{at},{day}\n" for at, day in enumerate(days)))
    typed = write_parquet(tmp_path / "a.parquet", person=pa.array(range(len(days))), day=pa.array(days, pa.date32()))
    assert counts(lines, contract) == wanted
    assert counts(typed, contract) == wanted


def test_leap_days(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv",
        "person,day\n1,2024-02-29\n2,2023-02-29\n3,2000-02-29\n4,1900-02-29\n5,2024-02-30\n6,2024-02-28\n",
    )
    assert counts(path, calendar("day", "2024-02-28", "2024-03-01")) == {"2024-02-28": 1, "2024-02-29": 1}
    assert counts(path, calendar("year", "1900", "2024")) == {"2000": 1, "2024": 2}
    assert counts(path, calendar("week", "2024-W09", "2024-W09")) == {"2024-W09": 2}


def test_the_years_of_weeks_are_those_of_their_thursdays(tmp_path: Path) -> None:
    days = [
        "2020-12-28",
        "2021-01-03",
        "2021-01-04",
        "2024-12-29",
        "2024-12-30",
        "2025-01-05",
        "2026-12-31",
        "2027-01-03",
    ]
    path = write(tmp_path / "a.csv", "person,day\n" + "".join(f"{at},{day}\n" for at, day in enumerate(days)))
    assert counts(path, calendar("week", "2020-W53", "2021-W01")) == {"2020-W53": 2, "2021-W01": 1}
    assert counts(path, calendar("week", "2024-W52", "2026-W53")) == {"2024-W52": 1, "2025-W01": 2, "2026-W53": 2}


ODD = [
    "",
    "infinity",
    "-infinity",
    "epoch",
    "99999999-01-01",
    "-290307-01-01",
    "2024-13-01",
    "x",
    "0001-01-01",
    "9999-12-31",
]


@pytest.mark.parametrize("every", ENDS)
@pytest.mark.parametrize("zone", ["", 'time_zone = "Pacific/Kiritimati"'])
def test_no_day_is_an_error(tmp_path: Path, every: str, zone: str) -> None:
    lines = "".join(
        f"{at},{text}\n{at},{text}T23:59:59+14:00\n{at},{text} 00:00:00-12\n" for at, text in enumerate(ODD)
    )
    first = {"day": "2024-01-01", "week": "2024-W01", "month": "2024-01", "quarter": "2024-Q1", "year": "2024"}[every]
    assert counts(write(tmp_path / "a.csv", "person,day\n" + lines), calendar(every, first, first, zone)) == {}
    ends = [2**63 - 1, -(2**63), 2**63 - 2, -(2**63) + 1, 0, -(2**62), 2**62]
    kinds = ("us", "ns") if zone else ()
    for unit in kinds:
        day = pa.array(ends, pa.int64()).cast(pa.timestamp(unit, tz="UTC"))
        path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(len(ends))), day=day)
        assert counts(path, calendar(every, first, first, zone)) == {}


@pytest.mark.parametrize("every", ENDS)
@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("us"), pa.timestamp("ns")], ids=str)
def test_no_stored_day_is_an_error(tmp_path: Path, every: str, kind: pa.DataType) -> None:
    bits = 32 if kind == pa.date32() else 64
    ends = [2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 2, -(2 ** (bits - 1)) + 1, 2 ** (bits - 2), 0]
    if kind == pa.date64():
        # Whole days in milliseconds, as far as the reader's own conversion to 32 bits goes.
        ends = [day * 86_400_000 for day in (2**31 - 1, -(2**31), 2**31 - 2, 0)]
    days = pa.array(ends, pa.int32() if bits == 32 else pa.int64()).cast(kind)
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(len(ends))), day=days)
    first, _ = ENDS[every]
    found = counts(path, calendar(every, first, first))
    assert set(found.values()) <= {1}
    summed = agreed('[columns.day]\ntype = "date"\nlower = "1900-01-01"\nupper = "2100-01-01"\n', rows=9)
    (total,) = run(path, ask(summed, "sum", "day"))
    assert abs(total) <= 47_482 * len(ends)


MOMENTS = [
    datetime.datetime(2024, 3, 30, 22, 59, 59, 999_999),
    datetime.datetime(2024, 3, 30, 23),
    datetime.datetime(2024, 3, 31, 0, 59, 59),
    datetime.datetime(2024, 3, 31, 21, 59, 59, 999_999),
    datetime.datetime(2024, 3, 31, 22),
    datetime.datetime(2024, 10, 26, 21, 59),
    datetime.datetime(2024, 10, 26, 22),
    datetime.datetime(2024, 10, 27, 22, 59),
    datetime.datetime(2024, 10, 27, 23),
    datetime.datetime(2024, 12, 31, 10),
    datetime.datetime(2024, 1, 1, 4, 30),
]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Kiritimati", "Pacific/Pago_Pago"]


@pytest.mark.parametrize("zone", ZONES)
def test_a_moment_belongs_to_the_day_it_had_in_the_declared_zone(tmp_path: Path, zone: str) -> None:
    contract = calendar("day", "2023-12-31", "2025-01-01", f'time_zone = "{zone}"')
    moments = [moment.replace(tzinfo=datetime.UTC) for moment in MOMENTS]
    wanted: dict[str | int, int] = {}
    for moment in moments:
        label = moment.astimezone(ZoneInfo(zone)).date().isoformat()
        wanted[label] = wanted.get(label, 0) + 1
    for unit, stored in (("us", "UTC"), ("ns", "Europe/Berlin"), ("us", "+05:30")):
        array = pa.array(moments, pa.timestamp(unit, tz=stored))
        path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(len(moments))), day=array)
        assert counts(path, contract) == wanted
    for written in (datetime.UTC, ZoneInfo("Asia/Kathmandu")):
        texts = [moment.astimezone(written).isoformat() for moment in moments]
        lines = "".join(f"{at},{text}\n" for at, text in enumerate(texts))
        assert counts(write(tmp_path / "a.csv", "person,day\n" + lines), contract) == wanted


def test_what_says_no_offset_belongs_to_the_day_that_is_written(tmp_path: Path) -> None:
    texts = [
        "2024-03-31",
        "2024-03-31 23:59:59",
        "2024-03-31T00:00",
        "2024-03-31 23:59:59Z",
        "2024-03-31T22:30:00+0000",
    ]
    path = write(tmp_path / "a.csv", "person,day\n" + "".join(f"{at},{text}\n" for at, text in enumerate(texts)))
    found = counts(path, calendar("day", "2024-03-30", "2024-04-02", 'time_zone = "Europe/Berlin"'))
    assert found["2024-03-31"] == 3
    assert found["2024-04-01"] >= 1
    # Without a declared zone nothing is converted.
    assert counts(path, calendar("day", "2024-03-30", "2024-04-02"))["2024-03-31"] >= 4
    typed = write_parquet(
        tmp_path / "a.parquet",
        person=pa.array([1]),
        day=pa.array([datetime.datetime(2024, 3, 31, 23)], pa.timestamp("us")),
    )
    zoned = calendar("day", "2024-03-31", "2024-04-01", 'time_zone = "Europe/Berlin"')
    assert counts(typed, zoned) == {"2024-03-31": 1}


def test_days_in_declared_formats(tmp_path: Path) -> None:
    formats = 'formats = ["%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%d.%m.%Y %H:%M:%S"]'
    texts = {
        "31.01.2024": "2024-01-31",
        "1.2.2024": "2024-02-01",
        "02/01/2024": "2024-02-01",
        "29.02.2024": "2024-02-29",
        "3 Mar 2024": "2024-03-03",
        "29.02.2023": None,
        "13/13/2024": None,
        "2024-01-31": None,
        "31.01.2024 10:00:00": "2024-01-31",
        "epoch": None,
        "infinity": None,
        "31.01.24": None,
        "": None,
    }
    contract = calendar("day", "2024-01-01", "2024-03-31", column=formats)
    wanted: dict[str | int, int] = {}
    for label in texts.values():
        if label is not None:
            wanted[label] = wanted.get(label, 0) + 1
    path = write(tmp_path / "a.csv", "person,day\n" + "".join(f"{at},{text}\n" for at, text in enumerate(texts)))
    assert counts(path, contract) == wanted
    # A word that some databases take for the first of January 1970 is none here.
    assert counts(path, calendar("year", "1969", "1970", column=formats)) == {}
    typed = write_parquet(tmp_path / "a.parquet", person=pa.array(range(len(texts))), day=pa.array(list(texts)))
    assert counts(typed, contract) == wanted
    # Stored dates are dates, whatever patterns there are for text.
    typed = write_parquet(
        tmp_path / "b.parquet", person=pa.array([1]), day=pa.array([datetime.date(2024, 1, 31)], pa.date32())
    )
    assert counts(typed, contract) == {"2024-01-31": 1}


def test_a_time_zone_that_the_engine_does_not_know_is_refused_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zoneinfo.available_timezones", lambda: {"Mars/Olympus", "Europe/Berlin"})
    path = write(tmp_path / "a.csv", "person,day\n1,2024-01-01T00:00Z\n")
    with pytest.raises(DataError, match="does not know the time zone Mars/Olympus"):
        counts(path, calendar("year", "2023", "2024", 'time_zone = "Mars/Olympus"'))
    assert counts(path, calendar("year", "2023", "2024", 'time_zone = "Europe/Berlin"')) == {"2024": 1}


# Edges and ranges

EDGES = [Fraction(text) for text in ("-1000000", "-0.1", "0", "0.000000000001", "0.1", "0.3", "1", "100000.1", "1e17")]
VALUES = [
    "-1000000.000000000001",
    "-1000000",
    "-0.100000000001",
    "-0.1",
    "0",
    "-0",
    "0.0000000000009",
    "0.1",
    "0.099999999999",
    "0.3",
    "0.299999999999",
    "1",
    "100000.1",
    "100000.099999999999",
    "99999999999999999.999999999999",
    "1e17",
    "1e30",
    "-1e30",
    "inf",
    "-inf",
    "nan",
    "",
    "x",
]


@pytest.mark.parametrize(("below", "above"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("rules", ["", "null = 0\nunparsed = 1", 'infinity = "drop"\nnan = "0.1"', 'infinity = "0.1"'])
def test_edges_are_compared_exactly(tmp_path: Path, below: bool, above: bool, rules: str) -> None:
    column = f'[columns.x]\ntype = "decimal"\nlattice = "0.1"\nlower = -1\nupper = 1\n{rules}\n'
    ends = ", ".join(f'"{edge.numerator}/{edge.denominator}"' for edge in EDGES)
    flags = f"below = {str(below).lower()}\nabove = {str(above).lower()}\n"
    contract = agreed(f'{column}[bins.b]\ncolumn = "x"\nedges = [{ends}]\n{flags}')
    path = write(tmp_path / "a.csv", "person,x\n" + "".join(f"{at},{text}\n" for at, text in enumerate(VALUES)))
    declared = dict(line.split(" = ") for line in rules.splitlines())
    plain = {name: value.strip('"') for name, value in declared.items()}
    meant = reference.Rules(**{name: value if value == "drop" else Fraction(value) for name, value in plain.items()})
    wanted: dict[str | int, int] = {}
    for text in VALUES:
        label = reference.edges(reference.number(text, meant), EDGES, below=below, above=above)
        if label is not None:
            wanted[label] = wanted.get(label, 0) + 1
    found = counts(path, contract, "b")
    assert sorted(found.values()) == sorted(wanted.values())
    assert len(contract.keys("b") or ()) == len(EDGES) - 1 + below + above
    assert sum(found.values()) == sum(wanted.values())


def test_doubles_keep_the_order_of_the_decimals_they_were_written_as(tmp_path: Path) -> None:
    texts = ["0.1", "0.3", "0.7", "100000.1", "100000.2", "4503599627370497.5", "1e17", "0.30000000000000004"]
    column = '[columns.x]\ntype = "decimal"\nlattice = 1\nlower = 0\nupper = 1\n'
    for place, edge in enumerate(texts[:7]):
        contract = agreed(f'{column}[bins.b]\ncolumn = "x"\nedges = ["{edge}"]\nbelow = true\nabove = true\n')
        values = pa.array([float(text) for text in texts])
        path = write_parquet(tmp_path / f"{place}.parquet", person=pa.array(range(len(texts))), x=values)
        at_least = sum(Fraction(text) >= Fraction(edge) for text in texts)
        assert run(path, ask(contract, "count", by="b")) == [len(texts) - at_least, at_least]


def test_odd_doubles_have_their_place(tmp_path: Path) -> None:
    values = pa.array([float("nan"), float("inf"), -float("inf"), None, 5e-324, -0.0, 1.7e308])
    path = write_parquet(tmp_path / "a.parquet", person=pa.array(range(7)), x=values)
    column = '[columns.x]\ntype = "decimal"\nlattice = 1\nlower = 0\nupper = 1\n'
    bins = '[bins.b]\ncolumn = "x"\nedges = [0, 1]\nbelow = true\nabove = true\n'
    assert run(path, ask(agreed(column + bins), "count", by="b")) == [1, 2, 2]
    assert run(path, ask(agreed(column + 'infinity = "drop"\nnan = 1\nnull = 0\n' + bins), "count", by="b")) == [
        0,
        3,
        2,
    ]


def test_many_edges(tmp_path: Path) -> None:
    edges = list(range(-500, 500))
    column = '[columns.x]\ntype = "integer"\nlower = 0\nupper = 1\n'
    contract = agreed(f'{column}[bins.b]\ncolumn = "x"\nedges = {edges}\n', groups=10**6, rows=10**6)
    path = write(tmp_path / "a.csv", "person,x\n" + "".join(f"1,{value}\n" for value in range(-600, 600)))
    assert run(path, ask(contract, "count", by="b")) == [1] * 999


LARGE = 10**18


@pytest.mark.parametrize(
    ("first", "last", "width", "values"),
    [
        (0, 9, 5, {"0": 0, "4": 0, "5": 1, "9": 1, "10": None, "-1": None, "4.5": None, "4.0": 0, "": None, "x": None}),
        (
            -7,
            4,
            4,
            {"-8": None, "-7": 0, "-4": 0, "-3": 1, "0": 1, "1": 2, "4": 2, "5": None, "inf": None, "-inf": None},
        ),
        (-LARGE, LARGE - 1, LARGE, {str(-LARGE): 0, "-1": 0, "0": 1, str(LARGE): None, "1e18": None, "-1e30": None}),
        (3, 3, 1, {"3": 0, "2": None, "4": None, str(2**63 - 1): None, str(-(2**63)): None, str(2**64): None}),
    ],
)
def test_ranges(tmp_path: Path, first: int, last: int, width: int, values: dict[str, int | None]) -> None:
    column = '[columns.x]\ntype = "integer"\nlower = 0\nupper = 0\n'
    contract = agreed(f'{column}[bins.b]\ncolumn = "x"\nfirst = {first}\nlast = {last}\nwidth = {width}\n')
    places = [place for place in values.values() if place is not None]
    wanted = [places.count(place) for place in range((last - first + 1) // width)]
    path = write(tmp_path / "a.csv", "person,x\n" + "".join(f"{at},{text}\n" for at, text in enumerate(values)))
    assert run(path, ask(contract, "count", by="b")) == wanted
    whole = [int(text) for text in values if text.lstrip("-").isdigit() and -(2**63) <= int(text) < 2**63]
    typed = write_parquet(tmp_path / "a.parquet", person=pa.array(range(len(whole))), x=pa.array(whole, pa.int64()))
    wanted = [sum(values[str(value)] == place for value in whole) for place in range(len(wanted))]
    assert run(typed, ask(contract, "count", by="b")) == wanted
