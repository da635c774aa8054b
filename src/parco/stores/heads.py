"""Heads kept as the ledger grows: each commit checks the last head, adds its nodes to the tree, and signs the next.

All of it is inside the transaction that appends, which holds the write lock from its beginning: so a release stays two
durable commits, and appending takes O(log n). What is signed is read back and hashed again before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, bindparam, insert, select

from parco.errors import VerificationError
from parco.ledger import merkle
from parco.ledger.entries import Balance
from parco.ledger.heads import Head, accounts_digest
from parco.ledger.merkle import Node
from parco.ledger.proofs import Consistency, Inclusion
from parco.stores import keys, tables
from parco.stores.append import appended

__all__ = [
    "Standing",
    "at",
    "check",
    "consistency",
    "extends",
    "first_from",
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


@dataclass(frozen=True)
class Standing:
    """The ledger as a commit finds it: its last head, None on a new one, and the nodes that its root is made of.

    `nodes` gives rows of the tree by size.
    """

    head: Head | None = None
    nodes: Mapping[int, bytes] = field(default_factory=dict)


def check(connection: Connection) -> Standing:
    """The ledger as it stands, or VerificationError where it is not what its last head signed.

    Looks at what a broken disk, a lost journal or another program would have changed: the number of entries, the last
    of them, the root, the accounts, the head itself. `verify` looks at all the rest.
    """
    head = last(connection)
    size = 0 if head is None else head.size
    rows = connection.execute(_ROWS_AFTER, {"after": max(0, size - 1)}).all()
    _require([row.seq for row in rows] == [size] * (size > 0), f"its last entry is not that of its last head, {size}")
    if head is None:
        return Standing()
    nodes, root = _walk(connection, lambda node: merkle.root(size, node))
    leaf = merkle.leaf(rows[0].body)
    _require((rows[0].nodes or b"")[:_HASH_BYTES] == leaf, f"entry {size} differs from the one that was signed")
    _require(root.hex() == head.root, "its tree has another root than its last head")
    _require(_accounts(connection) == head.accounts, "its accounts differ from those at its last head")
    key = keys.current(connection)
    # Signing again is as good as verifying, since there is one signature, and takes a third of the time.
    _require(
        key is not None and key.public == head.key and key.sign(head.statement).hex() == head.signature,
        "its last head is not signed by its key",
    )
    return Standing(head, nodes)


def seal(
    connection: Connection, before: Standing, *, entries: Sequence[tuple[int, bytes]] | None = None
) -> Head | None:
    """Puts what was appended since into the tree, and returns the head that signs it; None if nothing was.

    `entries`: what was written, by default what this transaction appended. It is read back before it is signed.
    """
    written = appended(connection) if entries is None else list(entries)
    if not written:
        return None
    old = 0 if before.head is None else before.head.size
    stored = [(row.seq, bytes(row.body)) for row in connection.execute(_ROWS_AFTER, {"after": old})]
    _require(stored == written, f"what follows entry {old} was not stored as it was written")
    nodes = dict(before.nodes)
    for seq, body in written:
        nodes[seq] = b"".join(merkle.completed(seq, merkle.leaf(body), _reader(nodes)))
    connection.execute(_ADD_NODES, [{"size": seq, "nodes": nodes[seq]} for seq, _ in written])
    key, size = keys.current(connection) or keys.make(connection), written[-1][0]
    head = Head(
        size=size,
        root=merkle.root(size, _reader(nodes)).hex(),
        accounts=_accounts(connection),
        previous=None if before.head is None else before.head.digest,
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
    if newest is None or head.size > newest.size:
        return False
    _, root = _walk(connection, lambda node: merkle.root(head.size, node))
    return root.hex() == head.root


def inclusion(connection: Connection, position: int, head: Head) -> Inclusion:
    """The proof that entry `position` is under one of this ledger's heads; VerificationError if the tree is damaged."""
    body = connection.scalar(select(_ENTRIES.body).where(_ENTRIES.seq == position))
    if body is None:
        raise VerificationError(f"entry {position} is missing", entry=position)
    _, path = _walk(connection, lambda node: merkle.inclusion_path(position - 1, head.size, node))
    proof = Inclusion(position, bytes(body), head, tuple(path))
    if not proof.holds:
        raise VerificationError(f"entry {position} is not what head {head.size} signed", entry=position)
    return proof


def consistency(connection: Connection, old: Head, head: Head) -> Consistency:
    """The proof that one of this ledger's heads begins another; VerificationError if it does not."""
    if old.size > head.size:
        raise VerificationError(f"the ledger has {head.size} entries, and the head {old.size}", entry=head.size)
    _, path = _walk(connection, lambda node: merkle.consistency_path(old.size, head.size, node))
    proof = Consistency(old, head, tuple(path))
    if not proof.holds:
        raise VerificationError(f"the ledger does not extend the head of {old.size} entries", entry=old.size)
    return proof


def rows(connection: Connection, start: int, end: int) -> list[tuple[int, bytes]]:
    """The rows of the tree behind `start`, up to `end`: a size, and the nodes that its last leaf completes."""
    query = select(tables.tree).where(_TREE.size > start, _TREE.size <= end).order_by(_TREE.size)
    return [(size, bytes(nodes)) for size, nodes in connection.execute(query.execution_options(yield_per=100))]


def node_of(connection: Connection, level: int, index: int) -> bytes | None:
    """A complete node of the tree, None if the ledger is too short for it."""
    nodes = connection.scalar(select(_TREE.nodes).where(_TREE.size == (index + 1) << level))
    return None if nodes is None else bytes(nodes[_HASH_BYTES * level : _HASH_BYTES * (level + 1)])


def _walk(connection: Connection, work: Callable[[Node], T]) -> tuple[dict[int, bytes], T]:
    """The rows of the tree that `work` needs, and what it makes of them: it runs once to learn which they are."""
    wanted: set[int] = set()

    def note(level: int, index: int) -> bytes:
        wanted.add((index + 1) << level)
        return b""

    work(note)
    rows = connection.execute(_NODES, {"sizes": sorted(wanted)}).all() if wanted else []
    nodes = {row.size: bytes(row.nodes) for row in rows}
    return nodes, work(_reader(nodes))


def _reader(nodes: Mapping[int, bytes]) -> Node:
    """Reads nodes from rows of the tree."""

    def read(level: int, index: int) -> bytes:
        size = (index + 1) << level
        found = nodes.get(size, b"")[_HASH_BYTES * level : _HASH_BYTES * (level + 1)]
        _require(len(found) == _HASH_BYTES, f"a node of its tree is missing, at entry {size}")
        return found

    return read


def _accounts(connection: Connection) -> str:
    return accounts_digest(Balance(*row) for row in connection.execute(_BALANCES))


def _one(row: Row[Any] | None) -> Head | None:
    return None if row is None else Head(**row._mapping)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise VerificationError(
            f"the ledger is not as it was left ({what}): nothing was added to it. Run `parco ledger verify`; keep this"
            " file as evidence, and go on from a backup with `parco ledger recover`"
        )
