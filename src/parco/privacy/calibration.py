"""Calibration of whole schedules: the least noise that meets a target, and how often a schedule may run under one.

Whatever comes back was proven by the composition itself: the target holds at the number returned, and fails at one a
little smaller. Source: docs/mathematics.md, "Calibration".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from parco.balls import ball, precision, upper
from parco.errors import InternalError, RequestError
from parco.measure import Exactable, exact, significant_text
from parco.privacy import gaussian
from parco.privacy.composition import Composition, Interval, compose
from parco.privacy.schedule import Schedule

__all__ = ["Calibration", "calibrate", "calibrate_advantage", "runs_within"]

_DIGITS = 14
_BITS = 192
_TOLERANCE = Fraction(1, 10**6)
# Factors searched; beyond, noise is either none or no answer.
_FACTOR_MOST = Fraction(2) ** 60
_STEPS_MAX, _ENDS = 100, 2
_RUNS_MOST = 10**9


@dataclass(frozen=True)
class Calibration:
    """The least `scale_factor` for the noise of a whole schedule, the `schedule` with that noise, and the figure it
    reaches.

    `reached`: the interval of epsilon at delta, or of the advantage; its upper end is at most the target.
    """

    scale_factor: Fraction
    schedule: Schedule
    reached: Interval


def calibrate(schedule: Schedule, *, epsilon: Exactable, delta: Exactable) -> Calibration:
    """For every schedule, epsilon > 0 and 0 < delta < 1, returns the least noise with (epsilon, delta), or raises.

    The noise of every release is multiplied by one factor, which is proven to suffice, while a factor smaller by one
    part in 10^6 does not. RequestError where a release has no scale, where its own delta leaves nothing, or where the
    factor would leave what compositions take (sensitivity/scale from 1e-9 to 1e6).
    Source: docs/mathematics.md, "Calibration".
    """
    target, at = exact(epsilon, "epsilon"), exact(delta, "delta")
    if target <= 0:
        raise RequestError("epsilon is a positive number; with epsilon 0, ask for an advantage")
    plain = compose(schedule)
    if plain.mu_squared is not None:
        return _gaussian(schedule, plain.mu_squared, target, at)
    return _least(schedule, target, lambda composition: composition.epsilon(at))


def calibrate_advantage(schedule: Schedule, *, advantage: Exactable) -> Calibration:
    """For every schedule and 0 < advantage < 1, returns the least noise with that attack risk at most, or raises.

    The advantage is the largest difference between true- and false-positive rate of any test whether a unit is in the
    data: the total variation distance of both laws, delta at epsilon 0. Otherwise as `calibrate`.
    Source: docs/mathematics.md, "Calibration".
    """
    target = exact(advantage, "advantage")
    if not 0 < target < 1:
        raise RequestError("an advantage lies strictly between 0 and 1")
    return _least(schedule, target, lambda composition: composition.delta(0))


def runs_within(schedule: Schedule, *, epsilon: Exactable, delta: Exactable) -> int:
    """For every schedule, epsilon >= 0 and 0 < delta < 1, returns how often the whole of it may run, or raises
    RequestError.

    The largest number proven to keep (epsilon, delta), 0 where not even one run does, at most 10^9 releases of a kind.
    Source: docs/mathematics.md, "Calibration".
    """
    target, at = exact(epsilon, "epsilon"), exact(delta, "delta")
    most = _RUNS_MOST // max(release.times for release in schedule.releases)

    def fits(runs: int) -> bool:
        longer = tuple(replace(release, times=release.times * runs) for release in schedule.releases)
        try:
            return compose(replace(schedule, releases=longer)).epsilon(at).upper <= target
        except RequestError:
            # The releases' own deltas have reached delta.
            if runs == 1:
                raise
            return False

    if not fits(1):
        return 0
    enough, more = 1, 2
    while more <= most and fits(more):
        enough, more = more, 2 * more
    more = min(more, most + 1)
    while more - enough > 1:
        middle = (enough + more) // 2
        enough, more = (middle, more) if fits(middle) else (enough, middle)
    return enough


def _gaussian(schedule: Schedule, total: Interval, epsilon: Fraction, delta: Fraction) -> Calibration:
    """factor^2 = total mu squared / the largest mu squared that meets the target: no search over compositions."""
    with precision(_BITS):
        root = upper(ball(total.upper / gaussian.mu_squared_lower(epsilon, delta)).sqrt())
    return _calibration(schedule, root, lambda composition: composition.epsilon(delta))


def _least(schedule: Schedule, target: Fraction, figure: Callable[[Composition], Interval]) -> Calibration:
    """The least factor whose figure is at most the target, by secants of log figure over log factor in a bracket."""

    search = _Search(target, lambda factor: figure(compose(schedule.with_scale(factor), _TOLERANCE / 100)))
    return _calibration(schedule, search.run(), figure)


class _Search:
    """For a figure that falls as the factor grows, the least factor at which it is at most the target.

    Throughout the figure is above the target at `low` (or low is 0) and proven to be at most it at `high`.
    """

    def __init__(self, target: Fraction, figure: Callable[[Fraction], Interval]) -> None:
        self._target, self._figure = target, figure
        self._low, self._high = Fraction(0), _FACTOR_MOST
        # (log factor, log figure/target) of the last two factors tried.
        self._points: list[tuple[float, float]] = []

    def run(self) -> Fraction:
        """A factor proven to suffice, at most one part in a million above one that does not."""
        for _ in range(_STEPS_MAX):
            self._try(self._next())
            if self._low and self._high / self._low - 1 <= _TOLERANCE:
                return self._high
        raise InternalError("the noise for this target could not be found to one part in a million")

    def _try(self, factor: Fraction) -> None:
        found = self._figure(factor)
        if found.upper <= self._target:
            self._high = factor
        else:
            self._low = factor
        if found.upper > 0:
            self._points = [*self._points[-1:], (math.log(factor), math.log(found.upper / self._target))]

    def _next(self) -> Fraction:
        if not self._low or self._high == _FACTOR_MOST:
            return self._outward()
        guess = self._secant()
        # Once the guess is good, one step above it and one below it close the bracket.
        for share in (1 + _TOLERANCE / 3, 1 - _TOLERANCE / 3):
            tried = _rounded(guess * share)
            if self._low * (1 + _TOLERANCE / 9) < tried < self._high * (1 - _TOLERANCE / 9):
                return tried
        return _rounded(Fraction(math.sqrt(self._low * self._high)))

    def _outward(self) -> Fraction:
        """From 1 in steps that grow, until the target lies between two factors."""
        if not self._points and not self._low and self._high == _FACTOR_MOST:
            return Fraction(1)
        factor = self._low * 4 if self._low else self._high / 4
        if not 1 / _FACTOR_MOST < factor < _FACTOR_MOST:
            raise RequestError("no factor between 2^-60 and 2^60 for the noise meets this target")
        return factor

    def _secant(self) -> Fraction:
        if len(self._points) == _ENDS and self._points[0][1] != self._points[1][1]:
            (x, y), (u, v) = self._points
            log_factor = u - v * (u - x) / (v - y)
            if math.log(self._low) < log_factor < math.log(self._high):
                return Fraction(math.exp(log_factor))
        return Fraction(math.sqrt(self._low * self._high))


def _calibration(schedule: Schedule, factor: Fraction, figure: Callable[[Composition], Interval]) -> Calibration:
    rounded = _rounded(factor)
    scaled = schedule.with_scale(rounded)
    return Calibration(rounded, scaled, figure(compose(scaled, _TOLERANCE / 100)))


def _rounded(factor: Fraction) -> Fraction:
    """Up to fourteen significant digits, so that scales print short: more noise is on the safe side."""
    return exact(significant_text(factor, _DIGITS, up=True), "factor")
