"""What `parco figures` prints: the witness table, how to read it, and where the files are."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from parco.cli.show import plain
from parco.measure import exact_text, significant_text
from parco.reports.example import Witness
from parco.reports.figures import Figures

__all__ = ["show_figures"]

_NOTES = (
    "k Gaussian releases fixed in advance, each with noise of standard deviation σ; sensitivity 1, delta 1e-6.",
    "Valid: epsilon a + 2 sqrt(a log(1/delta)) with a = k/(2 σ²); it holds, and is larger than it need be.",
    "Dense search: the least bound over 200,001 orders, in doubles; no order does better than the closed form.",
    "Tight: the exact Gaussian profile, rounded up; no smaller epsilon would do.",
)


def show_figures(console: Console, figures: Figures) -> None:
    """The rows of the witness table to all their digits, and the files written."""
    console.print(_witness_table(figures.witnesses))
    for note in _NOTES:
        console.print(note)
    console.print("\nWritten:")
    for path in figures.files:
        console.print(plain(f"  {path}"), soft_wrap=True)


def _witness_table(rows: Iterable[Witness]) -> Table:
    table = Table(
        box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), title="What k releases cost, as epsilon", title_justify="left"
    )
    for name in (
        "k",
        "σ",
        "closed form\n(valid)",
        "dense search\n(over orders)",
        "exact profile\n(tight)",
        "valid is\nabove by",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        bounds = row.bounds
        table.add_row(
            str(bounds.releases),
            exact_text(bounds.scale),
            repr(float(bounds.valid)),
            repr(row.dense_search),
            significant_text(bounds.tight, 16, up=True),
            f"{100 * float(bounds.valid / bounds.tight - 1):.1f} %",
        )
    return table
