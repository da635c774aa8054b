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
    from parco.accuracy.ladders import Explicit, Geometric, Predictive
    from parco.accuracy.loop import Stopped
    from parco.accuracy.rules import AbsoluteError, RelativeError, View
    from parco.accuracy.run import accuracy_first
    from parco.accuracy.sessions import release_until
    from parco.accuracy.validation import Validation
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
        QuotaError,
        RefinedError,
        RequestError,
        SharperError,
        StorageError,
        SupersededError,
        VerificationError,
    )
    from parco.measure import Cost, Measure
    from parco.privacy.expost import ExPost
    from parco.queries.joint import BoundsPlan, MeanPlan, QuantilePlan, VariancePlan
    from parco.queries.plan import Plan
    from parco.queries.query import Query
    from parco.session.accesses import Accesses
    from parco.session.ask import Ask
    from parco.session.bounds import BoundsAnswer
    from parco.session.combining import combine
    from parco.session.correcting import Ledger
    from parco.session.governance import lift_quota, quotas, set_quota
    from parco.session.keys import KeysAnswer
    from parco.session.lifetime import Lifetime
    from parco.session.mean import MeanAnswer
    from parco.session.panel import run_panel
    from parco.session.quantile import QuantileAnswer, histogram_quantiles
    from parco.session.receipt import Receipt
    from parco.session.release import Answer, Release, Row
    from parco.session.schedules import ScheduledAsk, leave_schedule, sign_schedule
    from parco.session.session import Session
    from parco.session.signing import move_cap, revise, sign
    from parco.session.top import TopAnswer
    from parco.session.variance import VarianceAnswer

__all__ = [
    "AbsoluteError",
    "Accesses",
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
    "Explicit",
    "ForfeitedError",
    "Geometric",
    "HaltedError",
    "InternalError",
    "KeyReuseError",
    "KeysAnswer",
    "Ledger",
    "LedgerFormatError",
    "Lifetime",
    "MeanAnswer",
    "MeanPlan",
    "Measure",
    "NotSignedError",
    "ParcoError",
    "Plan",
    "Predictive",
    "QuantileAnswer",
    "QuantilePlan",
    "Query",
    "QuestionError",
    "QuotaError",
    "Receipt",
    "RefinedError",
    "RelativeError",
    "Release",
    "RequestError",
    "Row",
    "ScheduledAsk",
    "Session",
    "SharperError",
    "Stopped",
    "StorageError",
    "SupersededError",
    "TopAnswer",
    "Validation",
    "VarianceAnswer",
    "VariancePlan",
    "VerificationError",
    "View",
    "accuracy_first",
    "combine",
    "histogram_quantiles",
    "leave_schedule",
    "lift_quota",
    "move_cap",
    "quotas",
    "release_until",
    "revise",
    "run_panel",
    "set_quota",
    "sign",
    "sign_schedule",
]

_HOMES = {
    "parco.accuracy.ladders": (
        "Explicit",
        "Geometric",
        "Predictive",
    ),
    "parco.accuracy.loop": ("Stopped",),
    "parco.accuracy.rules": (
        "AbsoluteError",
        "RelativeError",
        "View",
    ),
    "parco.accuracy.run": ("accuracy_first",),
    "parco.accuracy.sessions": ("release_until",),
    "parco.accuracy.validation": ("Validation",),
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
        "RefinedError",
        "QuotaError",
        "RequestError",
        "SharperError",
        "StorageError",
        "SupersededError",
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
    "parco.session.accesses": ("Accesses",),
    "parco.session.ask": ("Ask",),
    "parco.session.bounds": ("BoundsAnswer",),
    "parco.session.combining": ("combine",),
    "parco.session.correcting": ("Ledger",),
    "parco.session.governance": (
        "lift_quota",
        "quotas",
        "set_quota",
    ),
    "parco.session.keys": ("KeysAnswer",),
    "parco.session.lifetime": ("Lifetime",),
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
    "parco.session.panel": ("run_panel",),
    "parco.session.schedules": (
        "ScheduledAsk",
        "leave_schedule",
        "sign_schedule",
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
