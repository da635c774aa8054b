"""Sources of bits for tests: chosen words, and long reproducible streams."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

REST = 0x243F6A8885A308D3
"""Bits behind a chosen beginning; any will do, and these have no pattern: the first 64 of the fraction of pi."""


class Script:
    """A source that gives chosen words one by one, and notes how many bits were asked for; an error at its end."""

    def __init__(self, *left: int) -> None:
        self.left = list(left)
        self.asked: list[int] = []

    def bits(self, count: int) -> int:
        self.asked.append(count)
        return self.left.pop(0)

    def words(self, count: int) -> NDArray[np.int64]:
        return signed([self.bits(64) for _ in range(count)])


class Stream:
    """Words of a hash stream: the same for the same name, in every process."""

    def __init__(self, name: str) -> None:
        self._name, self._block = name, 0
        self._left: NDArray[np.int64] = np.empty(0, np.int64)

    def bits(self, count: int) -> int:
        size = -(-count // 64)
        value = 0
        for word in self.words(size):
            value = value << 64 | int(word) & (2**64 - 1)
        return value >> (64 * size - count)

    def words(self, count: int) -> NDArray[np.int64]:
        while len(self._left) < count:
            more = hashlib.shake_256(f"{self._name} {self._block}".encode()).digest(1 << 16)
            self._block += 1
            self._left = np.concatenate([self._left, np.frombuffer(more, "<i8")])
        taken, self._left = self._left[:count], self._left[count:]
        return taken


class Given:
    """Whole blocks of chosen words, then a stream."""

    def __init__(self, words: NDArray[np.int64]) -> None:
        self._words, self._rest = words, Stream("behind")

    def bits(self, count: int) -> int:
        return self._rest.bits(count)

    def words(self, count: int) -> NDArray[np.int64]:
        assert count <= len(self._words)
        taken, self._words = self._words[:count], self._words[count:]
        return taken


def signed(words: list[int]) -> NDArray[np.int64]:
    """Words below 2^64, read as two's complement."""
    return np.array(words, dtype=np.uint64).view(np.int64)
