"""A question has one form: it holds whatever the exact statistic depends on, and nothing else."""

from __future__ import annotations

import itertools
import json
import unicodedata
from fractions import Fraction
from typing import Any

import pytest

from parco.contract.contract import Contract
from parco.errors import QuestionError
from parco.queries.query import Query
from tests.contract.document import parse

ASKED: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "count": ("count", None, ()),
    "count by month and ward": ("count", None, ("month", "ward")),
    "count_units by age": ("count_units", None, ("age",)),
    "sum cost by month": ("sum", "cost", ("month",)),
    "sum age": ("sum", "age", ()),
}
ALL = set(ASKED)
MONTH = {"count by month and ward", "sum cost by month"}


def questions(contract: Contract, version: str = "1") -> dict[str, str]:
    return {
        name: Query.of(contract, statistic, column=column, by=by).question(version)
        for name, (statistic, column, by) in ASKED.items()
    }


BASE = questions(parse())
PARTS = '[parts]\nfit = "0.8"\nrest = "0.2"\n[columns.day]'


def test_parts_enter_the_question_only_where_one_is_named() -> None:
    divided = parse(("[columns.day]", PARTS))
    assert questions(divided) == BASE
    named = json.loads(Query.of(divided, "count", part="rest").question("1"))
    assert named.pop("part") == {"name": "rest", "from": 2**62 // 5, "below": 2**60}
    assert named == json.loads(BASE["count"])
    other = parse(("[columns.day]", PARTS.replace("0.8", "0.7").replace("0.2", "0.3")))
    assert Query.of(other, "count", part="rest").question("1") != Query.of(divided, "count", part="rest").question("1")


def test_a_part_is_declared_and_pays_alone() -> None:
    divided = parse(("[columns.day]", PARTS))
    assert Query.of(divided, "count", part="fit").accounts == ("fit",)
    assert Query.of(divided, "count").accounts == ("fit", "rest")
    assert Query.of(parse(), "count").accounts == ("whole",)
    assert str(Query.of(divided, "count", by="month", part="fit")) == "count by month in part fit"
    bad: Any
    for bad in ("Fit", "", "whole", 1, ("fit",)):
        with pytest.raises(QuestionError, match="there are: fit, rest"):
            Query.of(divided, "count", part=bad)
    with pytest.raises(QuestionError, match="declares no parts"):
        Query.of(parse(), "count", part="fit")


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (('name = "clinic"', 'name = "clinic 2"'), set()),
        (("Visits to a clinic", "Visits"), set()),
        (('unprotected = "none"', 'unprotected = ["number of rows"]'), set()),
        (('source = "visits.csv"', 'source = "elsewhere.parquet"'), set()),
        (('version = "1"', 'version = "2"'), set()),
        (('epsilon = "1"', 'epsilon = "2"'), set()),
        (('measure = "gdp"\nepsilon = "1"\ndelta = "1e-6"', 'measure = "pure"\nepsilon = "1"'), set()),
        (("receipt_order = 8", "receipt_order = 9"), set()),
        (('default_share = "0.05"', 'default_share = "0.5"'), set()),
        (("[columns.day]", '[columns.extra]\ntype = "date"\n[columns.day]'), set()),
        (('name = "visits"', 'name = "visits 2"'), ALL),
        (('column = "patient"', 'column = "person"'), ALL),
        (("rows = 2", "rows = 3"), ALL - {"count_units by age"}),
        (("groups = 3", "groups = 2"), MONTH | {"count_units by age"}),
        # Three ages exist, so nobody counts in four: the rule that is applied to ages is the same.
        (("groups = 3", "groups = 4"), MONTH),
        (("lower = 0", "lower = 1"), {"sum age"}),
        (("upper = 120", "upper = 110"), {"sum age"}),
        (("keys = [0, 1, 2]", "keys = [0, 1, 2, 3]"), {"count_units by age"}),
        (("keys = [0, 1, 2]", "keys = [2, 1, 0]"), {"count_units by age"}),
        (('lower = "-10"', 'lower = "-10.05"'), {"sum cost by month"}),
        (('upper = "20"', 'upper = "30"'), {"sum cost by month"}),
        (('lattice = "0.05"', 'lattice = "0.1"'), {"sum cost by month"}),
        (('["north", "south"]', '["north", "south", "east"]'), {"count by month and ward"}),
        (('["north", "south"]', '["south", "north"]'), {"count by month and ward"}),
        (('first = "2024-01"', 'first = "2023-12"'), MONTH),
        (('last = "2024-06"', 'last = "2024-07"'), MONTH),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else None,
)
def test_a_question_changes_with_what_it_depends_on(change: tuple[str, str], changed: set[str]) -> None:
    asked = questions(parse(change))
    assert {name for name in ASKED if asked[name] != BASE[name]} == changed


NEWER = {
    "count cost": ("count", "cost", (), None, False),
    "count_distinct ward": ("count_distinct", "ward", (), None, False),
    "count_distinct cost": ("count_distinct", "cost", (), None, False),
    "count_distinct month by ward": ("count_distinct", "month", "ward", None, False),
    "sum cost - 5": ("sum", "cost", (), None, True),
    "count where": ("count", None, (), "cost >= 0 and ward = 'north' and day < '2024-05-01'", False),
}


def newer(contract: Contract) -> dict[str, str]:
    return {
        name: Query.of(contract, statistic, column=column, by=by, where=where, centred=centred).question("1")
        for name, (statistic, column, by, where, centred) in NEWER.items()
    }


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (('name = "clinic"', 'name = "clinic 2"'), set()),
        (('neighbours = "add-or-remove"', 'neighbours = "replace"'), set()),
        (('name = "visits"', 'name = "visits 2"'), set(NEWER)),
        # Two wards exist: nobody has more than two of them.
        (("rows = 2", "rows = 3"), set(NEWER) - {"count_distinct ward"}),
        (("rows = 2", "rows = 1"), set(NEWER)),
        (("groups = 3", "groups = 2"), set()),
        (('upper = "20"', 'upper = "30"'), {"count_distinct cost", "sum cost - 5"}),
        (('lower = "-10"', 'lower = "-10.05"'), {"count_distinct cost", "sum cost - 5"}),
        (('lattice = "0.05"', 'lattice = "0.1"'), {"count_distinct cost", "sum cost - 5", "count where"}),
        # Only the bound that a comparison reaches decides it.
        (('lower = "-10"', 'lower = "0"'), {"count_distinct cost", "sum cost - 5", "count where"}),
        (("keys = [0, 1, 2]", "keys = [0, 1]"), set()),
        (('["north", "south"]', '["north", "south", "east"]'), {"count_distinct ward", "count_distinct month by ward"}),
        (('last = "2024-06"', 'last = "2024-07"'), {"count_distinct month by ward"}),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else None,
)
def test_so_do_counts_of_a_column_distinct_values_parts_and_filters(change: tuple[str, str], changed: set[str]) -> None:
    before, after = newer(parse()), newer(parse(change))
    assert {name for name in NEWER if before[name] != after[name]} == changed


def test_a_question_without_a_filter_has_the_text_it_always_had() -> None:
    assert BASE["sum cost by month"] == (
        '{"by":[{"column":"day","every":"month","first":"2024-01","last":"2024-06","name":"month"}],"column":'
        '{"lattice":"0.05","lower":"-10","name":"cost","type":"decimal","upper":"20"},"data":"visits","limits":'
        '{"groups":3,"rows":2},"rules":{"infinity":"clamp","nan":"drop","null":"drop","unparsed":"drop"},'
        '"statistic":"sum","unit":"patient","version":"1"}'
    )


def test_a_middle_of_zero_is_no_middle() -> None:
    even = parse(('lower = "-10"', 'lower = "-20"'))
    assert Query.of(even, "sum", column="cost", centred=True) == Query.of(even, "sum", column="cost")
    odd = Query.of(parse(('upper = "20"', 'upper = "20.05"')), "sum", column="cost", centred=True)
    assert (odd.centre, str(odd)) == (Fraction("5.05"), "sum cost - 5.05")


def test_another_version_is_another_question() -> None:
    other = questions(parse(), version="2")
    assert all(other[name] != BASE[name] for name in ASKED)


def test_no_two_questions_have_one_form() -> None:
    assert len({*BASE.values(), *questions(parse(), version="2").values()}) == 2 * len(ASKED)


def test_beyond_the_number_of_cells_the_limit_on_groups_says_nothing() -> None:
    tight, loose = parse(("groups = 3", "groups = 12")), parse(("groups = 3", "groups = 1000000000"))
    assert questions(tight) == questions(loose)
    assert Query.of(loose, "count", by=("month", "ward")).groups == 12
    assert Query.of(loose, "count").groups == 1


def test_the_order_of_groupings_does_not_matter() -> None:
    contract, names = parse(), ("month", "ward", "age")
    asked = [Query.of(contract, "count", by=by) for by in itertools.permutations(names)]
    assert len({query.question("1") for query in asked}) == 1
    query = asked[0]
    assert asked == [query] * 6
    assert query.by == ("age", "month", "ward")
    assert query.cells == len(list(query.labels())) == 3 * 6 * 2
    assert Query.of(contract, "count", by="ward") == Query.of(contract, "count", by=["ward"])


def test_cells_follow_the_declared_keys_in_their_order() -> None:
    query = Query.of(parse(('["north", "south"]', '["south", "north"]')), "count", by=["ward", "age"])
    assert list(query.labels()) == [(age, ward) for age in (0, 1, 2) for ward in ("south", "north")]
    assert list(Query.of(parse(), "count").labels()) == [()]
    assert Query.of(parse(), "count").cells == 1


def test_the_text_says_how_odd_values_are_treated() -> None:
    record = json.loads(BASE["sum cost by month"])
    assert record["rules"] == {"infinity": "clamp", "nan": "drop", "null": "drop", "unparsed": "drop"}
    assert record["limits"] == {"groups": 3, "rows": 2}
    assert record["column"] == {"name": "cost", "type": "decimal", "lattice": "0.05", "lower": "-10", "upper": "20"}


def test_a_name_may_be_typed_in_either_unicode_form() -> None:
    composed, decomposed = "größe", unicodedata.normalize("NFD", "größe")
    asked = set()
    for declared, typed in itertools.product((composed, decomposed), repeat=2):
        contract = parse(("[columns.ward]", f'[columns."{declared}"]'), ("[columns.cost]", f'[columns."{declared}n"]'))
        query = Query.of(contract, "sum", column=f"{typed}n", by=typed)
        assert (query.column, query.by, query.cells) == (f"{composed}n", (composed,), 2)
        asked.add(query.question("1"))
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("statistic", "column", "by", "words"),
    [
        ("mean", "cost", (), "unknown statistic 'mean'"),
        ("Count", None, (), "unknown statistic"),
        ("count", "ward", (), "ward is not a column with declared bounds, which a count of it needs"),
        ("count", "patient", (), "patient is not a column with declared bounds, which a count of it needs"),
        ("count_distinct", None, (), "count_distinct needs the name of a column"),
        ("count_distinct", "day", (), "cannot count the values of day: it has no declared keys or bounds"),
        ("count_distinct", "patient", (), "cannot count the values of patient"),
        ("count_units", "cost", (), "count_units takes no column"),
        ("sum", None, (), "sum needs the name of a column"),
        ("sum", "ward", (), "ward is not a column with declared bounds"),
        ("sum", "day", (), "day is not a column with declared bounds"),
        ("sum", "month", (), "month is not a column with declared bounds"),
        ("sum", "patient", (), "patient is not a column with declared bounds"),
        ("sum", "salary", (), "salary is not a column with declared bounds"),
        ("sum", "", (), "is not a column with declared bounds"),
        ("count", None, "cost", "cannot group by cost"),
        ("count", None, "day", "cannot group by day"),
        ("count", None, "patient", "cannot group by patient"),
        ("count", None, "salary", "cannot group by salary"),
        ("count", None, "", "cannot group by"),
        ("count", None, ["month", "salary"], "cannot group by salary"),
        ("count", None, ["month", "month"], "a grouping is named twice"),
        ("count", None, None, "by takes one name or a list of names"),
        ("count", None, 5, "by takes one name or a list of names"),
        ("count", None, ["month", 5], "by takes one name or a list of names"),
        ("count", None, {"month"}, "by takes one name or a list of names"),
        ("count", None, b"month", "by takes one name or a list of names"),
    ],
)
def test_what_the_contract_does_not_allow_is_refused(statistic: str, column: Any, by: Any, words: str) -> None:
    with pytest.raises(QuestionError) as caught:
        Query.of(parse(), statistic, column=column, by=by)
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


OWN = """
[columns.{name}]
type = "text"
keys = ["x", "y"]

[columns.found]
type = "text"
keys = "select"
"""


@pytest.mark.parametrize("statistic", ["count", "count_units", "sum", "sum_squares", "count_distinct", "histogram"])
@pytest.mark.parametrize("name", ["value", "lower", "upper", "at", "rank"])
def test_a_group_is_not_called_like_a_column_of_the_answer(statistic: str, name: str) -> None:
    contract = parse(("[columns.day]", OWN.format(name=name) + "[columns.day]"))
    column = "age" if statistic in ("sum", "sum_squares", "count_distinct") else None
    asked: dict[str, Any] = {"column": name} if statistic == "histogram" else {"column": column, "by": ("month", name)}
    if name in ("at", "rank"):
        assert name in Query.of(contract, statistic, **asked).by
        return
    with pytest.raises(QuestionError, match=f"column {name} of its own.*another name"):
        Query.of(contract, statistic, **asked)


@pytest.mark.parametrize("name", ["value", "lower", "upper", "at", "rank"])
def test_each_answer_has_columns_of_its_own(name: str) -> None:
    contract = parse(("[columns.day]", OWN.format(name=name) + "[columns.day]"))
    own = {"top": {"rank"}, "quantile": {"value", "lower", "upper", "at"}, "unit_rows": set[str]()}
    asked: dict[str, dict[str, Any]] = {
        "top": {"column": name, "k": 1},
        "quantile": {"column": "age", "by": name, "at": Fraction(1, 2)},
        "unit_rows": {"by": name, "at": Fraction(1, 2)},
    }
    for statistic, how in asked.items():
        if name in own[statistic]:
            with pytest.raises(QuestionError, match="of its own"):
                Query.of(contract, statistic, **how)
        else:
            assert Query.of(contract, statistic, **how).by == (name,)
    # In a condition, and as what is counted, the name is as good as any.
    assert Query.of(contract, "count", where=f"{name} = 'x'").names == (name,)
    assert Query.of(contract, "count_distinct", column=name).column == name


def test_bins_and_selected_columns_are_not_called_like_a_column_of_the_answer() -> None:
    bins = parse(("[bins.month]", "[bins.value]"))
    with pytest.raises(QuestionError, match="give these bins another name"):
        Query.of(bins, "count", by="value")
    budget = ('epsilon = "1"', 'epsilon = "1"\ndelta_mechanisms = "1e-9"')
    text = OWN.format(name="x").replace("columns.found", "columns.upper") + "[columns.day]"
    with pytest.raises(QuestionError, match="give the column, in the data"):
        Query.of(parse(("[columns.day]", text), budget), "select_keys", column="upper")


def test_an_integer_column_groups_only_by_declared_keys() -> None:
    with pytest.raises(QuestionError, match="cannot group by age"):
        Query.of(parse(("keys = [0, 1, 2]\n", "")), "count", by="age")


def test_more_cells_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parco.queries.query.CELLS_MAX", 12)
    assert Query.of(parse(), "count", by=["month", "ward"]).cells == 12
    with pytest.raises(QuestionError, match="36 groups are more than 12"):
        Query.of(parse(), "count", by=["month", "ward", "age"])


# Rules and bins: in the text only where they say something else than by default


CHANGES = [
    (('upper = "20"', 'upper = "20"\nnull = 0'), {"sum cost by month"}),
    (('upper = "20"', 'upper = "20"\ninfinity = "drop"'), {"sum cost by month"}),
    (('upper = "20"', 'upper = "20"\nclamp = "unit"'), {"sum cost by month"}),
    (('upper = "20"', 'upper = "20"\nnull = "drop"\ninfinity = "clamp"\nclamp = "row"'), set()),
    (("upper = 120", "upper = 120\nnull = 2"), {"sum age", "count_units by age"}),
    (("upper = 120", "upper = 120\nunparsed = 2"), {"sum age", "count_units by age"}),
    # An infinity is no key, and a key has no bounds.
    (("upper = 120", 'upper = 120\ninfinity = "drop"'), {"sum age"}),
    (("upper = 120", 'upper = 120\nclamp = "unit"'), {"sum age"}),
    (('["north", "south"]', '["north", "south"]\nnull = "south"'), {"count by month and ward"}),
    (('["north", "south"]', '["north", "south"]\nnormal = ["casefold"]'), {"count by month and ward"}),
    (('["north", "south"]', '["north", "south"]\nnormal = ["nfc"]'), set()),
    (('type = "date"', 'type = "date"\nformats = ["%d.%m.%Y"]'), MONTH),
    (('every = "month"', 'every = "month"\ntime_zone = "UTC"'), MONTH),
    (("rows = 2", 'rows = 2\nnormal = ["strip"]'), ALL),
    (("rows = 2", "rows = 2\nnormal = []"), set()),
    (('version = "1"', '[data.csv]\ndelimiter = ";"'), ALL),
    (('version = "1"', '[data.csv]\ndelimiter = ","'), set()),
]


@pytest.mark.parametrize(
    ("change", "differ"), CHANGES, ids=lambda value: value[1] if isinstance(value, tuple) else None
)
def test_a_rule_changes_the_questions_it_matters_to(change: tuple[str, str], differ: set[str]) -> None:
    asked = questions(parse(change))
    assert {name for name in ASKED if asked[name] != BASE[name]} == differ


# As ledgers hold it from before there were rules: with another text, stored answers would be paid for again.
OLD_QUESTION = (
    '{"by":[{"keys":[0,1,2],"name":"age","type":"integer"},{"column":"day","every":"month","first":"2024-01","last":'
    '"2024-06","name":"month"},{"keys":["north","south"],"name":"ward","type":"text"}],"column":{"lattice":"0.05",'
    '"lower":"-10","name":"cost","type":"decimal","upper":"20"},"data":"visits","limits":{"groups":3,"rows":2},"rules":'
    '{"infinity":"clamp","nan":"drop","null":"drop","unparsed":"drop"},"statistic":"sum","unit":"patient",'
    '"version":"1"}'
)


def test_a_question_without_rules_has_the_text_it_always_had() -> None:
    query = Query.of(parse(), "sum", column="cost", by=["ward", "month", "age"])
    assert query.question("1") == OLD_QUESTION


def test_bins_of_numbers_follow_the_rules_of_their_column_and_not_its_bounds() -> None:
    months = '[bins.month]\ncolumn = "day"\nevery = "month"\nfirst = "2024-01"\nlast = "2024-06"'
    edges = '[bins.month]\ncolumn = "cost"\nedges = [0, 1]'

    def asked(*changes: tuple[str, str]) -> str:
        return Query.of(parse((months, edges), *changes), "count", by="month").question("1")

    assert asked(('upper = "20"', 'upper = "30"')) == asked(('lattice = "0.05"', 'lattice = "0.1"')) == asked()
    assert asked(('upper = "20"', 'upper = "20"\nnull = 0')) != asked()
    # What is no whole number lies between edges in a decimal column, and is none in an integer column.
    assert '"read":{"type":"decimal"}' in asked()
    whole = asked(('type = "decimal"\nlattice = "0.05"', 'type = "integer"'))
    assert '"read"' not in whole


def test_the_limits_say_that_a_units_sum_is_clamped() -> None:
    query = Query.of(parse(('upper = "20"', 'upper = "20"\nclamp = "unit"')), "sum", column="cost", by="month")
    assert query.limits.endswith("and what it adds up to in a group is clamped to [-10, 20]")
