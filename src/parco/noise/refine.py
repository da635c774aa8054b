"""Refinement of two-sided geometric noise: from noise already released to finer noise of the same cell, exactly.

With ratios a1 > a2, noise of a1 is noise of a2 plus an independent step: 0 with probability
w = (a2/a1) ((1 - a1)/(1 - a2))^2, otherwise two-sided geometric of a1. Given the sum n1, the finer noise n2 has the law
of that. Drawn so, the pair has the law of a path whose last value tells everything: all that was released loses no more
privacy than n2 alone. Source: docs/mathematics.md, "Refinement of geometric noise".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from parco.balls import arb, ball
from parco.errors import RequestError
from parco.noise.bits import BitSource
from parco.noise.draw import integer_at
from parco.noise.uniform import Uniform

__all__ = ["Refinement", "refine"]


@dataclass(frozen=True)
class Refinement:
    """For every two scales coarse > fine > 0 in lattice steps, the law of n2 given n1, or RequestError."""

    coarse: Fraction
    fine: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.fine < self.coarse:
            raise RequestError("noise is refined to a smaller scale, and a scale is positive")

    def tail(self, noise: int, start: int) -> arb:
        """P(n2 >= start given n1 = noise), noise >= 0, in a ball of the current precision.

        n1 is kept with probability k = (a2/a1)^(n1 + 1) (1 - a1^2)/(1 - a2^2); otherwise n2 has probabilities
        proportional to a2^abs(n) a1^abs(n1 - n), which are three geometric pieces: below 0, up to n1, and above.
        """
        coarse, fine = ball(-1 / self.coarse).exp(), ball(-1 / self.fine).exp()
        ratio, outer = ball(1 / self.coarse - 1 / self.fine).exp(), ball(-1 / self.coarse - 1 / self.fine).exp()
        keep = ratio ** (noise + 1) * (1 - coarse**2) / (1 - fine**2)
        # All three pieces divided by a1^n1, so that none of them vanishes.
        side, above = outer / (1 - outer), ratio**noise / (1 - outer)
        total = side + (1 - ratio ** (noise + 1)) / (1 - ratio) + above * outer
        if start > noise:
            weight = above * outer ** (start - noise)
        elif start >= 0:
            weight = above * outer + (ratio**start - ratio ** (noise + 1)) / (1 - ratio)
        else:
            weight = total - outer ** (1 - start) / (1 - outer)
        return (keep if start <= noise else arb(0)) + (1 - keep) * weight / total


def refine(refinement: Refinement, noise: int, bits: BitSource) -> int:
    """For every noise n1 that the coarse law drew, returns n2: together with n1 exactly the path's law.

    In lattice steps. Reads 64 bits, and 64 more each time they leave two integers possible. A function of one uniform
    number, non-decreasing.
    """
    uniform = Uniform.begun(bits)
    while True:
        # tail falls: v counts from the far end. For n1 < 0 the law is that of -n1, turned round.
        at = integer_at(
            lambda start: refinement.tail(abs(noise), start),
            uniform if noise < 0 else uniform.mirrored(),
            guess=abs(noise),
        )
        if at is not None:
            return -at if noise < 0 else at
        uniform = uniform.longer(bits)
