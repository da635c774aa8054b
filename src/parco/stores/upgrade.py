"""From the tables of an older parco to those of this one: numbered steps, all in one transaction.

The version of the tables is in the ledger (`user_version` of the file) and is not the format of its entries: no step
touches an entry. Killed at any moment, the ledger has the old version or the new one. Steps are text that never
changes, since the tables as they are today may go on changing.
"""

from __future__ import annotations

from sqlalchemy import Connection

from parco.stores import heads, reading, verify

__all__ = ["VERSION", "run_steps"]

VERSION = 6
"""The version of the tables that this parco reads and writes."""

# What each version added. 1 is the first.
_CAPS = (
    "CREATE TABLE IF NOT EXISTS caps (seq INTEGER NOT NULL, account INTEGER NOT NULL,"
    " cap INTEGER NOT NULL CHECK (cap >= 0), PRIMARY KEY (seq, account), FOREIGN KEY(seq) REFERENCES entries (seq),"
    " FOREIGN KEY(account) REFERENCES accounts (account)) STRICT",
)
_HEADS = (
    "CREATE TABLE tree (size INTEGER NOT NULL,"
    " nodes BLOB NOT NULL CHECK (length(nodes) > 0 AND length(nodes) % 32 = 0), PRIMARY KEY (size),"
    " FOREIGN KEY(size) REFERENCES entries (seq)) STRICT",
    'CREATE TABLE keys ("key" TEXT NOT NULL CHECK (length(key) = 64), private BLOB CHECK (length(private) = 32),'
    ' PRIMARY KEY ("key")) STRICT',
    "CREATE TABLE heads (size INTEGER NOT NULL, root TEXT NOT NULL CHECK (length(root) = 64),"
    " accounts TEXT NOT NULL CHECK (length(accounts) = 64), previous TEXT CHECK (length(previous) = 64),"
    ' "key" TEXT NOT NULL, signature TEXT NOT NULL CHECK (length(signature) = 128), PRIMARY KEY (size),'
    ' FOREIGN KEY(size) REFERENCES entries (seq), FOREIGN KEY("key") REFERENCES keys ("key")) STRICT',
    "CREATE TABLE strays (root TEXT NOT NULL CHECK (length(root) = 64), size INTEGER NOT NULL CHECK (size >= 1),"
    " recovered INTEGER, PRIMARY KEY (root), FOREIGN KEY(recovered) REFERENCES entries (seq)) STRICT",
    "CREATE TRIGGER tree_is_never_changed BEFORE UPDATE ON tree BEGIN SELECT RAISE(ABORT, 'nodes are only added'); END",
    "CREATE TRIGGER tree_is_never_removed BEFORE DELETE ON tree BEGIN SELECT RAISE(ABORT, 'nodes are only added'); END",
    "CREATE TRIGGER tree_has_no_gaps BEFORE INSERT ON tree"
    " WHEN NEW.size IS NOT (SELECT coalesce(max(size), 0) + 1 FROM tree)"
    " BEGIN SELECT RAISE(ABORT, 'nodes are only added'); END",
    "CREATE TRIGGER heads_are_never_changed BEFORE UPDATE ON heads"
    " BEGIN SELECT RAISE(ABORT, 'heads are only added'); END",
    "CREATE TRIGGER heads_are_never_removed BEFORE DELETE ON heads"
    " BEGIN SELECT RAISE(ABORT, 'heads are only added'); END",
    "CREATE TRIGGER heads_only_rise BEFORE INSERT ON heads"
    " WHEN NEW.size <= (SELECT coalesce(max(size), 0) FROM heads)"
    " BEGIN SELECT RAISE(ABORT, 'heads are only added'); END",
)
_LEASES = (
    "CREATE TABLE leases (request INTEGER NOT NULL, host TEXT NOT NULL, boot TEXT NOT NULL, given INTEGER NOT NULL,"
    " seconds INTEGER NOT NULL CHECK (seconds >= 1), PRIMARY KEY (request),"
    " FOREIGN KEY(request) REFERENCES requests (request)) STRICT",
)
_SCHEDULES = (
    "CREATE TABLE schedules (schedule INTEGER NOT NULL, dataset TEXT NOT NULL, name TEXT NOT NULL, ended INTEGER,"
    " PRIMARY KEY (schedule), FOREIGN KEY(schedule) REFERENCES entries (seq),"
    " FOREIGN KEY(dataset) REFERENCES texts (digest), UNIQUE (name), FOREIGN KEY(name) REFERENCES texts (digest),"
    " UNIQUE (ended), FOREIGN KEY(ended) REFERENCES entries (seq)) STRICT",
    "CREATE TABLE steps (schedule INTEGER NOT NULL, step INTEGER NOT NULL CHECK (step >= 1), question TEXT NOT NULL,"
    " request INTEGER, PRIMARY KEY (schedule, step), FOREIGN KEY(schedule) REFERENCES schedules (schedule),"
    " FOREIGN KEY(question) REFERENCES texts (digest), UNIQUE (request),"
    " FOREIGN KEY(request) REFERENCES requests (request)) STRICT",
    "CREATE INDEX steps_by_question ON steps (schedule, question)",
)

_REFINEMENTS = (
    "CREATE TABLE refinements (parent INTEGER NOT NULL, request INTEGER NOT NULL, PRIMARY KEY (parent),"
    " FOREIGN KEY(parent) REFERENCES requests (request), UNIQUE (request),"
    " FOREIGN KEY(request) REFERENCES requests (request)) STRICT",
)

_CORRECTIONS = (
    "CREATE TABLE corrections (about INTEGER NOT NULL, seq INTEGER NOT NULL, tag TEXT NOT NULL, stands INTEGER,"
    " PRIMARY KEY (about, seq), CONSTRAINT known_tag CHECK (tag IN ('amend', 'supersede', 'recost', 'flag')),"
    " CONSTRAINT superseded_by CHECK ((tag = 'supersede') = (stands IS NOT NULL)),"
    " CONSTRAINT about_the_past CHECK (about < seq), FOREIGN KEY(about) REFERENCES entries (seq),"
    " FOREIGN KEY(seq) REFERENCES entries (seq)) STRICT",
    "CREATE TABLE recosts (seq INTEGER NOT NULL, account INTEGER NOT NULL, cost INTEGER NOT NULL,"
    " delta INTEGER NOT NULL, PRIMARY KEY (seq, account), FOREIGN KEY(seq) REFERENCES entries (seq),"
    " FOREIGN KEY(account) REFERENCES accounts (account)) STRICT",
)

_GOVERNANCE = (
    "CREATE TABLE ancestors (dataset TEXT NOT NULL, account INTEGER NOT NULL, PRIMARY KEY (dataset, account),"
    " FOREIGN KEY(dataset) REFERENCES texts (digest), FOREIGN KEY(account) REFERENCES accounts (account)) STRICT",
    "CREATE TABLE quotas (quota INTEGER NOT NULL, name TEXT NOT NULL, replaced INTEGER, PRIMARY KEY (quota),"
    " FOREIGN KEY(quota) REFERENCES entries (seq), FOREIGN KEY(name) REFERENCES texts (digest),"
    " FOREIGN KEY(replaced) REFERENCES entries (seq)) STRICT",
    "CREATE TABLE quota_members (quota INTEGER NOT NULL, actor TEXT NOT NULL, PRIMARY KEY (quota, actor),"
    " FOREIGN KEY(quota) REFERENCES quotas (quota), FOREIGN KEY(actor) REFERENCES texts (digest)) STRICT",
    "CREATE TABLE quota_amounts (quota INTEGER NOT NULL, account INTEGER NOT NULL,"
    " amount INTEGER NOT NULL CHECK (amount >= 0), used INTEGER NOT NULL CHECK (used >= 0),"
    " PRIMARY KEY (quota, account), FOREIGN KEY(quota) REFERENCES quotas (quota),"
    " FOREIGN KEY(account) REFERENCES accounts (account)) STRICT",
)

_STREAMS = (
    "CREATE TABLE streams (account INTEGER NOT NULL, request INTEGER NOT NULL, PRIMARY KEY (account),"
    " FOREIGN KEY(account) REFERENCES accounts (account), FOREIGN KEY(request) REFERENCES requests (request)) STRICT",
)


def run_steps(connection: Connection, version: int) -> None:
    """Takes a ledger from `version` to VERSION; VerificationError, and nothing changes, if it does not add up.

    The caller's transaction holds the write lock, and sets the version.
    """
    for step in range(version + 1, VERSION + 1):
        _STEPS[step](connection)
    # By the tables of today, so only at the end. What does not add up is undone together with the head that signs it.
    verify.verify(connection)


def _to_2(connection: Connection) -> None:
    """Caps that moved have a table: claims ask for it. A ledger without it has no such entry."""
    _execute(connection, _CAPS)


def _to_3(connection: Connection) -> None:
    """The Merkle tree, and the first head, which signs all that is there: so it is checked in the end."""
    _execute(connection, _HEADS)
    entries = list(enumerate(reading.bodies(connection), start=1))
    heads.seal(connection, heads.Standing(), entries=entries)


def _to_4(connection: Connection) -> None:
    """Requests can be queued: their reservations wait under leases."""
    _execute(connection, _LEASES)


def _to_5(connection: Connection) -> None:
    """The life of a release: schedules, refinements, corrections, lineage, quotas. A ledger of before has none."""
    for statements in (_SCHEDULES, _REFINEMENTS, _CORRECTIONS, _GOVERNANCE):
        _execute(connection, statements)


def _to_6(connection: Connection) -> None:
    """Interactive mechanisms have their accounts to themselves. A ledger of before has none."""
    _execute(connection, _STREAMS)


_STEPS = {2: _to_2, 3: _to_3, 4: _to_4, 5: _to_5, 6: _to_6}


def _execute(connection: Connection, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)
