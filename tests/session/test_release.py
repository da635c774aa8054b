"""The answer as rows and as an Arrow table, and post-processing that cannot shed its receipt."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import parco
from parco.session.release import Answer
from tests.shop import open_shop


def answer(values: tuple[int, ...], lattice: Fraction, half_width: Fraction = Fraction(1)) -> Answer:
    labels = tuple((place,) for place in range(len(values)))
    return Answer(("k",), labels, values, lattice, half_width, Fraction(95, 100))


def test_rows_are_exact_decimal_text() -> None:
    rows = answer((3, -7), Fraction(1, 32), Fraction(1, 4)).rows()
    assert rows == [
        {"k": 0, "value": "0.09375", "lower": "-0.15625", "upper": "0.34375"},
        {"k": 1, "value": "-0.21875", "lower": "-0.46875", "upper": "0.03125"},
    ]


def test_whole_numbers_are_integers_in_the_table() -> None:
    table = answer((3, -7), Fraction(2)).table()
    assert table.column_names == ["k", "value", "lower", "upper"]
    assert table.schema.field("value").type == pa.int64()
    assert table["value"].to_pylist() == [6, -14]


@pytest.mark.parametrize("lattice", [Fraction(1, 100), Fraction(1, 2**30), Fraction(10**30), Fraction(1, 2**60)])
def test_the_table_is_exact_in_any_decimal_context(lattice: Fraction) -> None:
    values = (2**62 + 1, -(2**61) - 3)
    with localcontext() as context:
        context.prec = 3
        table = answer(values, lattice).table()
    shown = [Fraction(number) for number in table["value"].to_pylist()]
    assert shown == [value * lattice for value in values]
    assert all(isinstance(number, Decimal) for number in table["value"].to_pylist())


def test_post_processing_keeps_the_receipt(tmp_path: Path) -> None:
    release = parco.Session(open_shop(tmp_path)).count(by="month", cost="0.1")
    total = release.map(lambda cells: sum(row.value for row in cells))
    assert total.value == sum(release.value.values)
    assert total.receipt is release.receipt
    with pytest.raises(parco.RequestError, match="mapped"):
        total.table()
    with pytest.raises(AttributeError):
        total.receipt = None  # type: ignore[assignment, misc]
