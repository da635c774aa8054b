"""One question has one form however it is asked, its text reads back to it, and other questions have other texts."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.contract.contract import Contract
from parco.errors import QuestionError
from parco.queries.query import Query
from parco.queries.recalled import query_of
from tests.contract.document import parse

CONTRACT = parse()
BY = ((), ("ward",), ("month",), ("ward", "month"))
COMPARISONS = st.sampled_from(
    [
        *(f"age {sign} {number}" for sign in ("=", "<>", "<", "<=", ">", ">=") for number in (3, 17, 64)),
        *(f"cost {sign} {number}" for sign in ("<", ">=") for number in ("0.5", "1", "2.25")),
        "age in (2, 3, 90)",
        "age between 5 and 50",
        "age is null",
        "cost is not null",
        "ward = 'north'",
        "ward in ('south')",
        "month < '2024-03'",
        "day between '2024-01-03' and '2024-02-10'",
    ]
)
TREES = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner, inner),
    ),
    max_leaves=6,
)


def told(tree: object, rng: random.Random) -> str:
    """A condition as somebody would type it: operands in any order, spaces, brackets and 1.0 for 1 as they come."""
    space = " " * rng.choice([1, 1, 2, 5])
    if isinstance(tree, str):
        name, sign, *rest = tree.split(" ")
        if sign in ("=", "<>", "<", "<=", ">", ">=") and rest[0].isdigit():
            number = rng.choice([rest[0], f"{rest[0]}.0", f"{rest[0]}.00", f"({rest[0]})", f"{rest[0]}e0"])
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
            return rng.choice([f"{name}{space}{sign}{space}{number}", f"{number}{space}{flipped}{space}{name}"])
        return rng.choice([tree, tree.replace(" ", space), f"({tree})"])
    assert isinstance(tree, tuple)
    word, *parts = tree
    if word == "not":
        return rng.choice(["not", "NOT"]) + f" ({told(parts[0], rng)})"
    shown = [f"({told(part, rng)})" for part in rng.sample(parts, len(parts))]
    if len(shown) == 3 and rng.random() < 0.5:
        shown = [f"({shown[0]}{space}{word} {shown[1]})", shown[2]]
    return f"{space}{rng.choice([word, word.upper()])}{space}".join(shown)


def asked(contract: Contract, where: str | None, by: tuple[str, ...] = ()) -> str | None:
    """The canonical text, None where no row can meet the condition."""
    try:
        return Query.of(contract, "count", by=by, where=where).question("1")
    except QuestionError as error:
        if "no row can meet" in str(error):
            return None
        raise


@settings(max_examples=150, deadline=None)
@given(tree=TREES, by=st.sampled_from(BY), seed=st.integers(0, 10**6))
def test_however_a_question_is_typed_it_is_one_and_its_text_reads_back(
    tree: object, by: tuple[str, ...], seed: int
) -> None:
    rng = random.Random(seed)
    text = asked(CONTRACT, told(tree, rng), by)
    assert text == asked(CONTRACT, told(tree, rng), tuple(rng.sample(by, len(by))))
    if text is not None:
        assert query_of(CONTRACT, text, version="1") == Query.of(CONTRACT, "count", by=by, where=told(tree, rng))


@settings(max_examples=100, deadline=None)
@given(tree=TREES)
def test_a_condition_and_its_complement_are_two_questions_and_so_is_none(tree: object) -> None:
    """No free complement: what the other rows hold is another answer, with a charge of its own."""
    rng = random.Random(1)
    texts = [asked(CONTRACT, None), asked(CONTRACT, told(tree, rng)), asked(CONTRACT, f"not ({told(tree, rng)})")]
    whole, some, rest = texts
    if some is not None and rest is not None:
        assert some != rest
        # A condition that every row meets is none at all.
        assert len({whole, some, rest}) == 3 or whole in (some, rest)


DIFFERENT = [
    {},
    {"by": "ward"},
    {"by": ["ward", "month"]},
    {"where": "age >= 2"},
    {"where": "age >= 3"},
    {"where": "age < 2"},
    {"where": "age >= 2 or age is null"},
    {"where": "age >= 2 and ward = 'north'"},
    {"where": "age >= 2 or ward = 'north'"},
    {"where": "cost >= 2"},
    {"column": "age"},
    {"column": "cost"},
]


def test_truly_different_questions_differ() -> None:
    texts = [Query.of(CONTRACT, "count", **one).question("1") for one in DIFFERENT]  # type: ignore[arg-type]
    texts += [Query.of(CONTRACT, kind, column="age").question("1") for kind in ("sum", "sum_squares", "count_distinct")]
    texts += [
        Query.of(CONTRACT, "sum", column="age", centred=True).question("1"),
        Query.of(CONTRACT, "count").question("2"),
    ]
    texts.append(Query.of(CONTRACT, "count_units").question("1"))
    assert len(set(texts)) == len(texts)


def test_additive_questions_read_back() -> None:
    for one in DIFFERENT:
        query = Query.of(CONTRACT, "count", **one)  # type: ignore[arg-type]
        assert query_of(CONTRACT, query.question("1"), version="1") == query
    for statistic in ("sum", "sum_squares"):
        for centred in (False, True):
            query = Query.of(CONTRACT, statistic, column="cost", by="ward", centred=centred)
            assert query_of(CONTRACT, query.question("1"), version="1") == query


def test_another_version_and_whatever_the_contract_reads_otherwise_is_refused() -> None:
    text = Query.of(CONTRACT, "sum", column="age", by="ward", where="age >= 2").question("1")
    with pytest.raises(QuestionError, match="version 1 of the data, and you read version 2"):
        query_of(CONTRACT, text, version="2")
    record = json.loads(text)
    changes: tuple[dict[str, object], ...] = (
        {"limits": {"groups": 1, "rows": 99}},
        {"by": []},
        {"by": [{"name": "nothing"}]},
        {"statistic": "no such"},
        {"where": {}},
        {"where": {"condition": {"name": "age", "in": [["2.5", None]]}, "columns": []}},
        {"where": {"condition": {"name": "patient", "in": ["7"]}, "columns": []}},
        {"column": None},
    )
    for change in changes:
        with pytest.raises(QuestionError, match="another question"):
            query_of(CONTRACT, json.dumps(record | change), version="1")
