"""`parco figures`: the whole worked example, once, as a reader would run it."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from tests.cli.run import parco
from tests.reports import oracle, svg

PICTURES = Path(__file__).parents[2] / "docs" / "figures"
NARROW = "import os\nos.environ['COLUMNS'] = '80'"
PIXEL = 0.5


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("figures")
    return folder, parco("figures", "--out", folder, before=NARROW).stdout


def test_the_table_shows_all_digits_on_a_narrow_terminal(run: tuple[Path, str]) -> None:
    folder, shown = run
    lines = [line.split() for line in shown.splitlines()]
    for row, (closed_form, dense) in zip(oracle.WITNESS, oracle.PRINTED, strict=True):
        (found,) = [line for line in lines if line[:4] == [str(row["releases"]), str(row["scale"]), closed_form, dense]]
        assert found[-1] == "%"
    assert max(map(len, shown.split("Written:", maxsplit=1)[0].splitlines())) <= 80
    assert "…" not in shown
    for name in ("witness.csv", "figure-1.csv", "figure-1.svg", "figure-2.csv", "figure-2.svg"):
        assert str(folder / name) in shown
        assert (folder / name).stat().st_size > 0


def test_the_first_table_is_whole_and_above_the_oracle(run: tuple[Path, str]) -> None:
    rows = list(csv.DictReader((run[0] / "figure-1.csv").read_text(encoding="utf-8").splitlines()))
    found = {
        (int(row["releases"]), int(row["scale"])): (Fraction(row["epsilon_valid"]), Fraction(row["epsilon_tight"]))
        for row in rows
    }
    assert sorted(found) == [(releases, scale) for releases in range(1, 1001) for scale in (2, 4, 8, 16, 32)]
    for place, truths in oracle.EPSILONS.items():
        for bound, truth in zip(found[place], truths, strict=True):
            assert oracle.is_just_above(bound, truth, slack=Fraction(1, 10**11))
    for scale in (2, 4, 8, 16, 32):
        claims = [found[releases, scale] for releases in range(1, 1001)]
        assert claims == sorted(claims)
        assert all(tight < valid for valid, tight in claims)


def test_the_second_table_has_the_costs_of_the_first(run: tuple[Path, str]) -> None:
    first, second = (
        list(csv.DictReader((run[0] / f"figure-{number}.csv").read_text(encoding="utf-8").splitlines()))
        for number in (1, 2)
    )
    costs = [(row["releases"], row["epsilon_valid"], row["epsilon_tight"]) for row in first if row["scale"] == "8"]
    assert [(row["answers"], row["epsilon_valid"], row["epsilon_tight"]) for row in second] == costs
    assert (second[99]["standard_deviation"], second[999]["mu_squared"]) == ("0.8", "15.625")


@pytest.mark.parametrize("name", ["figure-1.svg", "figure-2.svg"])
def test_the_pictures_of_the_docs_are_these(run: tuple[Path, str], name: str) -> None:
    # Words and curves rather than bytes: another version of the renderer may write them differently.
    drawn, kept = ((folder / name).read_text(encoding="utf-8") for folder in (run[0], PICTURES))
    assert svg.words(drawn) == svg.words(kept)
    for new, old in zip(svg.curves(drawn), svg.curves(kept), strict=True):
        assert new == pytest.approx(old, abs=PIXEL)


def test_help_has_an_example_and_the_extra() -> None:
    shown = parco("figures", "--help", before=NARROW).stdout
    assert "parco figures --out" in shown
    assert 'pip install "parco[figures]"' in " ".join(shown.split())


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    before = "import importlib.util\nimportlib.util.find_spec = lambda name: None"
    refused = parco("figures", "--out", tmp_path / "figures", before=before, code=2)
    assert 'pip install "parco[figures]"' in refused.stderr
