"""Generated tables whose units exceed every bound, as a CSV file, as a Parquet file, and as rows for the reference."""

from __future__ import annotations

import csv
import datetime
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pyarrow as pa

from .build import write, write_parquet
from .reference import Asked, Row

__all__ = ["MONTHS", "QUESTIONS", "Visit", "asked", "reference_rows", "to_csv", "to_parquet", "visits"]

MONTHS = tuple(f"2024-{month:02d}" for month in range(1, 7))
EAST = 'it\'s; "east"'
AGES, WARDS = (0, 1, 2, 3), ("north", "south", EAST)
KEYS: dict[str, tuple[str | int, ...]] = {"age": AGES, "month": MONTHS, "ward": WARDS}

QUESTIONS: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    ("count", None, ("ward",)),
    ("count", None, ("age", "month")),
    ("count", None, ("age", "month", "ward")),
    ("count_units", None, ("month",)),
    ("count_units", None, ("age", "ward")),
    ("count_units", None, ("age", "month", "ward")),
    ("sum", "score", ("month",)),
    ("sum", "score", ("age", "ward")),
    ("sum", "score", ("age", "month", "ward")),
    ("sum", "age", ("ward",)),
)

_PEOPLE = ("7", "12", "Ana", "Ångström", "a|b", "a|b|0", 'say "hi"', "x;--", "comma, Jr", " 7", "O'Neil", "zoë")
_WARDS = (*WARDS * 3, "North", "mail", None)
_AGES = (*AGES * 3, -1, 4, None)


@dataclass(frozen=True)
class Visit:
    """One row as it is meant: None is missing, NaN and the infinities are floats."""

    person: str | None
    day: datetime.date | None
    score: Fraction | float | None
    age: int | None
    ward: str | None


def visits(seed: int, *, numbered: bool, doubles: bool) -> list[Visit]:
    """About 300 rows of a dozen people: units are whole numbers if `numbered`, scores NaN or infinite if `doubles`."""
    random = Random(seed)
    people = [str(100 + place) for place in range(12)] if numbered else list(_PEOPLE)
    made = []
    for person in people:
        # Half of a person's rows lie in one cell, so that there are too many there; the others in many cells.
        usual = _visit(random, person, doubles=doubles, odd_keys=False)
        for _ in range(random.randint(12, 28)):
            visit = _visit(random, person, doubles=doubles)
            if random.random() < 0.5:
                visit = Visit(person, usual.day, visit.score, usual.age, usual.ward)
            made.append(visit)
            if random.random() < 0.3:
                made.append(visit)
    made += [Visit(None, visit.day, visit.score, visit.age, visit.ward) for visit in random.sample(made, 5)]
    random.shuffle(made)
    return made


def _visit(random: Random, person: str, *, doubles: bool, odd_keys: bool = True) -> Visit:
    """Without `odd_keys` all keys are declared ones."""
    odd: tuple[Fraction | float | None, ...] = (None, math.nan, math.inf, -math.inf) if doubles else (None,)
    # Sixteenths on a lattice of quarters: many halves to round, and exact in binary as well.
    score = random.choice(odd) if random.random() < 0.1 else Fraction(random.randint(-200, 400), 16)
    days = (-20, 210) if odd_keys else (0, 180)
    day = datetime.date(2024, 1, 1) + datetime.timedelta(random.randint(*days))
    return Visit(
        person,
        None if odd_keys and random.random() < 0.05 else day,
        score,
        random.choice(_AGES if odd_keys else AGES),
        random.choice(_WARDS if odd_keys else WARDS),
    )


def asked(question: tuple[str, str | None, tuple[str, ...]], *, groups: int, rows: int) -> Asked:
    """The question for the reference, with the bounds of `build.COLUMNS`."""
    statistic, column, by = question
    keys = tuple(KEYS[name] for name in by)
    if column == "score":
        return Asked(statistic, keys, groups, rows, Fraction(-10), Fraction(20), Fraction(1, 4))
    if column == "age":
        return Asked(statistic, keys, groups, rows, Fraction(-1), Fraction(3))
    return Asked(statistic, keys, groups, rows)


def reference_rows(made: Iterable[Visit], question: tuple[str, str | None, tuple[str, ...]]) -> list[Row]:
    """The rows as the reference takes them."""
    _, column, by = question
    rows = []
    for visit in made:
        labels: dict[str, str | int | None] = {
            "age": visit.age,
            "month": None if visit.day is None else f"{visit.day:%Y-%m}",
            "ward": visit.ward,
        }
        score = None if isinstance(visit.score, float) and math.isnan(visit.score) else visit.score
        age = None if visit.age is None else Fraction(visit.age)
        value = {"score": score, "age": age}.get(column or "", Fraction(1))
        rows.append(Row(visit.person, tuple(labels[name] for name in by), value))
    return rows


def to_csv(path: Path, made: Iterable[Visit]) -> Path:
    """The table as text; what is missing is missing, or text that cannot be read."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["ward", "score", "person", "age", "day"])
    for place, visit in enumerate(made):
        score = "" if visit.score is None else str(float(visit.score))
        writer.writerow(
            [
                visit.ward or "",
                score or ("", "n/a")[place % 2],
                visit.person or "",
                ("", "?", "2.5")[place % 3] if visit.age is None else visit.age,
                ("", "2024-02-30")[place % 2] if visit.day is None else visit.day,
            ]
        )
    return write(path, stream.getvalue())


def to_parquet(path: Path, made: Iterable[Visit], *, numbered: bool, doubles: bool) -> Path:
    """The table with types: decimals or doubles, whole numbers or text as units."""
    rows = list(made)
    units = [None if visit.person is None else int(visit.person) if numbered else visit.person for visit in rows]
    scores = [visit.score for visit in rows]
    wards = pa.array([visit.ward for visit in rows])
    return write_parquet(
        path,
        ward=wards.dictionary_encode() if doubles else wards,
        score=pa.array([None if score is None else float(score) for score in scores], pa.float64())
        if doubles
        else pa.array([None if score is None else Decimal(float(score)) for score in scores], pa.decimal128(12, 4)),
        person=pa.array(units, pa.int64() if numbered else pa.string()),
        age=pa.array([visit.age for visit in rows], pa.int8()),
        day=pa.array([visit.day for visit in rows], pa.date32()),
    )
