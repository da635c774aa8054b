"""The answer as rows and as an Arrow table, and post-processing that cannot shed its receipt."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import parco
from parco.privacy.expost import ExPost
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


def test_post_processing_keeps_the_bound(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path, budget='epsilon = "1"\ndelta = "1e-6"\nreceipt_order = 20'))
    release = session.mean("dollars", by="month", cost="0.02")
    assert release.receipt.ex_post == ExPost(parco.Measure.GDP, Fraction(20), 20 * Fraction(2, 100) / 2)
    assert release.map(str).map(len).receipt.ex_post == release.receipt.ex_post
    assert release.receipt.record()["bound"] == "0.2"


def test_a_value_leaves_its_receipt_for_a_reason_that_is_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    release = parco.Session(open_shop(tmp_path)).mean("dollars", cost="0.1").map(lambda _: "a value")
    for reason in ("", " \n"):
        with pytest.raises(parco.RequestError, match="reason"):
            release.without_receipt(reason=reason)
    assert caplog.records == []
    assert release.without_receipt(reason="a plot\nof the paper") == "a value"
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("parco.receipts", "WARNING")
    shown = record.getMessage()
    assert "a plot\\nof the paper" in shown
    assert "a value" not in shown.replace("the value of", "")
    first, second = release.receipt.releases
    assert f"release {first}, {second} " in shown
