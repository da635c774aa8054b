"""C15: bounds are declared numbers; NaN, null and infinities follow the declared rules, in sums and counts alike."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from parco.contract.contract import Contract
from parco.engines.duckdb import DuckDBEngine
from parco.errors import ContractError, QuestionError
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from tests.shop import contract_text

SECRET = b"c15" * 11
VALUES = [1.0, math.inf, -math.inf, math.nan, None, 3.0]
BAD_BOUNDS = [
    ("0", "nan"),
    ("inf", "inf"),
    ("-inf", "10"),
    ("10", "0"),
    ("true", "10"),
    ('"0"', '"ten"'),
    ("[]", "10"),
    ('""', "10"),
]


def contract(bounds: str = "lower = 0\nupper = 10", rules: str = "") -> Contract:
    column = f'[columns.x]\ntype = "decimal"\nlattice = 1\n{bounds}\n{rules}\n'
    counted = '[bins.all]\ncolumn = "x"\nedges = [0]\nbelow = true\nabove = true\n'
    return Contract.parse(contract_text(columns=column + counted, unit="person", groups=9, rows=9))


def files(folder: Path) -> list[Path]:
    texts = ["1", "inf", "-inf", "nan", "", "3"]
    lines = folder / "a.csv"
    lines.write_text("person,x\n" + "".join(f"{at},{text}\n" for at, text in enumerate(texts)))
    typed = folder / "a.parquet"
    parquet.write_table(pa.table({"person": range(6), "x": VALUES}), typed)
    return [lines, typed]


def exact(path: object, query: Query) -> list[int]:
    engine = DuckDBEngine(path)
    engine.check(query.contract, [*query.by, *([] if query.column is None else [query.column])])
    return engine.run(query, secret=SECRET)


@pytest.mark.parametrize(
    ("rules", "total", "rows"),
    [
        # Clamping infinities gives 1 + 10 + 0 + 3 over 4 rows; dropping them 1 + 3 over 2.
        ("", 14, 4),
        ('infinity = "clamp"', 14, 4),
        ('infinity = "drop"', 4, 2),
        ("infinity = 5", 14, 4),
        ('infinity = "drop"\nnan = 7\nnull = 9', 20, 4),
        ("null = 0", 14, 5),
    ],
)
def test_by_the_declared_rule_the_count_follows_the_same_rows_as_the_sum(
    tmp_path: Path, rules: str, total: int, rows: int
) -> None:
    agreed = contract(rules=rules)
    frames = [pa.table({"person": range(6), "x": VALUES})]
    for data in [*files(tmp_path), *frames]:
        assert exact(data, Query.of(agreed, "sum", column="x")) == [total]
        assert sum(exact(data, Query.of(agreed, "count", by="all"))) == rows


@pytest.mark.parametrize("bounds", BAD_BOUNDS, ids=str)
def test_bounds_that_are_no_numbers_are_refused_by_name(bounds: tuple[str, str]) -> None:
    with pytest.raises(ContractError, match=r"columns\.x"):
        contract(f"lower = {bounds[0]}\nupper = {bounds[1]}")


def test_without_bounds_there_is_no_contract_and_with_equal_ones_a_sum_has_noise() -> None:
    with pytest.raises(ContractError, match=r"columns\.x\.lower: missing"):
        contract("upper = 10")
    with pytest.raises(QuestionError, match="bounds 0 and 0"):
        Query.of(contract('lower = "0"\nupper = "0"'), "sum", column="x")
    assert sensitivity(Query.of(contract('lower = "5"\nupper = "5"'), "sum", column="x")).l1 == 9 * 5


@pytest.mark.parametrize("rule", ["null", "nan", "infinity", "unparsed"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "11", "-1", "0.5", "true", '"mean"'])
def test_a_rule_names_a_value_that_an_ordinary_row_could_have(rule: str, value: str) -> None:
    with pytest.raises(ContractError, match=r"columns\.x"):
        contract(rules=f"{rule} = {value}")
