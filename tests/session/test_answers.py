"""To whom a stored answer is served again: outside of that it is another question, charged in full (fault 84)."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.engines.duckdb import DuckDBEngine
from tests.shop import contract_text, write_csv


def signed(folder: Path, scope: str | None, *, name: str = "shop") -> parco.Contract:
    text = contract_text(name=name)
    if scope is not None:
        text = text.replace("\n[data]", f'answers = "{scope}"\n\n[data]')
    write_csv(folder / "purchases.csv")
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    contract = parco.Contract.read(folder / f"{name}.toml")
    parco.sign(contract)
    return contract


def spent(session: parco.Session) -> Fraction:
    return Fraction(session.budget()[0].spent, 10**15)


def test_answers_are_everybodys_unless_the_contract_says_otherwise(tmp_path: Path) -> None:
    plain = signed(tmp_path, None)
    written = parco.Contract.parse(contract_text().replace("\n[data]", 'answers = "ledger"\n\n[data]'))
    assert written.text == plain.text
    parco.Session(plain, actor="ana").count(cost="0.1")
    found = parco.Session(plain, actor="bob").count()
    assert (found.repeat, found.receipt.record()["answers"]) == (True, "ledger")
    assert "everybody who can open this ledger" in str(found.receipt)
    assert "sees all of them" in str(found.receipt)


def test_of_an_actors_answer_nobody_else_learns(tmp_path: Path) -> None:
    contract = signed(tmp_path, "actor")
    ana, bob = (parco.Session(contract, actor=actor) for actor in ("ana", "bob"))
    first = ana.count(cost="0.1")
    assert (ana.count().repeat, ana.plan.count().repeat) == (True, True)
    # No hint: not as free, not as a sharper answer, and the same words as before anybody asked.
    assert not bob.plan.count(cost="0.05").repeat
    with pytest.raises(parco.SharperError):
        ana.count(cost="0.2")
    second = bob.count(cost="0.2")
    assert (second.repeat, str(second.cost)) == (False, "0.2")
    assert spent(bob) == Fraction(3, 10)
    assert ana.count().value == first.value
    assert [row.question is not None and '"asker":"bob"' in row.question for row in bob.history()][1:] == [False, True]
    assert "to the one who asked" in str(second.receipt)


def test_of_a_contracts_answers_other_contracts_learn_nothing(tmp_path: Path) -> None:
    one, other = signed(tmp_path, "contract"), signed(tmp_path, None, name="other")
    ana = parco.Session(one, actor="ana")
    ana.count(cost="0.1")
    assert parco.Session(one, actor="bob").count().repeat
    stranger = parco.Session(other, actor="ana", ledger=tmp_path / "shop.ledger")
    assert not stranger.count(cost="0.2").repeat
    # What others store for everybody is not looked for either: its own answer is one of its own.
    assert str(ana.count().cost) == "0"
    assert spent(ana) == Fraction(3, 10)


def test_a_revision_keeps_what_was_stored_for_a_contract(tmp_path: Path) -> None:
    contract = signed(tmp_path, "contract")
    parco.Session(contract).count(cost="0.1")
    text = (tmp_path / "shop.toml").read_text(encoding="utf-8").replace("a test", "another test")
    revised = parco.Contract.parse(text)
    ledger = tmp_path / "shop.ledger"
    parco.revise(revised, reason="purpose", ledger=ledger)
    assert parco.Session(revised, ledger=ledger).count().repeat
    opened = parco.Contract.parse(text.replace('answers = "contract"', "").replace("another", "a third"))
    parco.revise(opened, reason="open to all", ledger=ledger)
    # What was given to its contract alone stays so.
    with parco.Session(opened, ledger=ledger, data=tmp_path / "purchases.csv") as session:
        assert not session.count(cost="0.1").repeat


@pytest.mark.parametrize(("scope", "waits"), [("ledger", True), ("actor", False)])
def test_nobody_waits_for_what_will_not_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, *, waits: bool
) -> None:
    contract = signed(tmp_path, scope)
    inside, go_on, seen = threading.Event(), threading.Event(), list[str]()
    run_all = DuckDBEngine.run_all

    def slow(self: DuckDBEngine, *given: object, **more: object) -> object:
        if not inside.is_set():
            inside.set()
            assert go_on.wait(30)
        return run_all(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(DuckDBEngine, "run_all", slow)
    ana = threading.Thread(target=lambda: parco.Session(contract, actor="ana").count(cost="0.1"))
    ana.start()
    assert inside.wait(30)

    def progress(stage: str, *_: object) -> None:
        seen.append(stage)
        if "waiting" in stage:
            go_on.set()

    bob = parco.Session(contract, actor="bob", progress=progress).count(cost="0.1")
    go_on.set()
    ana.join()
    assert (bob.repeat, any("waiting" in stage for stage in seen)) == (waits, waits)
