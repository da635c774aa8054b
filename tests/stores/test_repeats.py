"""Repeats are counted beside the ledger and never stand in the way."""

from __future__ import annotations

from pathlib import Path

from parco.stores import repeats


def test_repeats_are_counted(tmp_path: Path) -> None:
    ledger = tmp_path / "x.ledger"
    assert repeats.count(ledger) == {}
    for request in (2, 5, 2):
        repeats.record(ledger, request)
    assert repeats.count(ledger) == {2: 2, 5: 1}
    assert [file.name for file in tmp_path.iterdir()] == ["x.ledger.repeats"]


def test_faults_are_passed_over(tmp_path: Path) -> None:
    ledger = tmp_path / "x.ledger"
    repeats.repeats_path(ledger).mkdir()
    repeats.record(ledger, 2)
    assert repeats.count(ledger) == {}
    other = tmp_path / "y.ledger"
    repeats.repeats_path(other).write_bytes(b"2\nrubbish\n\n2\n3")
    assert repeats.count(other) == {2: 2, 3: 1}
    repeats.repeats_path(other).write_bytes(b"\xff\n2\n")
    assert repeats.count(other) == {}
