"""Several answers to one question made into one: post-processing, so that it costs nothing.

Each is weighted by the precision of its noise. Source: docs/mathematics.md, "Answers combined".
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    scales = [part.receipt.scales or (_law(part).scale,) * len(part.value.values) for part in parts]
    lattice = min(_law(part).lattice for part in parts)
    # Most answers have one scale in all cells.
    found = {own: _Mean.of(parts, own, lattice=lattice, confidence=level) for own in set(zip(*scales, strict=True))}
    means = [found[own] for own in zip(*scales, strict=True)]
    values = tuple(
        mean.of_cell(cells)
        for mean, cells in zip(means, zip(*(part.value.values for part in parts), strict=True), strict=True)
    )
    widths = tuple(mean.half_width for mean in means)
    answer = replace(
        parts[0].value,
        values=values,
        lattice=lattice,
        half_width=max(mean.half_width for mean in found.values()),
        half_widths=widths if len(found) > 1 else (),
        confidence=level,
        # Plain intervals, whatever those of the parts were.
        at_the_stop=False,
    )
    receipt = JointReceipt.of(parts[0].receipt.question, *(part.receipt for part in parts))
    return Release(answer, receipt, repeat=True, cost=Cost(0), remaining=min(part.remaining for part in parts))


@dataclass(frozen=True)
class _Mean:
    """The mean of answers in the cells where they have the same scales; weights in steps of its own `lattice`."""

    weights: tuple[Fraction, ...]
    half_width: Fraction

    @classmethod
    def of(
        cls, parts: Sequence[Release[Answer]], scales: Sequence[Fraction], *, lattice: Fraction, confidence: Fraction
    ) -> _Mean:
        laws = [_at_scale(_law(part), scale) for part, scale in zip(parts, scales, strict=True)]
        precisions = [1 / law.scale**2 for law in laws]
        weights = [precision / sum(precisions) for precision in precisions]
        width = lattice * _reach(laws, weights, lattice=lattice, confidence=confidence)
        return cls(tuple(w * law.lattice / lattice for w, law in zip(weights, laws, strict=True)), width)

    def of_cell(self, steps: Sequence[int]) -> int:
        """In steps of the lattice, halves upwards."""
        return math.floor(sum(w * one for w, one in zip(self.weights, steps, strict=True)) + Fraction(1, 2))


def _at_scale(law: _Noise, scale: Fraction) -> _Noise:
    """That of one cell, where cells stand apart."""
    return law if scale == law.scale else replace(law, scale=scale)


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
