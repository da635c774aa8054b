"""C11: a mean was given the sensitivity (U - L)/n, although n is private, and the empty table was forgotten."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from parco.contract.contract import Contract
from parco.privacy.sensitivity import Sensitivity
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from parco.session.session import Session
from tests.shop import contract_text, open_shop, write_csv

ROWS = {
    "none": [],
    "one": [("1", "2024-01-05", "1", "100", "web")],
    "two": [("1", "2024-01-05", "1", "100", "web"), ("2", "2024-01-05", "1", "0", "web")],
}


def parts(low: str, high: str, neighbours: str) -> tuple[Sensitivity, Sensitivity]:
    text = contract_text(groups=1, rows=1).replace("add-or-remove", neighbours)
    text = text.replace('lower = "0"\nupper = "100"', f'lower = "{low}"\nupper = "{high}"')
    agreed = Contract.parse(text)
    total, count = Query.of(agreed, "sum", column="dollars", centred=True), Query.of(agreed, "count", column="dollars")
    return sensitivity(total), sensitivity(count)


@pytest.mark.parametrize(
    ("bounds", "neighbours", "total"),
    [
        (("0", "100"), "add-or-remove", 50),
        (("0", "100"), "replace", 100),
        (("10000", "500000"), "add-or-remove", 245_000),
        (("10000", "500000"), "replace", 490_000),
    ],
)
def test_the_sum_has_its_own_sensitivity_and_so_has_the_count(
    bounds: tuple[str, str], neighbours: str, total: int
) -> None:
    assert parts(*bounds, neighbours) == (
        Sensitivity(l1=Fraction(total), l2_squared=Fraction(total) ** 2),
        Sensitivity(l1=Fraction(1), l2_squared=Fraction(1)),
    )


def test_no_row_one_row_and_two_rows(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, groups=1, rows=1, budget='measure = "pure"\nepsilon = "9000"')
    found = {}
    for version, rows in ROWS.items():
        write_csv(tmp_path / "purchases.csv", rows)
        with Session(contract, version=version) as session:
            release = session.mean("dollars", cost="2000")
            (found[version],) = release.value
            receipt = release.receipt.record()
            shown = [(part["sensitivity_l1"], part["question"]) for part in receipt["parts"]]  # type: ignore[attr-defined]
            assert shown == [("50", "sum dollars - 50"), ("1", "count dollars")]
    assert found["none"].value is None
    assert (found["none"].lower, found["none"].upper) == (Fraction(0), Fraction(100))
    for version, mean in (("one", 100), ("two", 50)):
        value = found[version].value
        assert value is not None
        assert abs(value - mean) < 3
        assert found[version].lower <= mean <= found[version].upper


def test_what_is_published_never_shows_more_than_the_parts(tmp_path: Path) -> None:
    # Nothing but the two noisy numbers enters the mean: the same parts have the same mean, whatever the rows.
    contract = open_shop(tmp_path)
    first = Session(contract).mean("dollars", cost="0.2")
    write_csv(tmp_path / "purchases.csv", [])
    again = Session(contract).mean("dollars", cost="0.2")
    assert again.repeat
    assert again.value == first.value
