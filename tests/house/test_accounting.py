"""The page on accounting: its numbers are those that the code computes."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

from parco.measure import significant_text
from parco.privacy.sensitivity import Sensitivity
from parco.reports import example
from parco.reports.example import Bounds, bounds

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "accounting.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())


def up(value: Fraction, digits: int) -> str:
    return significant_text(value, digits, up=True)


def exceeds(claimed: Bounds) -> float:
    """P(L > epsilon) over delta, at the tight epsilon; L is normal with mean mu^2/2 and variance mu^2."""
    mu, epsilon = math.sqrt(claimed.mu_squared), float(claimed.tight)
    return NormalDist().cdf(mu / 2 - epsilon / mu) / float(example.DELTA)


def test_the_table_is_the_one_computed() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| \d", line)]
    assert rows == [
        [
            str(row.bounds.releases),
            str(row.bounds.scale),
            repr(float(row.bounds.valid)),
            repr(row.dense_search),
            up(row.bounds.tight, 16),
        ]
        for row in example.witnesses()
    ]


def test_the_numbers_in_the_text_are_the_ones_computed() -> None:
    claims = [row.bounds for row in example.witnesses()]
    first, second, third, fourth = (f"{exceeds(claimed):.2g}" for claimed in claims)
    assert f"that probability is {first}, {second}, {third} and {fourth} times delta" in TEXT
    whole, less = (up(bounds(releases, Fraction(16)).tight, 4) for releases in (100, 99))
    wider = up(bounds(100, Fraction(16), sensitivity=Sensitivity(Fraction(2), Fraction(4))).tight, 4)
    assert f"the tight epsilon is {whole}, one release less makes it {less}, and" in TEXT
    assert f"by 2 instead of 1 makes it {wider}." in TEXT
    shares = [f"{100 * float(claimed.valid / claimed.tight - 1):.0f}" for claimed in claims]
    assert "it is {}, {}, {} and {} % too large in the four rows".format(*shares) in TEXT
    growing = [bounds(releases, Fraction(8)).tight for releases in (1, 10, 100, 1000)]
    told = "the tight epsilon is {} for one answer, {} for 10, {} for 100 and {} for 1000"
    assert told.format(*(up(epsilon, 3) for epsilon in growing)) in TEXT
    assert all(3 * less < more for less, more in pairwise(growing))
    assert 4 * growing[2] < growing[3]


def test_the_pictures_are_there_and_told_in_words() -> None:
    assert re.findall(r"\]\((figures/[^)]+)\)", PAGE) == ["figures/figure-1.svg", "figures/figure-2.svg"]
    assert all((DOCS / f"figures/figure-{number}.svg").exists() for number in (1, 2))
    once, often = example.averages([bounds(1, Fraction(8)), bounds(1000, Fraction(8))])
    assert f"falls from {once.standard_deviation:g} to {often.standard_deviation:.3g}" in TEXT
    charges = (f"{float(row.bounds.mu_squared):.3g}" for row in (once, often))
    assert "mu squared from {} to {}".format(*charges) in TEXT
    assert f"the tight epsilon from {up(once.bounds.tight, 3)} to {up(often.bounds.tight, 3)}" in TEXT
