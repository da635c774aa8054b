"""Selected keys as an answer: those that reached the threshold, with noisy numbers of units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING

from parco.contract.columns import IntegerColumn
from parco.measure import decimal_text
from parco.queries.query import Query
from parco.session.release import Answer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KeysAnswer", "keys_answer"]


@dataclass(frozen=True)
class KeysAnswer(Answer):
    """The keys that were selected, in the order of their text or number, none or more; `threshold` is in units.

    A key stands here because its noisy number of units is at least the threshold, so that this number is too high on
    the whole: the interval of a key holds with the stated confidence before it is known that it was selected. `whole`:
    keys are whole numbers.
    """

    threshold: Fraction
    whole: bool

    @property
    def promise(self) -> str:
        """What holds with which probability, in words."""
        return (
            f"Keys whose noisy number of units is {decimal_text(self.threshold)} or more; there may be others. An"
            f" interval covers with probability {float(self.confidence):.6g} or more, for a key named beforehand."
        )

    def _keys(self, place: int) -> pa.Array:
        """Of one type, also where no key was selected."""
        import pyarrow as pa

        return pa.array([label[place] for label in self.labels], pa.int64() if self.whole else pa.string())


def keys_answer(answer: Answer, query: Query, *, keys: Sequence[str | int], threshold: Fraction) -> KeysAnswer:
    """The answer to a selection of keys, from its noisy cells and the keys that were selected."""
    known = {field.name: getattr(answer, field.name) for field in fields(Answer)}
    column = query.column or ""
    found = {"by": (column,), "labels": tuple((key,) for key in keys)}
    whole = isinstance(query.contract.columns[column], IntegerColumn)
    return KeysAnswer(**{**known, **found}, threshold=threshold, whole=whole)
