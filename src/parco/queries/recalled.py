"""A question read back from its canonical text: the very same one, or a refusal; or what its bounds follow from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from parco.contract.contract import Contract
from parco.errors import QuestionError, VerificationError
from parco.queries.filters import Filter
from parco.queries.query import Query, Statistic

__all__ = ["query_of", "unconditional"]


def query_of(contract: Contract, text: str, *, version: str, asker: str | None = None) -> Query:
    """For every canonical text of a question that the contract still asks so, returns that question.

    QuestionError for one about another version of the data, or whose columns, keys, bounds or limits the contract
    declares otherwise by now, and for one whose answer is not served to this asker: that is another question. Whatever
    is read back is compared with the text, byte for byte.
    """
    record = json.loads(text)
    if record.get("answers") != contract.served_to(asker):
        raise QuestionError(
            "this answer is served to other askers alone, and only who is served can have it refined: ask for your own"
        )
    if record["version"] != version:
        raise QuestionError(
            f"this answer is about version {record['version']} of the data, and you read version {version}: that is"
            " another question"
        )
    try:
        query = _read(contract, record)
    except (QuestionError, KeyError, TypeError, ValueError):
        query = None
    if query is None or query.question(version, asker=asker) != text:
        raise QuestionError(
            "the contract reads this question otherwise than when it was answered (its keys, bounds, limits or columns"
            " were revised): that is another question, so ask it anew"
        )
    return query


def unconditional(contract: Contract, text: str) -> Query:
    """For every canonical text of a question, returns it under `contract` as it stands now, without its condition.

    A condition leaves rows out and moves no bound, so that sensitivity, groups and accounts are those of the whole
    question. Raises VerificationError for a text that is no question of this version.
    """
    try:
        record = json.loads(text)
        column, at = record["column"], record.get("at")
        return Query(
            contract,
            Statistic(record["statistic"]),
            column=None if column is None else column["name"],
            by=tuple(grouping["name"] for grouping in record["by"]),
            part=record["part"]["name"] if "part" in record else None,
            periods=tuple(record["period"]["keys"]) if "period" in record else (),
            centre=Fraction(record.get("centre", 0)),
            at=None if at is None else Fraction(at),
            k=record.get("k"),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise VerificationError("a question of the ledger is not in the form that this version writes") from None


def _read(contract: Contract, record: Mapping[str, Any]) -> Query:
    if record["statistic"] == Statistic.SCORE:
        query = Query.scored(contract, part=record["part"]["name"], target=Fraction(record["at"]))
        return _with_condition(replace(query, statistic=Statistic.SCORE), record)
    query = Query.of(
        contract,
        record["statistic"],
        column=None if record["column"] is None else record["column"]["name"],
        by=[group["name"] for group in record["by"]],
        part=record["part"]["name"] if "part" in record else None,
        period=record["period"]["keys"] if "period" in record else None,
        centred="centre" in record,
    )
    return _with_condition(query, record)


def _with_condition(query: Query, record: Mapping[str, Any]) -> Query:
    if "where" in record:
        from parco.queries.condition import recalled

        condition = recalled(query.contract, record["where"]["condition"])
        return replace(query, where=Filter(query.contract, condition))
    return query
