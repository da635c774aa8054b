"""Schedules before the offline verifier: each drawn step is the scheduled one, and what is set aside adds up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from parco.audit.offline import CheckError
from parco.audit.offline_life import Ledger
from parco.audit.verify import verify
from parco.ledger.entries import Charge, Entry, decode, encode
from parco.stores.keys import signature_holds
from parco.stores.records import Reserved, Started
from parco.stores.sqlite import SqliteStore
from tests.stores.build import anything, ask, scheduling, signed_file

from .build import ANSWER, HUNDREDTH, release
from .schedule_vectors import lines as lines_of
from .schedule_vectors import vectors
from .test_tampering import check, edited


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    """Three steps: one answered, one queued and given back after the schedule was left, one never drawn."""
    made = signed_file(tmp_path_factory.mktemp("scheduled") / "x.ledger")
    made.sign_schedule(scheduling(made, "a", "b", "c", cost=HUNDREDTH, scale=100))
    first = made.begin(_wanted(made, "a"), serves=anything)
    assert isinstance(first, Started)
    made.settle(first.request, answer=ANSWER)
    opened = _queued(made, "b")
    made.void(opened)
    kept = _queued(made, "b")
    made.leave_schedule("weekly", actor="steward", reason="over")
    made.void(kept)
    release(made, "outside")
    return made


def _wanted(store: SqliteStore, question: str) -> Any:
    return ask(store, question=question, cost=HUNDREDTH, scale=100, schedule=2)


def _queued(store: SqliteStore, question: str) -> int:
    outcome = store.reserve(_wanted(store, question), serves=anything, lease_seconds=3600)
    assert isinstance(outcome, Reserved)
    return outcome.request


@pytest.fixture(scope="module")
def lines(store: SqliteStore) -> list[bytes]:
    return list(store.export())


def test_it_passes(store: SqliteStore, lines: list[bytes]) -> None:
    check(lines)
    verify(store, strict=True)


def test_every_edit_is_found(lines: list[bytes]) -> None:
    head = json.loads(lines[-1])
    for bad in edited(lines):
        with pytest.raises(CheckError):
            check(bad, [head])


class _Unsigned(Ledger):
    """Entries alone, whoever signed them: what is left are the checks of what they say."""

    verify = staticmethod(signature_holds)


def told(entries: list[Entry]) -> tuple[str, int] | None:
    """The check that fails, and the entry."""
    ledger = _Unsigned()
    try:
        for entry in entries:
            ledger.waiting.clear()
            ledger.feed(encode(entry))
    except CheckError as error:
        return error.args[0], error.args[1]
    return None


BENT: dict[str, tuple[int, Callable[[Any], Entry], tuple[str, int]]] = {
    "another step": (3, lambda entry: replace(entry, step=2), ("scheduled", 3)),
    "no step": (3, lambda entry: replace(entry, step=9), ("scheduled", 3)),
    "another schedule": (3, lambda entry: replace(entry, schedule=1), ("scheduled", 3)),
    "other cells": (3, lambda entry: replace(entry, cells=13), ("scheduled", 3)),
    "more noise": (3, lambda entry: replace(entry, mechanism=replace(entry.mechanism, scale=101)), ("scheduled", 3)),
    "less charged": (3, lambda entry: replace(entry, charges=(Charge(1, 1),)), ("scheduled", 3)),
    "a step drawn twice": (6, lambda entry: replace(entry, question="Q", step=1), ("scheduled", 6)),
    "a schedule overpriced": (
        2,
        lambda entry: replace(entry, steps=(replace(entry.steps[0], charges=(Charge(1, HUNDREDTH + 1),)),)),
        ("priced", 2),
    ),
    "a schedule on no account": (
        2,
        lambda entry: replace(entry, steps=(replace(entry.steps[0], charges=(Charge(2, HUNDREDTH),)),)),
        ("lineage", 2),
    ),
    "left twice": (9, lambda entry: replace(entry, schedule=3), ("scheduled", 9)),
}


@pytest.mark.parametrize("what", BENT)
def test_what_is_signed_and_false_is_named(store: SqliteStore, what: str) -> None:
    """As if whoever holds the key had written it so."""
    entries = [decode(body) for body in store.entries()]
    assert told(entries) is None
    place, bend, expected = BENT[what]
    bent: Any = bend(entries[place - 1])
    if getattr(bent, "question", "") == "Q":
        bent = replace(bent, question=entries[2].question)  # type: ignore[union-attr]
    entries[place - 1] = bent
    assert told(entries) == expected


def test_what_a_step_was_priced_too_low_is_owed_once_it_is_drawn(store: SqliteStore) -> None:
    entries: list[Any] = [decode(body) for body in store.entries()][:3]
    low = (Charge(1, HUNDREDTH - 1),)
    entries[1] = replace(entries[1], steps=(replace(entries[1].steps[0], charges=low),))
    entries[2] = replace(entries[2], charges=low)
    ledger = _Unsigned()
    for entry in entries[:2]:
        ledger.feed(encode(entry))
    assert ledger.owed == {}
    ledger.feed(encode(entries[2]))
    assert ledger.owed == {(3, 1): HUNDREDTH}


def test_a_schedule_that_does_not_fit_is_named(store: SqliteStore) -> None:
    entries: list[Any] = [decode(body) for body in store.entries()]
    steps = entries[1].steps[0]
    entries[1] = replace(entries[1], steps=(replace(steps, questions=steps.questions * 40),))
    assert told(entries) == ("capped", 2)


def test_an_open_step_is_not_drawn_once_the_schedule_was_left(store: SqliteStore, tmp_path: Path) -> None:
    del tmp_path
    entries: list[Any] = [decode(body) for body in store.entries()]
    position = next(place for place, entry in enumerate(entries) if type(entry).__name__ == "Leave")
    late = replace(entries[2], seq=position + 2, step=3, key="0" * 64, question=entries[1].steps[0].questions[2])
    assert told([*entries[: position + 1], late]) == ("scheduled", position + 2)
    early = replace(late, seq=position + 1)
    assert told([*entries[:position], early]) is None


def test_the_lines_in_the_documentation_go_on_where_its_vectors_end() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ledger-format.md").read_text(encoding="utf-8")
    shown, before = page.split("## A schedule in lines")[1].split("## Test vectors")
    first = [line[4:].encode() for line in before.splitlines() if line.startswith('    {"a')][:5]
    previous = sha256(first[-1]).hexdigest()
    assert vectors(previous) in shown
    ledger = _Unsigned()
    for line in [*first, *lines_of(previous)]:
        ledger.feed(line)
    ledger.end()
    assert ledger.schedules[4][2] == 6
    assert [request for _, request in ledger.steps.values()] == [5, None]
