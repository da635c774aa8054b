"""Neighbouring tables differ in released numbers and in nothing else: schema, keys, order, errors, ledger bytes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import parco
from parco import Ask
from parco.engines.duckdb import DuckDBEngine, Found
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from parco.stores.sqlite import SqliteStore
from parco.testing import TapeSession
from tests.engines.build import COLUMNS
from tests.engines.tables import Visit, to_csv, to_parquet, visits
from tests.shop import contract_text

PAIRS, PAIRS_A_TEST = 100, 4
BY: tuple[tuple[str, ...], ...] = ((), ("ward",), ("month",), ("age", "ward"))
WHERE = (
    None,
    "score = 5 or score <> 7",
    "score < 3 or day <= '2024-03-01'",
    "score > -2 and age >= 1",
    "ward in ('north', 'south') and not age in (0, 3)",
    "day between '2024-02-01' and '2024-05-01'",
    "month is not null and (ward is null or score is null)",
    "not (ward = 'north' and (age < 2 or month > '2024-02'))",
)
STATISTICS: tuple[tuple[str, str | None], ...] = (
    ("count", None),
    ("count", "score"),
    ("count_units", None),
    ("sum", "score"),
    ("sum", "age"),
    ("count_distinct", "score"),
    ("count_distinct", "ward"),
    ("mean", "score"),
)
REFUSED = (
    Ask("count", where="score / age > 1"),
    Ask("count", where="cast(score as integer) > 1"),
    Ask("sum", "score", where="ln(score) > 1"),
    Ask("mean", "score", error="1"),
    Ask("count", cost="1000"),
)


@pytest.fixture(autouse=True)
def same_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Salts, keys and the data set's secret come from a counter that each session sets to 0; the time stands still."""
    monkeypatch.setattr(secrets, "token_bytes", lambda size: next(COUNTER).to_bytes(size))
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{next(COUNTER):0{2 * size}x}")
    monkeypatch.setattr("parco.stores.records.time", SimpleNamespace(time=lambda: 0))


class Counter:
    """Whole numbers from 0, which `start` sets back."""

    def start(self) -> None:
        self._numbers: Iterator[int] = iter(range(10**9))

    def __next__(self) -> int:
        return next(self._numbers)


COUNTER = Counter()


def asks(place: int) -> list[Ask]:
    """Four questions; over all places each statistic meets each condition and each grouping."""
    made = []
    for more in range(4):
        statistic, column = STATISTICS[(place + 2 * more) % len(STATISTICS)]
        by, where = BY[(place // 8 + more) % len(BY)], WHERE[(place // 2 + 3 * more) % len(WHERE)]
        made.append(Ask(statistic, column, by=by, where=where, cost="0.1"))
    return made


def neighbour(made: list[Visit], random: Random, *, replaced: bool) -> list[Visit]:
    """The table without one unit, or with other rows of it: none that can be read, one, or very many."""
    unit = random.choice(sorted({visit.person for visit in made if visit.person is not None}))
    left = [visit for visit in made if visit.person != unit]
    if not replaced:
        return left
    odd = Visit(unit, None, random.choice([None, Fraction(10**6), Fraction(-(10**6))]), None, "elsewhere")
    other = visits(random.randint(10**6, 10**7), numbered=True, doubles=False)
    own = [Visit(unit, visit.day, visit.score, visit.age, visit.ward) for visit in other]
    return left + random.choice([[odd], own[:1], own])


def played(folder: Path, made: list[Visit], questions: list[Ask], *, neighbours: str, typed: bool) -> dict[str, Any]:
    """All that a session on this table shows and writes, its random numbers the same each time."""
    folder.mkdir()
    COUNTER.start()
    text = contract_text(columns=COLUMNS, unit="person", budget='measure = "gdp"\nepsilon = "4"\ndelta = "1e-6"')
    agreed = parco.Contract.parse(text.replace("add-or-remove", neighbours))
    ledger = folder / "a.ledger"
    parco.sign(agreed, ledger=ledger, actor="steward")
    data = (
        to_parquet(folder / "a.parquet", made, numbered=True, doubles=False)
        if typed
        else to_csv(folder / "a.csv", made)
    )
    tape = Random(1).randbytes(1 << 14)
    errors = []
    with TapeSession(agreed, tape=tape, data=data, ledger=ledger, actor="ana") as session:
        releases = session.release(questions)
        for refused in REFUSED:
            with pytest.raises(parco.ParcoError) as caught:
                session.release([refused])
            errors.append((type(caught.value), str(caught.value), caught.value.facts))
    return {
        "contract": agreed,
        "data": data,
        "errors": errors,
        "shown": [shown(release) for release in releases],
        "schemas": [release.table().schema for release in releases],
        "entries": [without_answer(entry) for entry in SqliteStore.open(ledger).entries()],
    }


def shown(release: parco.Release[Any]) -> Any:
    """The record of a release without its released numbers."""
    record = release.record()
    rows = record.pop("rows")
    assert isinstance(rows, list)
    for receipt in receipts(record):
        receipt["evidence"] = without_hashes(receipt["evidence"])
    return record, [{name: key for name, key in row.items() if name not in ("value", "lower", "upper")} for row in rows]


def receipts(record: Any) -> list[Any]:
    """Every receipt in a record of a release that has evidence: a joint one has it in its parts."""
    found = [part["receipt"] for part in [record, *record.get("parts", [])] if "receipt" in part]
    found += [part for receipt in found for part in receipt.get("parts", [])]
    return [receipt for receipt in found if "evidence" in receipt]


def without_hashes(evidence: Any) -> Any:
    """Evidence without the answer and all that is a hash over answers: the tree, its root, the signatures on that."""
    proof = evidence["proof"]
    head = {name: value for name, value in proof["head"].items() if name not in ("root", "previous", "signature")}
    entry = without_answer(proof["entry"].encode())
    return {**proof, "head": head, "entry": entry, "path": len(proof["path"])}, evidence["salt"]


def without_answer(entry: bytes) -> bytes:
    """The bytes of an entry, without the digest of an answer."""
    answer = json.loads(entry).get("answer")
    return entry if answer is None else entry.replace(answer.encode(), b"")


def queries(agreed: parco.Contract, ask: Ask) -> list[Query]:
    how = {"by": ask.by, "where": ask.where}
    if ask.statistic != "mean":
        return [Query.of(agreed, ask.statistic, column=ask.column, **how)]  # type: ignore[arg-type]
    return [
        Query.of(agreed, "sum", column=ask.column, centred=True, **how),  # type: ignore[arg-type]
        Query.of(agreed, "count", column=ask.column, **how),  # type: ignore[arg-type]
    ]


def exact(data: Path, asked: list[Query]) -> list[Found]:
    """The integers before noise."""
    engine = DuckDBEngine(data)
    engine.check(asked[0].contract, [name for query in asked for name in query.names])
    return engine.run_all(asked, secret=bytes(32))


FIRST = [
    pytest.param(first, marks=[pytest.mark.long] if first >= PAIRS // 5 else [])
    for first in range(0, PAIRS, PAIRS_A_TEST)
]


@pytest.mark.parametrize("first", FIRST)
def test_neighbours_differ_in_released_numbers_only(tmp_path: Path, first: int) -> None:
    farthest = Fraction(0)
    for place in range(first, first + PAIRS_A_TEST):
        random = Random(place)
        relation, typed = ("add-or-remove", "replace")[place % 2], place % 3 == 0
        made = visits(9000 + place, numbered=True, doubles=False)
        other = neighbour(made, random, replaced=relation == "replace")
        questions = asks(place)
        here, there = (
            played(tmp_path / f"{place}{name}", table, questions, neighbours=relation, typed=typed)
            for name, table in (("a", made), ("b", other))
        )
        for name in ("errors", "shown", "schemas", "entries"):
            assert here[name] == there[name], (name, place)
        asked = [query for ask in questions for query in queries(here["contract"], ask)]
        found = (exact(run["data"], asked) for run in (here, there))
        for query, one, another in zip(asked, *found, strict=True):
            steps = [abs(a - b) * query.step for a, b in zip(one, another, strict=True)]
            stated = sensitivity(query)
            assert sum(steps) <= stated.l1, (place, str(query))
            assert sum(step**2 for step in steps) <= stated.l2_squared, (place, str(query))
            farthest = max(farthest, sum(steps) / stated.l1)
    assert farthest > Fraction(1, 4)


def test_every_statistic_meets_every_condition_and_grouping() -> None:
    met = {(ask.statistic, ask.column, ask.where) for place in range(PAIRS) for ask in asks(place)}
    assert len({(statistic, column) for statistic, column, _ in met}) == len(STATISTICS)
    assert len({where for _, _, where in met}) == len(WHERE)
    assert len(met) >= len(STATISTICS) * len(WHERE) // 2
    assert {ask.by for place in range(PAIRS) for ask in asks(place)} == set(BY)
