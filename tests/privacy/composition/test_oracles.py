"""Compositions against tables of tests/data, each made by a script of its own: every truth lies in its interval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from parco.privacy.composition import Composition, Interval
from tests.privacy.composition.build import composed

DATA = Path(__file__).parents[2] / "data"
# Tables are printed to so many digits, and their truths are off by no more than this, relatively.
PRINTED = {
    "gaussian": Fraction(1, 10**28),
    "randomised_response": Fraction(1, 10**28),
    "laplace_composition": Fraction(1, 10**16),
}

LAPLACE_DELTA_MOST = Fraction(85, 100)


def rows(table: str, section: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / f"{table}.json").read_text(encoding="utf-8"))[section]
    return found


def fault(
    interval: Interval, truth: str, *, off: Fraction, tolerance: str, least: Fraction = Fraction(1, 1000)
) -> str | None:
    """What is wrong with an interval for a truth printed with a relative error of `off`, if anything is."""
    exact, low, high = Fraction(truth), interval.lower, interval.upper
    if not 0 <= low <= exact * (1 + off) or not exact * (1 - off) <= high:
        return f"{truth} is not in {float(low)} .. {float(high)}"
    if high - low > Fraction(tolerance) * max(high, least):
        return f"{truth} is known as {float(low)} .. {float(high)} only"
    return None


def epsilons(composition: Composition, row: Mapping[str, Any], table: str, tolerance: str) -> list[str]:
    found = fault(composition.epsilon(row["delta"]), row["epsilon"], off=PRINTED[table], tolerance=tolerance)
    return [] if found is None else [f"{row}: {found}"]


# Scales and times of releases that cost together what one of scale 1 costs.
@pytest.mark.parametrize("parts", [[(1, 1)], [(2, 3), (20, 99), (200, 100)]], ids=["one", "many"])
def test_gaussians(parts: Sequence[tuple[int, int]]) -> None:
    wrong = []
    for row in rows("gaussian", "epsilon"):
        entries = [
            {"mechanism": "gaussian", "sensitivity": row["mu"], "scale": str(scale), "times": times}
            for scale, times in parts
        ]
        composition = composed(*entries)
        total = Fraction(row["mu"]) ** 2
        assert composition.mu_squared == Interval(total, total)
        wrong += epsilons(composition, row, "gaussian", "1e-12")
    assert wrong == []


def test_randomised_response_to_nine_digits() -> None:
    table = rows("randomised_response", "epsilon")
    assert len(table) >= 45
    assert sum(row["delta"] == "1e-30" for row in table) >= 15
    wrong = []
    for row in table:
        entry = {"mechanism": "randomised-response", "epsilon": row["epsilon0"], "times": row["k"]}
        wrong += epsilons(composed(entry, tolerance="1e-9"), row, "randomised_response", "1e-9")
    assert wrong == []


def test_laplace() -> None:
    """A third of the table: few Laplace releases take many nodes, and so a tenth of a second or more each."""
    table = rows("laplace_composition", "epsilon")[::3]
    assert {len(row["releases"]) for row in table} >= {1, 2}
    wrong = []
    for row in table:
        wrong += epsilons(composed(*_laplaces(row), tolerance="1e-6"), row, "laplace_composition", "1e-6")
    assert wrong == []


def test_profiles_of_laplace() -> None:
    """Where delta is nearer to 1 few Laplace releases take more nodes than there may be (InternalError)."""
    table = [row for row in rows("laplace_composition", "profile") if Fraction(row["delta"]) < LAPLACE_DELTA_MOST][::2]
    assert len(table) > 50
    wrong = []
    for row in table:
        found = composed(*_laplaces(row), tolerance="1e-3").delta(row["epsilon"])
        wrong.append(
            fault(found, row["delta"], off=PRINTED["laplace_composition"], tolerance="1e-3", least=Fraction(0))
        )
    assert not any(wrong), [problem for problem in wrong if problem]


def _laplaces(row: Mapping[str, Any]) -> list[dict[str, object]]:
    return [{"mechanism": "laplace", "sensitivity": e, "scale": "1", "times": times} for e, times in row["releases"]]
