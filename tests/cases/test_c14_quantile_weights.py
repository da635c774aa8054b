"""C14: one row more, and the weights of a quantile underflow: a crash that depends on one person."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import mpmath
import pytest

import parco
from parco.mechanisms.mechanism import Exponential
from parco.noise.bits import CipherBits
from parco.queries.quantile import runs
from tests.shop import open_shop

COLUMNS = """
[columns.dollars]
type = "decimal"
lattice = "0.01"
lower = "0"
upper = "1"
"""
LATTICE = range(101)
HALF = Fraction(1, 2)
# Epsilon 1 at sensitivity 1/2: e^(score).
MECHANISM = Exponential(Fraction(1), Fraction(1, 100))


@pytest.mark.parametrize("zeros", [1491, 1492])
def test_zero_wins_on_both_tables(tmp_path: Path, zeros: int) -> None:
    rows = [(str(place), "2024-01-01", "1", "0", "web") for place in range(zeros)]
    rows.append(("one", "2024-01-01", "1", "1", "web"))
    contract = open_shop(tmp_path, purchases=rows, columns=COLUMNS, rows=1)
    with parco.Session(contract) as session:
        release = session.quantile("dollars", at="0.5", cost="1")
    assert [row["value"] for row in release.value.rows()] == ["0"]


@pytest.mark.parametrize("zeros", [1491, 1492])
def test_any_other_answer_is_beyond_improbable(zeros: int) -> None:
    found = list(runs({0: zeros, 100: 1}, at=HALF, candidates=LATTICE))
    weights = [mpmath.exp(mpmath.mpf(score.numerator) / score.denominator) * count for score, count in found]
    assert found[0] == (Fraction(0), 1)
    assert sum(weights[1:]) / sum(weights) < mpmath.mpf("1e-150")


@pytest.mark.parametrize("equal", [1, 10**7, 10**30])
def test_any_number_of_equal_rows_is_one_run(equal: int) -> None:
    for value in (0, 50, 100):
        chosen = MECHANISM.choose(runs({value: equal}, at=HALF, candidates=LATTICE), CipherBits())
        assert chosen in LATTICE
        assert equal == 1 or chosen == value
