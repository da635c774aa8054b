"""Releases on a ledger in PostgreSQL: the same door as a file's, in Python and on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import parco
from parco.cli.main import app
from parco.session.session import Session
from parco.stores.address import open_ledger
from tests.shop import contract_text, write_csv

if TYPE_CHECKING:
    from tests.postgres import Server


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    name = postgres.ledger()
    yield postgres.url(name)
    postgres.free(name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_csv(tmp_path / "purchases.csv")
    (tmp_path / "contract.toml").write_text(contract_text(), encoding="utf-8")
    return tmp_path / "contract.toml"


def test_a_release_a_repeat_a_revision_and_a_cap(path: Path, url: str) -> None:
    contract = parco.Contract.read(path)
    parco.sign(contract, ledger=url)
    with Session(contract, ledger=url, actor="ana") as session:
        first = session.count(by="month", cost="0.1")
        again = session.count(by="month", cost="0.1")
        assert (again.value, again.repeat, again.cost.units) == (first.value, True, 0)
        assert str(first.remaining) == "9/10"
    path.write_text(contract_text(budget='measure = "pure"\nepsilon = "2"'), encoding="utf-8")
    larger = parco.Contract.read(path)
    parco.move_cap(larger, ledger=url, reason="the board")
    with pytest.raises(parco.ContractChangedError):
        Session(contract, ledger=url)
    session = Session(larger, ledger=url)
    assert session.count(by="month", cost="0.1").value == first.value
    assert [row.state for row in session.history()] == ["open", "settled", "cap", "revise"]
    store = open_ledger(url)
    assert store.repeats() == {2: 2}
    store.verify()


def test_the_command_line_takes_the_url(path: Path, url: str) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, "--ledger", url], catch_exceptions=False)
        assert done.exit_code == 0
        return done.output

    assert "that database" in run("sign", str(path))
    assert url.split("@")[1] not in run("sign", str(path))
    released = json.loads(run("release", str(path), "count", "--cost", "0.25", "--json"))
    assert (released["cost"], released["remaining"]) == ("0.25", "0.75")
    assert json.loads(run("budget", "--json"))["accounts"][0]["spent"] == "0.25"
    assert [row["state"] for row in json.loads(run("history", "--json"))["history"]] == ["open", "settled"]
    assert run("ledger", "tidy") == "0 ended\n"
    with pytest.raises(parco.RequestError, match="a log of its own"):
        run("ledger", "journal", "wal")


def test_the_administrators_sql_is_printed() -> None:
    done = CliRunner().invoke(app, ["ledger", "sql", "--role", "analyst", "--reader", "auditor"])
    assert done.exit_code == 0
    assert done.output.startswith("-- A parco ledger")
    for words in ("GRANT SELECT, INSERT ON", '"analyst"', '"auditor"', "CREATE TABLE entries", "COMMIT;"):
        assert words in done.output
    assert "DELETE ON entries TO" not in done.output


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith(("psycopg", "parco.stores.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(parco.RequestError, match=r"parco\[postgres\]"):
        open_ledger("postgresql://role@host/database")
