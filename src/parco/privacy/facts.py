"""Facts of mechanisms, exact: what one release loses, whatever it is used for.

A mechanism is known by its dominating pair: two laws between which no neighbouring data sets' outputs are easier to
tell apart. `composition/` composes pairs, `cost` says what an account is charged. Records are frozen and their numbers
rational. Source: docs/mathematics.md, "Costs" and "Pairs".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

from parco.errors import RequestError
from parco.measure import exact, exact_text

__all__ = [
    "Approximate",
    "Exponential",
    "Facts",
    "Gaussian",
    "Laplace",
    "PrivacyProfile",
    "Pure",
    "RandomisedResponse",
    "SparseVector",
    "facts_of",
]


@dataclass(frozen=True)
class Facts(ABC):
    """What is known of one mechanism; `facts_of` reads a record, `record` writes it."""

    tag: ClassVar[str]
    """How a schedule names it."""
    attained: ClassVar[bool] = True
    """Whether a mechanism of this kind loses all that the pair says: else a composition is valid, not tight."""

    @property
    @abstractmethod
    def size(self) -> float:
        """How large the loss is, for a first look: D/s, or epsilon, as the nearest double."""

    @property
    @abstractmethod
    def key(self) -> tuple[object, ...]:
        """Equal for equal mechanisms of a kind, and quick to hash: whole numbers (a fraction's own hash is slow)."""

    @classmethod
    @abstractmethod
    def read(cls, record: Mapping[str, object]) -> Self:
        """The facts in a record's own keys, or RequestError."""

    @abstractmethod
    def record(self) -> dict[str, object]:
        """The facts as text, in the keys that `read` takes."""

    def with_scale(self, factor: Fraction) -> Facts:
        """The same mechanism with `factor` > 0 times the noise, or RequestError where it has no scale to change.

        A mechanism known by its epsilon alone has noise in inverse proportion to it. Source: docs/mathematics.md,
        "Calibration".
        """
        del factor
        raise RequestError(f"the noise of {self.tag} cannot be scaled: it is known by its privacy profile alone")


@dataclass(frozen=True)
class _Additive(Facts):
    """Noise added to a statistic: `sensitivity` and `scale` > 0, in the statistic's units."""

    sensitivity: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        if self.sensitivity <= 0 or self.scale <= 0:
            raise RequestError(f"{self.tag}: sensitivity and scale are positive numbers")

    @cached_property
    def size(self) -> float:
        """sensitivity/scale."""
        return _ratio(self.sensitivity, self.scale)

    @property
    def key(self) -> tuple[object, ...]:
        """Numerators and denominators."""
        return self.sensitivity.numerator, self.sensitivity.denominator, self.scale.numerator, self.scale.denominator

    @classmethod
    def read(cls, record: Mapping[str, object]) -> Self:
        """From `sensitivity` and `scale`."""
        _check_keys(cls.tag, record, ("sensitivity", "scale"))
        return cls(*(exact(record[key], f"{cls.tag}: {key}") for key in ("sensitivity", "scale")))

    def record(self) -> dict[str, object]:
        """`sensitivity` and `scale`."""
        return {"sensitivity": exact_text(self.sensitivity), "scale": exact_text(self.scale)}

    def with_scale(self, factor: Fraction) -> Self:
        """The same with `factor` > 0 times the scale."""
        return replace(self, scale=self.scale * factor)


@dataclass(frozen=True)
class Gaussian(_Additive):
    """Gaussian noise of standard deviation `scale`, L2 `sensitivity`: N(mu, 1) against N(0, 1), mu = D/s."""

    tag = "gaussian"

    @property
    def mu_squared(self) -> Fraction:
        """(D/s)^2, exact."""
        return (self.sensitivity / self.scale) ** 2


@dataclass(frozen=True)
class Laplace(_Additive):
    """Laplace noise of scale b = `scale`, L1 `sensitivity`: Lap(e, 1) against Lap(0, 1), e = D/b."""

    tag = "laplace"

    @property
    def epsilon(self) -> Fraction:
        """D/b, exact."""
        return self.sensitivity / self.scale


@dataclass(frozen=True)
class _Pure(Facts):
    """A mechanism known by its pure `epsilon` > 0."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise RequestError(f"{self.tag}: epsilon is a positive number")

    @cached_property
    def size(self) -> float:
        """epsilon."""
        return _ratio(self.epsilon, Fraction(1))

    @property
    def key(self) -> tuple[object, ...]:
        """Numerator and denominator."""
        return self.epsilon.numerator, self.epsilon.denominator

    @classmethod
    def read(cls, record: Mapping[str, object]) -> Self:
        """From `epsilon`."""
        _check_keys(cls.tag, record, ("epsilon",))
        return cls(exact(record["epsilon"], f"{cls.tag}: epsilon"))

    def record(self) -> dict[str, object]:
        """`epsilon`."""
        return {"epsilon": exact_text(self.epsilon)}

    def with_scale(self, factor: Fraction) -> Self:
        """The same with epsilon divided by `factor` > 0."""
        return replace(self, epsilon=self.epsilon / factor)


@dataclass(frozen=True)
class RandomisedResponse(_Pure):
    """Randomised response: the answer is true with probability e^eps/(1 + e^eps), eps = `epsilon` > 0."""

    tag = "randomised-response"


@dataclass(frozen=True)
class Pure(_Pure):
    """Any eps-pure mechanism, eps = `epsilon` > 0; randomised response is the worst of them."""

    tag = "pure"


@dataclass(frozen=True)
class Exponential(_Pure):
    """The exponential mechanism, and noisy max with Gumbel noise: bounded range `epsilon` > 0. Not permute-and-flip."""

    tag = "exponential"
    attained = False


@dataclass(frozen=True)
class SparseVector(_Pure):
    """AboveThreshold until its first pass: `epsilon`-pure, epsilon > 0, however many queries it is asked."""

    tag = "sparse-vector"
    attained = False


@dataclass(frozen=True)
class Approximate(Facts):
    """Any (epsilon, delta) mechanism, epsilon >= 0 and 0 < delta < 1: with probability delta everything is told."""

    epsilon: Fraction
    delta: Fraction

    tag = "approximate"

    def __post_init__(self) -> None:
        if self.epsilon < 0 or not 0 < self.delta < 1:
            raise RequestError("approximate: epsilon is not negative, and delta lies strictly between 0 and 1")

    @cached_property
    def size(self) -> float:
        """epsilon."""
        return _ratio(self.epsilon, Fraction(1))

    @property
    def key(self) -> tuple[object, ...]:
        """Numerators and denominators."""
        return self.epsilon.numerator, self.epsilon.denominator, self.delta.numerator, self.delta.denominator

    @classmethod
    def read(cls, record: Mapping[str, object]) -> Self:
        """From `epsilon` and `delta`."""
        _check_keys(cls.tag, record, ("epsilon", "delta"))
        return cls(*(exact(record[key], f"approximate: {key}") for key in ("epsilon", "delta")))

    def record(self) -> dict[str, object]:
        """`epsilon` and `delta`."""
        return {"epsilon": exact_text(self.epsilon), "delta": exact_text(self.delta)}


@dataclass(frozen=True)
class PrivacyProfile(Facts):
    """A mechanism known by points (epsilon, delta) of its privacy profile, both orders of the pair: epsilon rising.

    Epsilon >= 0 and 0 <= delta < 1 at each of at least one and at most 10,000 points. Between points the profile is
    bounded by the chord in e^epsilon, beyond the last by its delta, before the first by the chord from delta = 1 at
    e^epsilon = 0.
    """

    points: tuple[tuple[Fraction, Fraction], ...]

    tag = "profile"
    attained = False

    def __post_init__(self) -> None:
        epsilons = [point[0] for point in self.points]
        if not 1 <= len(self.points) <= _POINTS_MAX or epsilons != sorted(set(epsilons)) or epsilons[0] < 0:
            raise RequestError(f"profile: 1 to {_POINTS_MAX:,} points, their epsilons not negative and rising")
        if not all(0 <= point[1] < 1 for point in self.points):
            raise RequestError("profile: each delta is at least 0 and below 1")

    @cached_property
    def size(self) -> float:
        """The largest epsilon."""
        return _ratio(self.points[-1][0], Fraction(1))

    @property
    def key(self) -> tuple[object, ...]:
        """The points."""
        return self.points

    @classmethod
    def read(cls, record: Mapping[str, object]) -> Self:
        """From `points`, a list of pairs [epsilon, delta]."""
        _check_keys(cls.tag, record, ("points",))
        points = record["points"]
        if not isinstance(points, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in points):
            raise RequestError('profile: points is a list of pairs such as ["0.5", "1e-6"]')
        return cls(tuple((exact(pair[0], "profile: epsilon"), exact(pair[1], "profile: delta")) for pair in points))

    def record(self) -> dict[str, object]:
        """`points`."""
        return {"points": [[exact_text(epsilon), exact_text(delta)] for epsilon, delta in self.points]}


_POINTS_MAX = 10_000
_KINDS: dict[str, type[Facts]] = {
    kind.tag: kind
    for kind in (
        Gaussian,
        Laplace,
        RandomisedResponse,
        Pure,
        Exponential,
        SparseVector,
        Approximate,
        PrivacyProfile,
    )
}


def facts_of(tag: object, record: Mapping[str, object]) -> Facts:
    """For every mechanism's `tag` and the `record` of its own keys, returns its facts, or raises RequestError.

    The tags are gaussian, laplace, randomised-response, pure, exponential, sparse-vector, approximate and profile, with
    numbers in the ranges that each class states (> 0 unless it says otherwise). Source: docs/mathematics.md, "Pairs".
    """
    if not isinstance(tag, str) or tag not in _KINDS:
        raise RequestError(f"mechanism: one of {', '.join(_KINDS)}, not {tag!r}")
    return _KINDS[tag].read(record)


def _ratio(top: Fraction, bottom: Fraction) -> float:
    """The nearest double of top/bottom, infinite where it is too large; division of whole numbers rounds correctly."""
    try:
        return top.numerator * bottom.denominator / (top.denominator * bottom.numerator)
    except OverflowError:
        return math.inf


def _check_keys(tag: str, record: Mapping[str, object], keys: tuple[str, ...]) -> None:
    missing, more = [key for key in keys if key not in record], [key for key in record if key not in keys]
    if missing:
        raise RequestError(f"{tag}: {' and '.join(missing)} missing")
    if more:
        raise RequestError(f"{tag}: unknown key {more[0]!r}; it takes {' and '.join(keys)}")
