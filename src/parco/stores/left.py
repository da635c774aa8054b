"""What the last commit of a connection left: while nobody else has written since, it need not be checked anew.

SQLite tells a connection whether any other one has written to the file (sqlite.org/pragma.html#pragma_data_version).
Where none has, a check would read the very pages that the commit left in this connection's memory. A ledger's own
files alone are known so well; of a server's connection nothing is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from parco.stores.append import trust_changed
from parco.stores.heads import Standing
from parco.stores.statements import Prepared

__all__ = ["begins", "committed", "leave", "standing"]

_LEFT = "parco: what the last commit left"

_VERSION = Prepared(text("PRAGMA data_version"))


@dataclass
class _Left:
    """`found`: what the commit before left, at which version; `version`: the one now; `leaving`: what this one does."""

    found: tuple[int, Standing] | None
    version: int | None = None
    leaving: tuple[int, Standing] | None = None
    is_durable: bool = False


def begins(connection: Connection) -> None:
    """To be called where a transaction begins to write: to it alone is told what the one before left."""
    before: _Left | None = connection.info.get(_LEFT)
    connection.info[_LEFT] = _Left(before.leaving if before is not None and before.is_durable else None)


def committed(connection: Connection) -> None:
    """To be called once it is durable: a commit that failed leaves nothing that may be relied on."""
    connection.info[_LEFT].is_durable = True


def standing(connection: Connection) -> Standing | None:
    """The ledger as the commit before left it, once the write lock is held; None where it has to be checked."""
    kept: _Left | None = connection.info.get(_LEFT)
    if kept is None:
        return None
    ((kept.version,),) = _VERSION.rows(connection)
    return kept.found[1] if kept.found is not None and kept.found[0] == kept.version else None


def leave(connection: Connection, after: Standing) -> None:
    """What the transaction at hand leaves if it commits, and if it changed nothing else that a check looks at."""
    kept: _Left | None = connection.info.get(_LEFT)
    if kept is not None and kept.version is not None and not trust_changed(connection):
        kept.leaving = kept.version, after
