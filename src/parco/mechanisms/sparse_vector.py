"""The sparse vector technique: of a stream of scores, which is the first to pass a threshold; stops at the first pass.

The threshold gets noise once, which is kept secret; each score gets noise of its own. Only "no, no, …, yes" goes out.
Scores, threshold and sensitivity are whole lattice steps. One interactive mechanism, reserved and settled once: nothing
else runs on the account meanwhile. Facts: `privacy/sparse_vector.py`; source: docs/mathematics.md, "Sparse vector".
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from parco.errors import InternalError, RequestError
from parco.measure import Measure, units_ceil
from parco.mechanisms.mechanism import check_steps
from parco.noise.bits import BitSource
from parco.noise.draw import draw
from parco.noise.laws import Law, RoundedGaussian, RoundedLaplace
from parco.privacy import sparse_vector

__all__ = ["GaussianSparseVector", "LaplaceSparseVector", "SparseVector", "Stream"]


@dataclass(frozen=True)
class SparseVector(ABC):
    """For every `sensitivity` D of scores, a whole number of `lattice` steps, a stream that stops at its first pass.

    D and lattice in the scores' units; RequestError for a D off the lattice.
    """

    sensitivity: Fraction
    lattice: Fraction

    def __post_init__(self) -> None:
        if self.sensitivity <= 0 or self.lattice <= 0 or (self.sensitivity / self.lattice).denominator != 1:
            raise RequestError("the sensitivity of scores is a whole number of lattice steps, and positive")

    @property
    @abstractmethod
    def threshold_law(self) -> Law:
        """The law of the threshold's noise in lattice steps."""

    @property
    @abstractmethod
    def score_law(self) -> Law:
        """The law of each score's noise in lattice steps."""

    @property
    def scores_max(self) -> int | None:
        """How many scores the cost covers, or None for any number."""
        return None

    @abstractmethod
    def cost_units(self, measure: Measure) -> int:
        """What the whole stream is charged, however soon it stops: 10^-15, rounded up; RequestError without a cost."""

    def stream(self, threshold: int, bits: BitSource) -> Stream:
        """A stream for one threshold, in lattice steps."""
        return Stream(self, threshold, bits)


class Stream:
    """Scores one by one, in lattice steps; ends at the first pass, or with as many scores as the cost covers.

    Safe to share among threads: one score is drawn at a time. Once it has ended nothing begins it again.
    """

    def __init__(self, vector: SparseVector, threshold: int, bits: BitSource) -> None:
        self._bits, self._law, self._left = bits, vector.score_law, vector.scores_max
        self._threshold = threshold + draw(vector.threshold_law, bits)
        self._ended = False
        self._lock = threading.Lock()

    def passes(self, score: int) -> bool:
        """Whether the noisy score is at least the noisy threshold; InternalError after the stream's end.

        RequestError for a score that is no int, before anything is drawn. Any other failure ends the stream.
        """
        check_steps([score])
        with self._lock:
            if self._ended or self._left == 0:
                raise InternalError(
                    "a sparse vector ends at its first pass, or with the last score that its cost covers"
                )
            try:
                if self._left is not None:
                    self._left -= 1
                passed = score + draw(self._law, self._bits) >= self._threshold
                if passed:
                    self._ended = True
            except BaseException:
                self._ended = True
                raise
            return passed

    def __repr__(self) -> str:
        return "<a stream of scores whose noisy threshold is secret>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuses every copy: a copy would ask one threshold twice."""
        raise InternalError("a stream of scores is never copied")


@dataclass(frozen=True)
class LaplaceSparseVector(SparseVector):
    """Rounded Laplace noise: 2 D/epsilon on the threshold, 4 D/epsilon on each score; epsilon > 0 in all."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon <= 0:
            raise RequestError("epsilon is a positive number")

    @property
    def threshold_law(self) -> Law:
        """Scale 2 D/epsilon."""
        return RoundedLaplace(2 * self.sensitivity / self.epsilon / self.lattice)

    @property
    def score_law(self) -> Law:
        """Scale 4 D/epsilon."""
        return RoundedLaplace(4 * self.sensitivity / self.epsilon / self.lattice)

    def cost_units(self, measure: Measure) -> int:
        """Epsilon in pure, however many scores there are."""
        return units_ceil(sparse_vector.cost_upper(self.epsilon, measure))


@dataclass(frozen=True)
class GaussianSparseVector(SparseVector):
    """Rounded Gaussian noise of these two scales, for at most `most` scores."""

    threshold_scale: Fraction
    score_scale: Fraction
    most: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold_scale <= 0 or self.score_scale <= 0 or self.most < 1:
            raise RequestError("scales of noise are positive, and a stream has one score or more")

    @property
    def threshold_law(self) -> Law:
        """Of `threshold_scale`."""
        return RoundedGaussian(self.threshold_scale / self.lattice)

    @property
    def score_law(self) -> Law:
        """Of `score_scale`."""
        return RoundedGaussian(self.score_scale / self.lattice)

    @property
    def scores_max(self) -> int:
        """`most`."""
        return self.most

    def cost_units(self, measure: Measure) -> int:
        """The less of two lines in renyi, that of `most` Gaussian answers elsewhere; none in pure."""
        ratios = {
            "threshold": (self.sensitivity / self.threshold_scale) ** 2,
            "score": (self.sensitivity / self.score_scale) ** 2,
        }
        return units_ceil(sparse_vector.gaussian_cost_upper(measure, **ratios, scores=self.most))
