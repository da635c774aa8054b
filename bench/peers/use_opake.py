"""opake-accounting: privacy loss distributions on its usual grid.

Its compiled part is called directly, since importing its Python part (0.16.1) fails on Python 3.11.7 with a TypeError
about `__weakref__`. So the noise is sought here, by halving until epsilon is within one part in 10^6 of the target and
not above it, which is what its own search promises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib.metadata import files
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from worker import Job, RefusedError, Workload, serve

NOISE = (0.3, 5.0)
TOLERANCE = 1e-6
HALVINGS = 100


def _compiled() -> ModuleType:
    [path] = [file for file in files("opake-accounting") or [] if file.name.startswith("opake_accounting.abi3")]
    spec = spec_from_file_location("opake_accounting", path.locate())
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


native = _compiled()
CONFIG = native.DiscretizationConfig()


def _pld(record: Mapping[str, object], noise: float | None = None) -> object:
    if record["mechanism"] != "gaussian":
        raise RefusedError(f"has no {record['mechanism']} mechanism")
    found = native.gaussian_pld(float(record["scale"]) if noise is None else noise, CONFIG)
    if "sampling" in record:
        found = native.poisson_pld(found, float(record["sampling"]["rate"]))
    times = int(record.get("times", 1))
    return found.self_compose(times) if times > 1 else found


def _composed(workload: Workload) -> object:
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


def _calibrate(workload: Workload) -> Job:
    [record] = workload["releases"]
    target, delta = float(workload["epsilon"]), float(workload["delta"])
    return lambda: _halved(lambda noise: float(_pld(record, noise).epsilon_at(delta)), target)


def _halved(epsilon: Callable[[float], float], target: float) -> float:
    low, high = NOISE
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = epsilon(middle)
        if found <= target and math.isclose(found, target, rel_tol=TOLERANCE):
            return middle
        low, high = (low, middle) if found <= target else (middle, high)
    raise RefusedError("its grid does not reach the target to one part in 10^6")


serve(("opake-accounting",), {"PLD": {"epsilon": _epsilon, "extend": _extend, "calibrate": _calibrate}})
