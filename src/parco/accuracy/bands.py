"""Bands: half-widths that hold at every step of a ladder at once, and so at the stop, however it was chosen.

A 95 % interval is no 95 % interval at a stopping time: the rule stops where the noise makes the estimate look sharp.
Source: docs/mathematics.md, "Intervals at a stop".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from parco.accuracy.measurement import Noise
from parco.accuracy.noises import GaussianNoise, rounded_up_at
from parco.balls import ball, precision, upper
from parco.errors import RequestError

__all__ = ["Adaptive", "Band", "PerStep", "TimeUniform", "check_adaptive", "sharpest"]

_BITS = 128
_ADAPTIVE_MISS_MIN, _ADAPTIVE_STEPS_MAX = Fraction(1, 10**6), 40
"""With more steps the bins of the bound make intervals wider than any use."""


class Band(Protocol):
    """Half-widths such that, except with a chance fixed beforehand, all steps cover the exact value of a cell."""

    def half_width(self, noise: Noise) -> Fraction:
        """The half-width at a step whose estimate has this noise; RequestError for noise the band knows nothing of."""
        ...


@dataclass(frozen=True)
class PerStep:
    """For every `miss` in (0, 1) and number of `steps` >= 1, intervals that miss with chance miss/steps at each step.

    Any noise and any stopping rule, for costs that were fixed before the first step: the union bound over the steps.
    Costs chosen on the way may favour noise that looks extreme, which this does not cover.
    """

    miss: Fraction
    steps: int

    def __post_init__(self) -> None:
        _check_miss(self.miss)
        if self.steps < 1:
            raise RequestError("a ladder has one step or more")

    def half_width(self, noise: Noise) -> Fraction:
        """That of the noise at level 1 - miss/steps."""
        return noise.half_width(1 - self.miss / self.steps)


@dataclass(frozen=True)
class Adaptive:
    """For every `miss` in [1e-6, 1) and 1 to 40 `steps`, intervals of a Gaussian path, whatever costs are chosen.

    z sqrt(t) at variance t, with a z above that of `PerStep` by what choosing can gain. Rounded up.
    """

    miss: Fraction
    steps: int

    def __post_init__(self) -> None:
        check_adaptive(self.miss, self.steps)

    def half_width(self, noise: Noise) -> Fraction:
        """The band at the noise's variance; RequestError for noise that is not Gaussian."""
        # It needs numpy, and nothing else here does.
        from parco.accuracy.adaptive import adaptive_quantile_upper

        z = adaptive_quantile_upper(self.miss, self.steps)
        return rounded_up_at(_gaussian(noise).variance, z**2 / 2, _gaussian(noise).rounding)


@dataclass(frozen=True)
class TimeUniform:
    """For every `miss` in (0, 1) and `variance` > 0, intervals of a Gaussian path that hold at any number of steps.

    sqrt(2 t (1 + t/r) (log(1/miss) + log(1 + r/t)/2)) at variance t, with r = 8 `variance`, so that they are sharpest
    near t = `variance`; there they are narrower than `PerStep` with 21 steps or more. Rounded up.
    """

    miss: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        _check_miss(self.miss)
        if self.variance <= 0:
            raise RequestError("a variance is a positive number")

    def half_width(self, noise: Noise) -> Fraction:
        """The band at the noise's variance; RequestError for noise that is not Gaussian."""
        known = _gaussian(noise)
        ratio = self.variance * _SHARPEST / known.variance
        return rounded_up_at(known.variance, _half_square(self.miss, ratio), known.rounding)


_SHARPEST = 8
"""r over the variance at which the band is sharpest: near the best for a miss of some percent."""


def sharpest(miss: Fraction, *, steps: int, variances: tuple[Fraction, Fraction]) -> PerStep | TimeUniform:
    """For every Gaussian path of at most `steps` steps between two variances > 0, the band that is narrower at both.

    `PerStep` where neither is. Steps and variances are known before the first step, and so is the choice.
    """
    middle = Fraction(math.sqrt(variances[0] * variances[1]))
    uniform, each = TimeUniform(miss, middle), PerStep(miss, steps)
    ends = [GaussianNoise(variance, Fraction(0)) for variance in variances]
    return uniform if all(uniform.half_width(end) < each.half_width(end) for end in ends) else each


@lru_cache(maxsize=4096)
def _half_square(miss: Fraction, ratio: Fraction) -> Fraction:
    """(1 + 1/ratio) (log(1/miss) + log(1 + ratio)/2), ratio = r/t, rounded up."""
    with precision(_BITS):
        return upper(ball(1 + 1 / ratio) * (ball(1 / miss).log() + ball(1 + ratio).log() / 2))


def _gaussian(noise: Noise) -> GaussianNoise:
    if not isinstance(noise, GaussianNoise):
        raise RequestError("this band is for Gaussian noise: take a ladder of fixed costs, and intervals of each step")
    return noise


def check_adaptive(miss: Fraction, steps: int) -> None:
    """RequestError for what `Adaptive` knows no interval for."""
    _check_miss(miss)
    if miss < _ADAPTIVE_MISS_MIN:
        raise RequestError(
            "intervals for costs chosen on the way are proven up to a confidence of 0.999999 a cell: take a ladder of"
            " fixed costs, such as Geometric"
        )
    if not 1 <= steps <= _ADAPTIVE_STEPS_MAX:
        raise RequestError(
            f"intervals for costs chosen on the way hold for {_ADAPTIVE_STEPS_MAX} steps, those that made a stored"
            " answer among them: take fewer, a ladder of fixed costs such as Geometric, or a fresh answer"
        )


def _check_miss(miss: Fraction) -> None:
    if not 0 < miss < 1:
        raise RequestError("a confidence lies strictly between 0 and 1")
