"""For tests only: a session whose random bits come from a tape, so that a draw can be known beforehand.

A release made this way is not private. Its settle entry, its receipt and its history line say so for ever, and no
ordinary session will serve it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parco.contract.contract import Contract
from parco.errors import InternalError
from parco.noise.bits import BitSource
from parco.session.session import Session

__all__ = ["TapeBits", "TapeSession"]


class TapeBits:
    """Bits read off `tape`, the first bit of the first byte first; raises InternalError at its end."""

    def __init__(self, tape: bytes) -> None:
        self._left = len(tape) * 8
        self._tape = int.from_bytes(tape)

    def bits(self, count: int) -> int:
        """The next `count` bits as an integer."""
        if count > self._left:
            raise InternalError("the tape of bits has come to its end")
        self._left -= count
        return (self._tape >> self._left) & ((1 << count) - 1)

    def words(self, count: int) -> NDArray[np.int64]:
        """The next 64 * count bits as words, read as signed."""
        return np.array([self.bits(64) for _ in range(count)], dtype=np.uint64).view(np.int64)


class TapeSession(Session):
    """A session that draws its noise from `tape` and marks every release "not private"."""

    _private = False

    def __init__(self, contract: Contract, *, tape: bytes, **options: Any) -> None:  # noqa: ANN401 - Session's own
        super().__init__(contract, **options)
        self._tape = TapeBits(tape)

    def _bits(self) -> BitSource:
        return self._tape
