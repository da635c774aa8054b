"""Facts of report-noisy-max: which score is largest after two-sided geometric noise, and nothing else.

Given all other noise, a candidate wins where its own noise reaches a place that moves by at most the largest less the
least change of a score. An eps-pure mechanism, and no more: its range may be twice that, unlike with Gumbel noise,
which is the exponential mechanism (`exponential.py`).
"""

from __future__ import annotations

from fractions import Fraction

from parco.errors import RequestError

__all__ = ["epsilon"]


def epsilon(spread: Fraction, scale: Fraction, *, lattice: Fraction) -> Fraction:
    """For every spread, scale and lattice step > 0, returns the exact pure cost spread/scale, or raises RequestError.

    `spread`: how much more one score may change than another, at most, where a unit comes or goes: D for counts, which
    all change in one direction, 2 D for scores of sensitivity D. In units of the scores, as `scale`; a whole number of
    steps of `lattice`, on which the scores lie. Source: Dwork & Roth 2014, claim 3.9; docs/mathematics.md, "Noisy max".
    """
    if spread <= 0 or scale <= 0 or lattice <= 0:
        raise RequestError("spread, scale and lattice step of scores are positive numbers")
    if (spread / lattice).denominator != 1:
        raise RequestError("noisy max with two-sided geometric noise needs a spread of whole lattice steps")
    return spread / scale
