"""The bench of the accounting: its tables say what the records say, and its own truths are right. Nothing is timed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"
DIGITS = 1e-10


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from _module("accounting_report", monkeypatch)


@pytest.fixture
def truth(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from _module("truth", monkeypatch)


def _module(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield import_module(name)
    sys.modules.pop(name)


def _tables(report: ModuleType) -> list[str]:
    question = report.Question("q", "one question", "epsilon", {}, "a note")
    answers = [
        report.Answer("parco", "composition", 2.000001, cpu=0.002, wall=0.004, turns=3),
        report.Answer("quick", "PLD", 1.99, cpu=0.001, wall=0.001, turns=3),
        report.Answer("tight", "PLD", 2.001, cpu=0.5, wall=0.6, turns=1),
        report.Answer("loose", "RDP", 2.5, cpu=0.01, wall=0.01, turns=3),
        report.Answer("broken", "PRV", float("nan"), cpu=0.01, wall=0.01, turns=3),
        report.Answer("absent", "", refused="cannot be | installed"),
    ]
    text: str = report.markdown([(question, (2.0, 2.0), answers)], "a machine", ["tight 1.0"])
    return text.splitlines()


def test_a_row_says_excess_time_and_ratio(report: ModuleType) -> None:
    rows = _tables(report)
    assert "| parco composition | 2.000001 | 5.0e-07 | 2 ms | 4 ms | 1 | 3 |" in rows
    assert "| tight PLD | 2.001 | 5.0e-04 | 500 ms | 600 ms | 250 | 1 |" in rows
    assert "| absent | none: cannot be / installed | | | | | |" in rows
    assert "a machine; tight 1.0." in rows


def test_what_is_below_the_truth_is_called_unsafe_and_never_the_fastest(report: ModuleType) -> None:
    rows = _tables(report)
    assert "| quick PLD | 1.99 | **5.0e-03 below: unsafe** | 1 ms | 1 ms | 0.5 | 3 |" in rows
    [broken] = [row for row in rows if row.startswith("| broken")]
    assert "unsafe" in broken
    assert "| one question | 2 ms | tight PLD, 500 ms | 250 |" in rows


def test_without_an_answer_of_ours_there_is_no_ratio(report: ModuleType) -> None:
    question = report.Question("q", "one question", "epsilon", {})
    answers = [report.Answer("parco", "composition", refused="why"), report.Answer("tight", "PLD", 2.0, cpu=0.5)]
    rows = report.markdown([(question, (2.0, 2.0), answers)], "a machine", []).splitlines()
    assert "| one question | none | tight PLD, 500 ms |  |" in rows


def test_a_section_takes_the_place_of_the_one_before(report: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "bench.md"
    report.write_section(page, "Accounting", "first")
    report.write_section(page, "Noise", "other")
    report.write_section(page, "Accounting", "second")
    assert page.read_text(encoding="utf-8") == "# Bench\n\n## Accounting\n\nsecond\n\n## Noise\n\nother\n"


@pytest.mark.parametrize(
    ("scale", "steps", "known"),
    [("1", 10_000, 6.907384495), ("0.8", 100_000, 46.695415403), ("1", 100_000, 27.67259769)],
)
def test_truths_of_sampled_gaussians_agree_with_known_ones(
    truth: ModuleType, scale: str, steps: int, known: float
) -> None:
    assert truth.epsilon((truth.Release(scale, steps, "0.01"),), "1e-6") == pytest.approx(known, rel=DIGITS)


def test_truths_do_not_move_when_the_steps_are_halved(truth: ModuleType) -> None:
    releases = (truth.Release("1", 10_000, "0.01"), truth.Release("20"))
    assert truth.epsilon(releases, "1e-6") == pytest.approx(truth.epsilon(releases, "1e-6", check=True), rel=1e-14)


def test_the_noise_found_reaches_the_target(truth: ModuleType) -> None:
    scale = truth.noise(truth.Release("1", 100_000, "0.001"), "8", "1e-5", (0.55, 0.57))
    assert truth.epsilon((truth.Release(repr(scale), 100_000, "0.001"),), "1e-5") == pytest.approx(8, rel=1e-12)


def test_a_million_gaussians_agree_with_the_closed_form(truth: ModuleType) -> None:
    assert truth.epsilon((truth.Release("8", 10**6),), "1e-6") == pytest.approx(8405.696602949719, rel=1e-14)
