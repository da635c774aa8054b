"""The tree against RFC 6962 written out, its published vectors, and proofs that were tampered with."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parco import canonical
from parco.ledger import merkle
from parco.ledger.proofs import path_text

SIZES = 70

# The leaves of the reference implementation's tests (Certificate Transparency), and the root over the first n of them.
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


class Tree:
    """All complete nodes over some data, made as the store makes them."""

    def __init__(self, data: list[bytes]) -> None:
        self.data, self.rows = data, dict[int, list[bytes]]()
        for size, one in enumerate(data, start=1):
            self.rows[size] = merkle.completed(size, merkle.leaf(one), self)

    def __call__(self, level: int, index: int) -> bytes:
        return self.rows[(index + 1) << level][level]


TREE = Tree([number.to_bytes(2) for number in range(SIZES)])


def mth(data: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    if len(data) < 2:
        return hashlib.sha256(b"\x00" + data[0] if data else b"").digest()
    k = 1 << ((len(data) - 1).bit_length() - 1)
    return hashlib.sha256(b"\x01" + mth(data[:k]) + mth(data[k:])).digest()


def path(m: int, data: list[bytes]) -> list[bytes]:
    """Section 2.1.1."""
    if len(data) == 1:
        return []
    k = 1 << ((len(data) - 1).bit_length() - 1)
    return [*path(m, data[:k]), mth(data[k:])] if m < k else [*path(m - k, data[k:]), mth(data[:k])]


def proof(m: int, data: list[bytes], whole: bool = True) -> list[bytes]:
    """Section 2.1.2."""
    if m == len(data):
        return [] if whole else [mth(data)]
    k = 1 << ((len(data) - 1).bit_length() - 1)
    if m <= k:
        return [*proof(m, data[:k], whole), mth(data[k:])]
    return [*proof(m - k, data[k:], False), mth(data[:k])]


def test_the_published_roots() -> None:
    tree = Tree([bytes.fromhex(text) for text in LEAVES])
    assert [merkle.root(size, tree).hex() for size in range(len(ROOTS))] == ROOTS
    assert merkle.EMPTY_ROOT.hex() == ROOTS[0]


def test_roots_and_paths_are_those_of_the_rfc() -> None:
    for size in range(1, SIZES + 1):
        data = TREE.data[:size]
        assert merkle.root(size, TREE) == mth(data)
        for index in range(size):
            assert merkle.inclusion_path(index, size, TREE) == path(index, data)
        for old in range(1, size + 1):
            assert merkle.consistency_path(old, size, TREE) == proof(old, data)


def test_every_true_proof_is_accepted_and_shows_what_lies_left() -> None:
    for size in range(1, SIZES + 1):
        top = merkle.root(size, TREE)
        for index in range(size):
            steps = merkle.inclusion_path(index, size, TREE)
            assert merkle.includes(top, size=size, index=index, last=merkle.leaf(TREE.data[index]), path=steps)
            left = merkle.left_of(index, size, steps)
            assert [TREE(level, place) for level, place, _ in left] == [found for *_, found in left]
            covered = [leaf for level, place, _ in left for leaf in range(place << level, (place + 1) << level)]
            assert covered == list(range(index))
        for old in range(1, size + 1):
            steps = merkle.consistency_path(old, size, TREE)
            assert merkle.extends(top, size=size, old_top=merkle.root(old, TREE), old_size=old, path=steps)


def test_an_entry_among_a_million_is_proven_in_less_than_a_kilobyte() -> None:
    def some(level: int, index: int) -> bytes:
        return hashlib.sha256(f"{level},{index}".encode()).digest()

    for index in (0, 524_288, 777_777, 999_999):
        steps = merkle.inclusion_path(index, 10**6, some)
        assert sum(map(len, steps)) <= 640
        assert len(canonical.encode(path_text(steps))) <= 1024
        assert [base64.b64decode(text) for text in path_text(steps)] == steps


def forged(steps: list[bytes]) -> Iterator[list[bytes]]:
    """A path with a wrong node at every place, one too many, one too few, none, and far too many."""
    for place, step in enumerate(steps):
        wrong = bytes([step[0] ^ 1]) + step[1:]
        yield [*steps[:place], wrong, *steps[place + 1 :]]
        yield [*steps[:place], *steps[place + 1 :]]
        yield [*steps[:place], step, *steps[place:]]
    yield [*steps, bytes(32)]
    yield [bytes(32), *steps]
    yield steps * 70 if steps else [bytes(32)] * 70
    if steps:
        yield []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13, 40])
def test_a_forged_inclusion_is_refused(size: int) -> None:
    top = merkle.root(size, TREE)
    for index in range(size):
        steps, last = merkle.inclusion_path(index, size, TREE), merkle.leaf(TREE.data[index])
        for bad in forged(steps):
            assert not merkle.includes(top, size=size, index=index, last=last, path=bad)
        for place in {*range(-1, size + 2), 2**63} - {index}:
            assert not merkle.includes(top, size=size, index=place, last=last, path=steps)
        assert not merkle.includes(top, size=size, index=index, last=merkle.leaf(b"another"), path=steps)
        assert not merkle.includes(bytes(32), size=size, index=index, last=last, path=steps)


@pytest.mark.parametrize(("old", "size"), [(1, 2), (3, 7), (4, 7), (6, 8), (8, 13), (13, 40), (32, 40)])
def test_a_forged_consistency_is_refused(old: int, size: int) -> None:
    top, old_top = merkle.root(size, TREE), merkle.root(old, TREE)
    steps = merkle.consistency_path(old, size, TREE)
    for bad in forged(steps):
        assert not merkle.extends(top, size=size, old_top=old_top, old_size=old, path=bad)
    for claimed in {-1, 0, *range(1, size + 2), 2**63} - {old}:
        assert not merkle.extends(top, size=size, old_top=old_top, old_size=claimed, path=steps)
    assert not merkle.extends(top, size=size, old_top=bytes(32), old_size=old, path=steps)
    assert not merkle.extends(bytes(32), size=size, old_top=old_top, old_size=old, path=steps)
    assert not merkle.extends(bytes(32), size=size, old_top=top, old_size=size, path=[])


@given(st.integers(1, SIZES), st.data())
def test_no_other_leaf_or_size_has_the_same_proof(size: int, data: st.DataObject) -> None:
    index, other = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, SIZES))
    steps, last = merkle.inclusion_path(index, size, TREE), merkle.leaf(TREE.data[index])
    same = merkle.includes(merkle.root(other, TREE), size=other, index=index, last=last, path=steps)
    assert same == (other == size)
