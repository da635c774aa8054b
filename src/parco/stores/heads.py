"""Heads kept as the ledger grows: each commit checks the last head, adds its nodes to the tree, and signs the next.

All of it is inside the transaction that appends, which holds the write lock from its beginning: so a release stays two
durable commits, and appending takes O(log n). What is signed is read back and hashed again before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, bindparam, insert, select

from parco.errors import VerificationError
from parco.ledger import merkle
from parco.ledger.entries import Balance
from parco.ledger.heads import Head, accounts_digest
from parco.ledger.merkle import Node
from parco.ledger.proofs import Consistency, Inclusion
from parco.stores import keys, tables

__all__ = [
    "at",
    "check",
    "consistency",
    "extends",
    "first_from",
    "grow",
    "inclusion",
    "last",
    "node_of",
    "rows",
    "seal",
]

T = TypeVar("T")

_HASH_BYTES = 32
_ENTRIES, _TREE, _HEADS = tables.entries.c, tables.tree.c, tables.heads.c

# Every commit runs these: built once, they cost half.
_LAST = select(tables.heads).order_by(_HEADS.size.desc()).limit(1)
_NODES = select(tables.tree).where(_TREE.size.in_(bindparam("sizes", expanding=True)))
_ROWS_AFTER = (
    select(_ENTRIES.seq, _ENTRIES.body, _TREE.nodes)
    .select_from(tables.entries.outerjoin(tables.tree, _TREE.size == _ENTRIES.seq))
    .where(_ENTRIES.seq > bindparam("after"))
    .order_by(_ENTRIES.seq)
)
_BALANCES = select(*(tables.accounts.c[name] for name in Balance.__dataclass_fields__)).order_by(
    tables.accounts.c.account
)
_ADD_NODES, _ADD_HEAD = insert(tables.tree), insert(tables.heads)


def grow(connection: Connection, seq: int, body: bytes) -> None:
    """Adds an entry to the tree: its leaf, and the nodes which that completes."""
    nodes = _walk(connection, lambda node: merkle.completed(seq, merkle.leaf(body), node))
    connection.execute(_ADD_NODES, {"size": seq, "nodes": b"".join(nodes)})


def check(connection: Connection) -> Head | None:
    """The last head, None on a new ledger; VerificationError where the ledger is not what that head signed.

    Looks at what a broken disk, a lost journal or another program would have changed: the number of entries, the last
    of them, the root, the accounts, the head itself. `verify` looks at all the rest.
    """
    head = last(connection)
    size = 0 if head is None else head.size
    rows = connection.execute(_ROWS_AFTER, {"after": max(0, size - 1)}).all()
    _require([row.seq for row in rows] == [size] * (size > 0), f"its last entry is not that of its last head, {size}")
    if head is None:
        return None
    _require(_as_written(rows[0]), f"entry {size} differs from the one that was signed")
    _require(_root(connection, size) == head.root, "its tree has another root than its last head")
    _require(_accounts(connection) == head.accounts, "its accounts differ from those at its last head")
    key = keys.current(connection)
    # Signing again is as good as verifying, since there is one signature, and takes a third of the time.
    _require(
        key is not None and key.public == head.key and key.sign(head.statement).hex() == head.signature,
        "its last head is not signed by its key",
    )
    return head


def seal(connection: Connection, before: Head | None) -> Head | None:
    """Signs what was appended since the head `before`, and returns the new head; None if nothing was."""
    rows = connection.execute(_ROWS_AFTER, {"after": 0 if before is None else before.size}).all()
    if not rows:
        return None
    for row in rows:
        _require(_as_written(row), f"entry {row.seq} was not stored as it was written")
    key = keys.current(connection) or keys.make(connection)
    size = rows[-1].seq
    head = Head(
        size=size,
        root=_root(connection, size),
        accounts=_accounts(connection),
        previous=None if before is None else before.digest,
        key=key.public,
    )
    head = head.signed(key.sign(head.statement))
    connection.execute(_ADD_HEAD, vars(head))
    return head


def last(connection: Connection) -> Head | None:
    """The last head as stored, None if there is none."""
    return _one(connection.execute(_LAST).one_or_none())


def first_from(connection: Connection, position: int) -> Head:
    """The first head that covers entry `position`, or VerificationError."""
    query = select(tables.heads).where(_HEADS.size >= position).order_by(_HEADS.size).limit(1)
    head = _one(connection.execute(query).one_or_none())
    if head is None:
        raise VerificationError(f"no head of this ledger covers entry {position}", entry=position)
    return head


def at(connection: Connection, size: int) -> Head:
    """The head signed at this size, or VerificationError: heads are made by commits, not by entries."""
    head = _one(connection.execute(select(tables.heads).where(_HEADS.size == size)).one_or_none())
    if head is None:
        raise VerificationError(f"no head of this ledger has {size} entries", size=size)
    return head


def extends(connection: Connection, head: Head) -> bool:
    """Whether the ledger still has all that stood in it at a head, unchanged: one root to compare."""
    newest = last(connection)
    return newest is not None and head.size <= newest.size and _root(connection, head.size) == head.root


def inclusion(connection: Connection, position: int, head: Head) -> Inclusion:
    """The proof that entry `position` is under one of this ledger's heads; VerificationError if the tree is damaged."""
    body = connection.scalar(select(_ENTRIES.body).where(_ENTRIES.seq == position))
    if body is None:
        raise VerificationError(f"entry {position} is missing", entry=position)
    path = _walk(connection, lambda node: merkle.inclusion_path(position - 1, head.size, node))
    proof = Inclusion(position, bytes(body), head, tuple(path))
    if not proof.holds:
        raise VerificationError(f"entry {position} is not what head {head.size} signed", entry=position)
    return proof


def consistency(connection: Connection, old: Head, head: Head) -> Consistency:
    """The proof that one of this ledger's heads begins another; VerificationError if it does not."""
    if old.size > head.size:
        raise VerificationError(f"the ledger has {head.size} entries, and the head {old.size}", entry=head.size)
    path = _walk(connection, lambda node: merkle.consistency_path(old.size, head.size, node))
    proof = Consistency(old, head, tuple(path))
    if not proof.holds:
        raise VerificationError(f"the ledger does not extend the head of {old.size} entries", entry=old.size)
    return proof


def rows(connection: Connection, start: int, end: int) -> list[tuple[int, bytes]]:
    """The rows of the tree behind `start`, up to `end`: a size, and the nodes that its last leaf completes."""
    query = select(tables.tree).where(_TREE.size > start, _TREE.size <= end).order_by(_TREE.size)
    return [(size, bytes(nodes)) for size, nodes in connection.execute(query).all()]


def node_of(connection: Connection, level: int, index: int) -> bytes | None:
    """A complete node of the tree, None if the ledger is too short for it."""
    nodes = connection.scalar(select(_TREE.nodes).where(_TREE.size == (index + 1) << level))
    return None if nodes is None else bytes(nodes[_HASH_BYTES * level : _HASH_BYTES * (level + 1)])


def _walk(connection: Connection, work: Callable[[Node], T]) -> T:
    """What `work` makes of the tree's nodes: it runs once to learn which they are, and again when they are read."""
    wanted: set[int] = set()

    def note(level: int, index: int) -> bytes:
        wanted.add((index + 1) << level)
        return b""

    work(note)
    rows = connection.execute(_NODES, {"sizes": sorted(wanted)}).all() if wanted else []
    nodes = {row.size: row.nodes for row in rows}

    def read(level: int, index: int) -> bytes:
        found = bytes(nodes.get((index + 1) << level, b"")[_HASH_BYTES * level : _HASH_BYTES * (level + 1)])
        _require(len(found) == _HASH_BYTES, f"a node of its tree is missing, at entry {(index + 1) << level}")
        return found

    return work(read)


def _root(connection: Connection, size: int) -> str:
    return _walk(connection, lambda node: merkle.root(size, node)).hex()


def _accounts(connection: Connection) -> str:
    return accounts_digest(Balance(*row) for row in connection.execute(_BALANCES))


def _as_written(row: Row[Any, Any, Any]) -> bool:
    """Whether an entry, read back, is the one whose leaf was put into the tree."""
    return merkle.leaf(row.body) == (row.nodes or b"")[:_HASH_BYTES]


def _one(row: Row[Any] | None) -> Head | None:
    return None if row is None else Head(**row._mapping)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise VerificationError(
            f"the ledger is not as it was left ({what}): nothing was added to it. Run `parco ledger verify`; keep this"
            " file as evidence, and go on from a backup with `parco ledger recover`"
        )
