"""Which periods a question touches: those it names, or all where it is grouped by them.

A question over several periods must be grouped by them: then each cell belongs to one period, each period's account is
charged for its own cells, and what a unit present in all periods loses is the sum (docs/mathematics.md, "Periods").
"""

from __future__ import annotations

from collections.abc import Sequence

from parco.contract.contract import Contract
from parco.errors import QuestionError

__all__ = ["periods_of"]


def periods_of(contract: Contract, by: tuple[str, ...], named: str | Sequence[str] | None) -> tuple[str, ...]:
    """The periods of a question in their order, none where the contract has none; raises QuestionError."""
    unit = contract.unit
    if unit.period is None:
        if named is not None:
            raise QuestionError("this contract protects a unit over all time: leave out period")
        return ()
    if named is None:
        if unit.period not in by:
            raise QuestionError(
                f"this contract protects one {unit.column} in one {unit.period}: group by {unit.period}, or name one"
                " period (--period, in Python period=)"
            )
        return contract.accounts
    asked: tuple[object, ...] = (named,) if isinstance(named, str) else tuple(named) if _is_list(named) else ()
    if (
        not asked
        or not all(isinstance(key, str) for key in asked)
        or len(set(asked)) < len(asked)
        or not set(asked) <= set(contract.accounts)
    ):
        first, last = contract.accounts[0], contract.accounts[-1]
        raise QuestionError(f"period names one of {first} to {last}, or several of them, each once")
    if len(asked) > 1 and unit.period not in by:
        raise QuestionError(f"a question on several periods is grouped by {unit.period}: add it, and sum the cells")
    return tuple(key for key in contract.accounts if key in asked)


def _is_list(named: object) -> bool:
    return isinstance(named, list | tuple)
