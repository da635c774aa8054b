"""C25: a seed that two draws share shows the difference of the data. There is none; a test mode says so for ever."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import parco
from parco.cli import show
from parco.stores.sqlite import SqliteStore
from parco.testing import TapeSession
from tests.shop import open_shop

from .children import ROOT, answers_of

TAPE = hashlib.shake_256(b"a tape for tests").digest(4096)

# Costs are tiny, so the noise is spread over billions of integers: two equal draws are no accident.
COST = "1e-9"

SEEDED = """
import json, os, random, sys
from pathlib import Path
import numpy
import parco
from tests.shop import open_shop

for name in ("SEED", "PARCO_SEED", "NUMPY_SEED", "RANDOM_SEED"):
    assert os.environ[name] == "42"
rows = [[str(person), "2024-01-05", "1", "1", "web"] for person in range(100)]
for number, purchases in enumerate((rows, rows[:93])):
    contract = open_shop(Path(sys.argv[1]) / str(number), purchases=purchases)
    random.seed(42)
    numpy.random.seed(42)
    numpy.random.default_rng(42)
    release = parco.Session(contract).count(by="month", cost="1e-9")
    print(json.dumps(list(release.value.values)))
"""

FORKED = """
import json, os, sys
from pathlib import Path
import parco
from tests.shop import open_shop

session = parco.Session(open_shop(Path(sys.argv[1])))
if sys.argv[2] == "warm":
    print(json.dumps(list(session.count(by="month", cost="1e-9", fresh=True).value.values)))
for _ in range(2):
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        release = session.count(by="month", cost="1e-9", fresh=True)
        os.write(there, json.dumps(list(release.value.values)).encode())
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as stream:
        print(stream.read().decode())
    os.waitpid(child, 0)
"""


def all_differ(answers: list[list[int]]) -> bool:
    """No cell of any answer equals one of another, and no two differ by the same amount everywhere."""
    cells = [cell for answer in answers for cell in answer]
    gaps = [
        {a - b for a, b in zip(one, other, strict=True)} for one in answers for other in answers if one is not other
    ]
    return len(set(cells)) == len(cells) and all(len(gap) > 1 for gap in gaps)


def test_seeds_of_the_process_and_the_environment_have_no_effect(tmp_path: Path) -> None:
    seeds = dict.fromkeys(("SEED", "PARCO_SEED", "NUMPY_SEED", "RANDOM_SEED"), "42")
    answers = [
        answer
        for number in range(2)
        for answer in answers_of(SEEDED, tmp_path / str(number), PYTHONHASHSEED="0", **seeds)
    ]
    assert len(answers) == 4
    # Counts 100 and 93 with one seed would differ by 7; here nothing repeats, within a process or between two.
    assert all_differ(answers)


def test_a_seed_by_argument_is_refused_or_without_effect(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    made: Any = parco.Session
    for name in ("seed", "random_state", "rng", "tape", "bits"):
        with pytest.raises(TypeError):
            made(contract, **{name: 42})
    session, answers = made(contract), []
    for _ in range(3):
        with contextlib.suppress(TypeError, parco.QuestionError):
            answers.append(list(session.count(by="month", cost=COST, fresh=True, seed=42).value.values))
    assert all_differ(answers)


@pytest.mark.parametrize("before", ["cold", "warm"])
def test_forked_children_draw_for_themselves(tmp_path: Path, before: str) -> None:
    answers = answers_of(FORKED, tmp_path, before)
    assert len(answers) == (3 if before == "warm" else 2)
    assert all_differ(answers)


def test_the_draws_of_one_session_differ_between_cells_and_calls(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path))
    asked = [session.count(by="month", cost=COST, fresh=True) for _ in range(4)]
    assert all_differ([list(release.value.values) for release in asked])


# The test mode


def tape_release(session: TapeSession) -> parco.Release[parco.Answer]:
    return session.count(by="month", cost="0.1", fresh=True)


def test_a_tape_makes_draws_known_beforehand_that_differ_between_cells_and_calls(tmp_path: Path) -> None:
    answers = []
    for folder in ("a", "b"):
        session = TapeSession(open_shop(tmp_path / folder), tape=TAPE)
        answers.append([list(session.count(by="month", cost=COST, fresh=True).value.values) for _ in range(3)])
    assert answers[0] == answers[1]
    assert all_differ(answers[0])
    assert answers[0] != [
        list(TapeSession(open_shop(tmp_path / "c"), tape=TAPE[::-1]).count(by="month", cost=COST).value.values)
    ]


def test_what_a_tape_released_says_so_for_ever(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    release = tape_release(TapeSession(contract, tape=TAPE))
    assert not release.receipt.private
    assert release.receipt.record()["private"] is False
    assert release.record()["receipt"] == release.receipt.record()
    assert "NOT PRIVATE" in str(release.receipt)
    assert "NOT PRIVATE" in str(release.map(len).receipt)

    store = SqliteStore.open(tmp_path / "shop.ledger")
    marked = [record["private"] for record in map(json.loads, store.entries()) if "private" in record]
    assert marked == [False]
    assert [row.private for row in store.history()] == [True, False]
    records = show.history_records(store.history(), {})
    assert [record["private"] for record in records] == [True, False]
    page = Console(file=io.StringIO(), width=200)
    page.print(show.history_table(records))
    assert isinstance(page.file, io.StringIO)
    assert page.file.getvalue().count("NOT PRIVATE") == 1

    # A repeat of it is no better.
    again = TapeSession(contract, tape=TAPE).count(by="month", cost="0.1")
    assert (again.repeat, again.receipt.private) == (True, False)


def test_an_ordinary_release_says_that_it_is_private(tmp_path: Path) -> None:
    release = parco.Session(open_shop(tmp_path)).count(by="month", cost="0.1")
    assert release.receipt.private
    assert release.receipt.record()["private"] is True
    assert "NOT PRIVATE" not in str(release.receipt)
    assert json.loads(json.dumps(release.record()))["receipt"]["private"] is True


def test_releases_from_a_tape_need_a_ledger_of_their_own(tmp_path: Path) -> None:
    """With one known draw no claim on the account holds, so ordinary releases refuse to stand beside it."""
    contract = open_shop(tmp_path)
    tape_release(TapeSession(contract, tape=TAPE))
    session = parco.Session(contract)
    assert not session.plan.count(by="month", cost="0.1").repeat
    with pytest.raises(parco.RequestError, match="not private"):
        session.count(by="month", cost="0.1")
    for fresh in (False, True):
        with pytest.raises(parco.RequestError, match="not private"):
            session.count_units(cost="0.1", fresh=fresh)
    with pytest.raises(parco.RequestError, match="not private"):
        session.count(by="month", cost="0.1", key="k", fresh=True)
    other = open_shop(tmp_path / "private")
    parco.Session(other).count(cost="0.1")
    with pytest.raises(parco.RequestError, match="a ledger of their own"):
        tape_release(TapeSession(other, tape=TAPE))


def test_a_tape_that_ends_stops_the_release_and_is_not_wound_back(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    with pytest.raises(parco.ForfeitedError):
        TapeSession(contract, tape=TAPE[:8]).count(by="month", cost="0.1")
    assert [row.state for row in SqliteStore.open(tmp_path / "shop.ledger").history()] == ["open", "forfeited"]


def test_keys_of_noise_come_from_the_kernel_in_one_place_and_from_no_setting() -> None:
    source = ROOT / "src" / "parco"
    places = {path.relative_to(source): set(_names_in(path)) for path in source.rglob("*.py")}
    assert [str(path) for path, names in places.items() if "urandom" in names] == ["noise/bits.py"]
    seeded = {"random", "default_rng", "RandomState", "Philox"}
    assert {str(path) for path, names in places.items() if seeded & names} == set()
    settings = {"environ", "getenv", "seed"}
    drawing = {path: names for path, names in places.items() if path.parts[0] in ("noise", "mechanisms")}
    assert {str(path) for path, names in drawing.items() if settings & names} == set()
    assert len(drawing) > 10


def _names_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        yield from _names(node)


def _names(node: ast.AST) -> Iterator[str]:
    """All that a node imports, calls by name or takes from something."""
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (part for alias in names for part in alias.name.split("."))
            yield from (getattr(node, "module", None) or "").split(".")
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
