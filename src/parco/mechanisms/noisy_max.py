"""Report-noisy-max: the candidate whose score is largest once each got exact noise of its own; no score goes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from parco.errors import RequestError
from parco.measure import Measure, units_ceil
from parco.mechanisms.mechanism import check_steps
from parco.noise import laws
from parco.noise.bits import BitSource
from parco.privacy import noisy_max, pure

__all__ = ["NoisyMax"]


@dataclass(frozen=True)
class NoisyMax:
    """For every scale b > 0 of scores on a lattice, chooses by two-sided geometric noise (`privacy/noisy_max.py`).

    Ties go to the candidate that is declared first: a rule that does not look at data. Noisy max with Gumbel noise is
    `mechanism.Exponential`, drawn as one choice.
    """

    scale: Fraction
    lattice: Fraction

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.lattice <= 0:
            raise RequestError("scale and lattice step of noise are positive numbers")

    def cost_units(self, spread: Fraction, measure: Measure) -> int:
        """What a choice is charged: 10^-15 of the measure, rounded up; `spread` as in `privacy/noisy_max.py`."""
        return units_ceil(pure.cost_upper(noisy_max.epsilon(spread, self.scale, lattice=self.lattice), measure))

    def choose(self, scores: Sequence[int], bits: BitSource) -> int:
        """The place of one candidate; `scores` in lattice steps, ints and at least one of them, or RequestError."""
        from parco.noise.vector import add_noise

        if not scores:
            raise RequestError("a choice needs at least one candidate")
        check_steps(scores)
        law = laws.TwoSidedGeometric(self.scale / self.lattice)
        noisy = [steps for block in add_noise(scores, law, bits) for steps in block]
        return noisy.index(max(noisy))
