"""C04: a published table of noise multipliers, half of it from an accountant built on a limit theorem: promises not
kept."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.cases.schedules import encloses, epsilon, sampled

# Noise multiplier, epsilon that the table claims for it, tight epsilon: rate 0.02, 1,500 steps, delta 1e-5.
RENYI = [
    ("3.9", "1", "0.7421953273224301"),
    ("1.1", "5", "4.022648925256436"),
    ("0.79", "10", "8.109228444037080"),
    ("0.445", "50", "43.41195519632682"),
    ("0.356", "100", "89.02232102381659"),
    ("0.206", "500", "459.6799234354784"),
    ("0.157", "1000", "922.8801854777389"),
]
LIMIT = [
    ("5.5", "0.5", "0.5034528293506463"),
    ("3", "1", "1.006097026952042"),
    ("0.94", "5", "5.457840458469490"),
    ("0.701", "10", "11.04805367253720"),
    ("0.481", "50", "33.87823877817239"),
    ("0.438", "100", "45.67663923960050"),
]
FALSE = {"5.5", "3", "0.94", "0.701"}


@pytest.mark.parametrize(("scale", "claimed", "tight"), RENYI + LIMIT)
def test_each_row_has_its_tight_value(scale: str, claimed: str, tight: str) -> None:
    found = epsilon(sampled("0.02", scale, 1500), delta="1e-5")
    assert encloses(found, tight)
    # A claim below the proven lower end is false; all others were at least valid.
    assert (found.lower > Fraction(claimed)) == (scale in FALSE and (scale, claimed, tight) in LIMIT)
