"""Uniform bits: the protocol, and a stream cipher under a key from the kernel, which has no seed."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NoReturn, Protocol

from parco.errors import InternalError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BitSource", "CipherBits"]

_KEY_BYTES = 32
_ZEROS = bytes(1 << 17)


class BitSource(Protocol):
    """A source of bits, each fair and independent of all others; what was given is never given again."""

    def bits(self, count: int) -> int:
        """The next `count` >= 1 bits, as an integer below 2^count."""
        ...

    def words(self, count: int) -> NDArray[np.int64]:
        """What the next `count` calls of bits(64) would give, shape (count,), read as signed (two's complement)."""
        ...


class CipherBits:
    """For every count, returns bits of AES-256 in counter mode under a key fresh from the kernel, or an InternalError.

    One instance serves one release and is then dropped, and its key with it. Two processes with one key would draw the
    same noise, and the difference of two answers would be the difference of the data: a child process is refused, and
    so are copies. Threads may share it. Source: docs/decisions/0024-a-stream-cipher-and-doubles.md.
    """

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        key = os.urandom(_KEY_BYTES)
        if len(key) != _KEY_BYTES:
            raise InternalError("the kernel gave fewer random bytes than asked for")
        # The counter begins at 0: a key is used once.
        self._stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        self._process = os.getpid()
        self._lock = threading.Lock()

    def bits(self, count: int) -> int:
        """The next `count` bits, count >= 1, or InternalError in another process than the one that made this object."""
        if count < 1:
            raise InternalError("at least one bit is asked for")
        return int.from_bytes(self._take(-(-count // 8)), "little") & ((1 << count) - 1)

    def words(self, count: int) -> NDArray[np.int64]:
        """What the next `count` calls of bits(64) would give, read as signed; InternalError as above."""
        import numpy as np

        return np.frombuffer(self._take(8 * count), dtype="<i8")

    def _take(self, size: int) -> bytes:
        if os.getpid() != self._process:
            raise InternalError("bits for noise were asked for in a forked process: make a new source there")
        zeros = memoryview(_ZEROS)[:size] if size <= len(_ZEROS) else bytes(size)
        with self._lock:
            return self._stream.update(zeros)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuses every copy: `copy`, `deepcopy` and `pickle` all come here."""
        raise InternalError("a source of bits for noise is never copied: the copy would repeat them")
