"""Several answers to one question made into one: post-processing, so that it costs nothing.

Each is weighted by the precision of its noise. Source: docs/mathematics.md, "Answers combined".
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from parco.errors import RequestError
from parco.measure import Cost, Exactable, exact
from parco.mechanisms.mechanism import Additive, Gaussian, TwoSidedGeometric
from parco.mechanisms.refinement import RefinedGaussian, reach_steps
from parco.mechanisms.stopping import StoppedGaussian
from parco.session.receipt import JointReceipt
from parco.session.release import Answer, Release

__all__ = ["combine"]

_Noise = Gaussian | RefinedGaussian | StoppedGaussian | TwoSidedGeometric


def combine(releases: Sequence[Release[Answer]], *, confidence: Exactable | None = None) -> Release[Answer]:
    """For every two or more independent answers to one question, returns the one that they make together.

    Of each path of refinements take the last answer: it holds what the others do, and two of one path are refused, as
    are answers to different questions, or to one question on different versions of the data. confidence: of the
    intervals, by default that of the answers. The value is the mean, weighted by 1/scale^2 (for Gaussian noise that of
    least variance), on the finest of the answers' lattices, halves upwards. Of Gaussian noise the interval is that of
    the mean's variance, with every rounding at its worst; of geometric noise it joins those of the answers, each at its
    share of the error, so that both cover with at least the confidence. Nothing is charged; the receipt holds those of
    all answers. RequestError for anything else.
    """
    parts, level = _checked(releases), _level(releases, confidence)
    laws = [_law(part) for part in parts]
    precisions = [1 / law.scale**2 for law in laws]
    weights = [precision / sum(precisions) for precision in precisions]
    lattice = min(law.lattice for law in laws)
    values = tuple(
        math.floor(
            sum(w * law.lattice * steps for w, law, steps in zip(weights, laws, cells, strict=True)) / lattice
            + Fraction(1, 2)
        )
        for cells in zip(*(part.value.values for part in parts), strict=True)
    )
    width = lattice * _reach(laws, weights, lattice=lattice, confidence=level)
    # Plain intervals, whatever those of the parts were.
    answer = replace(
        parts[0].value, values=values, lattice=lattice, half_width=width, confidence=level, at_the_stop=False
    )
    receipt = JointReceipt.of(parts[0].receipt.question, *(part.receipt for part in parts))
    return Release(answer, receipt, repeat=True, cost=Cost(0), remaining=min(part.remaining for part in parts))


def _checked(releases: Sequence[Release[Answer]]) -> list[Release[Answer]]:
    parts = list(releases)
    if len(parts) < 2 or not all(isinstance(part, Release) for part in parts):
        raise RequestError("combine takes a list of two or more releases")
    for part in parts:
        told = type(part.value) is Answer and not isinstance(part.receipt, JointReceipt)
        if not told or json.loads(part.receipt.evidence.answer)["cells"] != list(part.value.values):
            raise RequestError(
                "combine takes answers as they were released: counts and sums, not what was made of them"
            )
        _law(part)
    first = parts[0].receipt
    if any(part.receipt.asked != first.asked or part.receipt.private != first.private for part in parts):
        raise RequestError(
            "these answers are to different questions (or data versions, bounds or ledgers): they measure different"
            " things, and their mean none of them"
        )
    roots = [min((*part.receipt.refines, part.receipt.release)) for part in parts]
    if len(set(roots)) < len(roots):
        raise RequestError(
            "two of these are one answer, or an answer and what refines it: the last of a path holds all that the"
            " others do, so take that one alone"
        )
    return parts


def _level(releases: Sequence[Release[Answer]], confidence: Exactable | None) -> Fraction:
    if confidence is not None:
        level = exact(confidence, "confidence")
        if not 0 < level <= 1 - Fraction(1, 10**12):
            raise RequestError("confidence lies above 0 and at most 1 - 1e-12, such as 0.95")
        return level
    levels = {release.value.confidence for release in releases}
    if len(levels) > 1:
        raise RequestError("these answers have intervals of different confidence: name one with confidence=")
    return levels.pop()


def _law(release: Release[Answer]) -> _Noise:
    mechanism = release.receipt.mechanism
    if isinstance(mechanism, _Noise):
        return mechanism
    raise RequestError("combine takes answers with noise of known precision: counts and sums, not choices")


def _reach(laws: Sequence[_Noise], weights: Sequence[Fraction], *, lattice: Fraction, confidence: Fraction) -> int:
    """The interval's half-width in lattice steps."""
    if all(isinstance(law, Gaussian | RefinedGaussian | StoppedGaussian) for law in laws):
        # Each answer is off by its Gaussian draws, by their roundings, and, refined, by that of the estimate.
        variance = sum((w**2 * _variance(law) for w, law in zip(weights, laws, strict=True)), Fraction(0))
        slack = sum((w * _slack(law) for w, law in zip(weights, laws, strict=True)), Fraction(0))
        return reach_steps(variance, slack=slack, lattice=lattice, confidence=confidence)
    each = 1 - (1 - confidence) / len(laws)
    reach = sum(
        (w * law.half_width(each) for w, law in zip(weights, laws, strict=True) if isinstance(law, Additive)),
        Fraction(0),
    )
    return math.floor(reach / lattice + Fraction(1, 2))


def _variance(law: _Noise) -> Fraction:
    if isinstance(law, StoppedGaussian):
        return law.variance
    return law.path.variance if isinstance(law, RefinedGaussian) else law.scale**2


def _slack(law: _Noise) -> Fraction:
    return law.lattice / 2 + (law.slack if isinstance(law, RefinedGaussian | StoppedGaussian) else 0)
