"""Forged proofs are refused by both verifiers: the library's and the offline one, which share no code."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from parco.audit import offline
from parco.audit.offline import CheckError
from parco.errors import VerificationError
from parco.ledger import merkle
from parco.ledger.merkle import leaf
from parco.ledger.proofs import inclusion_of
from parco.stores.keys import verified
from parco.stores.sqlite import SqliteStore

SIZES = 18
LEAVES = [leaf(bytes([number])) for number in range(SIZES)]


def root(leaves: Sequence[bytes]) -> bytes:
    """As RFC 6962 defines it, without a tree."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return merkle.parent(root(leaves[:half]), root(leaves[half:]))


def node(level: int, index: int) -> bytes:
    return root(LEAVES[index << level : (index + 1) << level])


def here_includes(top: bytes, size: int, index: int, last: bytes, path: list[bytes]) -> bool:
    return merkle.includes(top, size=size, index=index, last=last, path=path)


def there_includes(top: bytes, size: int, index: int, last: bytes, path: list[bytes]) -> bool:
    with suppress(ValueError):
        return offline.climb(size, index, path, last, leaf=True)[1] == top
    return False


def here_extends(top: bytes, size: int, old_top: bytes, old: int, path: list[bytes]) -> bool:
    return merkle.extends(top, size=size, old_top=old_top, old_size=old, path=path)


def there_extends(top: bytes, size: int, old_top: bytes, old: int, path: list[bytes]) -> bool:
    with suppress(ValueError):
        return offline.climb(size, old - 1, path, old_top, leaf=False) == (old_top, top)
    return False


def forged(path: list[bytes]) -> Iterator[list[bytes]]:
    """Wrong nodes, extra and missing ones, other orders, none at all."""
    for place, step in enumerate(path):
        yield [*path[:place], bytes([step[0] ^ 1]) + step[1:], *path[place + 1 :]]
        yield [*path[:place], *path[place + 1 :]]
        yield [*path[:place], step, step, *path[place + 1 :]]
        if path[place + 1 : place + 2] not in ([], [step]):
            yield [*path[:place], path[place + 1], step, *path[place + 2 :]]
    yield [bytes(32), *path]
    yield [*path, bytes(32)]
    if path:
        yield []


@pytest.mark.parametrize("includes", [here_includes, there_includes])
def test_every_forged_inclusion_is_refused(includes: Callable[..., bool]) -> None:
    for size in range(1, SIZES + 1):
        top = root(LEAVES[:size])
        for index in range(size):
            path = merkle.inclusion_path(index, size, node)
            assert includes(top, size, index, LEAVES[index], path)
            for bad in forged(path):
                assert not includes(top, size, index, LEAVES[index], bad)
            for other in {*range(-1, size + 2)} - {index}:
                assert not includes(top, size, other, LEAVES[index], path)
            assert not includes(top, size, index, leaf(b"another"), path)
            assert not includes(bytes(32), size, index, LEAVES[index], path)


@pytest.mark.parametrize("extends", [here_extends, there_extends])
def test_every_forged_consistency_is_refused(extends: Callable[..., bool]) -> None:
    for size in range(1, SIZES + 1):
        top = root(LEAVES[:size])
        for old in range(1, size + 1):
            old_top, path = root(LEAVES[:old]), merkle.consistency_path(old, size, node)
            assert extends(top, size, old_top, old, path)
            for bad in forged(path):
                assert not extends(top, size, old_top, old, bad)
            for other in {*range(-1, size + 2)} - {old}:
                assert not extends(top, size, old_top, other, path), (size, old, other)
            assert not extends(top, size, bytes(32), old, path)
            assert not extends(bytes(32), size, old_top, old, path)


@pytest.mark.parametrize("size", [0, -1])
def test_a_tree_of_no_size_shows_nothing(size: int) -> None:
    for includes in (here_includes, there_includes):
        assert not includes(merkle.EMPTY_ROOT, size, 0, LEAVES[0], [])
    for extends in (here_extends, there_extends):
        assert not extends(LEAVES[0], 1, merkle.EMPTY_ROOT, size, [])


def _is_shown(record: Any) -> tuple[bool, bool]:
    """Whether each of the two verifiers takes a proof."""
    here = False
    with suppress(VerificationError):
        found = inclusion_of(record)
        here = found.holds and verified(found.head)
    try:
        offline.Ledger().check_proof(record)
    except CheckError:
        return here, False
    return here, True


def test_a_proof_that_leaves_the_ledger_cannot_be_bent(original: SqliteStore) -> None:
    record = original.prove(7).record()
    assert _is_shown(record) == (True, True)
    head: Any = record["head"]
    path: Any = record["path"]
    other = original.prove(8).record()
    one = base64.b64encode(bytes(32)).decode()
    bent: list[dict[str, Any]] = [
        {"position": 8},
        {"position": 0},
        {"position": "7"},
        {"entry": other["entry"]},
        {"path": other["path"]},
        {"path": []},
        {"path": [*path, one]},
        {"path": [one, *path[1:]]},
        {"path": [path[0], one, *path[2:]]},
        {"path": path[:-1]},
        {"path": ["!" * 44, *path[1:]]},
        {"head": {**head, "size": head["size"] - 1}},
        {"head": {**head, "size": 0}},
        {"head": {**head, "root": "0" * 64}},
        {"head": {**head, "signature": "0" * 128}},
        {"head": {**head, "key": "0" * 64}},
        {"head": None},
    ]
    for change in bent:
        assert _is_shown(record | change) == (False, False), change


def test_a_consistency_proof_cannot_be_bent(original: SqliteStore) -> None:
    record = original.prove_from(3).record()
    offline.Ledger().check_proof(record)
    old: Any = record["old"]
    path: Any = record["path"]
    changes: tuple[dict[str, Any], ...] = (
        {"path": []},
        {"path": path[:-1]},
        {"path": [*path, path[0]]},
        {"path": path[::-1]},
        {"old": {**old, "size": old["size"] + 1}},
        {"old": {**old, "signature": "0" * 128}},
        {"old": record["head"]},
    )
    for change in changes:
        with pytest.raises(CheckError, match="proven"):
            offline.Ledger().check_proof(record | change)
