"""C16: one odd income changes a number and nothing else: no text, no exit code, no entry tells which table it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.queries.query import Query
from parco.session.signing import sign
from parco.stores.sqlite import SqliteStore
from tests.cli.run import parco
from tests.shop import contract_text

LAST = {"ordinary": "42.17", "infinite": "inf", "not a number": "NaN", "tiny": "-1e-300", "absent": None}
COLUMNS = '[columns.income]\ntype = "decimal"\nlattice = "0.01"\nlower = "0"\nupper = "100"\n'
EXACT = {"ordinary": 4217, "infinite": 10000, "not a number": 0, "tiny": 0, "absent": 0}
DIGEST = re.compile(r"[0-9a-f]{64}")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each table a folder with data, contract and signed ledger."""
    made = {}
    for name, last in LAST.items():
        folder = tmp_path_factory.mktemp("case")
        (folder / "contract.toml").write_text(
            contract_text(columns=COLUMNS, unit="person", groups=1, rows=1), encoding="utf-8"
        )
        values = [*map(str, range(100)), *([] if last is None else [last])]
        lines = "".join(f"{person},{value}\n" for person, value in enumerate(values))
        (folder / "purchases.csv").write_text("person,income\n" + lines, encoding="utf-8")
        sign(Contract.read(folder / "contract.toml"), actor="ana")
        made[name] = folder
    return made


def shape(value: Any, key: str = "") -> Any:
    """A record without what may differ: noisy numbers, salted digests and hashes over them, the time of day."""
    if key == "entry":
        return shape(json.loads(value))
    if key == "path":
        return len(value)
    if isinstance(value, dict):
        return {name: shape(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    if key in ("value", "lower", "upper", "time", "answer", "salt", "signature") or (
        isinstance(value, str) and DIGEST.fullmatch(value)
    ):
        return type(value).__name__
    return value


def words(text: str) -> str:
    """The text for a terminal with each number and hash as #, and without lines and spaces that follow their width."""
    plain = re.sub(r"\b[0-9a-f]{16}…|-?\d[\d,.]*", "#", text)
    return re.sub(r"[\s─━│┃┏┓┗┛┡┩└┘┬┴┳╇]+", " ", plain)


def test_the_exact_values_follow_the_declared_rule(folders: dict[str, Path]) -> None:
    for name, folder in folders.items():
        contract = Contract.read(folder / "contract.toml")
        for statistic, column, rows in (
            ("sum", "income", 495_000 + EXACT[name]),
            ("count", None, 100 + (name != "absent")),
        ):
            engine = DuckDBEngine(folder / "purchases.csv")
            engine.check(contract, [] if column is None else [column])
            assert engine.run(Query.of(contract, statistic, column=column), secret=b"s" * 32) == [rows]


def test_nothing_but_the_noisy_number_differs(folders: dict[str, Path]) -> None:
    printed, ledgers = {}, {}
    for name, folder in folders.items():
        done = parco(
            "release", "contract.toml", "sum", "income", "--cost", "0.5", "--actor", "ana", "--json", cwd=folder
        )
        printed[name] = (done.returncode, done.stderr, shape(json.loads(done.stdout)), len(done.stdout.splitlines()))
        ledgers[name] = [shape(json.loads(entry)) for entry in SqliteStore.open(folder / "shop.ledger").entries()]
        names = ["contract.toml", "purchases.csv", "shop.ledger", "shop.ledger.heads"]
        assert sorted(path.name for path in folder.iterdir()) == names
    assert [found == printed["ordinary"] for found in printed.values()] == [True] * len(LAST)
    assert [found == ledgers["ordinary"] for found in ledgers.values()] == [True] * len(LAST)
    code, errors, record, _ = printed["ordinary"]
    assert (code, errors) == (0, "")
    assert record["rows"] == [{"value": "str", "lower": "str", "upper": "str"}]
    assert [entry["tag"] for entry in ledgers["ordinary"]] == ["open", "reserve", "start", "settle"]


def test_nor_do_the_words_for_a_reader(folders: dict[str, Path]) -> None:
    shown = set()
    for name in ("ordinary", "infinite"):
        folder = folders[name]
        done = parco("release", "contract.toml", "count", "--cost", "0.25", "--actor", "ana", cwd=folder)
        shown.add((done.returncode, done.stderr, words(done.stdout)))
    assert len(shown) == 1
    assert "the exact value" in words(done.stdout)
