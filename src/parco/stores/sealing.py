"""A transaction that may append: from the last head, once it is found to hold, to the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from parco.ledger.heads import Head
from parco.stores import halts, heads, left

__all__ = ["sealed"]

T = TypeVar("T")


def sealed(
    connection: Connection, work: Callable[[Connection], T], *, mark: Head | None, spends: bool
) -> tuple[T, Head | None]:
    """What `work` returns, and the head to be marked once it is durable, None if there is none; or its errors.

    The caller's transaction holds the write lock from its beginning. mark: what the high-water mark knows. spends:
    something begins here, which a ledger that has lost some of its past refuses (HaltedError).
    """
    standing = left.standing(connection)
    fault = halts.trusted(connection, standing.head, mark)
    if spends:
        halts.check(standing.halting)
        if fault is not None:
            raise fault
    result = work(connection)
    after = heads.seal(connection, standing)
    if after is None:
        return result, None
    left.leave(connection, after)
    head = after.head
    if fault is not None and halts.trusted(connection, head, mark) is not None:
        # What the mark knows and this ledger has lost must not be covered by a later line.
        return result, None
    return result, head
