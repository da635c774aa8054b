"""Monthly counts of the demo's data within 5 % at 95 %: what runs cost, beside one release that guarantees it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from parco.accuracy.ladders import Geometric, Ladder
from parco.accuracy.rules import RelativeError
from parco.accuracy.sessions import ReleasedUntil, release_until
from parco.cli import demo
from parco.contract.contract import Contract
from parco.session.ask import Ask
from parco.session.session import Session
from parco.session.signing import sign

__all__ = ["demo_table"]

SHARE, AT_MOST, RUNS = "5%", "0.055", 3
FEARED = (100, 500, 1000)
"""Least counts that one may have to reckon with, who has not seen the data."""


def demo_table() -> str:
    """A few runs of each ladder, each on a new ledger; and fixed releases by the least count they are made for."""
    ladders: dict[str, Ladder | None] = {
        "predictive ladder": None,
        "refinement, ratio 2": Geometric("0.0005", 2),
    }
    lines = [
        "Counts by month of the demo's purchases, all 18 months within "
        f"{SHARE} at 95 %: mu squared, at most {AT_MOST}; medians of {RUNS} runs.\n",
        "| way | cost | steps | reached |",
        "|---|---|---|---|",
    ]
    for name, ladder in ladders.items():
        found = [_run(ladder) for _ in range(RUNS)]
        cost = median(float(one.stopped.cost.value) for one in found)
        steps = median(len(one.stopped.views) for one in found)
        reached = sum(one.stopped.enough for one in found)
        least = min(found[-1].stopped.last.estimates)
        lines.append(f"| {name} | {cost:.4f} | {steps:g} | {reached} of {RUNS} |")
    with tempfile.TemporaryDirectory() as folder:
        session = _session(Path(folder))
        for least in FEARED:
            cost = float(session.plan.count(by="month", error=str(least / 20)).cost.value)
            lines.append(f"| one release, made for months of {least:,} or more | {cost:.4f} | 1 | by assumption |")
    lines.append(f"\nThe least month has about {float(least):,.0f}, as the last run found.")
    return "\n".join(lines)


def _run(ladder: Ladder | None) -> ReleasedUntil:
    with tempfile.TemporaryDirectory() as folder, _session(Path(folder)) as session:
        return release_until(session, Ask("count", by="month"), RelativeError(SHARE), at_most=AT_MOST, ladder=ladder)


def _session(folder: Path) -> Session:
    (folder / "purchases.csv").write_text(demo._purchases(), encoding="utf-8")
    text = Path(demo.__file__).with_name("demo_contract.toml").read_text(encoding="utf-8")
    (folder / "contract.toml").write_text(text, encoding="utf-8")
    contract = Contract.read(folder / "contract.toml")
    sign(contract)
    return Session(contract)
