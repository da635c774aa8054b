"""The choice of a refinement: the sharpest answer for a charge in all, or the cheapest for an error.

The law of the answer that comes of it, given the laws of those on its path. Gaussian answers are published on the step
h/2^k, k >= 0 the smallest that leaves 8 steps to the scale (or 16 to the error that is asked for); geometric ones stay
on the lattice of the first. Source: docs/mathematics.md, "Refinement by Gaussian draws" and "Refinement of
geometric noise".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from parco.errors import InternalError, RequestError
from parco.measure import UNITS_MAX, Measure, significant_text
from parco.mechanisms import design
from parco.mechanisms.mechanism import Gaussian, Mechanism, TwoSidedGeometric
from parco.mechanisms.refinement import RefinedGaussian
from parco.privacy.sensitivity import Sensitivity

__all__ = ["Law", "refined_for_cost", "refined_for_error"]

Law = RefinedGaussian | TwoSidedGeometric
"""What an answer that was refined is drawn from."""

_STEPS_PER_SCALE, _STEPS_PER_ERROR = 8, 16
_DIGITS = 15
_WIDEST = Fraction(1 << 20)


def refined_for_cost(
    measure: Measure, sensitivity: Sensitivity, *, step: Fraction, before: Sequence[Mechanism], units: int
) -> Law:
    """For every total of `units` (10^-15) above what the path has cost, the sharpest law within it, or RequestError.

    `before`: the laws on the path, the first one first; `step`: the statistic's own lattice, in its units.
    """
    scale = design.for_cost(measure, sensitivity, step=step, units=units).scale
    last = before[-1]
    if scale >= last.scale:
        raise RequestError("a cost this small makes the answer no sharper: ask for more")
    if isinstance(last, TwoSidedGeometric):
        return _within(replace(last, scale=scale), measure, sensitivity, units)
    law = RefinedGaussian(scale, _lattice(step, scale / _STEPS_PER_SCALE), before=_gaussian(before))
    return _within(law, measure, sensitivity, units)


def refined_for_error(
    measure: Measure,
    sensitivity: Sensitivity,
    *,
    step: Fraction,
    before: Sequence[Mechanism],
    error: Fraction,
    confidence: Fraction,
) -> Law:
    """For every error > 0 below what the path has reached, the cheapest law that reaches it, or RequestError.

    Cheapest on its lattice, up to the rounding of scales (one part in 10^12) and charges (10^-15). An error that would
    cost more than an account can hold is refused.
    """
    last = before[-1]
    if isinstance(last, TwoSidedGeometric):
        scale = design.largest_scale(TwoSidedGeometric, last.lattice, error, confidence=confidence, top=last.scale)
        return _within(replace(last, scale=scale), measure, sensitivity, UNITS_MAX)
    lattice, laws = _lattice(step, error / _STEPS_PER_ERROR), _gaussian(before)

    def law(scale: Fraction) -> RefinedGaussian:
        return RefinedGaussian(scale, lattice, before=laws)

    scale = _largest(lambda scale: law(scale).half_width(confidence) <= error, below=last.scale)
    return _within(law(scale), measure, sensitivity, UNITS_MAX)


def _within(law: Law, measure: Measure, sensitivity: Sensitivity, units: int) -> Law:
    if law.cost_units(sensitivity, measure) <= units:
        return law
    if units < UNITS_MAX:
        raise InternalError("a refinement was designed that costs more than was asked for")
    raise RequestError("an error this small costs more than an account can hold: ask for a larger one")


def _gaussian(laws: Sequence[Mechanism]) -> tuple[Gaussian, ...]:
    return tuple(Gaussian(law.scale, law.lattice) for law in laws)


def _lattice(step: Fraction, most: Fraction) -> Fraction:
    """step/2^k for the smallest k >= 0 with which it is at most `most`."""
    while step > most:
        step /= 2
    return step


def _largest(reaches: Callable[[Fraction], bool], *, below: Fraction) -> Fraction:
    """The largest scale below a limit that reaches what is asked, by bisection; of so many significant digits."""
    wide = below * (1 - Fraction(1, 10**13))
    narrow = below
    while not reaches(narrow := narrow / 2):
        wide = narrow
        if narrow * _WIDEST < below:
            raise RequestError("an error this small is out of reach of a refinement: ask for a larger one")
    while wide / narrow > 1 + Fraction(1, 10**12):
        middle = Fraction(significant_text((wide + narrow) / 2, _DIGITS + 2, up=False))
        if reaches(middle):
            narrow = middle
        else:
            wide = middle
    scale = Fraction(significant_text(narrow, _DIGITS, up=False))
    if not reaches(scale):
        raise InternalError("the largest scale for an error was not found")
    return scale
