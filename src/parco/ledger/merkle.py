"""The Merkle tree of RFC 6962 over the ledger's stored bytes: entry n is leaf n - 1.

A node of level k and index i covers the leaves from i 2^k to (i + 1) 2^k, this one excluded; it is complete, and never
changes again, once all of them are there. Whoever calls brings a reader of complete nodes, so that roots and proofs
take O(log n) of them wherever they are kept. Hashes are SHA-256, 32 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

__all__ = [
    "EMPTY_ROOT",
    "Node",
    "completed",
    "consistency_path",
    "extends",
    "includes",
    "inclusion_path",
    "leaf",
    "left_of",
    "parent",
    "root",
]

Node: TypeAlias = Callable[[int, int], bytes]
"""Reads the complete node of a level and an index."""

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf(data: bytes) -> bytes:
    """The hash of one entry's bytes (RFC 6962, section 2.1): a leaf can never be taken for a node."""
    return hashlib.sha256(b"\x00" + data).digest()


def parent(left: bytes, right: bytes) -> bytes:
    """The hash over two nodes."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def completed(size: int, last: bytes, node: Node) -> list[bytes]:
    """The nodes that the leaf hash `last` completes as leaf number `size`, level 0 first: one for each zero that ends
    `size` in binary, and the leaf itself."""
    found, index = [last], size - 1
    while index % 2 == 1:
        found.append(parent(node(len(found) - 1, index - 1), found[-1]))
        index //= 2
    return found


def root(size: int, node: Node) -> bytes:
    """MTH(D[size]): the root over the first `size` >= 0 leaves."""
    return EMPTY_ROOT if size == 0 else _span(0, size, node)


def inclusion_path(index: int, size: int, node: Node) -> list[bytes]:
    """PATH(index, D[size]) for 0 <= index < size: what shows that a leaf is under a root, lowest level first."""
    path, start, end = [], 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_span(middle, end, node))
            end = middle
        else:
            path.append(_span(start, middle, node))
            start = middle
    return path[::-1]


def consistency_path(old: int, size: int, node: Node) -> list[bytes]:
    """PROOF(old, D[size]) for 0 < old <= size: what shows that the smaller tree is the beginning of the larger."""
    path, start, end = [], 0, size
    while end != old:
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_span(middle, end, node))
            end = middle
        else:
            path.append(_span(start, middle, node))
            start = middle
    # A subtree that is the whole old tree is known to whoever checks: its root is the old root.
    return ([] if start == 0 else [_span(start, end, node)]) + path[::-1]


def includes(top: bytes, *, size: int, index: int, last: bytes, path: Sequence[bytes]) -> bool:
    """Whether the path shows that `last` is the hash of leaf `index` under the root `top` over `size` leaves.

    Source: RFC 9162, section 2.1.3.2. Every path but the one that `inclusion_path` gives is refused.
    """
    if not 0 <= index < size:
        return False
    first, second, found = index, size - 1, last
    for step in path:
        if second == 0:
            return False
        if first % 2 == 1 or first == second:
            found = parent(step, found)
            while first % 2 == 0 and first != 0:
                first, second = first >> 1, second >> 1
        else:
            found = parent(found, step)
        first, second = first >> 1, second >> 1
    return second == 0 and found == top


def extends(top: bytes, *, size: int, old_top: bytes, old_size: int, path: Sequence[bytes]) -> bool:
    """Whether the path shows that the tree of root `old_top` over `old_size` > 0 leaves begins that of `top`.

    Source: RFC 9162, section 2.1.4.2. Every path but the one that `consistency_path` gives is refused.
    """
    if not 0 < old_size <= size:
        return False
    if old_size == size:
        return not path and old_top == top
    steps = [old_top, *path] if old_size & (old_size - 1) == 0 else list(path)
    if not steps:
        return False
    first, second = old_size - 1, size - 1
    while first % 2 == 1:
        first, second = first >> 1, second >> 1
    old, new = steps[0], steps[0]
    for step in steps[1:]:
        if second == 0:
            return False
        if first % 2 == 1 or first == second:
            old, new = parent(step, old), parent(step, new)
            while first % 2 == 0 and first != 0:
                first, second = first >> 1, second >> 1
        else:
            new = parent(new, step)
        first, second = first >> 1, second >> 1
    return second == 0 and old == old_top and new == top


def left_of(index: int, size: int, path: Sequence[bytes]) -> list[tuple[int, int, bytes]]:
    """The nodes of an inclusion path that lie left of its leaf, as (level, index, hash), from the left.

    Together they cover all leaves before `index`. For a path that `includes` accepts.
    """
    found, first, second = [], index, size - 1
    level = 0
    for step in path:
        if first % 2 == 1 or first == second:
            while first % 2 == 0:
                first, second, level = first >> 1, second >> 1, level + 1
            found.append((level, first - 1, step))
        first, second, level = first >> 1, second >> 1, level + 1
    return found[::-1]


def _span(start: int, end: int, node: Node) -> bytes:
    """The root over the leaves from `start` to `end`, as it occurs in a tree: whole levels from the left."""
    length = end - start
    if length & (length - 1) == 0:
        level = length.bit_length() - 1
        return node(level, start >> level)
    middle = start + _split(length)
    return parent(_span(start, middle, node), _span(middle, end, node))


def _split(length: int) -> int:
    """The largest power of two below `length` > 1."""
    return 1 << ((length - 1).bit_length() - 1)
