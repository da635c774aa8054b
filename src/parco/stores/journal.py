"""How SQLite keeps a ledger safe while it writes: by the rollback journal, or by choice with a write-ahead log.

The log is faster (one sync a commit), and most libraries in use can lose a committed transaction with it: where the log
is begun anew while another connection checkpoints it (sqlite.org/wal.html, "the WAL-reset bug"). So the log needs a
choice, which stands in the ledger, and a library known to be free of that fault; any other library goes back to the
rollback journal, or refuses while somebody else still uses the log. A log needs shared memory, and so one host.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection

from parco.errors import RequestError, StorageError
from parco.stores.filesystem import network_type

__all__ = ["Setting", "check_choice", "choose", "settings_for", "wal_is_safe"]

# A setting's name, the value to set and the value to read back.
Setting = tuple[str, str, object]

# EXTRA also syncs the folder after the journal is deleted, so that a commit survives power loss. With the log, FULL
# syncs it at every commit.
_ROLLBACK: tuple[Setting, ...] = (("journal_mode", "DELETE", "delete"), ("synchronous", "EXTRA", 3))
_WAL: tuple[Setting, ...] = (("journal_mode", "WAL", "wal"), ("synchronous", "FULL", 2))

# The fault was mended in 3.51.3, and in two older branches.
_MENDED, _MENDED_BRANCHES = (3, 51, 3), ((3, 50, 7), (3, 44, 6))

_CHOICE = "write_ahead_log"


def wal_is_safe(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Whether a SQLite library of this version keeps every committed transaction of a write-ahead log."""
    same_branch = any(mended[:2] == version[:2] and version >= mended for mended in _MENDED_BRANCHES)
    return version >= _MENDED or same_branch


def settings_for(connection: sqlite3.Connection) -> tuple[Setting, ...]:
    """The journal's settings for this ledger and library."""
    with closing(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (_CHOICE,))) as cursor:
        chosen = cursor.fetchone() is not None
    return _WAL if chosen and wal_is_safe() else _ROLLBACK


def check_choice(mode: str, path: Path) -> None:
    """Raises RequestError for an unknown mode, StorageError where the log cannot be trusted."""
    if mode not in ("wal", "rollback"):
        raise RequestError("the journal is `wal` or `rollback`")
    if mode == "rollback":
        return
    if not wal_is_safe():
        raise StorageError(
            f"SQLite {sqlite3.sqlite_version} can lose committed entries of a write-ahead log: it takes 3.51.3, 3.50.7,"
            " 3.44.6 or later of these branches; the ledger keeps its rollback journal"
        )
    found = network_type(path)
    if found is not None:
        raise StorageError(f"{path} lies on a network file system ({found}), where a write-ahead log is not safe")


def choose(connection: Connection, mode: str) -> None:
    """Writes the choice into the ledger; it holds from the next connection on."""
    if mode == "wal":
        connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {_CHOICE} (chosen INTEGER PRIMARY KEY) STRICT")
    else:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_CHOICE}")
