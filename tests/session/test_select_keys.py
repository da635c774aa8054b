"""Selected keys: which are published, what they cost, and that nothing depends on the data but the answer itself."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parco
from parco.session.keys import KeysAnswer
from parco.testing import TapeSession
from tests.session.test_mean import spent
from tests.shop import COLUMNS, HEADER, contract_text, open_shop, write_csv

CITY = COLUMNS + '\n[columns.city]\ntype = "text"\nkeys = "select"\n'
COLUMNS_OF_A_FILE = (*HEADER, "city")
# So much that noise is next to nothing, so that a key of two units is published and that of one is not.
RICH = 'measure = "pure"\nepsilon = "9000"\ndelta = "1e-6"\ndelta_mechanisms = "1e-6"'
GDP = 'measure = "gdp"\nepsilon = "2"\ndelta = "2e-6"\ndelta_mechanisms = "1e-6"'
DELTA = Fraction(1, 10**18)

Rows = list[tuple[str, ...]]


def visits(*cities: str, unit: str = "1", month: str = "2024-01") -> Rows:
    """A row of one unit for each city."""
    return [(unit, f"{month}-05", "1", "3", "web", city) for city in cities]


def shop(folder: Path, rows: Rows, **contract: object) -> parco.Contract:
    told: dict[str, Any] = {"columns": CITY, "budget": RICH, **contract}
    agreed = open_shop(folder, **told)
    write_csv(folder / "purchases.csv", rows, header=COLUMNS_OF_A_FILE)
    return agreed


def keys(release: parco.Release[parco.Answer]) -> list[str | int]:
    return [row.keys[0] for row in release.value]


def test_keys_are_sorted_counted_by_units_and_those_of_one_unit_are_not_there(tmp_path: Path) -> None:
    rows = [
        *visits("Rome", "Rome", "Oslo"),
        *visits("Oslo", "Rome", unit="2"),
        *visits("Oslo", "Bern", unit="3"),
        *visits("", "Bern", unit="4"),
    ]
    with parco.Session(shop(tmp_path, rows)) as session:
        release = session.select_keys("city", cost="8000")
    assert isinstance(release.value, KeysAnswer)
    assert release.value.by == ("city",)
    assert keys(release) == ["Bern", "Oslo", "Rome"]
    assert [round(row.value) for row in release.value] == [2, 3, 2]
    assert all(row.value >= release.value.threshold > 1 for row in release.value)


def test_a_unit_stands_behind_no_more_keys_than_groups(tmp_path: Path) -> None:
    rows = [row for unit in "1234" for row in visits(*"abcdefgh", unit=unit)]
    for groups in (1, 2, 5):
        with parco.Session(shop(tmp_path / str(groups), rows, groups=groups)) as session:
            release = session.select_keys("city", cost="8000")
            # Which keys a unit keeps differs by unit; those that two or more keep are published.
            assert round(sum(row.value for row in release.value)) <= 4 * groups
            assert "behind at most" in release.receipt.limits
            distance = release.receipt.sensitivity
            assert [distance.l1, distance.l2_squared] == [groups, groups]


def test_cost_and_delta_are_planned_charged_and_told(tmp_path: Path) -> None:
    with parco.Session(shop(tmp_path, visits("Rome"), budget=GDP)) as session:
        plan = session.plan.select_keys("city", cost="0.05", delta="1e-8")
        release = session.select_keys("city", cost="0.05", delta="1e-8")
        assert plan.selection is not None
        (account,) = session.budget()
        assert account.spent == plan.cost.units == release.cost.units
        assert account.delta_spent == plan.selection.delta_units
        assert release.receipt.delta == plan.selection.delta_units * DELTA <= Fraction(1, 10**8)
        assert release.receipt.record()["delta"] == plan.record()["delta"]
        assert plan.delta_remaining == account.delta_remaining * DELTA
        assert "delta" in str(release.receipt)
        # Without one, the default share of the delta that is set aside.
        other = session.plan.select_keys("city", fresh=True)
        assert 0 < other.delta_units <= Fraction(1, 20) * 10**12
        # A delta is charged beside the conversion's: what may be claimed is both.
        assert {claim.delta for claim in release.receipt.claims()} == {Fraction(2, 10**6)}


def test_what_is_stored_is_free_and_sharper_selections_are_not(tmp_path: Path) -> None:
    with parco.Session(shop(tmp_path, visits("Rome"), budget=GDP)) as session:
        first = session.select_keys("city", cost="0.05", delta="1e-8")
        before = session.budget()
        for how in ({}, {"delta": "1e-8"}, {"delta": "1e-9"}, {"cost": "0.01"}, {"cost": "0.05", "delta": "1e-8"}):
            again = session.select_keys("city", **how)  # type: ignore[arg-type]
            assert again.repeat
            assert again.value == first.value
            assert session.plan.select_keys("city", **how).repeat  # type: ignore[arg-type]
        with pytest.raises(parco.SharperError, match="units on"):
            session.select_keys("city", cost="0.05", delta="1e-7")
        with pytest.raises(parco.SharperError):
            session.select_keys("city", cost="0.06")
        assert session.budget() == before


def test_a_delta_that_does_not_fit_charges_nothing(tmp_path: Path) -> None:
    with parco.Session(shop(tmp_path, visits("Rome"), budget=GDP)) as session:
        plan = session.plan.select_keys("city", cost="0.05", delta="1e-3")
        assert not plan.fits
        assert "would be refused: only delta 0.000001" in str(plan)
        with pytest.raises(parco.BudgetError, match="delta"):
            session.select_keys("city", cost="0.05", delta="1e-3")
        assert spent(session) == 0


@pytest.mark.parametrize(
    ("column", "how", "told"),
    [
        ("channel", {}, "declared"),
        ("dollars", {}, "there are: items, city"),
        ("town", {}, "there are: items, city"),
        (None, {}, "there are: items, city"),
        ("city", {"by": "channel"}, "leave out by"),
        ("city", {"delta": "1e-19"}, "1e-18"),
        ("city", {"delta": "0"}, "above 0"),
        ("city", {"cost": "1", "error": "2"}, "not both"),
    ],
)
def test_what_is_no_selection_is_refused_before_data_are_read(
    tmp_path: Path, column: str | None, how: dict[str, str], told: str
) -> None:
    with parco.Session(shop(tmp_path, []), data=tmp_path / "nothing.csv") as session:
        with pytest.raises(parco.QuestionError, match=told):
            session.ask("select_keys", column, **how)  # type: ignore[arg-type]
        with pytest.raises(parco.QuestionError, match="no declared keys"):
            session.count(by="city")
        with pytest.raises(parco.QuestionError, match="no declared keys"):
            session.count(where="city = 'Rome'")
        with pytest.raises(parco.QuestionError, match="only a selection"):
            session.count(delta="1e-9")
        assert spent(session) == 0


def test_a_contract_that_sets_no_delta_aside_is_told_so(tmp_path: Path) -> None:
    agreed = shop(tmp_path, [], budget='measure = "pure"\nepsilon = "1"')
    with parco.Session(agreed) as session, pytest.raises(parco.QuestionError, match="delta_mechanisms"):
        session.select_keys("city")


def test_odd_data_change_the_keys_and_nothing_else(tmp_path: Path) -> None:
    tables: dict[str, Rows] = {
        "empty": [],
        "missing": visits("", "", unit="1"),
        "own": [row for unit in range(50) for row in visits(f"own {unit}", unit=str(unit))],
        "lines": [row for unit in "12" for row in visits("\x1b[2J", "a\tb", "a\u2028b", "\x85", unit=unit)],
        "long": [row for unit in "12" for row in visits("x" * 201, unit=unit)],
        "shared": [row for unit in "12" for row in visits("x" * 200, "e\u0301 \u202e'\"|,", unit=unit)],
    }
    found, shapes = {}, set()
    for name, rows in tables.items():
        with parco.Session(shop(tmp_path / name, rows)) as session:
            release = session.select_keys("city", cost="8000")
            found[name] = keys(release)
            assert release.table().schema.field("city").type == pa.string()
            assert release.table().schema.field("value").type == pa.decimal128(38, release.value.places)
            shapes.add((frozenset(release.receipt.record()), release.receipt.cost, release.receipt.delta))
            assert session.select_keys("city").value == release.value
            (account,) = session.budget()
            assert account.spent == release.cost.units
            assert account.delta_spent * DELTA == release.receipt.delta
    assert len(shapes) == 1
    assert found == {name: [] for name in tables} | {"shared": ["x" * 200, "\u00e9 \u202e'\"|,"]}


def test_no_key_is_published_twice(tmp_path: Path) -> None:
    """In lower case the second of these is one character, as the first is before."""
    folded = CITY.replace('keys = "select"', 'keys = "select"\nnormal = ["casefold"]')
    rows = [row for unit in "123" for row in visits("\u1e96", unit=f"a{unit}") + visits("H\u0331", unit=f"b{unit}")]
    with parco.Session(shop(tmp_path, rows, columns=folded)) as session:
        release = session.select_keys("city", cost="8000")
        assert keys(release) == ["\u1e96"]
        assert round(release.value.values[0] * release.value.lattice) == 6
        plan = session.plan.select_keys("city", cost="8000", fresh=True)
        assert plan.selection is not None
        # From an engine that knew fewer characters than Python does.
        selected = session._selected(plan, plan.selection, {"\u1e96": 9, "h\u0331": 9})
    assert selected["keys"] == ["\u1e96"]


def test_a_key_moves_no_cursor_and_breaks_no_line(tmp_path: Path) -> None:
    rows = [row for unit in "12" for row in visits("a\u202eb\u200d", unit=unit)]
    with parco.Session(shop(tmp_path, rows)) as session:
        release = session.select_keys("city", cost="8000")
    assert keys(release) == ["a\u202eb\u200d"]
    assert "a\\u202eb\\u200d  " in str(release)
    odd = replace(release.value, by=("c\x1b",), labels=(("x\n\u2028",),))
    assert str(odd).splitlines()[0].startswith("c\\u001b")
    assert len(str(odd).splitlines()) == 2


def test_the_order_of_rows_changes_nothing(tmp_path: Path) -> None:
    rows = [row for unit in range(60) for row in visits(f"c{unit % 4}", f"c{unit % 5}", unit=str(unit))]
    shuffled = random.Random(7).sample(rows, len(rows))
    tape, found = random.Random(8).randbytes(4096), []
    for name, table in (("sorted", rows), ("shuffled", shuffled)):
        with TapeSession(shop(tmp_path / name, table), tape=tape) as session:
            release = session.select_keys("city", cost="4", delta="9e-7")
            found.append(release.value.rows())
    assert found[0] == found[1]
    assert len(found[0]) == 5


def test_whole_numbers_within_their_bounds_are_keys_too(tmp_path: Path) -> None:
    rows: Rows = [
        (unit, "2024-01-05", number, "3", "web", "x") for unit in "12" for number in ("7", "-3", "10", "99", "")
    ]
    with parco.Session(shop(tmp_path, rows, groups=9)) as session:
        release = session.select_keys("items", cost="8000")
    assert keys(release) == [7, 10]
    assert release.table().schema.field("items").type == pa.int64()


def test_normal_forms_conditions_parts_and_periods_hold(tmp_path: Path) -> None:
    folded = (
        COLUMNS + '\n[columns.city]\ntype = "text"\nkeys = "select"\nnormal = ["casefold", "strip"]\nnull = "nowhere"\n'
    )
    rows = [*visits("Rome ", "x", unit="1"), *visits("ROME", "", unit="2"), *visits("", unit="3", month="2024-02")]
    with parco.Session(shop(tmp_path / "a", rows, columns=folded, groups=3)) as session:
        assert keys(session.select_keys("city", cost="4000")) == ["nowhere", "rome"]
        only = session.select_keys("city", where="month = '2024-01'", cost="4000")
        assert keys(only) == ["rome"]
    text = contract_text(columns=CITY, budget=RICH).replace("[budget]", 'period = "month"\n\n[budget]')
    folder = tmp_path / "b"
    folder.mkdir()
    (folder / "contract.toml").write_text(text, "utf-8")
    write_csv(folder / "purchases.csv", [*visits("Rome"), *visits("Rome", unit="2")], header=COLUMNS_OF_A_FILE)
    parco.sign(agreed := parco.Contract.read(folder / "contract.toml"))
    with parco.Session(agreed) as session:
        with pytest.raises(parco.QuestionError, match="period"):
            session.select_keys("city")
        assert keys(session.select_keys("city", period="2024-01", cost="8000")) == ["Rome"]
        assert keys(session.select_keys("city", period="2024-02", cost="8000")) == []
        assert [row.delta_spent > 0 for row in session.budget()] == [True, True, False, False]


@pytest.mark.parametrize("turned", [False, True])
def test_selected_twice_in_one_list_the_answer_is_as_sharp_as_both_or_none_is_charged(
    tmp_path: Path, turned: bool
) -> None:
    with parco.Session(shop(tmp_path, visits("Rome"), budget=GDP)) as session:
        few, many = (
            parco.Ask("select_keys", "city", cost=cost, delta=delta)
            for cost, delta in (("0.02", "9e-7"), ("0.0201", "1e-15"))
        )
        asks = [many, few] if turned else [few, many]
        with pytest.raises(parco.QuestionError, match="larger delta"):
            session.release(asks)
        assert session.budget()[0].delta_spent == spent(session) == 0
        both = parco.Ask("select_keys", "city", cost="0.0201", delta="9e-7")
        plans = [session.plan.release([ask])[0] for ask in (*asks, both)]
        found = session.release([*asks, both])
        assert [release.repeat for release in found] == [False, True, True]
        lowest = min(plan.selection.threshold for plan in plans)  # type: ignore[union-attr]
        assert {release.value.threshold for release in found} == {lowest}  # type: ignore[union-attr]
        assert spent(session) == plans[-1].cost.value
        assert session.budget()[0].delta_spent == plans[-1].delta_units  # type: ignore[union-attr]


def test_plans_of_one_list_fit_together_or_the_last_says_so(tmp_path: Path) -> None:
    with parco.Session(shop(tmp_path, visits("Rome"), budget=GDP)) as session:
        asks = [
            parco.Ask("select_keys", "city", cost="0.01", delta="9e-7"),
            parco.Ask("select_keys", "items", cost="0.01", delta="9e-7"),
        ]
        assert [session.plan.release([ask])[0].fits for ask in asks] == [True, True]
        assert [plan.fits for plan in session.plan.release(asks)] == [True, False]
        with pytest.raises(parco.BudgetError):
            session.release(asks)
        few = [parco.Ask("count", cost="0.01"), parco.Ask("mean", "dollars", cost="0.02"), parco.Ask("count_units")]
        plans = session.plan.release(few)
        session.release(few)
        assert plans[-1].remaining == session.budget()[0].remaining * Fraction(1, 10**15)
        assert [plan.repeat for plan in session.plan.release(few)] == [True] * 3


def test_keys_that_were_selected_can_be_declared_and_asked_in_one_list(tmp_path: Path) -> None:
    """As a question by undeclared keys is asked elsewhere: the selection, then the parts by what it found."""
    rows = [row for unit in "1234" for row in visits("Rome", "Oslo", unit=unit)]
    agreed = shop(tmp_path, rows)
    with parco.Session(agreed) as session:
        asks = [parco.Ask("select_keys", "city", cost="2000", delta="1e-7"), parco.Ask("count", cost="1000")]
        plans = session.plan.release(asks)
        found, _ = session.release(asks)
        assert spent(session) == sum(plan.cost.value for plan in plans)
    path = agreed.folder / "contract.toml"
    columns = f'{COLUMNS}\n[columns.city]\ntype = "text"\nkeys = {keys(found)!r}\n'  # type: ignore[arg-type]
    path.write_text(contract_text(columns=columns, budget=RICH), "utf-8")
    parco.revise(revised := parco.Contract.read(path), reason="keys that were selected")
    with parco.Session(revised) as session:
        counted = session.count(by="city", cost="1000")
        assert [(row.keys, round(row.value)) for row in counted.value] == [(("Oslo",), 4), (("Rome",), 4)]
