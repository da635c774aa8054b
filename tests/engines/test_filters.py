"""An engine keeps the rows that three-valued logic keeps, before it chooses rows and groups of a unit."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from parco.contract.contract import Contract
from parco.errors import QuestionError

from . import reference
from .build import SECRET, agreed, ask, run, write
from .tables import AGES, EAST, MONTHS, QUESTIONS, WARDS, Visit, asked, reference_rows, to_csv, to_parquet, visits

# A condition as it is generated: its text, and what it is for a row, None where SQL says "unknown".
Value = Fraction | str | datetime.date | None


def values_of(visit: Visit) -> dict[str, Value]:
    """A row as the contract reads it."""
    score = visit.score
    if score is None or (isinstance(score, float) and math.isnan(score)):
        steps: Fraction | None = None
    else:
        clamped = min(max(score, Fraction(-10)), Fraction(20))
        steps = Fraction(math.floor(Fraction(clamped) * 4 + Fraction(1, 2)), 4)
    month = None if visit.day is None else f"{visit.day:%Y-%m}"
    return {
        "score": steps,
        "age": None if visit.age is None else Fraction(min(max(visit.age, -1), 3)),
        "ward": visit.ward if visit.ward in WARDS else None,
        "month": month if month in MONTHS else None,
        "day": visit.day,
    }


class Condition:
    """A random condition over the columns of `tables`, to a depth."""

    def __init__(self, random: Random, depth: int) -> None:
        self.kind = random.choice(["and", "or", "not"] if depth else ["leaf"])
        if depth and random.random() < 0.2:
            self.kind = "leaf"
        self.parts = [Condition(random, depth - 1) for _ in range({"not": 1, "leaf": 0}.get(self.kind, 2))]
        self.name = random.choice(["score", "age", "ward", "month", "day"])
        operators = ["=", "<>", "in", "null"] + ([] if self.name == "ward" else ["<", "<=", ">", ">=", "between"])
        self.operator = random.choice(operators)
        count = {"in": 3, "between": 2, "null": 0}.get(self.operator, 1)
        self.literals = [self._literal(random) for _ in range(count)]

    def _literal(self, random: Random) -> Fraction | str | datetime.date:
        choices: dict[str, list[Fraction | str | datetime.date]] = {
            "score": [Fraction(random.randint(-90, 180), 8), Fraction(-10), Fraction(20), Fraction(10**6)],
            "age": [Fraction(random.randint(-3, 5)), Fraction(3, 2)],
            "ward": list(WARDS),
            "month": list(MONTHS),
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(random.randint(-30, 220))],
        }
        return random.choice(choices[self.name])

    @property
    def text(self) -> str:
        if self.kind == "not":
            return f"not ({self.parts[0].text})"
        if self.kind != "leaf":
            return f"({self.parts[0].text}) {self.kind} ({self.parts[1].text})"
        shown = [
            str(float(one)) if isinstance(one, Fraction) else "'" + str(one).replace("'", "''") + "'"
            for one in self.literals
        ]
        match self.operator:
            case "null":
                return f"{self.name} is null"
            case "in":
                return f"{self.name} in ({', '.join(shown)})"
            case "between":
                return f"{self.name} between {shown[0]} and {shown[1]}"
        return f"{self.name} {self.operator} {shown[0]}"

    def of(self, row: dict[str, Value]) -> bool | None:  # noqa: PLR0911 - a case an operator
        """True, false or unknown, by the rules of Kleene."""
        found = [part.of(row) for part in self.parts]
        match self.kind:
            case "not":
                return None if found[0] is None else not found[0]
            case "and":
                return False if False in found else None if None in found else True
            case "or":
                return True if True in found else None if None in found else False
        value = row[self.name]
        if self.operator == "null":
            return value is None
        if value is None:
            return None
        one = self.literals[0]
        match self.operator:
            case "in":
                return value in self.literals
            case "between":
                return one <= value <= self.literals[1]  # type: ignore[operator]
            case "=":
                return value == one
            case "<>":
                return value != one
            case "<":
                return value < one  # type: ignore[operator]
            case "<=":
                return value <= one  # type: ignore[operator]
            case ">":
                return value > one  # type: ignore[operator]
        return value >= one  # type: ignore[operator]


def is_never(contract: Contract, text: str) -> bool:
    """Whether the condition is refused because no row can meet it."""
    try:
        ask(contract, "count", where=text)
    except QuestionError as error:
        return "no row can meet" in str(error)
    return False


@pytest.mark.parametrize("table", range(10))
def test_random_conditions_keep_the_rows_they_mean(tmp_path: Path, table: int) -> None:
    random = Random(table)
    doubles = table % 2 == 0
    made = visits(500 + table, numbered=True, doubles=doubles)
    if table % 3:
        path = to_csv(tmp_path / "a.csv", made)
    else:
        path = to_parquet(tmp_path / "a.parquet", made, numbered=True, doubles=doubles)
    kept = 0
    for place in range(12):
        condition = Condition(random, place % 4)
        question = QUESTIONS[(table + place) % len(QUESTIONS)]
        met = [condition.of(values_of(visit)) is True for visit in made]
        rows = [replace(row, met=one) for row, one in zip(reference_rows(made, question), met, strict=True)]
        expected = reference.answer(asked(question, groups=2, rows=2), rows, SECRET)
        contract = agreed(groups=2, rows=2)
        if is_never(contract, condition.text):
            assert not any(met)
            continue
        query = ask(contract, *question, where=condition.text)
        assert run(path, query) == expected, condition.text
        kept += 0 < sum(met) < len(made)
    assert kept >= 5


def test_rows_are_filtered_before_those_of_a_unit_are_chosen(tmp_path: Path) -> None:
    rows = "".join(f"1,{score},north\n" for score in [5] * 30 + [7])
    path = write(tmp_path / "a.csv", "person,score,ward\n" + rows)
    contract = agreed(groups=1, rows=1)
    assert run(path, ask(contract, "sum", "score", where="score = 7")) == [28]
    # Not so for groups either: the one that is left is kept.
    many = write(tmp_path / "b.csv", "person,day,ward\n" + "".join(f"1,{month}-01,north\n" for month in MONTHS))
    for place, month in enumerate(MONTHS):
        found = run(many, ask(contract, "count", by="month", where=f"month = '{month}'"))
        assert found == [int(place == other) for other in range(len(MONTHS))]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("day >= '1900-01-01'", 2),
        ("day < '1900-01-01'", 1),
        ("day <> '2024-01-01'", 2),
        ("day is null", 5),
        ("day is not null", 3),
        ("not day > '2024-01-01'", 2),
    ],
)
def test_days_beyond_the_calendar_are_no_days(tmp_path: Path, where: str, count: int) -> None:
    days = ["2024-01-01", "290000-01-01", "0044-03-15 (BC)", "infinity", "-infinity", "2024-02-30", "", "soon"]
    path = write(tmp_path / "a.csv", "person,day\n" + "".join(f"{place},{day}\n" for place, day in enumerate(days)))
    assert run(path, ask(agreed(), "count", where=where)) == [count]


def test_text_is_compared_in_one_unicode_form_and_only_by_declared_keys(tmp_path: Path) -> None:
    contract = agreed(columns='[columns.ward]\ntype = "text"\nkeys = ["größe", "klein"]\n')
    path = write(tmp_path / "a.csv", "person,ward\n1,größe\n2,gro\u0308ße\n3,Größe\n4,klein\n5,\n6,other\n")
    counts = {
        "ward = 'größe'": 2,
        "ward = 'gro\u0308ße'": 2,
        "ward <> 'klein'": 2,
        "ward is null": 3,
        "ward is null or ward = 'klein'": 4,
        "not (ward is null or ward = 'klein')": 2,
    }
    assert {where: run(path, ask(contract, "count", where=where))[0] for where in counts} == counts


def test_no_value_makes_a_condition_fail(tmp_path: Path) -> None:
    odd = ["1e400", "-1e400", "nan", "9" * 60, "1e-400", "--1", "0x10", "inf", " 2 ", "2;", "\u0662"]
    rows = "".join(f"{place},{value},{value},{value},{value}\n" for place, value in enumerate(odd))
    path = write(tmp_path / "a.csv", "person,score,age,ward,day\n" + rows)
    where = "score >= 2 or age in (0, 2) or ward <> 'north' or day < '2024-01-01' or month is null"
    assert run(path, ask(agreed(rows=1), "count", where=where)) == [len(odd)]
    assert AGES
    assert EAST in WARDS
