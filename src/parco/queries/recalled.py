"""A question read back from its canonical text: the very same one, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from parco.contract.contract import Contract
from parco.errors import QuestionError
from parco.queries.condition import recalled
from parco.queries.filters import Filter
from parco.queries.query import Query

__all__ = ["query_of"]


def query_of(contract: Contract, text: str, *, version: str) -> Query:
    """For every canonical text of a question that the contract still asks so, returns that question.

    QuestionError for one about another version of the data, or whose columns, keys, bounds or limits the contract
    declares otherwise by now: that is another question. Whatever is read back is compared with the text, byte for byte.
    """
    record = json.loads(text)
    if record["version"] != version:
        raise QuestionError(
            f"this answer is about version {record['version']} of the data, and you read version {version}: that is"
            " another question"
        )
    try:
        query = _read(contract, record)
    except (QuestionError, KeyError, TypeError, ValueError):
        query = None
    if query is None or query.question(version) != text:
        raise QuestionError(
            "the contract reads this question otherwise than when it was answered (its keys, bounds, limits or columns"
            " were revised): that is another question, so ask it anew"
        )
    return query


def _read(contract: Contract, record: Mapping[str, Any]) -> Query:
    query = Query.of(
        contract,
        record["statistic"],
        column=None if record["column"] is None else record["column"]["name"],
        by=[group["name"] for group in record["by"]],
        part=record["part"]["name"] if "part" in record else None,
        period=record["period"]["keys"] if "period" in record else None,
        centred="centre" in record,
    )
    if "where" in record:
        query = replace(query, where=Filter(contract, recalled(contract, record["where"]["condition"])))
    return query
