"""A question read back from the canonical text that a ledger keeps, so that its bounds can be worked out again."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from parco import canonical
from parco.contract.contract import Contract
from parco.errors import VerificationError
from parco.queries.query import Query, Statistic

__all__ = ["recalled"]


def recalled(contract: Contract, text: str) -> Query:
    """For every canonical text of a question under `contract`, returns the question without its condition.

    A condition leaves rows out and moves no bound, so that sensitivity, groups and accounts are those of the whole
    question. Raises VerificationError for a text that is no question of this version.
    """
    try:
        return _query(contract, canonical.decode(text.encode()))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise VerificationError("a question of the ledger is not in the form that this version writes") from None


def _query(contract: Contract, record: dict[str, Any]) -> Query:
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
