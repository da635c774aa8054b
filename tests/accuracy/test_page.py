"""docs/accuracy-first.md: its examples run, and the tables that no chance decides are the ones computed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import parco
from tests.shop import COLUMNS, open_shop

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "accuracy-first.md").read_text(encoding="utf-8")
GDP = 'measure = "gdp"\nmu = "2"\nreceipt_order = 8\ndelta = "1e-6"'


@pytest.fixture
def bench() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "bench"))
    yield import_module("accuracy_first")
    sys.path.remove(str(ROOT / "bench"))
    for name in ("accuracy_first", "accuracy_paths", "accounting_report", "machine"):
        sys.modules.pop(name, None)


def test_the_boundaries_are_those_computed(bench: ModuleType) -> None:
    assert bench.boundaries_table() in PAGE


def test_the_linear_boundary_is_the_probabilistic_bound_at_its_order(bench: ModuleType) -> None:
    rows = [line.strip("| ").split(" | ") for line in bench.boundaries_table().splitlines() if re.match(r"\| \d", line)]
    assert len(rows) == 5
    for _, hockey, probabilistic, line, _, fixed in rows:
        assert probabilistic == line
        assert float(fixed) < float(hockey) < float(probabilistic)


def test_the_figure_is_there_and_told_in_words(bench: ModuleType) -> None:
    assert re.findall(r"\]\((figures/[^)]+)\)", PAGE) == ["figures/accuracy-first.svg"]
    assert (ROOT / "docs" / "figures" / "accuracy-first.svg").exists()
    assert bench.FIGURE in PAGE


def test_a_few_runs_make_the_tables(bench: ModuleType) -> None:
    """The numbers themselves are chance; the rows are those of the page."""
    found = {way: [way.run(truth) for truth in bench.TRUTHS] for way in bench.ways(20)}
    names = [line.split(" | ")[0] for line in bench.ways_table(found).splitlines()]
    measured = PAGE.partition("## Measured")[2].partition("Median runs")[0]
    assert names == [line.split(" | ")[0] for line in measured.splitlines() if line.startswith("|")]
    assert len(bench.claims_table(found).splitlines()) == 4 + len(bench.SHOWN)


def test_the_examples_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(str(one), f"2024-0{one % 4 + 1}-01", "3", "30", "web") for one in range(800)]
    session = parco.Session(open_shop(tmp_path / "whole", purchases=rows, budget=GDP))
    first, whole, second, third = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(first, {"parco": parco, "session": session})  # noqa: S102 - our own page
    assert "of at most" in capsys.readouterr().out
    exec(whole, {"parco": parco, "session": session})  # noqa: S102 - our own page
    shown = capsys.readouterr().out
    for words in (
        "(realised: what the steps that ran cost)",
        "before the data were read; what the steps did not need is free again",
        "it adds up over releases, wherever they stopped, and becomes an epsilon at a delta",
    ):
        assert words in PAGE
        assert words in shown
    parts = COLUMNS + '[parts]\nfit = "0.8"\nvalidation = "0.2"\n'
    divided = parco.Session(open_shop(tmp_path / "parts", purchases=rows, budget=GDP, columns=parts))
    model = SimpleNamespace(condition="items = 3")
    for example in (second, third):
        exec(example, {"parco": parco, "session": divided, "fit": lambda _: model})  # noqa: S102 - our own page
        assert "not fitted to, and passed" in capsys.readouterr().out
