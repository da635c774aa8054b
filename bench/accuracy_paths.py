"""Many runs at once of the loops that `accuracy_first.py` compares, in doubles: one number, sensitivity 1, gdp or pure.

The runs of parco's own loop have these laws (a test compares them); here noise is not on a lattice, and vectors of
thousands of runs take a moment. Costs are mu squared, for Laplace noise epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from parco.accuracy.adaptive import adaptive_quantile_upper
from parco.accuracy.ladders import Ladder

__all__ = ["Runs", "fixed", "laplace", "predicted", "quantile", "refined", "restarted"]

Doubles = NDArray[np.float64]
UNITS = 10**15


@dataclass(frozen=True)
class Runs:
    """Of each run the `cost` it came to, whether the interval `covers` the truth, and whether it `reached` the error.

    `least`: the least cost at which the same rule, with the same level, would stop if the estimate were the truth.
    """

    cost: Doubles
    covers: NDArray[np.bool_]
    reached: NDArray[np.bool_]
    steps: NDArray[np.int64]
    least: float

    @property
    def ratio(self) -> Doubles:
        """Realised over smallest sufficient cost."""
        return self.cost / self.least


def quantile(miss: float, steps: int) -> float:
    """z of the intervals of each of so many steps."""
    return NormalDist().inv_cdf(1 - miss / steps / 2)


def refined(
    truth: float, *, costs: Sequence[float], z: float, share: float, runs: int, bits: np.random.Generator
) -> Runs:
    """Gaussian estimates along a path: at cost c the variance is 1/c. Drawn from its end, which is a walk backwards."""
    variances = 1 / np.array(costs)
    steps = bits.normal(size=(runs, len(costs))) * np.sqrt(variances - np.append(variances[1:], 0))
    estimates = truth + np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]
    return _stopped(truth, estimates, z * np.sqrt(variances), costs, share=share, least=(z / (share * truth)) ** 2)


def restarted(
    truth: float, *, costs: Sequence[float], z: float, share: float, runs: int, bits: np.random.Generator
) -> Runs:
    """A fresh estimate at each step, the ones before thrown away: what was paid adds up."""
    widths = z / np.sqrt(np.array(costs))
    estimates = truth + bits.normal(size=(runs, len(costs))) * widths / z
    return _stopped(truth, estimates, widths, np.cumsum(costs), share=share, least=(z / (share * truth)) ** 2)


def laplace(
    truth: float, *, costs: Sequence[float], miss: float, share: float, runs: int, bits: np.random.Generator
) -> Runs:
    """Laplace noise of scale 1/epsilon along a path: the coarser is the finer plus, but for a chance, Laplace noise."""
    scales = 1 / np.array(costs)
    level = math.log(len(costs) / miss)
    estimates = np.empty((runs, len(costs)))
    estimates[:, -1] = truth + bits.laplace(size=runs) * scales[-1]
    for step in range(len(costs) - 2, -1, -1):
        stays = bits.random(runs) < (scales[step + 1] / scales[step]) ** 2
        estimates[:, step] = estimates[:, step + 1] + np.where(stays, 0, bits.laplace(size=runs) * scales[step])
    return _stopped(truth, estimates, level * scales, costs, share=share, least=level / (share * truth))


def fixed(truth: float, *, cost: float, z: float, share: float, runs: int, bits: np.random.Generator) -> Runs:
    """One release of a cost chosen beforehand, whatever the truth will be."""
    return refined(truth, costs=[cost], z=z, share=share, runs=runs, bits=bits)


def predicted(
    truth: float, *, ladder: Ladder, most: float, miss: float, share: float, runs: int, bits: np.random.Generator
) -> Runs:
    """Gaussian estimates at costs that parco's own ladder chooses from those before, by parco's own rule."""
    from parco.accuracy.loop import DOUBT, DOUBT_LAST

    units = int(most * UNITS)
    steps = ladder.steps(units)
    z = float(adaptive_quantile_upper(Fraction(miss).limit_denominator(10**6), steps))
    cost, number = np.empty(runs), np.empty(runs, np.int64)
    covers, reached = np.empty(runs, np.bool_), np.empty(runs, np.bool_)
    for run in range(runs):
        at, total, step = 0, 0.0, 0
        need: Fraction | None = None
        while True:
            step += 1
            before = at
            at = ladder.cost(step, at=at, need=need, most=units)
            # The sum of 1/s^2 y over the draws, over that of 1/s^2.
            more = (at - before) / UNITS
            total += more * truth + math.sqrt(more) * bits.normal()
            estimate, width = total / (at / UNITS), z / math.sqrt(at / UNITS)
            if width <= share * abs(estimate) or step == steps or at >= units:
                break
            doubt = float(DOUBT_LAST if step + 1 == steps else DOUBT)
            size = abs(estimate) - doubt * width
            need = Fraction((width / (share * size)) ** 2) if size > 0 else None
        cost[run], number[run] = at / UNITS, step
        covers[run], reached[run] = abs(estimate - truth) <= width, width <= share * abs(estimate)
    return Runs(cost, covers, reached, number, (z / (share * truth)) ** 2)


def _stopped(
    truth: float, estimates: Doubles, widths: Doubles, costs: Sequence[float] | Doubles, *, share: float, least: float
) -> Runs:
    """Each run at the first step whose half-width is at most the share of its estimate, or at the last."""
    good = widths <= share * np.abs(estimates)
    reached = good.any(axis=1)
    at = np.where(reached, good.argmax(axis=1), len(widths) - 1)
    covers = np.abs(estimates[np.arange(len(at)), at] - truth) <= widths[at]
    return Runs(np.asarray(costs)[at], covers, reached, at + 1, least)
