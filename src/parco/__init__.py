"""parco publishes statistics about people, again and again, under one contract, and can always show what that cost.

import parco
contract = parco.Contract.read("contract.toml")
parco.sign(contract, ledger="purchases.ledger")
with parco.Session(contract, data="purchases.csv", ledger="purchases.ledger") as s:
    print(s.count(by="month", cost="0.05").table())

Names are loaded when they are first used: a program that only reads `parco.Contract` does not wait for the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parco.contract.contract import Contract
    from parco.errors import (
        BudgetError,
        BusyError,
        ContractChangedError,
        ContractError,
        DataError,
        ForfeitedError,
        HaltedError,
        InternalError,
        KeyReuseError,
        LedgerFormatError,
        NotSignedError,
        ParcoError,
        QuestionError,
        RequestError,
        SharperError,
        StorageError,
        VerificationError,
    )
    from parco.measure import Cost, Measure
    from parco.privacy.expost import ExPost
    from parco.queries.joint import BoundsPlan, MeanPlan, QuantilePlan, VariancePlan
    from parco.queries.plan import Plan
    from parco.queries.query import Query
    from parco.session.ask import Ask
    from parco.session.bounds import BoundsAnswer
    from parco.session.keys import KeysAnswer
    from parco.session.mean import MeanAnswer
    from parco.session.quantile import QuantileAnswer, histogram_quantiles
    from parco.session.receipt import Receipt
    from parco.session.release import Answer, Release, Row
    from parco.session.session import Session
    from parco.session.signing import move_cap, revise, sign
    from parco.session.top import TopAnswer
    from parco.session.variance import VarianceAnswer

__all__ = [
    "Answer",
    "Ask",
    "BoundsAnswer",
    "BoundsPlan",
    "BudgetError",
    "BusyError",
    "Contract",
    "ContractChangedError",
    "ContractError",
    "Cost",
    "DataError",
    "ExPost",
    "ForfeitedError",
    "HaltedError",
    "InternalError",
    "KeyReuseError",
    "KeysAnswer",
    "LedgerFormatError",
    "MeanAnswer",
    "MeanPlan",
    "Measure",
    "NotSignedError",
    "ParcoError",
    "Plan",
    "QuantileAnswer",
    "QuantilePlan",
    "Query",
    "QuestionError",
    "Receipt",
    "Release",
    "RequestError",
    "Row",
    "Session",
    "SharperError",
    "StorageError",
    "TopAnswer",
    "VarianceAnswer",
    "VariancePlan",
    "VerificationError",
    "histogram_quantiles",
    "move_cap",
    "revise",
    "sign",
]

_HOMES = {
    "parco.contract.contract": ("Contract",),
    "parco.errors": (
        "BudgetError",
        "BusyError",
        "ContractChangedError",
        "ContractError",
        "DataError",
        "ForfeitedError",
        "HaltedError",
        "InternalError",
        "KeyReuseError",
        "LedgerFormatError",
        "NotSignedError",
        "ParcoError",
        "QuestionError",
        "RequestError",
        "SharperError",
        "StorageError",
        "VerificationError",
    ),
    "parco.measure": (
        "Cost",
        "Measure",
    ),
    "parco.privacy.expost": ("ExPost",),
    "parco.queries.joint": (
        "BoundsPlan",
        "MeanPlan",
        "QuantilePlan",
        "VariancePlan",
    ),
    "parco.queries.plan": ("Plan",),
    "parco.queries.query": ("Query",),
    "parco.session.ask": ("Ask",),
    "parco.session.bounds": ("BoundsAnswer",),
    "parco.session.keys": ("KeysAnswer",),
    "parco.session.mean": ("MeanAnswer",),
    "parco.session.quantile": (
        "QuantileAnswer",
        "histogram_quantiles",
    ),
    "parco.session.receipt": ("Receipt",),
    "parco.session.release": (
        "Answer",
        "Release",
        "Row",
    ),
    "parco.session.session": ("Session",),
    "parco.session.signing": (
        "move_cap",
        "revise",
        "sign",
    ),
    "parco.session.top": ("TopAnswer",),
    "parco.session.variance": ("VarianceAnswer",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker that saw it would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'parco' has no attribute {name!r}")
        found: object = getattr(import_module(_HOME[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
