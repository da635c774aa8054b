"""The coin: the documented hash and nothing else decides a unit's part, before anything is chosen or added up."""

from __future__ import annotations

import hashlib
import hmac
from fractions import Fraction
from pathlib import Path

import pytest

from parco.contract.contract import Contract
from parco.queries.query import Query
from tests.shop import contract_text

from . import reference
from .build import COLUMNS, SECRET, agreed, run, write
from .tables import QUESTIONS, asked, reference_rows, to_csv, to_parquet, visits

SHARES = {"fit": Fraction(3, 5), "test": Fraction(1, 7), "validation": Fraction(9, 35)}
PARTS = "[parts]\n" + "".join(f'{name} = "{share}"\n' for name, share in SHARES.items())
OTHER = bytes(range(1, 33))


def coin(unit: str, secret: bytes = SECRET) -> Fraction:
    """The coin as a number in [0, 1): sixty bits."""
    key = hmac.new(secret, b"parco/parts", hashlib.sha256).hexdigest()
    digest = hashlib.sha256(f"{key}|{unit}".encode()).digest()
    return Fraction(int.from_bytes(digest[:8]) >> 4, 2**60)


def part(unit: str, secret: bytes = SECRET) -> str:
    """By the shares themselves: rounding them to 2^-60 moves no unit of these tests."""
    upto = Fraction(0)
    for name, share in sorted(SHARES.items()):
        upto += share
        if coin(unit, secret) < upto:
            return name
    raise AssertionError


def divided(*, groups: int = 1, rows: int = 1) -> Contract:
    return agreed(COLUMNS + PARTS, groups=groups, rows=rows)


@pytest.mark.parametrize("table", range(12))
def test_a_part_is_the_rule_on_its_own_units(tmp_path: Path, table: int) -> None:
    question = QUESTIONS[table % len(QUESTIONS)]
    numbered, doubles = table % 2 == 0, table % 4 < 2
    made = visits(table, numbered=numbered, doubles=doubles)
    path = (
        to_parquet(tmp_path / "a.parquet", made, numbered=numbered, doubles=doubles)
        if table % 3
        else to_csv(tmp_path / "a.csv", made)
    )
    meant = asked(question, groups=1, rows=2)
    contract, secret = divided(rows=2), (SECRET, OTHER)[table // 6]
    statistic, column, by = question
    totals = []
    for name in SHARES:
        own = [row for row in reference_rows(made, question) if row.unit is None or part(row.unit, secret) == name]
        query = Query.of(contract, statistic, column=column, by=by, part=name)
        totals.append(run(path, query, secret=secret))
        assert totals[-1] == reference.answer(meant, own, secret)
    whole = run(path, Query.of(contract, statistic, column=column, by=by), secret=secret)
    assert whole == [sum(cells) for cells in zip(*totals, strict=True)]


def members(path: Path, name: str, count: int, secret: bytes = SECRET) -> list[int]:
    """Which of the units 0 to count - 1 are in a part: a cell for each."""
    columns = f'[columns.who]\ntype = "integer"\nlower = 0\nupper = 1\nkeys = {list(range(count))}\n'
    contract = agreed(columns + PARTS, unit="person")
    return run(path, Query.of(contract, "count_units", by="who", part=name), secret=secret)


def table(path: Path, count: int, order: int = 1) -> Path:
    lines = [f"{number},{number}" for number in range(count)][::order]
    return write(path, "person,who\n" + "".join(f"{line}\n" for line in lines))


def test_each_unit_is_in_one_part_for_ever(tmp_path: Path) -> None:
    """Whatever else is in the file, and in whatever order."""
    count = 200
    small, large = table(tmp_path / "a.csv", count), table(tmp_path / "b.csv", 2 * count, -1)
    every = [0] * count
    for name in SHARES:
        found = members(small, name, count)
        assert found == [int(part(str(unit)) == name) for unit in range(count)]
        assert found == members(large, name, 2 * count)[:count]
        every = [a + b for a, b in zip(every, found, strict=True)]
    assert every == [1] * count
    assert members(small, "fit", count) != members(small, "fit", count, OTHER)


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_shares_lie_within_binomial_bounds(tmp_path: Path, secret: bytes) -> None:
    """At level 1e-6 for each part, by Hoeffding: sqrt(log(2e6)/2) < 2.7 roots of the number of units."""
    count = 20_000
    path = write(tmp_path / "a.csv", "person\n" + "".join(f"{number}\n" for number in range(count)))
    contract = Contract.parse(divided_text())
    for name, share in SHARES.items():
        (found,) = run(path, Query.of(contract, "count_units", part=name), secret=secret)
        assert (found - share * count) ** 2 <= Fraction(27, 10) ** 2 * count


def divided_text(parts: str = PARTS) -> str:
    return contract_text(columns=parts, unit="person", groups=1, rows=1)


def test_a_coin_on_the_border_is_in_the_upper_part_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "person\nana\n")
    border, step = coin("ana"), Fraction(1, 2**60)
    for share, where in ((border, "b"), (border + step, "a"), (border - step, "b")):
        contract = Contract.parse(divided_text(f'[parts]\na = "{share}"\nb = "{1 - share}"\n'))
        counts = {name: run(path, Query.of(contract, "count_units", part=name)) for name in "ab"}
        assert counts == {name: [int(name == where)] for name in "ab"}


def test_the_coin_is_independent_of_the_bounding_order() -> None:
    """Other keys: units that come first in the order of groups or rows are not more often in a part."""
    count = 4000
    key = hmac.new(SECRET, b"parco/bounding/groups", hashlib.sha256).hexdigest()
    first = [unit for unit in map(str, range(count)) if hashlib.md5(f"{key}|{unit}|0".encode()).digest()[0] < 128]  # noqa: S324
    found = sum(part(unit) == "fit" for unit in first)
    assert (found - Fraction(3, 5) * len(first)) ** 2 <= Fraction(27, 10) ** 2 * len(first)


def test_a_unit_of_a_strange_name_is_in_one_part(tmp_path: Path) -> None:
    units = ["", " ", "a|b", "'", '"', "é", "e\u0301", "\u20ac", "-0", "0", "NULL", "x" * 5000]
    rows = "".join('"' + unit.replace('"', '""') + '"\n' for unit in units)
    path = write(tmp_path / "a.csv", "person\n" + rows)
    contract = Contract.parse(divided_text())
    counts = {name: run(path, Query.of(contract, "count_units", part=name))[0] for name in SHARES}
    there = [unit for unit in units if unit]
    assert counts == {name: sum(part(unit) == name for unit in there) for name in SHARES}
