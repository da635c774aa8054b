"""parco publishes statistics about people, again and again, under one contract, and can always show what that cost.

import parco
contract = parco.Contract.read("contract.toml")
parco.sign(contract, ledger="purchases.ledger")
with parco.Session(contract, data="purchases.csv", ledger="purchases.ledger") as s:
    print(s.count(by="month", cost="0.05").table())
"""

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
from parco.queries.mean import MeanPlan
from parco.queries.plan import Plan
from parco.queries.query import Query
from parco.session.ask import Ask
from parco.session.mean import MeanAnswer
from parco.session.receipt import Receipt
from parco.session.release import Answer, Release, Row
from parco.session.session import Session
from parco.session.signing import move_cap, revise, sign

__all__ = [
    "Answer",
    "Ask",
    "BudgetError",
    "BusyError",
    "Contract",
    "ContractChangedError",
    "ContractError",
    "Cost",
    "DataError",
    "ForfeitedError",
    "HaltedError",
    "InternalError",
    "KeyReuseError",
    "LedgerFormatError",
    "MeanAnswer",
    "MeanPlan",
    "Measure",
    "NotSignedError",
    "ParcoError",
    "Plan",
    "Query",
    "QuestionError",
    "Receipt",
    "Release",
    "RequestError",
    "Row",
    "Session",
    "SharperError",
    "StorageError",
    "VerificationError",
    "move_cap",
    "revise",
    "sign",
]
