"""The door: what a loop needs of a statistic that can be sharpened, whoever holds the private numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from parco.errors import InternalError
from parco.measure import Measure

__all__ = ["Key", "Measurement", "Noise", "Released"]

Key = tuple[str | int, ...]


class Noise(Protocol):
    """What is known of the noise in one released estimate."""

    def half_width(self, confidence: Fraction) -> Fraction:
        """A half-width that covers the exact value with at least this probability, 0 < confidence < 1."""
        ...


@dataclass(frozen=True)
class Released:
    """What a measurement has published: an estimate a cell, in the statistic's units, and the noise in it."""

    estimates: tuple[Fraction, ...]
    noises: tuple[Noise, ...]
    standing: int = 0
    """What all draws behind the answer cost, 10^-15 of the measure, where a stored one may be sharper than asked."""

    def __post_init__(self) -> None:
        if len(self.estimates) != len(self.noises):
            raise InternalError("each estimate has its noise")


class Measurement(Protocol):
    """One statistic that can be sharpened. `cost` of a cell: what all cells would cost at that cell's precision."""

    @property
    def measure(self) -> Measure:
        """The currency of the account."""
        ...

    @property
    def labels(self) -> tuple[Key, ...]:
        """The keys of each cell."""
        ...

    @property
    def accounts(self) -> tuple[str, ...]:
        """The labels of the accounts that pay, each of them all."""
        ...

    @property
    def charged(self) -> int:
        """What each account was charged since this object was made, 10^-15 of the measure."""
        ...

    def refine(self, costs: Sequence[int]) -> Released:
        """Charges, then draws: afterwards each cell stands at its cost of `costs`, 10^-15 of the measure.

        No cost is below the one before. Raises BudgetError, before anything is drawn, where the account does not hold
        the difference.
        """
        ...
