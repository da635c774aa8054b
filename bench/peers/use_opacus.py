"""Opacus: its PRV accountant, and its GDP accountant, an approximation that can be below the truth."""

from __future__ import annotations

from collections.abc import Callable

from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier
from worker import Job, RefusedError, Workload, serve


def _history(workload: Workload) -> list[tuple[float, float, int]]:
    records = [*workload["releases"], *([workload["more"]] if "more" in workload else [])]
    if any(record["mechanism"] != "gaussian" for record in records):
        raise RefusedError("has no Laplace mechanism")
    return [
        (float(record["scale"]), float(record.get("sampling", {"rate": 1})["rate"]), int(record.get("times", 1)))
        for record in records
    ]


def _epsilon(method: str) -> Callable[[Workload], Job]:
    def prepare(workload: Workload) -> Job:
        history, delta = _history(workload), float(workload["delta"])
        if method == "gdp" and len(history) > 1:
            raise RefusedError("its releases must be alike")

        def job() -> float:
            accountant = create_accountant(mechanism=method)
            accountant.history = history
            return float(accountant.get_epsilon(delta))

        return job

    return prepare


def _calibrate(method: str) -> Callable[[Workload], Job]:
    def prepare(workload: Workload) -> Job:
        [record] = workload["releases"]
        target = {"target_epsilon": float(workload["epsilon"]), "target_delta": float(workload["delta"])}
        rate, steps = float(record["sampling"]["rate"]), int(record["times"])
        return lambda: float(get_noise_multiplier(**target, sample_rate=rate, steps=steps, accountant=method))

    return prepare


serve(
    ("opacus", "torch", "numpy", "scipy"),
    {
        name: {"epsilon": _epsilon(method), "extend": _epsilon(method), "calibrate": _calibrate(method)}
        for name, method in (("PRV", "prv"), ("GDP", "gdp"))
    },
)
