"""C10: keys went out from the threshold on, and the delta that was told was that of more than the threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.mechanisms.mechanism import TwoSidedGeometric
from parco.mechanisms.selection import Selection
from tests.shop import write_csv

USERS = 100_000
ONE = Fraction(1)
# "At least 5" and "more than 5" with noise of scale 1: e^-4/(1 + e^-1) and e^-5/(1 + e^-1).
AT_LEAST, MORE_THAN = 0.013389804932698452, 0.0049258339560357284
# Of a normal variate; the test fails on sound code less than once in 10^8 runs.
Z_MAX = 5.8

CONTRACT = """
format = 1
name = "keys"
purpose = "a test"
unprotected = "none"
data = {{ name = "keys", source = "keys.csv" }}
unit = {{ column = "customer", neighbours = "add-or-remove", groups = {groups}, rows = 1 }}
budget = {{ measure = "pure", epsilon = "4", delta = "0.5", delta_mechanisms = "0.5" }}

[columns.key]
type = "text"
keys = "select"
"""


@pytest.mark.parametrize(("threshold", "delta"), [(5, AT_LEAST), (6, MORE_THAN)])
def test_rule_and_figure_belong_together(threshold: int, delta: float) -> None:
    selection = Selection(TwoSidedGeometric(ONE, ONE), threshold - 1, 1, replace=False)
    assert selection.threshold == threshold
    assert selection.kept(threshold)
    assert not selection.kept(threshold - 1)
    assert float(selection.delta_upper) == pytest.approx(delta, rel=1e-15)


def test_several_keys_of_a_unit_are_accounted_for_together() -> None:
    selection = Selection(TwoSidedGeometric(ONE, ONE), 4, 7, replace=False)
    assert float(selection.delta_upper) == pytest.approx(1 - (1 - AT_LEAST) ** 7, rel=1e-14)


@pytest.mark.parametrize("groups", [1, 3])
def test_as_many_keys_come_out_as_the_delta_says(tmp_path: Path, groups: int) -> None:
    rows = [(unit, f"{unit}-{place}") for unit in range(USERS // groups) for place in range(groups)]
    write_csv(tmp_path / "keys.csv", rows, header=("customer", "key"))
    (tmp_path / "contract.toml").write_text(CONTRACT.format(groups=groups), "utf-8")
    contract = parco.Contract.read(tmp_path / "contract.toml")
    parco.sign(contract)
    with parco.Session(contract) as session:
        release = session.select_keys("key", cost=groups, delta="0.0134")
    threshold = release.value.threshold  # type: ignore[attr-defined]
    assert all(row.value >= threshold for row in release.value)
    # Each unit publishes something with a probability of delta; the noise of a key is its own.
    each = 1 - (1 - float(release.receipt.delta)) ** (1 / groups)
    expected = each * len(rows)
    assert 0.009 < float(release.receipt.delta) <= 0.0134
    assert abs(len(release.value) - expected) < Z_MAX * math.sqrt(expected)
    # The other rule would be told apart.
    assert abs(expected - expected / math.e ** (1 / 8)) > 2 * math.sqrt(expected)
