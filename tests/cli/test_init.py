"""`init` and `check`: a first contract from names and types alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from parco.contract.document import parse_document
from tests.cli.run import parco, parco_json
from tests.shop import contract_text, open_shop, write_csv

VALUES = ("4711", "2024-01-05", "17", "10.5", "secret-channel")


def test_a_csv_file_gives_names_and_blanks_and_no_value(tmp_path: Path) -> None:
    write_csv(tmp_path / "purchases.csv", [VALUES])
    text = parco("init", tmp_path / "purchases.csv", "--unit", "customer").stdout
    assert not any(value in text for value in VALUES)
    document = parse_document(text)
    assert document["unit"] == {
        "column": "customer", "neighbours": "add-or-remove", "groups": "FILL IN", "rows": "FILL IN",
    }  # fmt: skip
    assert document["columns"] == {name: {"type": "FILL IN"} for name in ("date", "items", "dollars", "channel")}


def test_a_typed_file_gives_the_types_its_schema_states(tmp_path: Path) -> None:
    table = pa.table(
        {
            "größe": pa.array([1.5], pa.float64()),
            "select": pa.array([17], pa.int32()),
            'a"b': pa.array(["secret-text"], pa.string()),
            "d": pa.array([0], pa.date32()),
            "customer": pa.array([4711], pa.int64()),
            "blob": pa.array([b"x"], pa.binary()),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    text = parco("init", tmp_path / "t.parquet", "--unit", "customer").stdout
    document = parse_document(text)
    assert document["columns"] == {
        "größe": {"type": "decimal", "lattice": "FILL IN", "lower": "FILL IN", "upper": "FILL IN"},
        "select": {"type": "integer", "lower": "FILL IN", "upper": "FILL IN"},
        'a"b': {"type": "text", "keys": "FILL IN"},
        "d": {"type": "date"},
    }
    assert "4711" not in text
    assert "secret-text" not in text


def test_check_lists_what_is_still_blank(tmp_path: Path) -> None:
    write_csv(tmp_path / "purchases.csv", [VALUES])
    (tmp_path / "contract.toml").write_text(parco("init", tmp_path / "purchases.csv", "--unit", "customer").stdout)
    refused = parco("check", tmp_path / "contract.toml", code=2)
    for place in ("purpose", "unit.groups", "unit.rows", "budget.epsilon", "budget.delta", "columns.dollars.type"):
        assert place in refused.stderr
    parco("sign", tmp_path / "contract.toml", code=2)
    assert not (tmp_path / "purchases.ledger").exists()


def test_check_says_what_a_contract_promises_and_whether_the_file_fits(tmp_path: Path) -> None:
    (tmp_path / "contract.toml").write_text(contract_text())
    assert "No data file" in parco("check", tmp_path / "contract.toml").stdout
    write_csv(tmp_path / "purchases.csv", [VALUES])
    # The folder's name may be long: lines break anywhere.
    shown = " ".join(parco("check", tmp_path / "contract.toml").stdout.split())
    for words in ("one customer", "2 groups", "month (4 groups)", "dollars", "fit the contract"):
        assert words in shown, words
    write_csv(tmp_path / "purchases.csv", [], header=["customer", "date"])
    assert "items" in parco("check", tmp_path / "contract.toml", code=2).stderr


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("format = 1", "format = 2", "format"),
        ("rows = 2", "rows = 0", "unit.rows"),
        ("upper = 10", "upper = -1", "columns.items"),
        ('purpose = "a test"', 'purpose = "a test"\nsecret = 1', "secret: unknown key"),
    ],
)
def test_check_names_the_place_of_each_fault(tmp_path: Path, old: str, new: str, place: str) -> None:
    (tmp_path / "contract.toml").write_text(contract_text().replace(old, new))
    assert place in parco("check", tmp_path / "contract.toml", code=2).stderr


def test_a_wrong_unit_is_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "purchases.csv", [VALUES])
    refused = parco("init", tmp_path / "purchases.csv", "--unit", "person", code=2)
    assert "--unit" in refused.stderr
    assert not any(value in refused.stderr for value in VALUES)


def test_check_prices_questions_and_says_what_bounding_takes(tmp_path: Path) -> None:
    (tmp_path / "contract.toml").write_text(contract_text(budget='epsilon = "1"\ndelta = "1e-6"'))
    shown = " ".join(parco("check", tmp_path / "contract.toml").stdout.split())
    for words in (
        "would cost",
        "sum dollars by month",
        "loses weight, never protection",
        "receipt_order 8",
        "finds at most",
    ):
        assert words in shown, words


def test_the_schema_accepts_what_the_contract_accepts() -> None:
    schema = json.loads(parco("schema").stdout)
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) >= {"format", "name", "purpose", "unprotected", "data", "unit", "budget"}
    assert schema["$defs"]["Unit"]["properties"]["groups"]["minimum"] == 1
    number = schema["$defs"]["Budget"]["properties"]["default_share"]
    pattern = next(option["pattern"] for option in number["anyOf"] if "pattern" in option)
    for text in ("0.05", "1/3", "1e-6", "-2.5"):
        assert re.match(pattern, text)
    assert not re.match(pattern, "five")


def test_a_file_in_another_dialect_gets_a_contract_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("customer;x\n1;2\n")
    assert "say --delimiter" in parco("init", tmp_path / "a.csv", "--unit", "customer", code=2).stderr
    (tmp_path / "a.csv").write_bytes("customer;Größe\n1;2\n".encode("latin-1"))
    made = parco("init", tmp_path / "a.csv", "--unit", "customer", "--delimiter", ";", "--encoding", "latin-1").stdout
    assert '[data.csv]\ndelimiter = ";"\nencoding = "latin-1"\n' in made
    assert '[columns."Größe"]' in made
    (tmp_path / "b.csv").write_text("customer\tx\n1\t2\n")
    assert 'delimiter = "\\t"' in parco("init", tmp_path / "b.csv", "--unit", "customer", "--delimiter", "tab").stdout
    assert (
        "--delimiter is" in parco("init", tmp_path / "b.csv", "--unit", "customer", "--delimiter", ":", code=2).stderr
    )


def test_the_budget_says_what_is_unprotected(tmp_path: Path) -> None:
    agreed = open_shop(tmp_path)
    ledger = tmp_path / "shop.ledger"
    assert "Nothing is declared unprotected." in parco("budget", "--ledger", ledger).stdout
    text = (tmp_path / "contract.toml").read_text().replace('"none"', '["number of rows"]')
    (tmp_path / "contract.toml").write_text(text.replace('name = "shop"', 'name = "other"', 1))
    parco("sign", tmp_path / "contract.toml", "--ledger", ledger)
    shown = " ".join(parco("budget", "--ledger", ledger).stdout.split())
    assert "Declared unprotected, so that no claim covers it: number of rows." in shown
    assert parco_json("budget", "--ledger", ledger)["unprotected"] == {agreed.data.name: ["number of rows"]}
