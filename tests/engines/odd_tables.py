"""Generated contracts and tables in which hardly a field is ordinary: rules, bins, spellings and dialects at random."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

from parco.contract.contract import Contract
from tests.shop import contract_text

from . import reference
from .build import write
from .reference import Asked, Row, Rules

__all__ = ["HEADER", "Odd", "odd"]

HEADER = ("who", "x", "n", "ward", "flag", "day")
WARDS = ("North", "Süd", "it's")
NUMBERS = (0, 1, 5, 9)
EDGES = ("-2.5", "0", "0.1", "7")
FORMATS = ("%d.%m.%Y", "%Y/%m/%d")
TRUE, FALSE = ("ja", "1"), ("nein",)
GROUPINGS = ("xe", "n", "nr", "ward", "flag", "week", "quarter", "single")

NARROW = (Fraction(-5), Fraction(50))
_PEOPLE = (
    "Ana",
    "ANA",
    " ana",
    "ana\u00a0",
    "Åsa",
    "åSA",
    unicodedata.normalize("NFD", "Åsa"),
    "7",
    "07",
    "a|b",
    "-",
    "",
)
_X = (
    "",
    "-",
    "NA",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "abc",
    "1e30",
    "-1e30",
    "7.",
    "1e1",
    "--1",
    "0.1",
    "0",
    "7",
)
_N = ("", "-", "NA", "nan", "inf", "x", "2.5", "0", "1", "5", "9", "-1", "10", "5.0", "1e2", "1e25", "14", "-5", "-6")
_WARD = ("North", "north", "NORTH ", " North", "Süd", "süd", "SÜD", "it's", "IT'S", "mail", "", "-", "NA")
_FLAG = ("ja", "Ja", "1", "nein", "true", "", "-", "NA", "0")
_DAY = (
    "31.12.2020",
    "1.1.2021",
    "2021/01/03",
    "04.01.2021",
    "29.02.2021",
    "2021-01-05",
    "",
    "NA",
    "28.02.2021",
    "epoch",
)


@dataclass(frozen=True)
class Odd:
    """A contract, its table as a file, and what the reference needs to know."""

    contract: Contract
    rows: list[tuple[str, ...]]
    rules: dict[str, Rules]
    forms: dict[str, tuple[str, ...]]
    nulls: dict[str, str]
    dialect: dict[str, object]
    row_range: tuple[Fraction, Fraction] | None
    missing: Sequence[str] = field(default=())

    @property
    def sign(self) -> str:
        return str(self.dialect.get("decimal", "."))

    def keys(self, grouping: str) -> tuple[str | int, ...]:
        return self.contract.keys(grouping) or ()

    def asked(self, statistic: str, column: str | None, by: Sequence[str]) -> Asked:
        unit = self.contract.unit
        keys = tuple(tuple(map(str, self.keys(name))) for name in sorted(by))
        if column is None:
            return Asked(statistic, keys, unit.groups, unit.rows)
        ends, step = {"x": ((-10, 20), "0.25"), "n": ((-1, 9), "1")}[column]
        row_range = self.row_range if column == "x" else None
        return Asked(
            statistic, keys, unit.groups, unit.rows, Fraction(ends[0]), Fraction(ends[1]), Fraction(step), row_range
        )

    def reference_rows(self, column: str | None, by: Sequence[str]) -> list[Row]:
        made = []
        for row in self.rows:
            fields = dict(zip(HEADER, row, strict=True))
            who = fields["who"]
            unit = None if self._none(who) else reference.normal(who, self.forms["who"])
            value: reference.Number | None = Fraction(1) if column is None else self._number(fields, column)
            made.append(Row(unit, tuple(self._key(fields, name) for name in sorted(by)), value))
        return made

    def _none(self, text: str) -> bool:
        return text == "" or text in self.missing

    def _number(self, fields: dict[str, str], column: str) -> reference.Number | None:
        return reference.number(
            fields[column], self.rules[column], sign=self.sign, nulls=self.missing, whole=column == "n"
        )

    def _key(self, fields: dict[str, str], name: str) -> str | None:
        if name in ("xe", "n", "nr"):
            return self._number_key(fields, name)
        if name in ("week", "quarter", "single"):
            missing = self._none(fields["day"])
            every = "day" if name == "single" else name
            return None if missing else reference.calendar(reference.day(fields["day"], FORMATS), every)
        text = fields[name]
        if self._none(text):
            return self.nulls.get(name)
        if name == "flag":
            return "true" if text in TRUE else "false" if text in FALSE else None
        forms = ("nfc", *self.forms["ward"])
        same = [ward for ward in WARDS if reference.normal(ward, forms) == reference.normal(text, forms)]
        return same[0] if same else None

    def _number_key(self, fields: dict[str, str], name: str) -> str | None:
        if name == "xe":
            return reference.edges(self._number(fields, "x"), list(map(Fraction, EDGES)), below=True)
        number = self._number(fields, "n")
        if name == "nr":
            return reference.ranges(number, first=-5, last=14, width=5)
        return str(number) if number in NUMBERS else None

    def write(self, path: Path) -> Path:
        """The table in its dialect."""
        stream = io.StringIO()
        quote = str(self.dialect.get("quote", '"'))
        writer = csv.writer(
            stream, delimiter=str(self.dialect.get("delimiter", ",")), quotechar=quote, lineterminator="\n"
        )
        if self.dialect.get("header", True):
            writer.writerow(HEADER)
        writer.writerows(self.rows)
        encoding = str(self.dialect.get("encoding", "utf-8"))
        return write(path, stream.getvalue().encode(encoding))


def odd(seed: int) -> Odd:
    """A few hundred rows of a few people, under a contract that is another for each seed."""
    random = Random(seed)
    chosen = {name: _rules(random, values) for name, values in (("x", ("0.25", "-10", "20")), ("n", ("5", "9", "0")))}
    forms = {name: _some(random, ("casefold", "strip")) for name in ("who", "ward")}
    forms["who"] = (*forms["who"], *_some(random, ("nfc",)))
    nulls = {name: key for name, key in (("ward", "Süd"), ("flag", "false")) if random.random() < 0.5}
    row_range = random.choice((None, NARROW, (Fraction(-(10**18), 4), Fraction(10**18, 4))))
    if row_range == NARROW:
        chosen["x"] = {name: value for name, value in chosen["x"].items() if value != "-10"}
    dialect = _dialect(random)
    comma = dialect.get("decimal") == ","
    people = [who for who in _PEOPLE if dialect.get("encoding") != "latin-1" or "\u030a" not in who]
    rows = []
    for _ in range(300):
        x = random.choice(_X) if random.random() < 0.4 else f"{Fraction(random.randint(-200, 400), 16).numerator / 16}"
        if comma and random.random() < 0.8:
            x = x.replace(".", ",")
        row = (random.choice(people), x, *(random.choice(values) for values in (_N, _WARD, _FLAG, _DAY)))
        rows += [row] * random.choice((1, 1, 1, 2))
    columns = _columns(chosen, forms, nulls, row_range)
    text = contract_text(columns=columns, groups=random.choice((1, 2, 9)), rows=random.choice((1, 3)), unit="who")
    text = text.replace("[unit]\n", "[unit]\n" + (f"normal = {json.dumps(forms['who'])}\n" if forms["who"] else ""))
    if dialect:
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in dialect.items())
        text = text.replace("[unit]\n", f"[data.csv]\n{lines}\n[unit]\n")
    missing = dialect.get("nulls", ())
    assert isinstance(missing, list | tuple)
    rules = {name: Rules(**{rule: _value(value) for rule, value in own.items()}) for name, own in chosen.items()}
    return Odd(Contract.parse(text), rows, rules, forms, nulls, dialect, row_range, tuple(missing))


def _value(text: str) -> str | Fraction:
    return text if text in ("drop", "clamp") else Fraction(text)


def _rules(random: Random, values: Sequence[str]) -> dict[str, str]:
    rules = {}
    for name in ("null", "nan", "infinity", "unparsed"):
        if random.random() < 0.5:
            rules[name] = random.choice((*values, "drop"))
    return rules


def _some(random: Random, forms: Sequence[str]) -> tuple[str, ...]:
    return tuple(form for form in forms if random.random() < 0.5)


def _dialect(random: Random) -> dict[str, object]:
    dialect: dict[str, object] = {}
    for name, values in (
        ("delimiter", (";", "\t", "|")),
        ("quote", ("'",)),
        ("encoding", ("latin-1", "utf-16")),
        ("decimal", (",",)),
        ("nulls", (["-", "NA"], ["NA"])),
    ):
        if random.random() < 0.5:
            dialect[name] = random.choice(values)
    if random.random() < 0.3:
        dialect |= {"header": False, "names": list(HEADER)}
    return dialect


def _columns(
    rules: dict[str, dict[str, str]],
    forms: dict[str, tuple[str, ...]],
    nulls: dict[str, str],
    row_range: tuple[Fraction, Fraction] | None,
) -> str:
    lines = {name: "".join(f'{rule} = "{value}"\n' for rule, value in own.items()) for name, own in rules.items()}
    clamp = "" if row_range is None else 'clamp = "unit"\n'
    if row_range == NARROW:
        clamp += "row_lower = -5\nrow_upper = 50\n"
    null = {name: f'null = "{key}"\n' for name, key in nulls.items()}
    normal = f"normal = {json.dumps(forms['ward'])}\n" if forms["ward"] else ""
    return f"""
[columns.x]
type = "decimal"
lattice = "0.25"
lower = -10
upper = 20
{clamp}{lines["x"]}
[columns.n]
type = "integer"
lower = -1
upper = 9
keys = {list(NUMBERS)}
{lines["n"]}
[columns.ward]
type = "text"
keys = {json.dumps(WARDS, ensure_ascii=False)}
{normal}{null.get("ward", "")}
[columns.flag]
type = "boolean"
true = {json.dumps(TRUE)}
false = {json.dumps(FALSE)}
{null.get("flag", "")}
[columns.day]
type = "date"
formats = {json.dumps(FORMATS)}

[bins.xe]
column = "x"
edges = {json.dumps(EDGES)}
below = true

[bins.nr]
column = "n"
first = -5
last = 14
width = 5

[bins.week]
column = "day"
every = "week"
first = "2020-W53"
last = "2021-W08"

[bins.quarter]
column = "day"
every = "quarter"
first = "2020-Q4"
last = "2021-Q1"

[bins.single]
column = "day"
every = "day"
first = "2020-12-31"
last = "2021-02-28"
"""
