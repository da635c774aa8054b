"""Where a ledger is: the path of a file, or the URL of a PostgreSQL database."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from parco.errors import RequestError
from parco.stores.store import BUSY_SECONDS

if TYPE_CHECKING:
    from parco.stores.postgres import PostgresStore
    from parco.stores.store import Store

__all__ = ["create_or_open_ledger", "is_url", "open_ledger"]

_SCHEMES = ("postgresql://", "postgres://")


def is_url(address: str | os.PathLike[str]) -> bool:
    """Whether an address is a database's and not a file's."""
    return isinstance(address, str) and address.startswith(_SCHEMES)


def open_ledger(address: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> Store:
    """The existing ledger at an address, tidied; NotSignedError if there is none."""
    if is_url(address):
        return _postgres().open(str(address), busy_seconds=busy_seconds)
    from parco.stores.sqlite import SqliteStore

    return SqliteStore.open(address, busy_seconds=busy_seconds)


def create_or_open_ledger(address: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> Store:
    """The ledger at an address, made empty if there is none; in a database only its administrator can make one."""
    if is_url(address):
        return open_ledger(address, busy_seconds=busy_seconds)
    from parco.stores.sqlite import SqliteStore

    return SqliteStore.create_or_open(address, busy_seconds=busy_seconds)


def _postgres() -> type[PostgresStore]:
    try:
        from parco.stores.postgres import PostgresStore
    except ImportError:
        raise RequestError('a ledger in PostgreSQL needs the extra: pip install "parco[postgres]"') from None
    return PostgresStore
