"""The files: what the tables hold, what the pictures hold, the same bytes each time, and what is refused."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from parco.errors import RequestError, StorageError
from parco.measure import exact_text, significant_text
from parco.reports import example, figures
from parco.reports.figures import write_figures
from tests.reports import svg

MOST = 12
NAMES = ["witness.csv", "figure-1.csv", "figure-1.svg", "figure-2.csv", "figure-2.svg"]
WRITE = f"""
import pathlib, sys
from parco.reports.figures import write_figures
write_figures(pathlib.Path(sys.argv[1]), most={MOST})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("figures") / "new" / "folder"
    written = write_figures(made, most=MOST)
    assert [path.relative_to(made).as_posix() for path in written.files] == NAMES
    assert len(written.witnesses) == 4
    return made


def rows(path: Path) -> list[dict[str, str]]:
    text = path.read_text(encoding="utf-8")
    assert "\r" not in text
    return list(csv.DictReader(text.splitlines()))


def test_the_tables_hold_every_row_with_bounds_rounded_up(folder: Path) -> None:
    expected = example.composition(MOST)
    found = rows(folder / "figure-1.csv")
    assert len(found) == len(expected) == 5 * MOST
    for row, bounds in zip(found, expected, strict=True):
        assert (row["releases"], row["scale"]) == (str(bounds.releases), exact_text(bounds.scale))
        for name, truth in (("epsilon_valid", bounds.valid), ("epsilon_tight", bounds.tight)):
            assert truth <= Fraction(row[name]) < truth * (1 + Fraction(1, 10**11))


def test_the_averages_stand_beside_their_cost(folder: Path) -> None:
    found = rows(folder / "figure-2.csv")
    assert [int(row["answers"]) for row in found] == list(range(1, MOST + 1))
    for row in found:
        answers = int(row["answers"])
        assert float(row["standard_deviation"]) ** 2 == pytest.approx(64 / answers, rel=1e-11)
        assert Fraction(row["mu_squared"]) == Fraction(answers, 64)
        assert row["epsilon_tight"] == significant_text(example.bounds(answers, Fraction(8)).tight, 12, up=True)


def test_the_pictures_need_nothing_from_outside(folder: Path) -> None:
    for name in ("figure-1.svg", "figure-2.svg"):
        text = (folder / name).read_text(encoding="utf-8")
        assert svg.fetched(text) == []
        assert svg.fetched(text.replace("</svg>", '<image href="x"/></svg>')) != []


def test_the_pictures_name_their_curves(folder: Path) -> None:
    first, second = (svg.words((folder / f"figure-{number}.svg").read_text(encoding="utf-8")) for number in (1, 2))
    for words in (
        ["valid: closed form", "tight: exact Gaussian profile"],
        [f"σ = {scale}" for scale in (2, 4, 8, 16, 32)],
    ):
        assert [word for word in first if word in words] == words
    assert {"ε, valid", "ε, tight", "μ², the charge in gdp"} <= set(second)


def test_curves_stay_in_their_panel_and_valid_lies_above_tight(folder: Path) -> None:
    # Down is up on a screen. Ten curves and five bands of the first picture: bands first, then valid, then tight.
    curves = svg.curves((folder / "figure-1.svg").read_text(encoding="utf-8"))
    assert len(curves) == 15
    for valid, tight in zip(curves[5:10], curves[10:], strict=True):
        assert valid[::2] == tight[::2]
        assert all(0 <= above < under <= 430 for above, under in zip(valid[1::2], tight[1::2], strict=True))


def test_the_same_bytes_in_another_process(folder: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", WRITE, str(tmp_path)], env=environment, check=True)
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_progress_ends_with_the_last_row(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    write_figures(tmp_path, most=1, progress=lambda *one: told.append(one))
    assert told == [*(("exact epsilons", done, 5) for done in range(1, 6)), ("drawing", 0, 0)]


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_without_the_extra_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(RequestError, match=r'pip install "parco\[figures\]"'):
        write_figures(tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_a_folder_that_cannot_be_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("here", encoding="utf-8")
    monkeypatch.setattr(example, "composition", lambda *_, **__: pytest.fail("computed for nothing"))
    with pytest.raises(StorageError, match="--out"):
        write_figures(tmp_path / "file")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StorageError, match="--out"):
        write_figures(tmp_path)


def test_a_file_that_cannot_be_written_is_the_machines_fault(tmp_path: Path) -> None:
    (tmp_path / "witness.csv").mkdir()
    with pytest.raises(StorageError, match=r"witness\.csv"):
        write_figures(tmp_path, most=1)
