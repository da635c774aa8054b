"""Top keys as an answer: which they are, in the order in which they were chosen, and no number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

from parco.measure import significant_text
from parco.session.release import Answer

__all__ = ["TopAnswer", "TopRow", "top_answer"]


@dataclass(frozen=True)
class TopRow:
    """One key: its rank from 1 on, and the key."""

    keys: tuple[str | int, ...]


@dataclass(frozen=True)
class TopAnswer(Answer):
    """The keys of one top, each with its rank; `values` are their places among the declared keys.

    With probability `confidence` or more, for all of them together, none has more than `half_width` rows fewer than a
    key that was left out, or that was chosen after it.
    """

    numbers: ClassVar[tuple[str, ...]] = ()

    @property
    def chosen(self) -> tuple[str | int, ...]:
        """The keys in the order in which they were chosen."""
        return tuple(label[-1] for label in self.labels)

    @property
    def promise(self) -> str:
        """What holds with which probability, in words."""
        rows, level = significant_text(Fraction(self.half_width), 4, up=True), f"{float(self.confidence):.6g}"
        return (
            f"No key here has more than {rows} rows fewer than one behind it or left out, after bounding, with"
            f" probability {level} or more."
        )

    def __iter__(self) -> Iterator[TopRow]:  # type: ignore[override]
        return (TopRow(label) for label in self.labels)


def top_answer(answer: Answer) -> TopAnswer:
    """The answer to a top, from the places of the keys that were chosen and the labels of all."""
    known = {field.name: getattr(answer, field.name) for field in fields(Answer)}
    ranked = tuple((rank, *answer.labels[place]) for rank, place in enumerate(answer.values, start=1))
    return TopAnswer(**{**known, "by": ("rank", *answer.by), "labels": ranked})
