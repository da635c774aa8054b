"""The test vectors in the documentation are what the code makes, and the offline verifier takes them."""

from __future__ import annotations

import ast
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

from parco.audit import offline, offline_life

from . import correction_vectors
from .vectors import governing, vectors

PAGE = (Path(__file__).parents[2] / "docs" / "ledger-format.md").read_text(encoding="utf-8")


def test_the_vectors_are_what_the_code_makes() -> None:
    assert PAGE.split("## Test vectors\n\n")[1].strip() == vectors().strip()


def test_the_governing_entries_are_what_the_code_makes_and_the_offline_verifier_reads_them() -> None:
    assert governing() in PAGE
    for place, line in enumerate(governing().splitlines(), start=2):
        assert offline_life.read(line.strip().encode(), place)["seq"] == str(place)


def test_the_offline_verifier_takes_them() -> None:
    """From the page alone, as somebody who writes a verifier of their own would."""
    lines = [line[4:].encode() for line in PAGE.split("## Test vectors")[1].splitlines() if line.startswith('    {"a')]
    refined = lines.pop()
    assert len(lines) == 5
    first, last = json.loads(lines[1]), json.loads(lines[4])
    ledger = offline_life.Ledger([first, last])
    for line in lines:
        ledger.feed(line)
    ledger.end()
    inclusion, consistency = (json.loads(line) for line in re.findall(r'^    (\{"path": .*\})$', PAGE, re.MULTILINE))
    assert ledger.check_proof({**inclusion, "position": 2, "entry": lines[2].decode(), "head": last}) is not None
    assert ledger.check_proof({**consistency, "old": first, "head": last}) is None
    facts = offline_life.read(refined, 5)
    (charged,), law = json.loads(facts["charges"]), ledger.laws[int(facts["parent"])]
    whole, paid = facts.group(*offline.FACTS), ("gaussian", *law[:4])
    assert charged[1] == (offline.price("gdp", None, *whole) or 0) - (offline.price("gdp", None, *paid) or 0)
    assert [len(base64.b64decode(step)) for step in inclusion["path"]] == [32, 32]


def test_the_vectors_of_corrections_are_what_the_code_makes_and_pass() -> None:
    section = PAGE.split("## Vectors of corrections\n\n")[1].split("\n\n## ")[0]
    assert section.strip() == correction_vectors.vectors().strip()
    lines = [line[4:].encode() for line in section.splitlines() if line.startswith('    {"a')]
    assert len(lines) == 11
    ledger = offline_life.Ledger([json.loads(lines[-1])])
    for line in lines:
        ledger.feed(line)
    ledger.end()
    assert str(list(ledger.accounts.values())).replace(" ", "") in section


def named(tree: ast.AST) -> Iterator[str]:
    """The names of the checks that some code makes: where each fails, its name stands at a fixed place."""
    places = {"CheckError": 0, "need": 1, "_named": 0}
    for call in (found for found in ast.walk(tree) if isinstance(found, ast.Call)):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        arguments = call.args[places[name] : places[name] + 1] if name in places else []
        yield from (one.value for one in arguments if isinstance(one, ast.Constant) and isinstance(one.value, str))


def test_every_named_check_has_its_row_and_every_row_its_check() -> None:
    folder = Path(offline.__file__).parent
    code = [
        ast.parse((folder / name).read_text(encoding="utf-8"))
        for name in ("offline.py", "offline_life.py", "offline_prices.py", "verify.py", "releases.py", "estimates.py")
    ]
    table = PAGE.split("## Checks")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([a-z, ]+?) \|", table, re.MULTILINE)
    rows = {name.strip() for cell in cells for name in cell.split(",")} - {"check"}
    assert rows == {name for tree in code for name in named(tree)}
    assert len(rows) >= 11
