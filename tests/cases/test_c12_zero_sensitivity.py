"""C12: no noise for want of a sensitivity. Without bounds there is no sum, and a sensitivity of zero is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import parco
from parco.contract.contract import Contract
from parco.errors import ContractError, QuestionError, RequestError
from parco.measure import Measure
from parco.mechanisms import design
from parco.privacy.sensitivity import Sensitivity
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from parco.stores.sqlite import SqliteStore
from tests.shop import contract_text, open_shop


def decimal(name: str, lower: str, upper: str) -> str:
    return f'[columns.{name}]\ntype = "decimal"\nlattice = "1"\nlower = "{lower}"\nupper = "{upper}"\n'


def untouched(folder: Path, contract: Contract, column: str) -> QuestionError:
    """The refusal of a sum, without an entry in the ledger and without a file to read."""
    (folder / "purchases.csv").unlink(missing_ok=True)
    before = (folder / "shop.ledger").read_bytes()
    with pytest.raises(QuestionError) as caught:
        parco.Session(contract).sum(column, cost="0.1")
    with pytest.raises(QuestionError):
        parco.Session(contract).plan.sum(column, cost="0.1")
    assert (folder / "shop.ledger").read_bytes() == before
    return caught.value


def test_a_sum_without_declared_bounds_is_refused_before_the_data_is_touched(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    parquet.write_table(pa.table({"customer": [1, 2], "income": [1.5, 2.5]}), tmp_path / "income.parquet")
    for data in (tmp_path / "income.parquet", tmp_path / "nothing.csv"):
        with pytest.raises(QuestionError, match="income is not a column with declared bounds"):
            parco.Session(contract, data=data).sum("income", cost="0.1")
    for column in ("income", "date", "channel", "customer", "month"):
        assert "is not a column with declared bounds" in str(untouched(tmp_path, contract, column))


@pytest.mark.parametrize("missing", ["lower", "upper", "lattice"])
def test_nor_does_a_contract_go_without_them(missing: str) -> None:
    lines = decimal("income", "0", "100").splitlines(keepends=True)
    text = contract_text(columns="".join(line for line in lines if not line.startswith(missing)))
    with pytest.raises(ContractError, match=f"columns.income.{missing}: "):
        Contract.parse(text)


def test_a_sum_that_is_zero_for_any_data_is_refused(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, columns=decimal("nothing", "0", "0"))
    assert "its sum is 0 for any data" in str(untouched(tmp_path, contract, "nothing"))


def test_only_the_counter_without_sensitivity_is_refused(tmp_path: Path) -> None:
    columns = decimal("nothing", "0", "0") + decimal("income", "-3", "7")
    session = parco.Session(open_shop(tmp_path, columns=columns, groups=1, rows=1))
    (tmp_path / "purchases.csv").write_text("customer,income,nothing\n1,5,0\n2,6,0\n", encoding="utf-8")
    with pytest.raises(QuestionError):
        session.sum("nothing", cost="0.1")
    noisy = [session.sum("income", cost="0.1"), session.count(cost="0.1"), session.count_units(cost="0.1")]
    assert [release.receipt.mechanism.scale for release in noisy] == [70, 10, 10]
    assert all(row.upper > row.value > row.lower for release in noisy for row in release.value)
    (account,) = SqliteStore.open(tmp_path / "shop.ledger").accounts()
    assert account.spent == 3 * 10**14


@pytest.mark.parametrize(
    ("lower", "upper", "magnitude"),
    [
        ("0", "100", 100),
        ("-3", "7", 7),
        ("-7", "3", 7),
        ("5", "5", 5),
        ("-5", "-5", 5),
        ("-100", "0", 100),
        ("0", "1", 1),
    ],
)
def test_both_bounds_are_read_and_equal_bounds_are_not_zero_sensitivity(lower: str, upper: str, magnitude: int) -> None:
    contract = Contract.parse(contract_text(columns=decimal("x", lower, upper), groups=1, rows=3))
    stated = sensitivity(Query.of(contract, "sum", column="x"))
    assert stated == Sensitivity(l1=Fraction(3 * magnitude), l2_squared=Fraction(9 * magnitude**2))


@pytest.mark.parametrize(
    ("lower", "upper", "square"), [("0", "100", 10000), ("-3", "7", 49), ("-7", "3", 49), ("-5", "-5", 25)]
)
def test_a_square_has_the_larger_of_both_bounds_squared(lower: str, upper: str, square: int) -> None:
    contract = Contract.parse(contract_text(columns=decimal("x", lower, upper), groups=1, rows=1))
    stated = sensitivity(Query.of(contract, "sum_squares", column="x"))
    assert stated == Sensitivity(l1=Fraction(square), l2_squared=Fraction(square**2))


@pytest.mark.parametrize("measure", [Measure.GDP, Measure.PURE], ids=str)
def test_no_mechanism_is_designed_without_noise(measure: Measure) -> None:
    """The class of fault: a scale of zero, from a sensitivity of zero or of nothing."""
    for l1, l2_squared in ((0, 0), (0, 1), (1, 0)):
        with pytest.raises(RequestError, match="a sensitivity is a positive number"):
            Sensitivity(l1=Fraction(l1), l2_squared=Fraction(l2_squared))
    tiny = Sensitivity(l1=Fraction(1, 10**12), l2_squared=Fraction(1, 10**24))
    for units in (1, 10**15, 9 * 10**18):
        mechanism = design.for_cost(measure, tiny, step=Fraction(1, 10**12), units=units)
        assert mechanism.scale > 0
        assert mechanism.half_width(Fraction(1, 2)) >= 0
