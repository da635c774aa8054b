"""prv-accountant: the upper end of its interval, for an error of 0.01 in epsilon and a thousandth of delta."""

from __future__ import annotations

from collections.abc import Mapping

from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PrivacyRandomVariable,
    PRVAccountant,
)
from prv_accountant.dpsgd import find_noise_multiplier
from worker import Job, Workload, serve

ERROR = 0.01


def _variable(record: Mapping[str, object]) -> PrivacyRandomVariable:
    scale = float(record["scale"])
    if "sampling" in record:
        return PoissonSubsampledGaussianMechanism(float(record["sampling"]["rate"]), scale)
    return GaussianMechanism(scale) if record["mechanism"] == "gaussian" else LaplaceMechanism(1 / scale)


def _epsilon_of(records: list[Mapping[str, object]], delta: float) -> float:
    times = [int(record.get("times", 1)) for record in records]
    accountant = PRVAccountant(
        [_variable(record) for record in records],
        eps_error=ERROR,
        delta_error=delta / 1000,
        max_self_compositions=times,
    )
    return float(accountant.compute_epsilon(delta, times)[2])


def _epsilon(workload: Workload) -> Job:
    records, delta = list(workload["releases"]), float(workload["delta"])
    return lambda: _epsilon_of(records, delta)


def _extend(workload: Workload) -> Job:
    # A composition cannot be made longer: its grid was chosen for the releases it has.
    records, delta = [*workload["releases"], workload["more"]], float(workload["delta"])
    return lambda: _epsilon_of(records, delta)


def _calibrate(workload: Workload) -> Job:
    [record] = workload["releases"]
    rate, times = float(record["sampling"]["rate"]), int(record["times"])
    epsilon, delta = float(workload["epsilon"]), float(workload["delta"])
    return lambda: float(find_noise_multiplier(rate, times, epsilon, delta, eps_error=ERROR))


serve(("prv-accountant", "numpy", "scipy"), {"PRV": {"epsilon": _epsilon, "extend": _extend, "calibrate": _calibrate}})
