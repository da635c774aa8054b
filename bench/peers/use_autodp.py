"""autodp: Renyi accounting.

Its Fourier accountant is left out: it calls what scipy 1.14 has removed, and with an older scipy it gave no answer
within two minutes for 1,000 sampled Gaussians.
"""

from __future__ import annotations

from collections.abc import Mapping

from autodp import calibrator_zoo, mechanism_zoo, transformer_zoo
from autodp.autodp_core import Mechanism
from worker import Job, Workload, serve

NOISE = (0.3, 5.0)


def _renyi(record: Mapping[str, object]) -> Mechanism:
    scale = float(record["scale"])
    if record["mechanism"] == "laplace":
        return mechanism_zoo.LaplaceMechanism(b=scale)
    mechanism = mechanism_zoo.GaussianMechanism(sigma=scale)
    if "sampling" not in record:
        return mechanism
    sample = transformer_zoo.AmplificationBySampling()
    return sample(mechanism, float(record["sampling"]["rate"]), improved_bound_flag=True)


def _renyi_epsilon(records: list[Mapping[str, object]], delta: float) -> float:
    times = [int(record.get("times", 1)) for record in records]
    whole = transformer_zoo.Composition()([_renyi(record) for record in records], times)
    return float(whole.get_approxDP(delta))


def _epsilon(workload: Workload) -> Job:
    records, delta = list(workload["releases"]), float(workload["delta"])
    return lambda: _renyi_epsilon(records, delta)


def _extend(workload: Workload) -> Job:
    records, delta = [*workload["releases"], workload["more"]], float(workload["delta"])
    return lambda: _renyi_epsilon(records, delta)


def _calibrate(workload: Workload) -> Job:
    [record] = workload["releases"]
    params = {"prob": float(record["sampling"]["rate"]), "coeff": int(record["times"]), "sigma": None}
    epsilon, delta = float(workload["epsilon"]), float(workload["delta"])

    def job() -> float:
        find = calibrator_zoo.generalized_eps_delta_calibrator()
        kind = mechanism_zoo.SubsampleGaussianMechanism
        found = find(kind, epsilon, delta, NOISE, params=params, para_name="sigma", name="found")
        return float(found.params["sigma"])

    return job


serve(("autodp", "numpy", "scipy"), {"RDP": {"epsilon": _epsilon, "extend": _extend, "calibrate": _calibrate}})
