"""A release: the answer and its receipt, which no later step can take apart."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from parco.errors import RequestError
from parco.measure import Cost, decimal_text
from parco.session import frames
from parco.session.receipt import JointReceipt, Receipt

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "Cells", "Release", "Row", "joined"]

_LOG = logging.getLogger("parco.receipts")

T = TypeVar("T")
U = TypeVar("U")

_NUMBERS = ("value", "lower", "upper")
_DECIMAL128_DIGITS, _DECIMAL256_DIGITS = 38, 76
_CHOSEN = (
    "This takes a precision that was fixed without a look at noisy values: an answer that was sharpened until it looked"
    " good enough is covered less often. Intervals that hold at such a stop are those of --within (release_until)."
)


@dataclass(frozen=True)
class Row:
    """One cell: its keys, the noisy value, and the interval that covers the exact value at the stated confidence.

    The interval is about the noise alone: not about bounding, clamping or sampling.
    """

    keys: tuple[str | int, ...]
    value: Fraction
    lower: Fraction
    upper: Fraction


class Cells(ABC):
    """Cells in the order of the declared keys, each with `keys`, `value`, `lower` and `upper`."""

    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    confidence: Fraction

    numbers: ClassVar[tuple[str, ...]] = _NUMBERS
    """What stands beside the keys of a cell."""
    at_the_stop: bool = False
    """Whether the intervals hold however the precision was chosen; others need it fixed beforehand."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    @property
    @abstractmethod
    def places(self) -> int:
        """How many decimal places any number here may need: public, whatever the numbers are."""

    @property
    def promise(self) -> str:
        """What holds with which probability, in words."""
        level = f"{float(self.confidence):.6g}"
        return f"Each interval covers the exact value, after bounding, with probability {level} or more."

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        """The cells as plain text, one line each, in columns; control and direction characters are escapes."""
        names = [*self.by, *self.numbers]
        header: dict[str, str | int | None] = {name: name for name in names}
        lines = [header, *self.rows()]
        table = [["" if line[name] is None else frames.escaped(line[name]) for name in names] for line in lines]
        widths = [max(len(line[place]) for line in table) for place in range(len(names))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if place < len(self.by) else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in table
        )

    def rows(self) -> list[dict[str, str | int | None]]:
        """A dict a cell: keys, then value, lower and upper as exact decimal text; no value is None."""
        return [
            dict(zip(self.by, row.keys, strict=True)) | {name: _text(getattr(row, name)) for name in self.numbers}
            for row in self
        ]

    def table(self) -> pa.Table:
        """The cells as an Arrow table: keys, then value, lower and upper, exact (64-bit integers, or decimals)."""
        import pyarrow as pa

        keys = {name: self._keys(place) for place, name in enumerate(self.by)}
        rows = list(self)
        numbers = {name: _exact_array([getattr(row, name) for row in rows], self.places) for name in self.numbers}
        return pa.table(keys | numbers)

    def _keys(self, place: int) -> pa.Array:
        """One of the columns of keys."""
        import pyarrow as pa

        return pa.array([label[place] for label in self.labels])

    def _repr_html_(self) -> str:
        """The cells as a table of HTML, for notebooks."""
        return frames.html_table([*self.by, *self.numbers], self.rows())


@dataclass(frozen=True)
class Answer(Cells):
    """The noisy cells of one question, in the order of the declared keys; all numbers are on the lattice."""

    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    values: tuple[int, ...]
    lattice: Fraction
    half_width: Fraction
    confidence: Fraction
    half_widths: tuple[Fraction, ...] = field(default=(), kw_only=True)
    """Of each cell, where they stand at different precisions; `half_width` is then the largest."""
    at_the_stop: bool = field(default=False, kw_only=True)

    @property
    def places(self) -> int:
        """The lattice's decimal places."""
        return len(decimal_text(self.lattice).partition(".")[2])

    def __iter__(self) -> Iterator[Row]:
        widths = self.half_widths or (self.half_width,) * len(self.values)
        for keys, steps, width in zip(self.labels, self.values, widths, strict=True):
            value = steps * self.lattice
            yield Row(keys, value, value - width, value + width)


@dataclass(frozen=True)
class Release(Generic[T]):
    """A value and the receipt that says what it cost.

    `cost` is what this access was charged, 0 where the answer was already stored (`repeat`); `remaining` is what the
    account holds now.
    """

    value: T
    receipt: Receipt
    repeat: bool
    cost: Cost
    remaining: Fraction

    def __str__(self) -> str:
        return str(self.value)

    @property
    def promise(self) -> str:
        """What holds of the answer, in words, and where it may not; nothing after a `map` to something else."""
        if not isinstance(self.value, Cells):
            return ""
        # Source: docs/mathematics.md, "Intervals at a stop".
        plain = self.receipt.chosen and not self.value.at_the_stop
        return f"{self.value.promise} {_CHOSEN}" if plain else self.value.promise

    def table(self) -> pa.Table:
        """The answer as an Arrow table; raises RequestError after a `map` to something else."""
        if isinstance(self.value, Cells):
            return self.value.table()
        raise RequestError("this release was mapped to something that is not an answer: use its value")

    def to_pandas(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """The answer as a pandas.DataFrame, its numbers exact; raises RequestError where pandas is not installed."""
        return frames.to_pandas(self.table())

    def to_polars(self) -> Any:  # noqa: ANN401 - a polars.DataFrame
        """The answer as a polars.DataFrame; raises RequestError where polars is not installed.

        Its numbers are exact, unless they need more than 38 digits: then they are the nearest doubles.
        """
        return frames.to_polars(self.table())

    def _repr_html_(self) -> str:
        """The answer and its receipt in HTML, for notebooks; keys are escaped."""
        shown = self.value._repr_html_() if isinstance(self.value, Cells) else frames.html_text(self.value)
        return shown + frames.html_text(self.receipt)

    def map(self, function: Callable[[T], U]) -> Release[U]:
        """Post-processing: applies `function` to the released value, and nothing else; receipt and bound stay.

        Free, because the function sees what was published, never the data.
        """
        return Release(function(self.value), self.receipt, self.repeat, self.cost, self.remaining)

    def without_receipt(self, *, reason: str) -> T:
        """The bare value, for whoever has a stated reason to part it from what it cost and from its bound.

        A value that travels alone is no longer covered by an ex-post bound: what is then made of it and of other values
        may lose more than any one of their bounds says (docs/mathematics.md, "What does not survive"); the account's
        cap still holds. Each call is a warning of the logger `parco.receipts`, with the numbers of the releases and the
        reason, never the value. Raises RequestError without a reason.
        """
        if not reason.strip():
            raise RequestError("a value leaves its receipt for a reason: say which, as without_receipt(reason=…)")
        releases = ", ".join(str(one) for one in self.receipt.releases)
        # As a literal of Python, so that a reason of several lines cannot be taken for lines of the log.
        _LOG.warning("the value of release %s left its receipt and bound behind: %r", releases, reason)
        return self.value

    def record(self) -> dict[str, object]:
        """The release as `parco release --json` prints it."""
        rows = self.value.rows() if isinstance(self.value, Cells) else []
        return {
            "release": self.receipt.release,
            "repeat": self.repeat,
            "cost": str(self.cost),
            "remaining": decimal_text(self.remaining),
            "rows": rows,
            **({"promise": self.promise} if rows else {}),
            "receipt": self.receipt.record(),
        }


def _text(value: Fraction | None) -> str | None:
    return None if value is None else decimal_text(value)


def _exact_array(values: Sequence[Fraction | None], places: int) -> pa.Array:
    import pyarrow as pa

    # The type follows from the lattice; only numbers that no 64 bits or 38 digits hold change it.
    there = [value for value in values if value is not None]
    if places == 0 and all(abs(value) < 2**63 for value in there):
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    digits = max((len(str(abs(value).__floor__())) for value in there), default=1) + places
    kind = pa.decimal128(_DECIMAL128_DIGITS, places) if digits <= _DECIMAL128_DIGITS else None
    if kind is None:
        kind = pa.decimal256(min(max(digits, 1), _DECIMAL256_DIGITS), places)
    from decimal import Context, Decimal

    # A context of its own: the caller's may round to fewer digits.
    exact = Context(prec=_DECIMAL256_DIGITS * 2)
    return pa.array(
        [None if value is None else exact.create_decimal(Decimal(decimal_text(value))) for value in values], kind
    )


def joined(value: T, question: str, *parts: Release[Any]) -> Release[T]:
    """What is computed from the answers of several releases, with all of their receipts."""
    return Release(
        value=value,
        receipt=JointReceipt.of(question, *(part.receipt for part in parts)),
        repeat=all(part.repeat for part in parts),
        cost=Cost(sum(part.cost.units for part in parts)),
        # What the latest of them left.
        remaining=min(part.remaining for part in parts),
    )
