"""The ledger as a writer finds it: checked, or as this connection left it while nobody else has written since.

SQLite tells a connection whether any other one has written to the file (sqlite.org/pragma.html#pragma_data_version).
Where none has, a check would read the very pages that this connection has in memory, from its last commit or check. A
ledger's own files alone are known so well; of a server's connection nothing is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from parco.stores import heads
from parco.stores.append import trust_changed
from parco.stores.heads import Standing
from parco.stores.statements import Prepared

__all__ = ["begins", "committed", "leave", "standing", "undone"]

_LEFT = "parco: what the last commit left"

_VERSION = Prepared(text("PRAGMA data_version"))


@dataclass
class _Left:
    """At SQLite's data version: how the transaction at hand finds the ledger, how it leaves it if it commits, and what
    the next one may rely on, once it is over.
    """

    found: tuple[int, Standing] | None = None
    leaving: tuple[int, Standing] | None = None
    after: tuple[int, Standing] | None = None


def begins(connection: Connection) -> None:
    """To be called before a transaction begins to write."""
    before: _Left | None = connection.info.get(_LEFT)
    connection.info[_LEFT] = _Left(found=None if before is None else before.after)


def committed(connection: Connection) -> None:
    """To be called once it is durable; a commit that failed or was interrupted leaves what nobody knows."""
    kept: _Left = connection.info[_LEFT]
    # What it found is not kept for longer: its key may have been retired.
    connection.info[_LEFT] = _Left(after=kept.leaving)


def undone(connection: Connection) -> None:
    """To be called once it is undone, before it came to its commit."""
    kept: _Left = connection.info[_LEFT]
    kept.after = kept.found


def standing(connection: Connection) -> Standing:
    """The ledger as it stands, once the write lock is held, or VerificationError as `heads.check`."""
    kept: _Left | None = connection.info.get(_LEFT)
    if kept is None:
        return heads.check(connection)
    ((version,),) = _VERSION.rows(connection)
    if kept.found is None or kept.found[0] != version:
        kept.found = None
        kept.found = version, heads.check(connection)
    return kept.found[1]


def leave(connection: Connection, after: Standing) -> None:
    """How the transaction at hand leaves the ledger, if it changed nothing else that a check looks at."""
    kept: _Left | None = connection.info.get(_LEFT)
    if kept is not None and kept.found is not None and not trust_changed(connection):
        kept.leaving = kept.found[0], after
