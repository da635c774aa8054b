"""Makes mixtures.json: epsilons of heterogeneous compositions, on two contours each (contour.py).

Nothing of parco is imported: the table is an oracle. Run `python -m tests.data.make_mixtures`; a few minutes. Each
schedule has enough Gaussian noise for the sum over tau to converge: atoms of Laplace noise and of randomised response
do not fade. The releases are written as in a schedule file, sensitivity 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flint import ctx

from tests.data import contour
from tests.data.contour import Gaussian, Laplace, Law, RandomisedResponse, SampledGaussian
from tests.data.roots import text

DELTAS = ["0.1", "1e-6", "1e-12", "1e-30"]
Release = dict[str, Any]


def gaussian(scale: str, times: int, rate: str | None = None) -> Release:
    """Gaussian noise, sampled at a rate if there is one."""
    sampling = {"sampling": {"scheme": "poisson", "rate": rate}} if rate else {}
    return {"mechanism": "gaussian", "sensitivity": "1", "scale": scale, "times": times} | sampling


def laplace(scale: str, times: int) -> Release:
    """Laplace noise."""
    return {"mechanism": "laplace", "sensitivity": "1", "scale": scale, "times": times}


def response(epsilon: str, times: int) -> Release:
    """Randomised response."""
    return {"mechanism": "randomised-response", "epsilon": epsilon, "times": times}


SCHEDULES: list[list[Release]] = [
    [gaussian("1", 1), laplace("1", 1)],
    [gaussian("0.5", 1), laplace("2", 3), response("0.3", 2)],
    [gaussian("2", 3), laplace("2", 2), response("0.5", 1), gaussian("1", 100, "0.01")],
    [gaussian("8", 10), laplace("10", 5)],
    [gaussian("5", 1), response("0.1", 50)],
    [gaussian("10", 1), gaussian("0.8", 500, "0.01"), gaussian("2", 50, "0.1")],
    [gaussian("30", 400), gaussian("1", 20000, "0.001"), laplace("50", 200), response("0.02", 100)],
    [
        *(gaussian(str(3 + i), 1) for i in range(10)),
        *(laplace(str(4 + 2 * i), 1) for i in range(10)),
        *(gaussian(f"{1 + i / 10}", 10 + i, f"0.0{i + 1}") for i in range(9)),
        response("0.2", 3),
    ],
]


def law(release: Release, added: bool) -> Law:
    """One order of a release's pair."""
    match release["mechanism"], "sampling" in release:
        case "gaussian", True:
            return SampledGaussian(release["sampling"]["rate"], release["scale"], added)
        case "gaussian", False:
            return Gaussian(release["scale"])
        case "laplace", False:
            return Laplace(release["scale"])
        case _:
            return RandomisedResponse(release["epsilon"])


def row(releases: list[Release], delta: str) -> dict[str, Any]:
    """One row; epsilon is the larger of the two."""
    both = [contour.epsilon(tuple((law(r, added), r["times"]) for r in releases), delta) for added in (False, True)]
    larger = both[1] if both[1] > both[0] else both[0]
    return {"delta": delta, "removed": text(both[0]), "added": text(both[1]), "epsilon": text(larger)}


def table() -> dict[str, Any]:
    """The whole table."""
    before, ctx.prec = ctx.prec, contour.BITS
    try:
        schedules = [{"releases": s, "epsilons": [row(s, delta) for delta in DELTAS]} for s in SCHEDULES]
    finally:
        ctx.prec = before
    return {"what": "heterogeneous compositions; made by make_mixtures.py", "schedules": schedules}


if __name__ == "__main__":
    Path(__file__).with_name("mixtures.json").write_text(json.dumps(table(), indent=1) + "\n", encoding="utf-8")
