"""opake-accounting: privacy loss distributions on its usual grid, and its calibration by halving."""

from __future__ import annotations

from collections.abc import Mapping

from opake.accounting import calibration
from opake.api.accounting.core import opake_accounting as native
from worker import Job, RefusedError, Workload, serve

NOISE = (0.3, 5.0)
CONFIG = native.DiscretizationConfig()


def _pld(record: Mapping[str, object], noise: float | None = None) -> native.Pld:
    if record["mechanism"] != "gaussian":
        raise RefusedError(f"has no {record['mechanism']} mechanism")
    found = native.gaussian_pld(float(record["scale"]) if noise is None else noise, CONFIG)
    if "sampling" in record:
        found = native.poisson_pld(found, float(record["sampling"]["rate"]))
    times = int(record.get("times", 1))
    return found.self_compose(times) if times > 1 else found


def _composed(workload: Workload) -> native.Pld:
    if any(record["mechanism"] != "gaussian" for record in workload["releases"]):
        raise RefusedError("has no Laplace mechanism")
    whole = None
    for record in workload["releases"]:
        found = _pld(record)
        whole = found if whole is None else whole.compose(found)
    return whole


def _epsilon(workload: Workload) -> Job:
    delta = float(workload["delta"])
    return lambda: float(_composed(workload).epsilon_at(delta))


def _extend(workload: Workload) -> Job:
    before, delta = _composed(workload), float(workload["delta"])
    return lambda: float(before.compose(_pld(workload["more"])).epsilon_at(delta))


class _Process:
    """What the search asks for: epsilon at a delta."""

    def __init__(self, pld: native.Pld) -> None:
        self._pld = pld

    def epsilon_at(self, delta: float) -> float:
        return float(self._pld.epsilon_at(delta))


def _calibrate(workload: Workload) -> Job:
    [record] = workload["releases"]
    budget = calibration.epsilon_budget(float(workload["epsilon"]), delta=float(workload["delta"]))
    return lambda: float(calibration.calibrate(budget, lambda noise: _Process(_pld(record, noise)), *NOISE).param)


serve(("opake-accounting",), {"PLD": {"epsilon": _epsilon, "extend": _extend, "calibrate": _calibrate}})
