"""PostgreSQL's errors in our words, and which of them mean: begin again.

Told by SQLSTATE alone (postgresql.org/docs, appendix A): the server's texts show statements, and a statement may show a
question.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import SQLAlchemyError, StatementError

from parco.errors import BusyError, InternalError, LedgerFormatError, NotSignedError, ParcoError, StorageError

__all__ = ["fault", "is_conflict", "is_lost", "translated", "unreachable"]

_CONFLICTS = ("40001", "40P01")  # serialization failure, deadlock: the whole transaction was undone
_LOST = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "40003")  # the connection is gone, or not there yet

_STANDS = "the ledger is as it was before this step"
_MISSING = (
    NotSignedError,
    "holds no parco ledger that this role may see: an administrator makes one with what `parco ledger sql` prints",
)

# The longest matching beginning of a SQLSTATE decides.
_BY_STATE: dict[str, tuple[type[ParcoError], str]] = {
    "55P03": (BusyError, "is held by another writer longer than the time allowed; try again"),
    "57014": (BusyError, "took longer than the server allows; try again"),
    "40": (BusyError, "is in use by others longer than the time allowed; try again"),
    "53": (StorageError, f"has a server short of memory or something else; {_STANDS}"),
    "53100": (StorageError, f"could not be written: the server's disk is full; {_STANDS}; free some space"),
    "53300": (BusyError, "has a server with no connection left; try again"),
    "58": (StorageError, f"could not be read or written: the server's disk failed; {_STANDS}"),
    "XX": (LedgerFormatError, "may be damaged: the server found an internal fault; look into its log"),
    "25006": (StorageError, "is read-only: this server is a replica, or was made so; spend on the primary"),
    "55000": (StorageError, "cannot be written now: this server is a replica, or is recovering; spend on the primary"),
    "28": (StorageError, "refused the role or its password"),
    "3D000": (StorageError, "does not exist: an administrator makes the database"),
    "3F000": _MISSING,
    "42P01": _MISSING,
    "42501": (StorageError, "refused: the role may not do that; `parco ledger sql` prints what it needs"),
    "23": (InternalError, f"refused a change that breaks its own rules; {_STANDS}"),
}


def is_conflict(error: Exception) -> bool:
    """Whether the transaction was undone because of another, and may be begun again."""
    return _state(error) in _CONFLICTS


def is_lost(error: Exception) -> bool:
    """Whether the connection is gone: what was not committed is undone, and what was committing is unknown."""
    origin, state = _origin(error), _state(error)
    if state is None:
        return isinstance(origin, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith(_LOST)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """For every error of PostgreSQL, psycopg or SQLAlchemy inside, raises the ParcoError that says it."""
    try:
        yield
    except (SQLAlchemyError, psycopg.Error) as error:
        raise fault(error, name) from None


def fault(error: Exception, name: str) -> ParcoError:
    """What an error of the database says in our words; one of our own, where SQLAlchemy wrapped it, as it is."""
    origin, state = _origin(error), _state(error)
    if isinstance(origin, ParcoError):
        return origin
    matching = [known for known in _BY_STATE if state is not None and state.startswith(known)]
    if matching:
        kind, text = _BY_STATE[max(matching, key=len)]
        return kind(f"{name} {text}", driver_code=state)
    if is_lost(error):
        return unreachable(name)
    told = type(origin).__name__
    return InternalError(f"the store of {name} failed ({told}); nothing was written", driver_code=state)


def unreachable(name: str) -> StorageError:
    """The connection is gone, or there never was one."""
    return StorageError(f"{name} cannot be reached: is the server running, and the address right?")


def _origin(error: Exception) -> BaseException:
    return error.orig if isinstance(error, StatementError) and error.orig is not None else error


def _state(error: Exception) -> str | None:
    return getattr(_origin(error), "sqlstate", None)
