"""Uniform bits: the protocol, and the kernel's generator, which has no seed."""

from __future__ import annotations

import os
import threading
from typing import NoReturn, Protocol

from parco.errors import InternalError

__all__ = ["BitSource", "KernelBits"]

_BLOCK_BYTES = 4096


class BitSource(Protocol):
    """For every count >= 1, `bits(count)` returns an integer uniform below 2^count, independent of all before it."""

    def bits(self, count: int) -> int:
        """The next `count` bits."""
        ...


class KernelBits:
    """For every count >= 1, returns bits of the kernel's generator, or raises InternalError.

    One instance serves one release and is then dropped. Bits are read in blocks; a block shared by two processes would
    give both the same noise, and the difference of two answers would be the difference of the data: a child process is
    refused, and so are copies.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._block = b""

    def bits(self, count: int) -> int:
        """The next `count` bits, count >= 1, or InternalError in another process than the one that made this object."""
        if os.getpid() != self._process:
            raise InternalError("bits for noise were asked for in a forked process: make a new source there")
        if count < 1:
            raise InternalError("at least one bit is asked for")
        size = -(-count // 8)
        return int.from_bytes(self._take(size)) >> (8 * size - count)

    def _take(self, size: int) -> bytes:
        with self._lock:
            if len(self._block) < size:
                self._block += _read(max(size, _BLOCK_BYTES))
            taken, self._block = self._block[:size], self._block[size:]
        return taken

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuses every copy: `copy`, `deepcopy` and `pickle` all come here."""
        raise InternalError("a source of bits for noise is never copied: the copy would repeat them")


def _read(size: int) -> bytes:
    block = os.urandom(size)
    if len(block) != size:
        raise InternalError("the kernel gave fewer random bytes than asked for")
    return block
