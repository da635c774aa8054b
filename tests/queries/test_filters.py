"""A condition has one form however it is written, holds nothing that could fail, and says what it refuses."""

from __future__ import annotations

import itertools
import json

import pytest

from parco.errors import QuestionError
from parco.queries.filters import Filter, words
from parco.queries.query import Query
from tests.contract.document import parse

CONTRACT = parse()


def form(text: str) -> str:
    return Query.of(CONTRACT, "count", where=text).question("1")


SAME = [
    ["age >= 2", "age > 1", "2 <= age", "not age < 2", "not (not (age >= 2.0))", "age > 1.5", "((age)) >= (2)"],
    [
        "age between 2 and 5",
        "age >= 2 and age <= 5",
        "not (age < 2 or age > 5)",
        "age in (2, 3, 4, 5)",
        "5>=age AND age>1",
    ],
    ["age = 120", "age >= 120", "age > 119", "age between 120 and 1000"],
    ["age <> 3", "age != 3", "not age = 3", "age < 3 or age > 3", "age not in (3)", "not age between 3 and 3"],
    ["age is null", "not age is not null", "not (age >= 0)and age is null or age is null"],
    ["age is not null", "age >= -5", "age < 121", "age <> 121", "age > 3 or age <= 3"],
    ["ward = 'north'", "'north' = ward", "ward <> 'south'", "ward in ('north', 'north')", "not ward in ('south')"],
    ["cost >= 0.1", "cost >= 1e-1", "cost > 0.05", "cost > 0.07", "not cost < 0.10", "NOT cost<=0.05 -- remark"],
    ["month < '2024-03'", "month in ('2024-02', '2024-01')", "month between '2024-01' and '2024-02'"],
    ["day < '2024-03-01'", "day <= '2024-02-29'", "not day >= '2024-03-01'"],
    [
        "age >= 2 and ward = 'north' and cost < 3",
        "cost < 3 and (ward = 'north' and age >= 2)",
        "not (not age >= 2 or ward = 'south' or cost >= 3)",
        "age >= 2 and age >= 1 and ward = 'north' and not (cost >= 3) and ward = 'north'",
    ],
    [
        "age = 1 or ward = 'north' and cost < 3",
        "(cost < 3 and ward = 'north') or age = 1",
        "not (age <> 1 and (ward <> 'north' or cost >= 3))",
        "age = 1 or age > 200 or (ward = 'north' and cost < 3) or (cost < 3 and ward = 'north')",
    ],
]


def test_conditions_that_say_the_same_have_one_form() -> None:
    forms = [{form(text) for text in texts} for texts in SAME if "null" not in texts[0]]
    assert [len(found) for found in forms] == [1] * len(forms)
    assert len(set.union(*forms)) == len(forms)


@pytest.mark.parametrize("texts", SAME, ids=lambda texts: texts[0])
def test_its_words_read_back_to_the_same_form(texts: list[str]) -> None:
    found = Filter.of(CONTRACT, texts[0])
    assert found is not None
    shown = str(found)
    record = json.loads(form(texts[0]))["where"]
    assert words(record["condition"]) == shown
    quoted = shown.replace("< ", "< ")
    for name in ("day", "month"):
        # Days are shown without quotes.
        quoted = quoted.replace(f"{name} <= ", f"{name} <= '") + ("'" if f"{name} <= " in quoted else "")
    assert form(quoted) == form(texts[0])


def test_null_is_in_no_comparison_and_in_no_negated_one() -> None:
    assert form("not age >= 2") == form("age < 2") != form("age < 2 or age is null")
    assert form("age is null or ward = 'north'") != form("ward = 'north'")
    assert form("age is not null and age >= 2") == form("age >= 2")


def test_what_holds_for_every_row_is_no_filter() -> None:
    plain = Query.of(CONTRACT, "count").question("1")
    assert form("age is null or age is not null") == plain
    assert form("ward = 'north' or (age >= 0 or age is null)") == plain
    assert "where" not in json.loads(plain)


@pytest.mark.parametrize(
    "text",
    ["age > 120", "age = 2.5", "age < 2 and age > 2", "ward = 'north' and ward = 'south'", "age is null and age > 1",
     "age between 5 and 2", "month > '2024-06'"],
)  # fmt: skip
def test_what_holds_for_no_row_is_refused(text: str) -> None:
    with pytest.raises(QuestionError, match="no row can meet this condition"):
        form(text)


REFUSED = {
    "patient = '7'": "patient is the protected unit",
    "salary > 1": "salary is not declared; the contract declares: month, day, age, cost, ward",
    "Age > 1": "Age is not declared",
    "t.age > 1": "write a name alone",
    "cast(age as text) = '1'": "cast stands where the name",
    "age::text = '1'": "cast stands where the name",
    "age + 1 > 2": "add stands where the name",
    "age > 1 + 1": "not with add",
    "age / 0 > 1": "div stands where the name",
    "ln(age) > 1": "a function stands where the name",
    "foo(age)": "a function is not allowed",
    "age > (select 1)": "not with subquery",
    "age in (select 1)": "in is not allowed",
    "age in ()": "in is not allowed",
    "exists (select 1)": "is not allowed",
    "age > ?": "not with a parameter",
    "age = :x": "not with a parameter",
    "age = @x": "not with parameter",
    "age > cost": "not with another column",
    "1 = 1": "literal stands where the name",
    "age": "another column is not allowed",
    "age = null": "not with null",
    "age is true": "is is not allowed",
    "age like '1'": "like is not allowed",
    "ward like 'n%'": "like is not allowed",
    "ward ~ 'n'": "not one condition",
    "ward || 'n' = 'a'": "dpipe stands where the name",
    "1 < age < 3": "lt stands where the name",
    "age between symmetric 5 and 2": "between is not allowed",
    "age is distinct from 1": "is not allowed",
    "case when age > 1 then true end": "is not allowed",
    "age = '2'": "compare it with a number",
    "age = 0x10": "is not allowed",
    "age = 1e999": "exponents beyond",
    "age = 1e": "is no finite number",
    "cost > date '2024-01-01'": "not with cast",
    "ward = 5": "compare it with text in single quotes",
    "ward = 'west'": "'west' is not among its declared keys",
    "ward < 'south'": "ward is text, which has no order here",
    "ward between 'a' and 'b'": "ward is text, which has no order here",
    "month = '2024-07'": "'2024-07' is not among its declared keys",
    "day = '2024-02-30'": "compare it with a day in quotes",
    "day = '20240230'": "compare it with a day in quotes",
    "day >= '0001-01-01'": "compare it with a day in quotes",
    "day = 20240101": "compare it with text in single quotes",
    "select 1": "select is not allowed",
    "age > 1; drop table x": "not one condition",
    "age >": "not one condition",
    "": "give a condition as text",
    "age = 1 or " * 500 + "age = 1": "give a condition as text",
    "not " * 900 + "age = 1": "nested too deeply",
    "(" * 900 + "age = 1" + ")" * 900: "nested too deeply",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_a_condition_may_not_hold_is_refused_by_name(text: str) -> None:
    with pytest.raises(QuestionError) as caught:
        form(text)
    assert str(caught.value).startswith("where: ")
    assert REFUSED[text] in str(caught.value)


def test_a_long_chain_is_no_deep_nest() -> None:
    days = " or ".join(f"age={place}" for place in range(0, 120, 2))
    assert form(days) == form(f"age in ({', '.join(str(place) for place in range(0, 120, 2))})")


def test_order_never_matters() -> None:
    parts = ["age >= 2", "ward = 'north'", "(cost < 3 or day < '2024-05-01')", "month <> '2024-02'"]
    assert len({form(" and ".join(order)) for order in itertools.permutations(parts)}) == 1
