"""Stopping rules: when released values are good enough. A rule sees what was published, and nothing else.

What it is shown is a record of numbers and texts: neither session nor engine nor data can be reached from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from parco.accuracy.measurement import Key
from parco.errors import RequestError
from parco.measure import Exactable, exact

__all__ = ["AbsoluteError", "Predicate", "RelativeError", "Rule", "View", "rule_of"]

Verdict = bool | Sequence[bool]
Predicate = Callable[["View"], Verdict]


@dataclass(frozen=True)
class View:
    """What was released by the end of a step: exact, in the statistic's units, cell by cell.

    Each interval estimate +- half_width covers its cell's exact value with the stated `confidence` at whichever of the
    `steps` one stops, for whatever released reason. `charged`: what the steps so far cost, 10^-15 of the measure.
    """

    step: int
    steps: int
    labels: tuple[Key, ...]
    estimates: tuple[Fraction, ...]
    half_widths: tuple[Fraction, ...]
    confidence: Fraction
    charged: int

    def __iter__(self) -> Iterator[tuple[Fraction, Fraction]]:
        """Estimate and half-width of each cell."""
        return zip(self.estimates, self.half_widths, strict=True)


class Rule(ABC):
    """When a cell is good enough."""

    @abstractmethod
    def done(self, view: View) -> tuple[bool, ...]:
        """Which cells are, at this step."""

    def shortfall(self, view: View, *, doubt: Fraction) -> tuple[Fraction | None, ...] | None:
        """By which factor each half-width is too wide, if the estimates missed the truth by `doubt` half-widths.

        None for a cell of which nobody can tell yet; None in all for rules that do not say how far is left.
        """
        del view, doubt
        return None


@dataclass(frozen=True)
class AbsoluteError(Rule):
    """A half-width of at most `error` > 0, in the statistic's units."""

    error: Exactable

    def __post_init__(self) -> None:
        _positive(self.error, "error")

    def done(self, view: View) -> tuple[bool, ...]:
        """Known beforehand: the half-width depends on the cost alone."""
        limit = _positive(self.error, "error")
        return tuple(width <= limit for width in view.half_widths)

    def shortfall(self, view: View, *, doubt: Fraction) -> tuple[Fraction, ...]:
        """The half-width over the error; estimates do not matter."""
        del doubt
        limit = _positive(self.error, "error")
        return tuple(width / limit for width in view.half_widths)


@dataclass(frozen=True)
class RelativeError(Rule):
    """A half-width of at most `share` > 0 of the released estimate's size; 0.05 or "5%".

    Where the interval covers, the estimate is off by at most `share` of itself, and so by at most share/(1 - share) of
    the exact value. A cell whose exact value is 0 never gets there, and ends at the cap.
    """

    share: Exactable

    def __post_init__(self) -> None:
        _share(self.share)

    def done(self, view: View) -> tuple[bool, ...]:
        """Half-width against the estimate."""
        share = _share(self.share)
        return tuple(width <= share * abs(estimate) for estimate, width in view)

    def shortfall(self, view: View, *, doubt: Fraction) -> tuple[Fraction | None, ...]:
        """The half-width over `share` of the estimate, whose size is taken to be `doubt` half-widths less."""
        share = _share(self.share)
        sizes = [(abs(estimate) - doubt * width, width) for estimate, width in view]
        return tuple(width / (share * size) if size > 0 else None for size, width in sizes)


@dataclass(frozen=True)
class _Asked(Rule):
    """A caller's predicate: True or False for all cells, or one for each."""

    predicate: Predicate

    def done(self, view: View) -> tuple[bool, ...]:
        """What the predicate says; its own errors are its caller's, who has published what was published."""
        found = self.predicate(view)
        if isinstance(found, bool):
            return (found,) * len(view.estimates)
        cells = tuple(found) if isinstance(found, Sequence) else ()
        if len(cells) != len(view.estimates) or not all(isinstance(cell, bool) for cell in cells):
            raise RequestError("a stopping rule says True or False, or so for each cell: what was released stands")
        return cells


def rule_of(until: Rule | Predicate) -> Rule:
    """For every rule returns it, and for every function of a View a rule; raises RequestError for anything else."""
    if isinstance(until, Rule):
        return until
    if not callable(until):
        raise RequestError(
            'until is a stopping rule, such as parco.RelativeError("0.05"), or a function of a View, or a '
            "parco.Validation with a model"
        )
    return _Asked(until)


def _share(share: Exactable) -> Fraction:
    if isinstance(share, str) and share.strip().endswith("%"):
        return _positive(share.strip().removesuffix("%"), "share") / 100
    return _positive(share, "share")


def _positive(value: Exactable, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise RequestError(f"{name} is a positive number")
    return number
