"""Many runs: coverage at the stop, and realised over smallest sufficient cost. The runs of the bench, in doubles."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from parco.accuracy.cells import Reach
from parco.accuracy.ladders import Geometric, Ladder, Predictive
from parco.accuracy.loop import refine_until
from parco.accuracy.memory import Account, Held
from parco.accuracy.rules import RelativeError
from parco.measure import Measure

BENCH = Path(__file__).parents[2] / "bench"
SHARE, MISS, CAP, FIRST = 0.05, 0.05, 64.0, 1e-7
UNITS = 10**15
TRUTHS = np.geomspace(10, 1e5, 30)
"""Evenly in logarithm: their least sufficient costs lie at all places between two steps of any ladder here."""
RUNS = 2000


@pytest.fixture(scope="module")
def paths() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCH))
    yield import_module("accuracy_paths")
    sys.path.remove(str(BENCH))
    sys.modules.pop("accuracy_paths")


def rungs(ladder: Ladder) -> list[float]:
    """The costs that parco's ladder has under the cap."""
    most, at, found = ladder.cap(CAP), 0, list[float]()
    for step in range(1, ladder.steps(most) + 1):
        at = ladder.cost(step, at=at, need=None, most=most)
        found.append(at / UNITS)
    return found


@pytest.mark.parametrize("ratio", ["1.5", "2", "4"])
def test_relative_error_covers_at_the_stop_and_wastes_at_most_the_ratio(paths: ModuleType, ratio: str) -> None:
    """Also, independent restarts cost c/(c-1) times more, as all that was paid before is lost."""
    costs = rungs(Geometric(str(FIRST), ratio))
    z = paths.quantile(MISS, len(costs))
    bits = np.random.default_rng(int(float(ratio) * 10))
    plans = {"costs": costs, "z": z, "share": SHARE, "runs": RUNS, "bits": bits}
    found = [paths.refined(truth, **plans) for truth in TRUTHS]
    assert min(runs.covers.mean() for runs in found) >= 1 - MISS
    assert min(runs.reached.mean() for runs in found) == 1
    assert np.median(np.concatenate([runs.ratio for runs in found])) <= float(ratio)
    again = [paths.restarted(truth, **plans) for truth in TRUTHS]
    more = np.median([np.median(one.cost) / np.median(other.cost) for one, other in zip(again, found, strict=True)])
    assert more == pytest.approx(float(ratio) / (float(ratio) - 1), rel=0.05)


def test_the_control_a_plain_interval_covers_less(paths: ModuleType) -> None:
    """Worst where an estimate must be too large by a whole half-width to stop one step early: then each such misses."""
    costs = rungs(Geometric(str(FIRST), "2"))
    z = paths.quantile(MISS, 1)
    truth = z / np.sqrt(costs[15]) * (1 / SHARE - 1)
    assert 10 < truth < 1e5
    bits = np.random.default_rng(3)
    plain = paths.refined(truth, costs=costs, z=z, share=SHARE, runs=200_000, bits=bits)
    # 93.3 %, five standard errors below 93.6 %.
    assert plain.covers.mean() <= 0.936
    level = paths.refined(truth, costs=costs, z=paths.quantile(MISS, len(costs)), share=SHARE, runs=20_000, bits=bits)
    assert level.covers.mean() >= 1 - MISS


def test_the_predictive_ladder_is_a_fifth_cheaper_and_covers(paths: ModuleType) -> None:
    costs = rungs(Geometric(str(FIRST), "2"))
    bits = np.random.default_rng(4)
    plans = {"share": SHARE, "bits": bits}
    ratios, covers = list[float](), list[float]()
    for truth in TRUTHS:
        slow = paths.refined(truth, costs=costs, z=paths.quantile(MISS, len(costs)), runs=RUNS, **plans)
        fast = paths.predicted(truth, ladder=Predictive(str(FIRST)), most=CAP, miss=MISS, runs=60, **plans)
        ratios.append(float(np.median(fast.cost) / np.median(slow.cost)))
        covers.append(fast.covers.mean())
    assert np.median(ratios) <= 0.8
    assert np.mean(covers) >= 1 - MISS


def test_laplace_noise_along_a_path_has_the_law_of_its_end(paths: ModuleType) -> None:
    runs = paths.laplace(
        1000.0, costs=[0.01, 0.02, 0.08], miss=MISS, share=1e-9, runs=50_000, bits=np.random.default_rng(5)
    )
    assert not runs.reached.any()
    # The half-width at level miss/3 is missed by one part in 3/miss.
    assert 1 - runs.covers.mean() == pytest.approx(MISS / 3, abs=0.003)
    stopped = paths.laplace(
        1000.0,
        costs=[0.01, 0.02, 0.04, 0.08, 0.16, 1],
        miss=MISS,
        share=SHARE,
        runs=5000,
        bits=np.random.default_rng(6),
    )
    assert stopped.covers.mean() >= 1 - MISS


@pytest.mark.parametrize("ladder", [Geometric("0.001", 2), Predictive("0.001")])
def test_these_runs_are_those_of_the_loop_itself(paths: ModuleType, ladder: Ladder) -> None:
    """Costs of forty runs of the exact loop, on the lattice, lie where those of many runs here do."""
    truth, most = 300, ladder.cap(2)
    exact = []
    for _ in range(40):
        held = Held([truth], Account(Measure.GDP, 2), reach=Reach(1, Fraction(1)))
        found = refine_until(held, RelativeError(SHARE), ladder=ladder, at_most=2)
        assert abs(found.last.estimates[0] - truth) <= 2 * found.last.half_widths[0]
        exact.append(float(found.cost.value))
    plans = {"share": SHARE, "bits": np.random.default_rng(7)}
    if isinstance(ladder, Predictive):
        many = paths.predicted(float(truth), ladder=ladder, most=2.0, miss=MISS, runs=2000, **plans).cost
    else:
        costs = [ladder.cost(step, at=0, need=None, most=most) / UNITS for step in range(1, ladder.steps(most) + 1)]
        many = paths.refined(float(truth), costs=costs, z=paths.quantile(MISS, len(costs)), runs=20_000, **plans).cost
    low, high = np.quantile(many, [0.25, 0.75])
    inside = np.mean((np.array(exact) >= low * 0.999) & (np.array(exact) <= high * 1.001))
    assert inside >= 0.25
    assert np.median(exact) == pytest.approx(np.median(many), rel=0.12)
