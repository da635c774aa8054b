"""The choice of a mechanism: the least noise for a cost, or the least cost for an error.

A statistic lies on its own lattice of step h; noise is drawn on the step g = h/2^k, k >= 0 the smallest with
g <= scale/8, so that f/g stays an integer and rounding adds next to nothing to the variance. pure accounts get
two-sided geometric noise, all others Gaussian noise. What is chosen among candidates is so by the exponential mechanism
in every measure. Source: docs/mathematics.md, "Noise on a lattice".
"""

from __future__ import annotations

import math
from fractions import Fraction

from parco.balls import ball, lower, precision
from parco.errors import InternalError, RequestError
from parco.measure import COST_UNIT, UNITS_MAX, Measure, decimal_text, significant_text
from parco.mechanisms.mechanism import Additive, Exponential, Gaussian, TwoSidedGeometric, root_upper
from parco.noise import intervals
from parco.privacy import gaussian
from parco.privacy.sensitivity import Sensitivity

__all__ = ["choice_for_cost", "choice_for_error", "for_cost", "for_error", "largest_scale"]

_STEPS_PER_SCALE = 8
_DIGITS, _BITS = 15, 128
_COST_MAX = decimal_text(UNITS_MAX * COST_UNIT)


def for_cost(measure: Measure, sensitivity: Sensitivity, *, step: Fraction, units: int) -> Additive:
    """For every charge of `units` (10^-15 of the measure), returns the least noise within it, or raises RequestError.

    `step`: the statistic's own lattice h, in its units. The mechanism's charge, rounded up, is at most `units`; a
    Gaussian scale is rounded up to 16 significant digits, a geometric one is exact.
    """
    _check_step(step)
    _check_units(units)
    cost = units * COST_UNIT
    family = _family(measure)
    if family is Gaussian:
        scale = root_upper(gaussian.cost_factor(measure) * sensitivity.l2_squared / cost)
    else:
        scale = sensitivity.l1 / cost
    mechanism = family(scale, _lattice(step, scale))
    if mechanism.cost_units(sensitivity, measure) > units:
        raise InternalError("a mechanism was designed that costs more than was asked for")
    return mechanism


def for_error(
    measure: Measure, sensitivity: Sensitivity, *, step: Fraction, error: Fraction, confidence: Fraction
) -> Additive:
    """For every error > 0, returns the cheapest mechanism with half_width(confidence) <= error, or raises RequestError.

    `step` and `error` in the statistic's units, 0 < confidence < 1. Cheapest up to the rounding of scales (one part in
    10^12) and charges (10^-15). An error that would cost more than an account can hold is refused.
    """
    _check_step(step)
    if error <= 0:
        raise RequestError("the error asked for is a positive number")
    family = _family(measure)
    # The half-width jumps where the lattice changes, so it is not monotone in the scale over all. For one k it is, and
    # the scales of k all lie above those of k + 1: the first k that has a scale has the largest.
    lattice, top = step, None
    while True:
        bottom = _STEPS_PER_SCALE * lattice
        scale = largest_scale(family, lattice, error, confidence=confidence, top=top)
        charge = family(max(scale, bottom), lattice).cost_units(sensitivity, measure)
        if charge > UNITS_MAX:
            raise RequestError(f"an error this small costs more than {_COST_MAX}: ask for a larger one")
        if scale >= bottom:
            # The same charge may buy a little less noise; where that falls into the next k, the error must hold anew.
            mechanism = for_cost(measure, sensitivity, step=step, units=charge)
            if mechanism.half_width(confidence) <= error:
                return mechanism
        lattice, top = lattice / 2, bottom


def choice_for_cost(measure: Measure, sensitivity: Sensitivity, *, step: Fraction, units: int) -> Exponential:
    """For every charge of `units` (10^-15 of the measure), returns the sharpest choice in it, or raises RequestError.

    `sensitivity` as `Exponential.cost_units` takes it. The scale is rounded up to 15 significant digits, or to the next
    number of that many digits where the charge would be exceeded.
    """
    _check_step(step)
    _check_units(units)
    # Bisection of the scale's logarithm, between one that is too dear and one that is not.
    dear = cheap = sensitivity.l1 / (units * COST_UNIT)
    while Exponential(cheap, step).cost_units(sensitivity, measure) > units:
        cheap *= 2
    while Exponential(dear, step).cost_units(sensitivity, measure) <= units:
        dear /= 2
    while cheap / dear > 1 + Fraction(1, 10**_DIGITS):
        middle = Fraction(significant_text((cheap + dear) / 2, _DIGITS + 2, up=True))
        if Exponential(middle, step).cost_units(sensitivity, measure) > units:
            dear = middle
        else:
            cheap = middle
    mechanism = Exponential(Fraction(significant_text(cheap, _DIGITS, up=True)), step)
    if mechanism.cost_units(sensitivity, measure) > units:
        raise InternalError("a choice was designed that costs more than was asked for")
    return mechanism


def choice_for_error(
    measure: Measure,
    sensitivity: Sensitivity,
    *,
    step: Fraction,
    error: Fraction,
    confidence: Fraction,
    candidates: int,
) -> Exponential:
    """For every error > 0, returns the cheapest choice with score_lost(confidence) <= error, or raises RequestError.

    `error` in the scores' units; cheapest up to the rounding of scales to 14 significant digits.
    """
    _check_step(step)
    if error <= 0:
        raise RequestError("the error asked for is a positive number")
    with precision(_BITS):
        limit = lower(ball(error) / (ball(candidates) / ball(1 - confidence)).log())
    mechanism = Exponential(Fraction(significant_text(limit, _DIGITS - 1, up=False)), step)
    if mechanism.score_lost(confidence, candidates=candidates) > error:
        # Both are rounded outwards: one digit less settles it.
        mechanism = Exponential(Fraction(significant_text(limit * (1 - Fraction(1, 10**13)), 14, up=False)), step)
    if mechanism.cost_units(sensitivity, measure) > UNITS_MAX:
        raise RequestError(f"an error this small costs more than {_COST_MAX}: ask for a larger one")
    return mechanism


def _family(measure: Measure) -> type[Additive]:
    return TwoSidedGeometric if measure == Measure.PURE else Gaussian


def largest_scale(
    family: type[Additive], lattice: Fraction, error: Fraction, *, confidence: Fraction, top: Fraction | None
) -> Fraction:
    """The largest scale, below `top`, whose half-width on this lattice is at most `error`; rounded down."""
    steps = math.floor(error / lattice)
    limit = lattice * intervals.largest_scale(family.law_type, steps, confidence=confidence)
    if top is not None:
        limit = min(limit, top * (1 - Fraction(1, 10**13)))
    return Fraction(significant_text(limit, _DIGITS, up=False))


def _lattice(step: Fraction, scale: Fraction) -> Fraction:
    """h/2^k for the smallest k >= 0 that leaves at least eight steps to the scale."""
    lattice = step
    while _STEPS_PER_SCALE * lattice > scale:
        lattice /= 2
    return lattice


def _check_units(units: int) -> None:
    if not 1 <= units <= UNITS_MAX:
        raise RequestError(f"a release costs more than 0 and at most {_COST_MAX}: ask for a cost in that range")


def _check_step(step: Fraction) -> None:
    if step <= 0:
        raise RequestError("a statistic's lattice step is a positive number")
