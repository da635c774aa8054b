"""All errors of parco, sorted by whose turn it is.

    ParcoError
    ├── RequestError       the asker's turn            exit 2, HTTP 400
    │   ├── ContractError      a contract that cannot be read or kept
    │   ├── QuestionError      a question the contract does not allow
    │   ├── DataError          a file whose names, types or form do not fit the contract
    │   ├── NotSignedError     no ledger, or one on which this contract was never signed
    │   ├── AdaptiveHistoryError  a composition asked of a history that was not fixed in advance
    │   ├── SharperError       a stored answer exists and is less sharp than asked
    │   ├── RefinedError       the answer to be refined was refined meanwhile
    │   ├── SupersededError    the stored answer to this question was superseded or withdrawn
    │   └── KeyReuseError      an idempotency key used before for something else
    ├── BudgetError        the policy's turn           exit 3, HTTP 402
    │   └── QuotaError         the account holds it, and the asker's fair share of it does not
    ├── VerificationError  the evidence's turn         exit 4, HTTP 409
    │   ├── LedgerFormatError  not a ledger, damaged, or of an older or newer format
    │   ├── HaltedError        some of the ledger's past is lost: nothing is begun until `parco ledger recover`
    │   └── ContractChangedError  the contract was edited after it was signed
    ├── StorageError       the machine's turn          exit 5, HTTP 503
    │   └── BusyError          another process holds the ledger or the question
    └── InternalError      ours                        exit 70, HTTP 500
        └── ForfeitedError     a release failed after its charge: the charge stands

A message says what to do and never carries a private value; what a caller may want to act on is an attribute in
`facts`. `code` is stable: scripts may rely on it.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AdaptiveHistoryError",
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
    "QuotaError",
    "RefinedError",
    "RequestError",
    "SharperError",
    "StorageError",
    "SupersededError",
    "VerificationError",
]


class ParcoError(Exception):
    """The root: `str(error)` is the message, `error.facts` its public facts, `code` a stable name."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 70
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts = facts


class RequestError(ParcoError):
    """What was asked cannot be done as asked; nothing was charged."""

    code, exit_code, http_status = "request", 2, 400


class ContractError(RequestError):
    """The contract is not valid; every fault found is in the message, with its place."""

    code = "contract"


class QuestionError(RequestError):
    """The question is not one the contract allows, or is not complete."""

    code = "question"


class DataError(RequestError):
    """Names, types or form of the data do not fit the contract; no value was read."""

    code = "data"


class NotSignedError(RequestError):
    """There is no ledger here, or this contract was never signed on it."""

    code = "not-signed"


class AdaptiveHistoryError(RequestError):
    """A composition holds for what was fixed in advance; this history's parameters were chosen along the way."""

    code = "adaptive-history"


class SharperError(RequestError):
    """A stored answer to this question exists and is less sharp than asked."""

    code = "sharper"


class RefinedError(RequestError):
    """The answer was refined meanwhile, by request `facts["request"]`: refine the answer to that one."""

    code = "refined"


class SupersededError(RequestError):
    """The stored answer to this question was superseded or withdrawn, and is not served as if it stood."""

    code = "superseded"


class KeyReuseError(RequestError):
    """This idempotency key belongs to another request."""

    code = "key-reuse"


class BudgetError(ParcoError):
    """The account does not hold what the request costs; nothing was charged."""

    code, exit_code, http_status = "budget", 3, 402


class QuotaError(BudgetError):
    """The account holds what the request costs, and a quota of its actor does not; nothing was charged."""

    code = "quota"


class VerificationError(ParcoError):
    """What is stored does not agree with what it claims to be."""

    code, exit_code, http_status = "verification", 4, 409


class LedgerFormatError(VerificationError):
    """The file is not a parco ledger, is damaged, or has another format than this version reads."""

    code = "ledger-format"


class HaltedError(VerificationError):
    """The ledger signed a head that it does not extend: nothing is begun until the lost past is charged again."""

    code = "halted"


class ContractChangedError(VerificationError):
    """The contract differs from the one that was signed under its name."""

    code = "contract-changed"


class StorageError(ParcoError):
    """Disk, permission, lock or driver: the machine could not do it."""

    code, exit_code, http_status = "storage", 5, 503


class BusyError(StorageError):
    """Another process holds the ledger, or is answering the same question, longer than the time allowed."""

    code = "busy"


class InternalError(ParcoError):
    """A fault of parco itself."""

    code = "internal"


class ForfeitedError(InternalError):
    """A release failed after its charge was made. The charge stands; the message is constant, since why could tell."""

    code = "forfeited"
