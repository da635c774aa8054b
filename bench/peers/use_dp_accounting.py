"""dp-accounting: its PLD accountant, at its usual grid or the workload's, and its RDP accountant."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import dp_accounting as dp
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from worker import Job, Workload, serve

GRID = 1e-4
# The search for the noise starts from this bracket.
NOISE = (0.3, 5.0)


def _event(record: Mapping[str, object], noise: float | None = None) -> dp.DpEvent:
    scale = float(record["scale"]) if noise is None else noise
    kind = dp.GaussianDpEvent if record["mechanism"] == "gaussian" else dp.LaplaceDpEvent
    event: dp.DpEvent = kind(scale)
    if "sampling" in record:
        event = dp.PoissonSampledDpEvent(float(record["sampling"]["rate"]), event)
    times = int(record.get("times", 1))
    return dp.SelfComposedDpEvent(event, times) if times > 1 else event


def _composed(workload: Workload) -> dp.DpEvent:
    events = [_event(record) for record in workload["releases"]]
    return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)


def _grid(workload: Workload) -> float:
    return float(workload.get("grid", GRID))


def _epsilon(make: Callable[[Workload], dp.PrivacyAccountant]) -> Callable[[Workload], Job]:
    def prepare(workload: Workload) -> Job:
        event, delta = _composed(workload), float(workload["delta"])
        return lambda: float(make(workload).compose(event).get_epsilon(delta))

    return prepare


def _calibrate(make: Callable[[Workload], dp.PrivacyAccountant]) -> Callable[[Workload], Job]:
    def prepare(workload: Workload) -> Job:
        [record] = workload["releases"]
        epsilon, delta = float(workload["epsilon"]), float(workload["delta"])
        bracket = dp.ExplicitBracketInterval(*NOISE)
        return lambda: float(
            dp.calibrate_dp_mechanism(
                lambda: make(workload), lambda noise: _event(record, noise), epsilon, delta, bracket_interval=bracket
            )
        )

    return prepare


def _pld(workload: Workload) -> PLDAccountant:
    return PLDAccountant(value_discretization_interval=_grid(workload))


def _rdp(_: Workload) -> RdpAccountant:
    return RdpAccountant()


def _extend_pld(workload: Workload) -> Job:
    accountant = _pld(workload).compose(_composed(workload))
    before, delta, grid = accountant._pld, float(workload["delta"]), _grid(workload)
    noise = float(workload["more"]["scale"])

    def job() -> float:
        more = privacy_loss_distribution.from_gaussian_mechanism(noise, value_discretization_interval=grid)
        return float(before.compose(more).get_epsilon_for_delta(delta))

    return job


def _extend_rdp(workload: Workload) -> Job:
    accountant, more, delta = RdpAccountant(), _event(workload["more"]), float(workload["delta"])
    accountant.compose(_composed(workload))
    return lambda: float(accountant.compose(more).get_epsilon(delta))


serve(
    ("dp-accounting", "numpy", "scipy"),
    {
        "PLD": {"epsilon": _epsilon(_pld), "extend": _extend_pld, "calibrate": _calibrate(_pld)},
        "RDP": {"epsilon": _epsilon(_rdp), "extend": _extend_rdp, "calibrate": _calibrate(_rdp)},
    },
)
