"""The worked example as files: three tables and two pictures."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

from parco.errors import RequestError, StorageError
from parco.measure import exact_text, significant_text
from parco.reports import example
from parco.reports.example import Average, Bounds, Witness

__all__ = ["Figures", "write_figures"]

_DIGITS = 12


@dataclass(frozen=True)
class Figures:
    """What was written, in this order, and the witness table that is one of it."""

    witnesses: list[Witness]
    files: list[Path]


def write_figures(
    folder: Path, *, most: int = example.RELEASES_MAX, progress: Callable[[str, int, int], None] | None = None
) -> Figures:
    """For every folder that can be written, writes the worked example there, or raises RequestError or StorageError.

    `witness.csv`, and `figure-1` and `figure-2` as CSV and SVG, for 1 to `most` releases; files of these names are
    replaced. Everything is computed before anything is written; the same versions write the same bytes. RequestError
    where the extra `figures` is not installed, StorageError where the disk refuses. `progress`: stage, done, total.
    """
    report = progress if progress is not None else _silent
    missing = [name for name in ("altair", "vl_convert") if find_spec(name) is None]
    if missing:
        raise RequestError('figures are drawn by altair and vl-convert: pip install "parco[figures]"')
    # altair is imported here and nowhere else: only those who draw need it.
    from parco.reports import charts

    _make(folder)
    witnesses = example.witnesses()
    rows = example.composition(most, progress=lambda done, total: report("exact epsilons", done, total))
    averages = example.averages([row for row in rows if row.scale == example.AVERAGED_SCALE])
    report("drawing", 0, 0)
    texts = {
        "witness.csv": _witness_csv(witnesses),
        "figure-1.csv": _composition_csv(rows),
        "figure-1.svg": charts.composition_svg(rows),
        "figure-2.csv": _averages_csv(averages),
        "figure-2.svg": charts.averages_svg(averages),
    }
    return Figures(witnesses, [_write(folder / name, text) for name, text in texts.items()])


def _witness_csv(witnesses: Iterable[Witness]) -> str:
    """The closed form and the search as doubles, as the published table prints them; the exact epsilon rounded up."""
    names = ("releases", "scale", "closed_form", "dense_search", "exact")
    return _csv(
        names,
        (
            (
                str(row.bounds.releases),
                exact_text(row.bounds.scale),
                repr(float(row.bounds.valid)),
                repr(row.dense_search),
                _up(row.bounds.tight, 16),
            )
            for row in witnesses
        ),
    )


def _composition_csv(rows: Iterable[Bounds]) -> str:
    names = ("releases", "scale", "epsilon_valid", "epsilon_tight")
    return _csv(names, ((str(row.releases), exact_text(row.scale), *_epsilons(row)) for row in rows))


def _averages_csv(rows: Iterable[Average]) -> str:
    names = ("answers", "scale", "standard_deviation", "mu_squared", "epsilon_valid", "epsilon_tight")
    return _csv(
        names,
        (
            (
                str(row.bounds.releases),
                exact_text(row.bounds.scale),
                f"{row.standard_deviation:.{_DIGITS}g}",
                exact_text(row.bounds.mu_squared),
                *_epsilons(row.bounds),
            )
            for row in rows
        ),
    )


def _epsilons(row: Bounds) -> tuple[str, str]:
    return _up(row.valid), _up(row.tight)


def _up(value: Fraction, digits: int = _DIGITS) -> str:
    return significant_text(value, digits, up=True)


def _csv(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()


def _make(folder: Path) -> None:
    """The folder, before the long work: what is refused is refused at once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise StorageError(f"the folder {folder} cannot be made: choose another with --out") from None
    if not os.access(folder, os.W_OK):
        raise StorageError(f"the folder {folder} cannot be written to: choose another with --out")


def _write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError:
        raise StorageError(f"{path} cannot be written: choose another folder with --out") from None
    return path


def _silent(stage: str, done: int, total: int) -> None:
    """Tells nobody."""
