"""parco's composition; `certificate` gives both ends of its interval at the tolerance 1e-10."""

from __future__ import annotations

from worker import Job, Workload, serve

from parco.privacy.calibration import calibrate
from parco.privacy.composition import compose
from parco.privacy.schedule import Schedule, ScheduledRelease


def _epsilon(workload: Workload) -> Job:
    schedule, delta = Schedule.of(workload["releases"]), workload["delta"]
    return lambda: float(compose(schedule).epsilon(delta).upper)


def _certificate(workload: Workload) -> Job:
    records = list(workload["releases"]) + ([workload["more"]] if "more" in workload else [])
    schedule, delta = Schedule.of(records), workload["delta"]

    def job() -> list[float]:
        ends = compose(schedule, "1e-10").epsilon(delta)
        return [float(ends.lower), float(ends.upper)]

    return job


def _extend(workload: Workload) -> Job:
    composition, delta = compose(Schedule.of(workload["releases"])), workload["delta"]
    composition.epsilon(delta)
    record = workload["more"]
    return lambda: float(composition.add(ScheduledRelease.read(record)).epsilon(delta).upper)


def _calibrate(workload: Workload) -> Job:
    schedule, epsilon, delta = Schedule.of(workload["releases"]), workload["epsilon"], workload["delta"]
    return lambda: float(calibrate(schedule, epsilon=epsilon, delta=delta).scale_factor)


serve(
    ("parco", "numpy", "python-flint"),
    {
        "composition": {"epsilon": _epsilon, "extend": _extend, "calibrate": _calibrate},
        "certificate": {"epsilon": _certificate, "extend": _certificate},
    },
)
