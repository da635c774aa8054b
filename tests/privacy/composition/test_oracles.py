"""Compositions against tables of tests/data, each made by a script of its own: every truth lies in its interval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from mpmath import mp, mpf

from parco.privacy.accountants import account
from parco.privacy.composition import Composition, Interval
from parco.privacy.schedule import Schedule
from tests.privacy.composition.build import composed

DATA = Path(__file__).parents[2] / "data"
# Tables are printed to so many digits, and their truths are off by no more than this, relatively.
PRINTED = {
    "gaussian": Fraction(1, 10**28),
    "randomised_response": Fraction(1, 10**28),
    "laplace": Fraction(1, 10**28),
    "laplace_composition": Fraction(1, 10**16),
    "sampled_gaussian": Fraction(1, 10**15),
    "mixtures": Fraction(1, 10**15),
}

pytestmark = pytest.mark.usefixtures("by_nodes")

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


def test_the_compositions_of_gaussians_and_what_weaker_accountants_say_of_them() -> None:
    """Exact, closed form and improved Renyi conversion at the best order: each against its own column."""
    table = rows("gaussian", "composition")
    assert len(table) >= 18
    wrong = []
    for row in table:
        entry = {"mechanism": "gaussian", "sensitivity": "1", "scale": str(row["scale"]), "times": row["k"]}
        wrong += epsilons(composed(entry), row, "gaussian", "1e-12")
        claims = {claim.accountant: claim.epsilon for claim in account(Schedule.of([entry]), row["delta"]).claims}
        for name, column, slack in (("closed-form", "closed_form", 12), ("rdp", "improved", 9)):
            truth = Fraction(row[column])
            if not truth * (1 - PRINTED["gaussian"]) <= claims[name] <= truth * (1 + Fraction(1, 10**slack)):
                wrong.append(f"{row}: {name} is {float(claims[name])}")
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


def test_profiles_of_randomised_response() -> None:
    """The table has rational odds: their logarithms are off by 10^-40, and delta by 10^-38 of itself at most."""
    wrong = []
    for row in rows("randomised_response", "profile"):
        with mp.workdps(60):
            e0, epsilon = (mp.nstr(mp.log(mpf(Fraction(row[key]))), 45) for key in ("odds", "ratio"))
        found = composed({"mechanism": "randomised-response", "epsilon": e0, "times": row["k"]}).delta(epsilon)
        wrong.append(
            fault(found, row["delta"], off=PRINTED["randomised_response"], tolerance="1e-6", least=Fraction(0))
        )
    assert not any(wrong), [problem for problem in wrong if problem]


def test_two_laplaces() -> None:
    wrong = []
    for row in rows("laplace", "two"):
        found = composed(*_laplaces({"releases": [(row["e0"], 1), (row["e1"], 1)]}), tolerance="1e-3").delta(row["eps"])
        wrong.append(fault(found, row["delta"], off=PRINTED["laplace"], tolerance="1e-3", least=Fraction(0)))
    assert len(wrong) == 28
    assert not any(wrong), [problem for problem in wrong if problem]


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


# A draw or two decide, and doubles do not tell their delta from rounding: refused (InternalError).
RARE = {("0.001", "1", "1e-12", 2), ("0.001", "1", "1e-12", 5), ("0.001", "4", "1e-30", 2)}


def _sampled(row: Mapping[str, Any]) -> dict[str, object]:
    entry: dict[str, object] = {"mechanism": "gaussian", "sensitivity": "1", "scale": row["s"], "times": row["steps"]}
    return entry if row["q"] == "1" else entry | {"sampling": {"scheme": "poisson", "rate": row["q"]}}


def _sampled_faults(table: Sequence[Mapping[str, Any]]) -> list[str]:
    return [wrong for row in table for wrong in epsilons(composed(_sampled(row)), row, "sampled_gaussian", "1e-6")]


def test_sampled_gaussians_of_the_reports() -> None:
    table = rows("sampled_gaussian", "named")
    assert {"ratios", "C01", "C02", "C03", "C04", "C06", "C08"} <= {row["case"] for row in table}
    assert len(table) > 30
    assert _sampled_faults(table) == []


def _spread() -> list[dict[str, Any]]:
    table = rows("sampled_gaussian", "spread")
    return [row for row in table if (row["q"], row["s"], row["delta"], row["steps"]) not in RARE]


def test_sampled_gaussians_over_their_range() -> None:
    """A third of the table."""
    assert len(_spread()) > 250
    assert _sampled_faults(_spread()[::3]) == []


@pytest.mark.long
def test_all_sampled_gaussians() -> None:
    assert _sampled_faults(_spread()) == []


def test_scales_at_which_an_epsilon_is_reached() -> None:
    """Read backwards: with the scale of the table epsilon is the target, to the digits that the scale has."""
    for row in rows("sampled_gaussian", "scales"):
        found = composed(_sampled(row), tolerance="1e-8").epsilon(row["delta"])
        target = Fraction(row["epsilon"])
        assert found.lower <= target * (1 + Fraction(1, 10**12))
        assert found.upper >= target * (1 - Fraction(1, 10**12))


def test_mixtures() -> None:
    wrong, kinds = [], set()
    for schedule in rows("mixtures", "schedules"):
        composition = composed(*schedule["releases"])
        kinds |= {release["mechanism"] for release in schedule["releases"]}
        for row in schedule["epsilons"]:
            wrong += epsilons(composition, row, "mixtures", "1e-6")
    assert kinds == {"gaussian", "laplace", "randomised-response"}
    assert wrong == []
