"""Keys that no contract declares: which a unit keeps is the rule of all groups, whatever the order of the rows."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from tests.shop import contract_text

from . import reference
from .build import SECRET, ask, write, write_parquet

TOWN = '[columns.town]\ntype = "text"\nkeys = "select"\n\n[columns.age]\ntype = "integer"\nlower = -5\nupper = 40\n'
WORDS = ("Rome", "Oslo", "a|b", "b", "", "e\u0301", "\u00e9", "'; --", "found", "x" * 200, "y" * 201)


def declared(*, groups: int, rows: int = 1) -> Contract:
    budget = 'measure = "pure"\nepsilon = "1"\ndelta = "1e-6"\ndelta_mechanisms = "1e-6"'
    return Contract.parse(contract_text(columns=TOWN, groups=groups, rows=rows, unit="person", budget=budget))


def meant(rows: list[tuple[str, str | int]], groups: int) -> dict[str | int, int]:
    """How many units keep each key, by the documented rule."""
    found: Counter[str | int] = Counter()
    for unit in {unit for unit, _ in rows}:
        own = {key for person, key in rows if person == unit}
        found.update(sorted(own, key=lambda key: (reference._hash(SECRET, "groups", unit, key), key))[:groups])
    return dict(found)


@pytest.mark.parametrize("groups", [1, 2, 4, 99])
def test_each_unit_keeps_its_keys_by_the_rule(tmp_path: Path, groups: int) -> None:
    random = Random(groups)
    rows = [(f"p{random.randrange(40)}", random.choice(WORDS)) for _ in range(300)]
    ages = [random.randrange(-9, 50) for _ in rows]
    contract = declared(groups=groups)
    queries = [ask(contract, "select_keys", name) for name in ("town", "age")]
    towns = meant([(unit, "\u00e9" if word == "e\u0301" else word) for unit, word in rows if len(word) <= 200], groups)
    numbers = meant([(unit, age) for (unit, _), age in zip(rows, ages, strict=True) if -5 <= age <= 40], groups)
    for name, order in (("made", range(300)), ("shuffled", random.sample(range(300), 300))):
        path = write_parquet(
            tmp_path / f"{name}.parquet",
            person=pa.array([rows[place][0] for place in order]),
            town=pa.array([rows[place][1] for place in order]),
            age=pa.array([ages[place] for place in order]),
        )
        assert DuckDBEngine(path).run_all(queries, secret=SECRET) == [towns, numbers]


def test_what_a_contract_could_not_declare_is_no_key(tmp_path: Path) -> None:
    """Dropped row by row, before a unit's keys are chosen: control characters and line breaks, and nothing else."""
    known = [chr(code) for code in range(0x3000) if not 0xD800 <= code < 0xE000]
    towns = [f"a{letter}b" for letter in known]
    path = write_parquet(
        tmp_path / "t.parquet",
        person=pa.array([f"p{place}" for place in range(len(towns))]),
        town=pa.array(towns),
        age=pa.array([0] * len(towns)),
    )
    kept = [town for town in towns if all(unicodedata.category(one) not in ("Cc", "Zl", "Zp") for one in town)]
    (found,) = DuckDBEngine(path).run_all([ask(declared(groups=1), "select_keys", "town")], secret=SECRET)
    assert found == dict(Counter(unicodedata.normalize("NFC", town) for town in kept))
    assert len(towns) - len(kept) == 67


def test_what_is_no_key_is_dropped_before_keys_are_chosen(tmp_path: Path) -> None:
    lines = "".join(f"p,{town},{age}\n" for town, age in (("z" * 201, 3), ("", "x"), ("u", 3.5), ("v", "9" * 30)))
    path = write(tmp_path / "a.csv", "person,town,age\n" + lines + ",w,7\n")
    contract = declared(groups=2)
    queries = [ask(contract, "select_keys", name) for name in ("town", "age")]
    assert DuckDBEngine(path).run_all(queries, secret=SECRET) == [{"u": 1, "v": 1}, {3: 1}]


def test_beside_other_questions_each_gets_its_own_answer(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "person,town,age\np,Rome,1\np,Rome,2\nq,Oslo,1\n")
    contract = declared(groups=2, rows=2)
    queries = [ask(contract, "count"), ask(contract, "select_keys", "town"), ask(contract, "sum", "age")]
    assert DuckDBEngine(path).run_all(queries, secret=SECRET) == [[3], {"Rome": 1, "Oslo": 1}, [4]]
