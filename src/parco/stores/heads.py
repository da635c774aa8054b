"""Heads kept as the ledger grows: each commit checks the last head, adds its nodes to the tree, and signs the next.

All of it is inside the transaction that appends, which holds the write lock from its beginning: so a release stays two
durable commits, and appending takes O(log n). What is signed is read back and hashed again before. Each commit runs
one statement before what it does and one behind it, and writes nodes and head: a server is asked three times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, bindparam, cast, func, literal_column, null, select, union_all

from parco.errors import VerificationError
from parco.ledger import merkle
from parco.ledger.entries import Balance
from parco.ledger.heads import Head, accounts_digest
from parco.ledger.merkle import Node
from parco.ledger.proofs import Consistency, Inclusion
from parco.stores import keys, tables
from parco.stores.append import appended, trust_changed
from parco.stores.keys import SigningKey
from parco.stores.statements import FEW, ONE, Ahead, Insertion, Prepared, together

__all__ = [
    "AHEAD",
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
_FIELDS = tuple(Head.__dataclass_fields__)
_ENTRIES, _TREE, _HEADS = tables.entries.c, tables.tree.c, tables.heads.c

_LAST = select(tables.heads).order_by(_HEADS.size.desc()).limit(1)
_NODES = select(tables.tree).where(_TREE.size.in_(bindparam("sizes", expanding=True)))
_BALANCES = tuple(tables.accounts.c[name] for name in Balance.__dataclass_fields__)
_ADD_NODES, _ADD_HEAD = Insertion(tables.tree), Insertion(tables.heads)


def _and_accounts(query: Select[Any]) -> Prepared:
    """In one statement: all accounts, and the rows of `query` behind as many columns of nothing. In any order."""
    own = query.selected_columns
    moved = query.with_only_columns(*(cast(null(), column.type) for column in _BALANCES), *own)
    return Prepared(union_all(select(*_BALANCES, *(cast(null(), column.type) for column in own)), moved))


def _standing() -> Prepared:
    """All that a commit checks before it adds anything: all accounts, and a row for each node of the last root.

    The root over n entries is made of the nodes that entry n completes, and n without its lowest one in binary, and so
    on down to nothing. The last head, its entry, its key and a head that halts the ledger stand in every row.
    """
    peaks = select(func.max(_HEADS.size).label("size")).cte("peaks", recursive=True)
    lower = peaks.c.size.op("&")(peaks.c.size - ONE)
    peaks = peaks.union_all(select(lower).where(lower > literal_column("0")))
    private = tables.keys.c.private.is_not(None)
    parts = (
        # One by one, so that no plan ever reads the whole tree.
        select(_TREE.nodes).where(_TREE.size == peaks.c.size),
        select(func.max(_ENTRIES.seq)),
        select(func.count()).select_from(tables.keys).where(private),
        select(tables.keys.c.key).where(private).limit(ONE),
        select(tables.keys.c.private).where(private).limit(ONE),
        select(tables.strays.c.size).where(tables.strays.c.recovered.is_(None)).limit(ONE),
    )
    return _and_accounts(
        select(
            peaks.c.size,
            _ENTRIES.body,
            *(part.scalar_subquery() for part in parts),
            *(_HEADS[name] for name in _FIELDS),
        )
        .select_from(peaks)
        .join(tables.heads, _HEADS.size == select(func.max(_HEADS.size)).scalar_subquery())
        .outerjoin(tables.entries, _ENTRIES.seq == _HEADS.size)
    )


_STANDING = _standing()
AHEAD: Ahead = (_STANDING, {})
"""What `check` asks."""

# Between two ends, so that a server that plans for any of them expects a few; and whether there is any behind.
_ADDED = _and_accounts(
    select(_ENTRIES.seq, _ENTRIES.body, select(func.max(_ENTRIES.seq)).scalar_subquery()).where(
        _ENTRIES.seq > bindparam("after"), _ENTRIES.seq <= bindparam("until")
    )
)
_GROWN = Prepared(
    select(_TREE.size, _TREE.nodes)
    .where(_TREE.size > bindparam("start"), _TREE.size <= bindparam("end"))
    .order_by(_TREE.size)
)
_ANY = Prepared(select(func.max(_ENTRIES.seq)))


@dataclass(frozen=True)
class Standing:
    """The ledger as a commit finds it: its last head, None on a new one, and the nodes that its root is made of.

    `nodes` gives rows of the tree by size; `key` signs, and can change in this transaction alone; `halting` is the size
    of a head that it signed, does not extend and has not answered for, None if there is none.
    """

    head: Head | None = None
    nodes: Mapping[int, bytes] = field(default_factory=dict)
    key: SigningKey | None = None
    halting: int | None = None


def check(connection: Connection) -> Standing:
    """The ledger as it stands, or VerificationError where it is not what its last head signed.

    Looks at what a broken disk, a lost journal or another program would have changed: the number of entries, the last
    of them, the root, the accounts, the head itself. `verify` looks at all the rest.
    """
    accounts, rows = _split(_STANDING.rows(connection))
    if not rows:
        _require(_ANY.rows(connection) == [(None,)], "its last entry is not that of its last head, 0")
        return Standing()
    _, body, _, last_entry, private, public, seed, halting, *facts = rows[0]
    head = Head(**dict(zip(_FIELDS, facts, strict=True)))
    size, nodes = head.size, {row[0]: bytes(row[2]) for row in rows if row[2] is not None}
    _require(last_entry == size and body is not None, f"its last entry is not that of its last head, {size}")
    root = _root(size, _under(size, nodes))
    same = nodes.get(size, b"")[:_HASH_BYTES] == merkle.leaf(body)
    _require(same, f"entry {size} differs from the one that was signed")
    _require(root.hex() == head.root, "its tree has another root than its last head")
    _require(_digest(accounts) == head.accounts, "its accounts differ from those at its last head")
    key = keys.of([(public, seed)] * max(1, private))
    # Signing again is as good as verifying, since there is one signature, and takes a third of the time.
    _require(
        key is not None and key.public == head.key and key.sign(head.statement).hex() == head.signature,
        "its last head is not signed by its key",
    )
    return Standing(head, nodes, key, halting)


def seal(
    connection: Connection, before: Standing, *, entries: Sequence[tuple[int, bytes]] | None = None
) -> Standing | None:
    """Puts what was appended since into the tree, and signs it; returns how the ledger stands, None if nothing was.

    `entries`: what was written, by default what this transaction appended. It is read back before it is signed.
    """
    written = appended(connection) if entries is None else list(entries)
    if not written:
        return None
    old = 0 if before.head is None else before.head.size
    size = written[-1][0]
    accounts, added = _split(_ADDED.rows(connection, {"after": old, "until": size}))
    stored = sorted((seq, bytes(body)) for seq, body, _ in added)
    _require(stored == written and added[0][2] == size, f"what follows entry {old} was not stored as it was written")
    nodes = dict(before.nodes)
    grown: Iterable[tuple[int, bytes]] = _grown(nodes, written)
    if len(written) > FEW:
        _ADD_NODES.stream(connection, grown)
        grown = ()
    few = [{"size": seq, "nodes": row} for seq, row in grown]
    known = keys.current(connection) if before.key is None or trust_changed(connection) else before.key
    key = known or keys.make(connection)
    under = _under(size, nodes)
    head = Head(
        size=size,
        root=_root(size, under).hex(),
        accounts=_digest(accounts),
        previous=None if before.head is None else before.head.digest,
        key=key.public,
    )
    head = head.signed(key.sign(head.statement))
    with together(connection):
        if few:
            _ADD_NODES.put(connection, *few)
        _ADD_HEAD.put(connection, vars(head))
    return Standing(head, dict(under), key, before.halting)


def _grown(nodes: dict[int, bytes], written: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The tree's new rows, each of which is added to `nodes`."""
    read = _reader(nodes)
    for seq, body in written:
        nodes[seq] = b"".join(merkle.completed(seq, merkle.leaf(body), read))
        yield seq, nodes[seq]


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
    return [(size, bytes(nodes)) for size, nodes in _GROWN.rows(connection, {"start": start, "end": end})]


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


def _under(size: int, nodes: Mapping[int, bytes]) -> tuple[tuple[int, bytes], ...]:
    """The rows of the tree that the root over `size` entries is made of, the last first; a missing one is empty."""
    found = []
    while size:
        found.append((size, nodes.get(size, b"")))
        size &= size - 1
    return tuple(found)


# The root that one commit signs is the one that the next finds under the rows that it reads.
@lru_cache(maxsize=8)
def _root(size: int, rows: tuple[tuple[int, bytes], ...]) -> bytes:
    return merkle.root(size, _reader(dict(rows)))


def _split(rows: Sequence[tuple[Any, ...]]) -> tuple[tuple[tuple[int, ...], ...], list[tuple[Any, ...]]]:
    """The accounts in their order, and the other rows, of a statement that `_and_accounts` made."""
    width = len(_BALANCES)
    accounts = sorted(row[:width] for row in rows if row[0] is not None)
    return tuple(accounts), [row[width:] for row in rows if row[0] is None]


# The accounts that one commit leaves are those that the next finds.
@lru_cache(maxsize=8)
def _digest(rows: tuple[tuple[int, ...], ...]) -> str:
    return accounts_digest(Balance(*row) for row in rows)


def _one(row: Row[Any] | None) -> Head | None:
    return None if row is None else Head(**row._mapping)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise VerificationError(
            f"the ledger is not as it was left ({what}): nothing was added to it. Run `parco ledger verify`; keep this"
            " file as evidence, and go on from a backup with `parco ledger recover`"
        )
